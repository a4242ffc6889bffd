# %% [markdown]
# # Costs, and limits on exploration
#
# Limits on the *answer* are `[constraints]`. What limits the samples on the way to it? There are three
# scenarios, and the file says which one is yours:
#
# - **end-of-time**: nothing; only the answer must satisfy the constraints.
# - **anytime**: the pulls satisfy the same constraints, from the first to the last.
# - **exploration**: the samples have limits of their own, in a table `[exploration]`.
#
# Here is a trial of doses. The patients of the trial are protected by stricter limits than the treatment
# that is recommended in the end:

# %% [shell]
# cat strict_trial.toml
# simplexplore bound strict_trial.toml

# %% [markdown]
# The columns of the last table show what each scenario costs, in samples. In Python:

# %%
import simplexplore as sx

problem = sx.Problem.from_file("strict_trial.toml")
bound = sx.lower_bound(problem)
for name, scenario in bound.scenarios.items():
    print(f"{name:12} at least {scenario.lower_bound:7.1f} samples")

# %% [markdown]
# **Costs.** If one sample costs more than another, you want the least *cost*, not the fewest samples.
# `[costs]` in the file says what one pull of each arm costs. `bound` then minimises the cost, and samples
# go where information is cheap:

# %% [shell]
# cat laboratory.toml
# simplexplore bound laboratory.toml --plot laboratory.png

# %% [markdown]
# The same problem without costs takes fewer samples, which cost more:

# %%
laboratory = sx.Problem.from_file("laboratory.toml")
dear = sx.lower_bound(laboratory)
free = sx.lower_bound(laboratory.replace(costs=None))
print(
    f"with costs:    {dear.samples:7.1f} samples, which cost {dear.cost:7.1f}"
)
spent = float(laboratory.costs @ free.allocation) * free.samples
print(
    f"without costs: {free.samples:7.1f} samples, which would cost {spent:7.1f}"
)

# %% [markdown]
# [The problem file](../problem_file.md) has every key, and [costs and limits](../theory/costs_and_limits.md)
# has the proofs.

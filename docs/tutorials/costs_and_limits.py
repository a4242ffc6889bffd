# %% [markdown]
# # Costs, and limits on exploration
#
# Limits on the *answer* are `[constraints]`. What about the samples on the way there? There are three
# scenarios, and the file says which one is yours:
#
# - **end-of-time**: only the answer has to keep the limits; sampling is free.
# - **anytime**: the pulls themselves keep the same limits, from the first to the last.
# - **exploration**: a table `[exploration]` has limits of its own for samples.
#
# A trial of doses, where what patients receive on the way is limited more strictly than the treatment
# that is recommended in the end:

# %% [shell]
# cat strict_trial.toml
# simplexplore bound strict_trial.toml

# %% [markdown]
# The columns side by side are the price of each scenario, in samples. In Python:

# %%
import simplexplore as sx

problem = sx.Problem.from_file("strict_trial.toml")
bound = sx.lower_bound(problem)
for name, scenario in bound.scenarios.items():
    print(f"{name:12} at least {scenario.lower_bound:7.1f} samples")

# %% [markdown]
# **Costs.** Where one sample costs more than another, the least *cost* is what counts, and `bound`
# minimises that; samples go where information is cheap. `[costs]` in the file says what one pull of
# each arm costs:

# %% [shell]
# cat laboratory.toml
# simplexplore bound laboratory.toml --plot laboratory.png

# %% [markdown]
# What costs change is best seen beside the same problem without them:

# %%
laboratory = sx.Problem.from_file("laboratory.toml")
dear = sx.lower_bound(laboratory)
free = sx.lower_bound(laboratory.replace(costs=None))
print(f"with costs:    {dear.samples:7.1f} samples, which cost {dear.cost:7.1f}")
spent = float(laboratory.costs @ free.allocation) * free.samples
print(f"without costs: {free.samples:7.1f} samples, which would cost {spent:7.1f}")

# %% [markdown]
# [The problem file](../problem_file.md) has every key, [costs and limits](../theory/costs_and_limits.md)
# the proofs.

# %% [markdown]
# # Plan an experiment
#
# You sell a meal of the day and want to know which mix of dishes people like best, within limits on
# energy and price. Before anybody cooks: what do you expect to find, what makes it hard, and how many
# tastings does it take?
#
# A problem is a short file. `means` are a guess, `sigma` is how much one rating differs from the next,
# `delta` the probability of a wrong answer that you accept.

# %% [shell]
# cat meal.toml

# %% [markdown]
# `bound` says what is best if the guess is right, and how many samples *no* method can do without.
# Its table has the **characteristic time**: how hard the instance is by itself, apart from delta. The
# lower bound is that times kl(δ, 1 − δ), about log(1/δ).

# %% [shell]
# simplexplore bound meal.toml

# %% [markdown]
# The second sentence is what to plan with: what our own method takes on average. The comparisons say
# *why*: which dish is hard to tell from which. The same in Python, where a picture shows the feasible
# mixes, the best one, and where samples should go:

# %%
import simplexplore as sx

problem = sx.Problem.from_file("meal.toml")
bound = sx.lower_bound(problem)
sx.plot_bound(bound, "meal.png")
bound

# %% [markdown]
# **What if the guess is wrong?** Try other guesses before you settle on a budget. Half a point less
# between pizza and salmon, and the experiment is several times as long:

# %%
for salmon in (7.0, 7.5, 7.8):
    other = sx.lower_bound(problem, [8.0, salmon, 6.0])
    print(
        f"salmon {salmon}: at least {other.samples:7.1f} samples, best mix {other.policy.round(3)}"
    )

# %% [markdown]
# **How sure must you be?** Twice as sure is not twice as long: samples grow with log(1/δ).

# %%
for delta in (0.2, 0.05, 0.01, 0.001):
    print(f"delta {delta}: at least {sx.lower_bound(problem, delta=delta).samples:6.1f} samples")

# %% [markdown]
# **Is a simulation right about that?** `simulate` runs the method many times where the means are known:
# how many samples, how often right. Here 100 experiments take a second or two.

# %%
results = sx.simulate(problem, sampler="top-two", runs=100, seed=0)
results

# %% [markdown]
# Next: [run it live](run_one_live.md), or see what [limits and costs](costs_and_limits.md) on the
# samples themselves change.

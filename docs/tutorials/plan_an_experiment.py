# %% [markdown]
# # Plan an experiment
#
# You sell a meal of the day and want to know which mix of dishes people like best, within limits on
# energy and price. Before anybody cooks, you ask: what do I expect to find, what makes it hard, and how
# many tastings does it take?
#
# A problem is a short file. `means` are a guess, `sigma` is the standard deviation of one rating, and
# `delta` is the probability of a wrong answer that you accept.

# %% [shell]
# cat meal.toml

# %% [markdown]
# `bound` says which mix is best if the guess is right, and how many samples *every* method needs at
# least. Its table has the **characteristic time**: how hard the instance is by itself, apart from delta.
# The lower bound is the characteristic time times kl(δ, 1 − δ), about log(1/δ).

# %% [shell]
# simplexplore bound meal.toml

# %% [markdown]
# Plan with the line "Expect about ...": that is what the default method takes on average. The comparisons
# say *why*: which dishes are hard to tell apart. Python gives the same numbers, and a picture of the
# feasible mixes, the best one, and where samples should go:

# %%
import simplexplore as sx

problem = sx.Problem.from_file("meal.toml")
bound = sx.lower_bound(problem)
sx.plot_bound(bound, "meal.png")
bound

# %% [markdown]
# **What if the guess is wrong?** Try other guesses before you settle on a plan. If salmon tastes half a
# point worse than you thought, the experiment takes six times as long:

# %%
for salmon in (7.0, 7.5, 7.8):
    other = sx.lower_bound(problem, [8.0, salmon, 6.0])
    print(
        f"salmon {salmon}: at least {other.samples:7.1f} samples, best mix {other.policy.round(3)}"
    )

# %% [markdown]
# **How sure must you be?** Half the error does not take twice the samples: they grow with log(1/δ).

# %%
for delta in (0.2, 0.05, 0.01, 0.001):
    print(
        f"delta {delta}: at least {sx.lower_bound(problem, delta=delta).samples:6.1f} samples"
    )

# %% [markdown]
# **Check the plan by simulation.** `simulate` runs the whole experiment many times as if the guess were
# true, and says how many samples it took and how often the answer was right. Here 100 experiments take a
# second or two.

# %%
results = sx.simulate(problem, sampler="top-two", runs=100, seed=0)
results

# %% [markdown]
# Next: [run it live](run_one_live.md), or see how [limits and costs](costs_and_limits.md) of the
# samples change the plan.

# %% [markdown]
# # The whole tour, in Python
#
# From a question to an answer, with everything on the way: the bound, a
# simulation, a comparison of methods, a picture of each, and a real experiment.
# The [file of this page](the_whole_tour.py) is a notebook: editors and Jupyter
# (with jupytext) open its cells.
#
# ## 1. The problem
#
# Four drugs can be mixed. Each patient is given one and reports a score; the
# answer is the best mix within two limits. Means are a guess, for planning.

# %%
import random

import simplexplore as sx

problem = sx.Problem(
    arms=["old", "new", "strong", "cheap"],
    constraints=["0.1*old + 0.2*new + 0.8*strong <= 0.3", "cheap >= 0.2"],
    rewards=sx.Gaussian(1.0),
    means=[0.2, 0.6, 1.1, 0.0],
    delta=0.05,
)
problem

# %% [markdown]
# ## 2. What makes it hard
#
# `lower_bound` finds the best mix, its rivals, and how many samples *every*
# method needs on average if the guess is right.

# %%
bound = sx.lower_bound(problem)
print(f"at least {bound.samples:.0f} samples; best mix {bound.policy.round(3)}")
for edge in bound.edges:
    print(
        f"towards {edge.neighbour.round(3)}: {edge.gap:.3f} less per unit moved"
    )
sx.plot_bound(bound, "bound.png")

# %% [markdown]
# `plot_bound` draws the mix with its limits, the allocation of samples that is
# optimal (end-of-time, and anytime, where the samples must keep the limits too),
# and the comparisons, hardest first: how many samples each takes alone. With
# three arms it also draws the set of mixes and the normal cone.
#
# ## 3. Does a method get near it?
#
# `simulate` runs the experiment many times as if the guess were true.

# %%
results = {
    name: sx.simulate(problem, sampler=name, runs=200, seed=1)
    for name in ("top-two", "ctns", "uniform")
}
for name, result in results.items():
    print(f"{name:8} {result.times_bound:.2f} times the lower bound")
sx.plot_results(list(results.values()), "results.png")
results["top-two"]

# %% [markdown]
# `plot_results` draws the distribution of stopping times of each method with the
# lower bound, how often each was right with its 95% interval beside δ, and where
# samples went beside the optimal allocation.
#
# ## 4. On other problems too?
#
# One problem proves little. `random_instances` draws others, of a hardness that
# you may choose, and `compare` runs the methods on all of them.

# %%
instances = sx.random_instances(8, hardness=(20, 100), seed=1)
comparison = sx.compare(
    instances, ["top-two", "ctns", "uniform"], threshold="gk16", runs=20
)
print(comparison)
sx.plot_comparison(comparison, "comparison.png")

# %% [markdown]
# `plot_comparison` draws on which share of the instances a method takes at most
# x times the bound: higher and farther left is better.
#
# All pictures become PNG, PDF or SVG, by the suffix of the file. All results
# have `to_frame`, `to_csv` and `to_latex`:

# %%
print(comparison.to_latex(caption="Eight random instances.", label="tab:eight"))

# %% [markdown]
# ## 5. The experiment
#
# The real patients know nothing of the guess. `Explorer` says whom to give what,
# and is told the score; here `random` plays the patient, with means that are not
# those of the guess.

# %%
random.seed(5)
truth = dict(zip(problem.arms, [0.1, 0.9, 1.2, 0.1], strict=True))
explorer = sx.Explorer(problem, seed=0)
while (arm := explorer.ask()) is not None:
    explorer.tell(arm, random.gauss(truth[arm], 1.0))
print(f"{explorer.pulls} samples: {explorer.policy.round(3)}")
print(f"confidence {explorer.confidence:.3f}")

# %% [markdown]
# An experiment that lasts for weeks is a `Study`: the same, in a database. Every
# reward is kept at once, and the same code goes on after a crash.

# %%
study = sx.Study.create("tour.db", "drugs", problem, seed=0)
while not study.stopped:
    for pull in study.ask(4):  # four patients at a time
        study.tell(pull, random.gauss(truth[pull.arm], 1.0))
status = study.status()
print(status["state"], status["rewards"], "rewards")
study.close()

# %% [markdown]
# Next: [plan an experiment](plan_an_experiment.md) from the command line,
# [run one live](run_one_live.md) with several people, or
# [write a sampler](write_a_sampler.md).

# %% [markdown]
# # A taste test: nobody knows sigma
#
# Three coffees, judged by people on a scale that means something to them alone. How far do their
# scores scatter? Nobody knows, and it need not be the same for each coffee: everybody agrees about the
# plain one, the smoky one divides them. So the file says `unknown`, and a guess for planning:

# %%
from pathlib import Path

_ = Path("coffee.toml").write_text("""\
arms = ["plain", "fruity", "smoky"]
means = [6.0, 6.8, 5.5]             # a guess, for planning
delta = 0.05

[rewards]
family = "gaussian"
sigma = "unknown"
sigma_guess = [0.8, 1.2, 2.0]       # like the means: for planning only

[constraints]
beans = "smoky >= 0.2"              # they are in the cellar
""")

# %% [shell]
# simplexplore bound coffee.toml

# %% [markdown]
# `bound` counts what not knowing sigma costs beside the time if the guess were known. Now the test
# itself; here rewards are drawn, in a kitchen they are told. The experiment learns each coffee's
# scatter as it goes, pulls more where scores scatter more, and stops when the evidence suffices:

# %%
import numpy as np

import simplexplore as sx

problem = sx.Problem.from_file("coffee.toml")
truth = {"plain": (6.0, 0.8), "fruity": (6.8, 1.2), "smoky": (5.5, 2.0)}
rng = np.random.default_rng(1)
explorer = sx.Explorer(problem, seed=0)
while not explorer.stopped:
    coffee = explorer.ask()
    mean, scatter = truth[coffee]
    explorer.tell(coffee, rng.normal(mean, scatter))
print(f"{explorer.pulls} cups, mix {explorer.policy}, confidence {explorer.confidence:.3f}")
for coffee, count, mean in zip(problem.arms, explorer.counts, explorer.means, strict=True):
    print(f"{coffee:7} {count:4.0f} cups, mean score {mean:.2f}")

# %% [markdown]
# How much does ignorance cost? Coffees with a scatter of 1.2 each, many times over: with sigma known,
# unknown, and unknown but the same for all. The last, `equal_sigma = true`, is a promise of yours; for
# the coffees above it would be a false one.

# %%
from dataclasses import replace

even = problem.replace(rewards=replace(problem.rewards, sigma_guess=1.2))
for what, rewards in {
    "known": sx.Gaussian(1.2),
    "unknown": even.rewards,
    "one for all": replace(even.rewards, equal_sigma=True),
}.items():
    results = sx.simulate(even.replace(rewards=rewards), runs=200, seed=2)
    wrong = int((~results.correct).sum())
    print(f"{what:12} {results.stopping_times.mean():6.0f} cups on average, {wrong} of 200 wrong")

# %% [markdown]
# Scores that are far from Gaussian, such as rare tens among zeros, are no case for an unknown sigma:
# where they have limits, `family = "bounded"` promises delta whatever their law.
# [The page on both](../budget_and_sigma.md) has a measured table.

# %% [markdown]
# # A taste test with unknown sigma
#
# People judge three coffees, each on a scale of their own. Nobody knows how far the scores scatter, and
# it need not be the same for each coffee: everybody agrees about the plain one, while the smoky one
# divides them. So the file says `sigma = "unknown"`, with a guess for planning:

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
# `bound` takes the guess of sigma for the truth. Now run the test, here with
# simulated scores. The explorer learns each coffee's standard deviation as it goes, and stops when
# the evidence is enough:

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
print(
    f"{explorer.pulls} cups, mix {explorer.policy}, confidence {explorer.confidence:.3f}"
)
for coffee, count, mean in zip(
    problem.arms, explorer.counts, explorer.means, strict=True
):
    print(f"{coffee:7} {count:4.0f} cups, mean score {mean:.2f}")

# %% [markdown]
# How much does it cost not to know sigma? Simulate coffees with a standard deviation of 1.2 each, with sigma
# known and unknown.

# %%
from dataclasses import replace

even = problem.replace(rewards=replace(problem.rewards, sigma_guess=1.2))
for what, rewards in {
    "known": sx.Gaussian(1.2),
    "unknown": even.rewards,
}.items():
    results = sx.simulate(even.replace(rewards=rewards), runs=200, seed=2)
    wrong = int((~results.correct).sum())
    print(
        f"{what:12} {results.stopping_times.mean():6.0f} cups on average, {wrong} of 200 wrong"
    )

# %% [markdown]
# Do not use an unknown sigma for scores that are far from Gaussian, such as rare tens among zeros. If
# scores have a known range, `family = "bounded"` guarantees delta whatever their distribution.
# [Budgets and unknown sigma](../budget_and_sigma.md#unknown-sigma-or-bounded) compares the two.

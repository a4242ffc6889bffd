# %% [markdown]
# # 300 samples in all
#
# You have three pies, and 300 people who each taste one slice. There will be no more. So the question is
# not how many samples it takes, but how to use the 300, and how sure you are in the end.

# %%
from pathlib import Path

_ = Path("pies.toml").write_text("""\
arms = ["apple", "cherry", "pecan"]
means = [7.0, 6.6, 6.3]             # a guess, for planning
stop_when = {budget = 300}

[rewards]
family = "gaussian"
sigma = "unknown"
sigma_guess = 2.0

[constraints]
nuts = "pecan <= 0.5"
""")

# %% [shell]
# simplexplore bound pies.toml

# %% [markdown]
# The error probability below the table is a number to plan with, not a guarantee. A simulation says
# how often each sampler is wrong after an eighth, a quarter, a half and all of the tastings:

# %% [shell]
# simplexplore simulate pies.toml --sampler top-two,uniform --runs 400 --seed 1 --plot pies.png

# %% [markdown]
# The experiment itself stops after exactly 300 rewards, and states its confidence and how much better
# another mix could be. Both numbers are valid at every moment. An error of at most delta is not guaranteed.

# %%
import numpy as np

import simplexplore as sx

problem = sx.Problem.from_file("pies.toml")
rng = np.random.default_rng(3)
explorer = sx.Explorer(problem, seed=0)
truth = dict(zip(problem.arms, problem.means, strict=True))
while not explorer.stopped:
    pie = explorer.ask()
    explorer.tell(pie, rng.normal(truth[pie], 2.0))
    if explorer.pulls in (75, 150, 300):
        best = problem.arms[int(explorer.policy.argmax())]
        print(
            f"after {explorer.pulls}: {best}, confidence {explorer.confidence:.2f}, "
            f"no mix is better by more than {explorer.regret_bound:.2f}"
        )

# %% [markdown]
# A confidence of 0 means that nothing is proven yet. The answer is probably right all the same, as the
# tables above show. If you need a guarantee, leave the budget out.
# [More about budgets](../budget_and_sigma.md).

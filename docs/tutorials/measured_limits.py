# %% [markdown]
# # A dose mix with a toxicity that is measured
#
# You compare four doses of a drug. Nobody knows how well each works, nor how toxic it is: every patient
# reports an effect *and* a toxicity score. You look for the mix of doses that works best while its mean
# toxicity stays below a limit. Both the effects and the toxicities must be learned.
#
# The table `[measured.toxicity]` in the problem file describes that limit:

# %% [shell]
# cat dose_mix.toml

# %% [markdown]
# **What is an answer?** No number of patients finds the best mix itself, because it sits exactly on the
# limit and estimates cannot tell on which side. So two numbers say what is good enough. With
# probability 1 − δ the answer exceeds the limit by no more than `tolerance`, and works at most `epsilon`
# less well than the best mix that keeps the limit.
#
# `bound` plans how many patients that takes if the guesses are right:

# %% [shell]
# simplexplore bound dose_mix.toml --plot dose_mix.png

# %% [markdown]
# The *answer* is not the best mix. It is the mix that takes the fewest patients to be sure of, and it
# spreads over more doses. Under "what makes it hard" are the mistakes to be ruled out: that the answer is
# too toxic, or that another mix keeps the limit and works better.
#
# **How much room do you allow?** More tolerance and a larger epsilon take fewer patients. Plans say how many:

# %%
from dataclasses import replace

import simplexplore as sx

problem = sx.Problem.from_file("dose_mix.toml")
(toxicity,) = problem.measured
for epsilon, tolerance in ((0.1, 0.05), (0.2, 0.05), (0.1, 0.0)):
    row = replace(toxicity, tolerance=tolerance)
    bound = sx.lower_bound(problem.replace(epsilon=epsilon, measured=[row]))
    expected = sx.forecast(bound).samples
    print(
        f"epsilon {epsilon}, tolerance {tolerance}: about {expected:5.0f} samples"
    )

# %% [markdown]
# Here half the room takes about twice as many patients; the less room there is, the closer this comes to
# four times as many. If the toxicities were known, the characteristic time would be shorter:

# %%
bound = sx.lower_bound(problem)
print(
    f"measured {bound.characteristic_time:.1f}, known {bound.own.known_limits_time:.1f}"
)

# %% [markdown]
# **If no mix keeps the limit** at the guessed means, `bound` says so:

# %%
try:
    sx.lower_bound(problem, measured_means={"toxicity": [0.9, 0.8, 0.6, 0.5]})
except sx.InfeasibleError as error:
    print(error)

# %% [markdown]
# **How many patients does a trial really take?** `simulate` runs it many times as if the guesses were true,
# and says how often the answer was too toxic or worked too little:

# %% [shell]
# simplexplore simulate dose_mix.toml --runs 20

# %% [markdown]
# That is several times the plan. The plan is about very small deltas, while the guarantee holds for every
# sampler, at every look and for all means. Add `--sampler top-two,uniform` to see how many patients a good
# choice of doses saves.
#
# **Run the trial.** Tell each patient's effect together with the toxicity score. Here patients are
# simulated; the explorer does not know their means:

# %%
import random

random.seed(3)
EFFECT = dict(zip(problem.arms, (1.1, 0.7, 0.5, 0.2), strict=True))
TOXICITY = dict(zip(problem.arms, (0.9, 0.55, 0.35, 0.1), strict=True))

explorer = sx.Explorer(problem, seed=1)
while (dose := explorer.ask()) is not None:
    effect = random.gauss(EFFECT[dose], 1.0)
    score = random.gauss(TOXICITY[dose], 0.5)
    explorer.tell(dose, effect, measured={"toxicity": score})
    if explorer.pulls in (100, 1000):
        (row,) = explorer.measured
        print(
            f"after {explorer.pulls:4d}: toxicity of the answer between {row.value_low:.2f} and "
            f"{row.value_high:.2f}, p-value {row.p_value:.2f}, confidence {explorer.confidence:.2f}"
        )
shares = dict(
    zip(
        problem.arms, (round(float(x), 2) for x in explorer.policy), strict=True
    )
)
print(
    f"after {explorer.pulls} patients: {shares}, confidence {explorer.confidence:.3f}"
)

# %% [markdown]
# All these numbers are valid however often you look. If every mix is too toxic, the trial ends with that
# finding, with the same confidence; then `explorer.infeasible` is true.
#
# **Protect the patients of the trial.** So far nothing limits the toxicity of the trial itself. If you know
# one safe dose, and how toxic a dose can be at worst, the scenario "anytime" keeps the mean toxicity of the
# patients within the limit, in expectation and with probability 1 − δ, from the first patient on:

# %%
from dataclasses import replace

row = replace(problem.measured[0], safe=["placebo"], domain=(0, 1))
strict = sx.Explorer(
    problem.replace(measured=[row], scenario="anytime"), seed=1
)
doses = []
for _ in range(300):
    dose = strict.ask()
    doses.append(dose)
    measured = {"toxicity": random.gauss(TOXICITY[dose], 0.5)}
    strict.tell(dose, random.gauss(EFFECT[dose], 1.0), measured=measured)
    if strict.pulls in (10, 50, 300):
        mean = sum(TOXICITY[dose] for dose in doses) / len(doses)
        worst = strict.measured[0].worst
        print(
            f"after {strict.pulls:3d}: mean toxicity {mean:.2f}, at worst {worst:.2f}"
        )

# %% [markdown]
# [The problem file](../problem_file.md#measuredname) has all keys, for limits from below, unknown sigma and
# measurements in a range. [Live studies](../live_studies.md#measured-limits) says how to run such a trial for
# months. [The theory](../theory/measured.md) has the proofs, also of
# [when a trial may stop](../theory/measured_stopping.md).

"""Cases of `digests.py`: simulated runs, and explorations in memory.

Every group is a function of (name, callable); a callable returns what JSON can hold. Only public
names, so that the same file serves older and newer commits.
"""

import itertools
from functools import cache, partial
from pathlib import Path

import numpy as np

import simplexplore as sx

EXAMPLES = Path(__file__).parent.parent / "examples"
RUNS, STEPS = 8, 20_000
SAMPLERS = ("top-two", "ctns", "cge", "ptns", "uniform")
SCENARIOS = ("end-of-time", "anytime")
THRESHOLDS = ("tilt", "gk16", "kk21", "mixture", "paper")
FIVE = {"first": "a1 + a2 <= 0.5", "second": "a3 + a4 <= 0.5"}
MEANS = (0.8, 0.55, 0.45, 0.7, 0.3)
SPREAD = (0.5, 1.0, 0.7, 1.2, 0.8)

FAMILIES = {
    "gaussian": (sx.Gaussian(0.7), None),
    "own sigmas": (sx.Gaussian(list(SPREAD)), None),
    "another noise": (sx.Gaussian(1.0), list(SPREAD)),
    "bernoulli": (sx.Bernoulli(), None),
    "poisson": (sx.Poisson(), None),
    "bounded": (sx.Bounded(-1.0, 2.0), None),
    "beta": (sx.Bounded(-1.0, 2.0), 0.4),
    "known range": (sx.Gaussian(1.0, domain=(0.0, 1.0)), None),
}


def five(rewards=None, **changes):
    """Five arms with two limits, as the paper's star has them."""
    settings = {"delta": 0.05, "means": MEANS} | changes
    return sx.Problem(5, settings.pop("constraints", FIVE), rewards, **settings)


def simulated(problem, sampler, runs=RUNS, **settings):
    """Every run: its samples by arm, whether it was right or capped."""
    if isinstance(problem, str):
        problem = sx.Problem.from_file(EXAMPLES / problem)
    settings = {"max_steps": STEPS, "seed": 0} | settings
    found = sx.simulate(problem, None, sampler, runs=runs, workers=1, **settings)
    answers = {
        "times": found.stopping_times.tolist(),
        "pulls": found.pulls.tolist(),
        "correct": found.correct.tolist(),
        "capped": found.capped.tolist(),
    }
    return answers if found.outcomes is None else answers | {"ends": found.outcomes.tolist()}


def catalogue():
    """Instances of the paper x samplers x scenarios x thresholds."""
    everything = itertools.product(sx.catalog.names(), (*SAMPLERS, "oracle"), SCENARIOS, THRESHOLDS)
    for name, sampler, scenario, threshold in everything:
        instance = sx.catalog.instance(name)
        settings = {"scenario": scenario, "threshold": threshold, "noise": instance.noise}
        case = partial(simulated, instance.problem, sampler, **settings)
        yield f"{name}, {sampler}, {scenario}, {threshold}", case


def families():
    """Families of rewards x samplers x scenarios, with two thresholds."""
    everything = itertools.product(FAMILIES, SAMPLERS, SCENARIOS, ("tilt", "gk16"))
    for family, sampler, scenario, threshold in everything:
        rewards, noise = FAMILIES[family]
        settings = {"scenario": scenario, "threshold": threshold, "noise": noise}
        case = partial(simulated, five(rewards), sampler, **settings)
        yield f"{family}, {sampler}, {scenario}, {threshold}", case


def settings():
    """What changes a run: epsilon, goals, budgets, tracking, costs, limits of exploration."""
    excess = "initial_excess" if hasattr(sx.Problem(1), "initial_excess") else "room"  # before
    for sampler, scenario in itertools.product(SAMPLERS, SCENARIOS):
        ways = {
            "epsilon 0.05": five(epsilon=0.05),
            "epsilon 0.3, bernoulli": five(sx.Bernoulli(), epsilon=0.3),
            "regret 0.1": five(stop_when={"regret": 0.1}),
            "regret 0.2, poisson": five(sx.Poisson(), stop_when={"regret": 0.2}),
            "costs": five(costs={"a1": 7.0, "a4": 0.5}),
            "an equality": five(constraints={"half": "a1 + a2 == 0.5", "few": "a3 <= 1/3"}),
            "room": five(constraints={"rare": "40*a1 + 20*a2 <= 1"}, **{excess: 2}),
        }
        for what, problem in ways.items():
            case = partial(simulated, problem, sampler, scenario=scenario)
            yield f"{what}, {sampler}, {scenario}", case
        for tracking in ("cumulative", "direct", "sampled"):
            case = partial(simulated, five(), sampler, scenario=scenario, tracking=tracking)
            yield f"tracking {tracking}, {sampler}, {scenario}", case
        case = partial(simulated, five(means=[0.5] * 5), sampler, scenario=scenario, max_steps=500)
        yield f"ties, {sampler}, {scenario}", case
        case = partial(simulated, five(), sampler, scenario=scenario, delta=1e-6, seed=7)
        yield f"another seed, {sampler}, {scenario}", case
    for sampler, budget, scenario in itertools.product(
        (str(EXAMPLES / "samplers" / "halving.py"), "top-two", "uniform"), (40, 300), SCENARIOS
    ):
        goal = {"budget": budget}
        case = partial(simulated, five(stop_when=goal), sampler, scenario=scenario, max_steps=None)
        yield f"budget {budget}, {sampler}, {scenario}", case
    for sampler, file in itertools.product(
        SAMPLERS, ("traffic.toml", "strict_trial.toml", "laboratory.toml", "trial.toml")
    ):
        yield f"{file}, {sampler}", partial(simulated, file, sampler)


TOXICITY = {"limit": "<= 0.45", "tolerance": 0.05, "sigma": 0.5, "means": (0.9, 0.6, 0.3, 0.2)}
MEASURED = {
    "sigma known": TOXICITY,
    "sigma unknown": TOXICITY | {"sigma": "unknown", "sigma_guess": 0.5},
    "bounded": {name: TOXICITY[name] for name in ("limit", "tolerance", "means")}
    | {"low": 0.0, "high": 1.0},
    "from below": TOXICITY | {"limit": ">= 0.25"},
    "no mix": TOXICITY | {"limit": "<= 0.05"},
    "within limits": TOXICITY | {"domain": [0.0, 1.0], "safe": ["a4"]},
}


def unknowns():
    """Unknown standard deviations, and limits on what every pull reports."""
    unknown = sx.Gaussian("unknown", sigma_guess=0.5)
    for sampler, scenario in itertools.product(SAMPLERS, SCENARIOS):
        for what, problem in {
            "sigma": five(unknown),
            "sigma and epsilon": five(unknown, epsilon=0.1),
        }.items():
            yield (
                f"unknown {what}, {sampler}, {scenario}",
                partial(simulated, problem, sampler, scenario=scenario),
            )
    samplers = ("top-two", "ctns", "uniform")
    for (what, table), sampler in itertools.product(MEASURED.items(), samplers):
        scenario = "anytime" if "safe" in table else "end-of-time"
        problem = sx.Problem(
            4,
            means=[1.0, 0.8, 0.5, 0.3],
            epsilon=0.1,
            measured={"toxicity": table},
            scenario=scenario,
        )
        yield f"measured, {what}, {sampler}", partial(simulated, problem, sampler, runs=4)


def own_files():
    """A sampler and a threshold of one's own: those of the examples."""
    mine, cautious = str(EXAMPLES / "weakest_edge.py"), str(EXAMPLES / "cautious.py")
    for name, scenario in itertools.product(("star", "meal-a", "bernoulli-2"), SCENARIOS):
        problem = sx.catalog.instance(name).problem
        case = partial(simulated, problem, mine, scenario=scenario)
        yield f"own sampler, {name}, {scenario}", case
        case = partial(simulated, problem, "top-two", scenario=scenario, threshold=cautious)
        yield f"own threshold, {name}, {scenario}", case


@cache
def drawn():
    """Instances that `random_instances` draws."""
    kinds = ("caps", "groups", "budgets", "ratios", "equalities", "dense")
    return [
        *sx.random_instances(16, kinds=kinds, hardness=(50, 500), seed=1),
        *sx.random_instances(
            8, kinds=kinds, hardness=None, rewards=sx.Bernoulli(), scenario="anytime", seed=2
        ),
        *sx.random_instances(4, kinds=kinds, hardness=None, rewards=sx.Poisson(), seed=3),
    ]


def random():
    """Instances drawn at random x scenarios."""
    for instance, scenario in itertools.product(drawn(), SCENARIOS):
        case = partial(simulated, instance.problem, "top-two", scenario=scenario)
        yield f"{instance.name}, {scenario}", case


def rewards_of(problem, count, seed=0):
    """So many rewards of each arm, as its family draws them, (count, arms)."""
    rng, means, rewards = np.random.default_rng(seed), np.asarray(problem.means), problem.rewards
    shape = (count, problem.size)
    if rewards.name == "gaussian":
        return rng.normal(means, 1.0, shape)
    if rewards.name == "poisson":
        return rng.poisson(means, shape).astype(float)
    low, high = rewards.range_of_means()
    return np.where(rng.random(shape) < (means - low) / (high - low), high, low)


def explored(problem, sampler, tells=60, **settings):
    """Which arms it asks for, and what it says at times; one tell is of another arm."""
    explorer = sx.Explorer(problem, sampler, **settings)
    rewards, asked, moments = rewards_of(problem, tells), [], []
    for i in range(tells):
        arm = explorer.ask()
        asked.append(arm)
        if arm is None:
            break
        played = problem.arms[i % problem.size] if i == 30 else arm
        reward = float(rewards[i, problem.arms.index(played)])
        measured = {row.name: reward / 2 for row in problem.measured}
        explorer.tell(played, reward, measured=measured or None)
        if i % 20 == 19:
            policy = explorer.policy
            moments.append(
                {
                    "policy": None if policy is None else policy.tolist(),
                    "confidence": explorer.confidence,
                    "regret bound": explorer.regret_bound,
                    "means": [None if np.isnan(x) else x for x in explorer.means.tolist()],
                    "cost": explorer.cost,
                }
            )
    return {"asked": asked, "moments": moments}


def explorers():
    """`Explorer` with 60 tells: the paper's instances x samplers, and other settings."""
    for name, sampler in itertools.product(sx.catalog.names(), SAMPLERS):
        problem = sx.catalog.instance(name).problem
        yield f"{name}, {sampler}", partial(explored, problem, sampler)
    others = {
        "unknown sigma": five(sx.Gaussian("unknown")),
        "epsilon": five(epsilon=0.2),
        "regret": five(stop_when={"regret": 0.2}),
        "costs": five(costs={"a1": 7.0}),
        "poisson": five(sx.Poisson(), scenario="anytime"),
        "bounded": five(sx.Bounded(0.0, 1.0)),
        "budget": five(stop_when={"budget": 50}),
        "exploration": five(exploration={"fair": "each >= 0.05"}),
        "measured": sx.Problem(4, means=MEANS[:4], epsilon=0.1, measured={"toxicity": TOXICITY}),
    }
    for what, problem in others.items():
        yield what, partial(explored, problem, "top-two", seed=3)

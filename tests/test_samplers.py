"""One contract that every sampler keeps, on random problems with awkward constraints.

Compiled functions are those of the threshold gk16, so that the whole file needs few of them.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import simplexplore as sx
from random_numbers import fill_normal
from simplexplore.bound.bound import lower_bound
from simplexplore.errors import MeansError, ProblemError, SettingError
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.plan import Plan
from simplexplore.exploration.seeding import streams
from simplexplore.exploration.stopping import find_threshold
from simplexplore.kernels.records import AVERAGED, DIRECT, PULLS, VERTEX
from simplexplore.problem.families import Bernoulli, Gaussian, Poisson
from simplexplore.problem.problem import Problem
from simplexplore.samplers import SAMPLERS, find_sampler
from simplexplore.simulation import simulate as runner

TRUTH = json.loads((Path(__file__).parent / "data" / "truth.json").read_text())
SCENARIOS = ["end-of-time", "anytime"]


def paper(name, scenario="end-of-time"):
    truth = TRUTH[name]
    rewards = Gaussian(truth["sigma"]) if truth["family"] == "gaussian" else Bernoulli()
    return Problem(
        len(truth["mu"]),
        (truth["B"], truth["c"]),
        rewards,
        delta=truth["delta"],
        means=truth["mu"],
        scenario=scenario,
    )


def engine_for(problem, sampler, delta=0.1, tracking=None):
    chosen = find_sampler(sampler)
    allocation = tuple(lower_bound(problem).allocation.tolist()) if chosen.needs_truth else None
    plan = Plan(
        problem=problem,
        sampler=chosen,
        threshold=find_threshold("gk16"),
        delta=delta,
        scenario=problem.scenario,
        tracking=tracking,
        allocation=allocation,
    )
    return Engine(plan)


def follow(engine, rewards, steps, seed=0, each=None):
    """Arms of one run told rewards[arm, number of the pull], step by step."""
    arm = engine.begin(streams(seed, range(1))[0])
    taken = np.zeros(engine.plan.problem.size, dtype=int)
    arms = []
    if each is not None:
        each(engine)
    while arm is not None and len(arms) < steps:
        arms.append(arm)
        engine.observe(arm, float(rewards[arm, taken[arm]]))
        taken[arm] += 1
        arm = engine.advance()
        if each is not None:
            each(engine)
    return arms


def gaussian_rewards(problem, steps, seed):
    rng = np.random.default_rng(seed)
    mu = np.asarray(problem.means)[:, None]
    return mu + problem.rewards.sigmas(problem.size)[:, None] * rng.normal(size=(len(mu), steps))


# ------------------------------------------------------------ awkward problems


def awkward(seed, scenario, family="gaussian"):
    """Random rows through one policy: degenerate vertices, an equality, a forced arm, limits."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(4, 8))
    point = rng.integers(1, 4, size).astype(float)
    forced = seed % 3 == 1
    if forced:
        point[-1] = 0
    point /= point.sum()
    rows, bounds = [], []
    for _ in range(int(rng.integers(1, 4))):
        row = rng.integers(-1, 3, size).astype(float)
        room = rng.choice([0.0, 0.05, 0.2])  # tight rows meet in one point
        rows.append(row)
        bounds.append(float(row @ point) + room)
    if forced:
        rows.append(np.eye(size)[-1])  # last arm <= 0
        bounds.append(0.0)
    constraints = [
        sx.Constraint(f"c{i}", row.tolist(), -math.inf, bound)
        for i, (row, bound) in enumerate(zip(rows, bounds, strict=True))
    ]
    if seed % 3 == 2:
        row = rng.integers(0, 2, size).astype(float)
        row[0], row[1] = 1.0, 0.0
        total = float(row @ point)
        constraints.append(sx.Constraint("fixed", row.tolist(), total, total))
    if seed >= 9:  # limits on single arms as well, one of them an equality
        for a, x in enumerate(point[: size - forced].tolist()):
            low = x * rng.choice([0.0, 0.5, 0.9])
            high = x + rng.choice([0.02, 0.1, 1.0])
            limits = (x, x) if a == 1 else (low or -math.inf, high)
            constraints.append(sx.Constraint(f"limit{a}", np.eye(size)[a].tolist(), *limits))
    means = rng.uniform(0.2, 0.8, size)
    rewards = {"gaussian": Gaussian(0.5), "bernoulli": Bernoulli(), "poisson": Poisson()}[family]
    return Problem(size, constraints, rewards, means=means, scenario=scenario)


AWKWARD = list(range(14))


def rows_of(problem):
    """(matrix, lower, upper) of the feasible set as the user wrote it."""
    return problem.matrix, problem.lower, problem.upper


def violation(problem, change):
    """By how much the allocations tracked since the last step leave the set.

    The step that ends the first round adds two: its own and the first one chosen.
    """
    w = change / max(1, round(change.sum()))
    matrix, lower, upper = rows_of(problem)
    worst = max(abs(w.sum() - 1.0), float(-w.min()))
    for row, low, high in zip(matrix, lower, upper, strict=True):
        value = float(row @ w)
        worst = max(worst, low - value, value - high)
    return worst


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("seed", AWKWARD)
def test_anytime_allocations_stay_in_the_set(sampler, seed):
    problem = awkward(seed, "anytime")
    engine = engine_for(problem, sampler, delta=1e-6)
    before = np.zeros(problem.size)
    worst = 0.0

    def check(engine):
        nonlocal worst
        allocation = engine.run.target - before
        if allocation.any():  # nothing is added once a run stops
            worst = max(worst, violation(problem, allocation))
        before[:] = engine.run.target

    arms = follow(engine, gaussian_rewards(problem, 300, [seed, 1]), 300, each=check)
    assert len(arms) > problem.size
    assert worst <= 1e-9


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_anytime_allocations_stay_in_the_set_for_other_families(sampler, family):
    for seed in (1, 2, 3):
        problem = awkward(seed, "anytime", family)
        engine = engine_for(problem, sampler, delta=1e-6)
        before = np.zeros(problem.size)
        worst = [0.0]

        def check(engine, problem=problem, before=before, worst=worst):
            if (engine.run.target != before).any():
                worst[0] = max(worst[0], violation(problem, engine.run.target - before))
            before[:] = engine.run.target

        rng = np.random.default_rng([seed, 2])
        mu = np.asarray(problem.means)[:, None]
        shape = (problem.size, 300)
        rewards = rng.random(shape) < mu if family == "bernoulli" else rng.poisson(mu, shape)
        follow(engine, rewards.astype(float), 300, each=check)
        assert worst[0] <= 1e-9


@pytest.mark.parametrize("tracking", ["cumulative", "averaged", "direct", "sampled"])
def test_anytime_allocations_stay_in_the_set_with_any_tracking(tracking):
    for seed in AWKWARD[:3]:
        problem = awkward(seed, "anytime")
        engine = engine_for(problem, "ctns", delta=1e-6, tracking=tracking)
        before = np.zeros(problem.size)

        def check(engine, problem=problem, before=before):
            if (engine.run.target != before).any():
                assert violation(problem, engine.run.target - before) <= 1e-9
            before[:] = engine.run.target

        follow(engine, gaussian_rewards(problem, 300, [seed, 3]), 300, each=check)


@pytest.mark.parametrize("seed", AWKWARD)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_optimal_allocations_are_optimal(seed, scenario):
    """After 300 steps the allocation is within its certificate of the best one."""
    problem = awkward(seed, scenario)
    for sampler in ("ctns", "top-two"):
        if sampler == "top-two" and scenario == "end-of-time":
            continue
        engine = engine_for(problem, sampler, delta=1e-9)
        arms = follow(engine, gaussian_rewards(problem, 300, [seed, 4]), 300)
        if len(arms) < 300:
            continue
        means = engine.run.clipped.copy()
        best = lower_bound(problem, means)
        if best.ties:
            continue
        edges = engine.polytope.edges(engine.polytope.optimal_vertex(means)).dense(problem.size)
        w = engine.run.w
        times = 2 * 0.25 * (edges**2 / np.maximum(w, 1e-300)).sum(axis=1) / (edges @ means) ** 2
        assert times.max() <= best.characteristic_time * (1 + max(1e-3, 1 / math.sqrt(300)) + 1e-6)


# ------------------------------------------------------------ replay


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_replay_repeats_bit_for_bit(sampler, scenario):
    problem = paper("gauss_app1", scenario)
    rewards = gaussian_rewards(problem, 300, 7)
    engine = engine_for(problem, sampler, delta=1e-6)
    arms = follow(engine, rewards, 300, seed=5)
    end = [x.copy() for x in engine.run]
    # The same engine, whose table has grown, and a new one.
    again = follow(engine, rewards, 300, seed=5)
    fresh = engine_for(problem, sampler, delta=1e-6)
    other = follow(fresh, rewards, 300, seed=5)
    assert arms == again == other
    for name, x, y in zip(fresh.run._fields, end, fresh.run, strict=True):
        if name not in ("time", "gradient"):  # scratch
            assert x.tolist() == y.tolist(), name


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_simulate_is_the_same_run_step_by_step(sampler, scenario):
    problem = paper("exp2", scenario)
    results = sx.simulate(problem, sampler=sampler, runs=3, seed=21, workers=1, delta=0.4)
    for number in range(3):
        engine = engine_for(problem, sampler, delta=0.4)
        words = streams(21, range(number, number + 1))[0]
        normals = np.zeros(int(results.stopping_times[number]))
        fill_normal(words[0].copy(), normals)
        arm = engine.begin(words)
        count = 0
        while arm is not None:
            # One stream of noise for all arms, in the order of the pulls.
            engine.observe(arm, problem.means[arm] + normals[count])
            count += 1
            arm = engine.advance()
        assert count == results.stopping_times[number]
        assert engine.run.n.tolist() == results.pulls[number].tolist()
        vertex = engine.table.vertices[int(engine.run.integers[VERTEX])]
        right = engine.polytope.optimal_vertex(problem.means)
        assert results.correct[number] == (vertex.zero == right.zero)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_results_do_not_depend_on_workers_or_blocks(sampler, scenario, monkeypatch):
    problem = paper("exp2", scenario)

    def figures(**options):
        r = sx.simulate(problem, sampler=sampler, runs=13, seed=3, delta=0.4, **options)
        return (
            r.run_numbers.tolist(),
            r.stopping_times.tolist(),
            r.correct.tolist(),
            r.pulls.tolist(),
        )

    expected = figures(workers=1)
    assert expected[0] == list(range(13))
    for workers in (2, 3):
        assert figures(workers=workers) == expected
    for size in (1, 5):
        monkeypatch.setattr(runner, "MAX_BLOCK", size)
        assert figures(workers=2) == expected


def test_runs_do_not_depend_on_how_many_there_are():
    problem = paper("exp2")
    few = sx.simulate(problem, sampler="top-two", runs=3, seed=9, workers=1)
    many = sx.simulate(problem, sampler="top-two", runs=8, seed=9, workers=2)
    assert many.stopping_times[:3].tolist() == few.stopping_times.tolist()
    other = sx.simulate(problem, sampler="top-two", runs=3, seed=10, workers=1)
    assert other.stopping_times.tolist() != few.stopping_times.tolist()


# ------------------------------------------------------------ symmetry, blindness, ends


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("sampler", ["ctns", "cge", "ptns", "top-two"])
def test_permuting_arms_permutes_arms(sampler, scenario):
    problem = paper("exp2", scenario)
    order = np.array([3, 0, 4, 1, 2])
    truth = TRUTH["exp2"]
    permuted = Problem(
        5,
        (np.array(truth["B"])[:, order], truth["c"]),
        Gaussian(1.0),
        means=np.array(truth["mu"])[order],
        scenario=scenario,
    )
    rewards = gaussian_rewards(problem, 300, 11)
    engine, other = engine_for(problem, sampler), engine_for(permuted, sampler)
    # First pulls and turns are in the order of the arms, which must be the same one.
    other._setting = other._setting._replace(first_arms=np.argsort(order))
    engine.begin(streams(0, range(1))[0])
    other.begin(streams(0, range(1))[0])
    taken = np.zeros(5, dtype=int)

    def tell(arm):
        reward = float(rewards[arm, taken[arm]])
        taken[arm] += 1
        engine.observe(arm, reward)
        other.observe(int(np.flatnonzero(order == arm)[0]), reward)
        return engine.advance(), other.advance()

    for arm in range(5):
        before = engine.run.target.copy()
        first, second = tell(arm)
    agreed = 0
    for _ in range(200):
        if first is None or second is None:
            assert first is second
            break
        assert other.run.w == pytest.approx(engine.run.w[order], abs=1e-6)
        owed = engine.run.target
        if engine._setting.tracking == DIRECT:
            owed = (engine.pulls + 1) * (owed - before)
        elif engine._setting.tracking == AVERAGED:
            owed = (engine.pulls + 1) * engine.run.average
        lag = engine.run.n - owed  # a tie goes to the first arm in order
        assert order[second] == first or lag[order[second]] == pytest.approx(lag[first], abs=1e-9)
        agreed += 1
        before = engine.run.target.copy()
        first, second = tell(first)
    assert agreed > 50


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("sampler", [s for s in SAMPLERS if s != "oracle"])
def test_samplers_do_not_see_the_means(sampler, scenario):
    problem = paper("exp1", scenario)
    lies = problem.replace(means=[0.1, 0.9, 0.3, 0.2, 0.7])
    unknown = problem.replace(means=None)
    rewards = gaussian_rewards(problem, 200, 13)
    arms = [follow(engine_for(p, sampler), rewards, 200) for p in (problem, lies, unknown)]
    assert arms[0] == arms[1] == arms[2]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_runs_end_with_the_right_policy(sampler, scenario):
    # At delta = 0.01, eight wrong answers of forty have probability below 1e-8 if the rule
    # keeps its promise; gk16 is a heuristic that does on this instance.
    problem = paper("exp2", scenario)
    results = sx.simulate(
        problem, sampler=sampler, runs=40, seed=1, delta=0.01, max_steps=200_000, workers=2
    )
    assert not results.capped.any()
    assert results.correct.sum() > 32
    assert (results.pulls.sum(axis=1) == results.stopping_times).all()
    assert (results.stopping_times > 5).all()


@pytest.mark.parametrize("sampler", ["ctns", "cge", "top-two", "uniform"])
def test_runs_end_for_other_families(sampler):
    for family, scale in ((Bernoulli(), 1.0), (Poisson(), 3.0)):
        mu = scale * np.array([0.8, 0.3, 0.6, 0.2])
        problem = Problem(4, ([[1, 1, 0, 0]], [0.5]), family, means=mu)
        for scenario in SCENARIOS:
            results = sx.simulate(
                problem, sampler=sampler, runs=10, scenario=scenario, max_steps=50_000, workers=2
            )
            assert not results.capped.any()
            assert results.correct.sum() >= 7  # 4 errors at 0.1 each: below 0.013, seed fixed


def test_from_the_first_pull_on():
    # Arms that only ever give zeros or ones: nothing divides by zero, and runs stop.
    for pattern in ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]):
        problem = Problem(3, ([[1, 1, 0]], [0.6]), Bernoulli())
        for sampler in ("ctns", "cge", "top-two"):
            engine = engine_for(problem, sampler)
            rewards = np.repeat(np.array(pattern)[:, None], 200, axis=1)
            arms = follow(engine, rewards, 150)
            assert set(arms) <= {0, 1, 2}
            assert np.isfinite(engine.run.w).all()
            assert np.isfinite(engine.run.value).all()
            if len(set(pattern)) == 1:
                assert len(arms) == 150  # a perfect tie is never settled


def test_arms_in_no_policy_are_never_played():
    problem = awkward(1, "anytime")
    assert engine_for(problem, "uniform").polytope.forced_arms
    for scenario in SCENARIOS:
        for sampler in SAMPLERS:
            engine = engine_for(problem.replace(scenario=scenario), sampler)
            arms = follow(engine, gaussian_rewards(problem, 200, 17), 100)
            assert not set(arms) & set(engine.polytope.forced_arms)


def test_no_recommendation_before_every_arm_has_a_reward():
    # The policy that runs start from happens to be the best one here.
    start = engine_for(paper("exp2"), "uniform").table.policy(0)
    for steps, right in ((4, False), (5, True)):
        results = sx.simulate(
            paper("exp2"), 1 + start, "uniform", runs=30, max_steps=steps, delta=1e-9, workers=1
        )
        assert results.capped.all()
        assert results.correct.any() == right


def test_inputs_are_not_aliased():
    problem = paper("exp1")
    means = np.array(problem.means)
    noise = np.ones(5)
    kept = means.copy()
    sx.simulate(problem, means, sampler="uniform", runs=2, noise=noise, max_steps=50)
    assert (means == kept).all()
    assert (noise == 1).all()
    engine = engine_for(problem, "uniform")
    words = streams(0, range(1))[0]
    copy = words.copy()
    follow(engine, gaussian_rewards(problem, 50, 1), 50)
    assert (words == copy).all()


def test_first_pulls_are_one_each():
    for sampler in SAMPLERS:
        engine = engine_for(paper("exp1"), sampler)
        arms = follow(engine, gaussian_rewards(paper("exp1"), 20, 3), 20)
        assert sorted(arms[:5]) == [0, 1, 2, 3, 4]
        assert engine.run.integers[PULLS] == 20


# ------------------------------------------------------------ problems and settings refused


@pytest.mark.parametrize(
    "problem",
    [Problem(["only"]), Problem(["a", "b"], ["a == 0.25"]), Problem(["a", "b"], ["a >= 1"])],
)
def test_nothing_to_explore(problem):
    for make in (
        lambda: sx.simulate(problem, [0.5] * problem.size, "uniform"),
        lambda: sx.Explorer(problem, "uniform"),
    ):
        with pytest.raises(ProblemError, match="only one policy satisfies the constraints"):
            make()


def test_ties_are_refused_and_named():
    problem = Problem(["a", "b", "c"], ["a + b <= 0.5"], means=[0.5, 0.5, 0.1])
    with pytest.raises(SettingError, match=r"not unique") as caught:
        sx.simulate(problem, sampler="uniform", runs=2)
    text = str(caught.value)
    assert "0.5 a + 0.5 c" in text
    assert "0.5 b + 0.5 c" in text
    assert "max_steps" in text
    assert "--max-steps" in text


def test_ties_with_a_cap():
    problem = Problem(["a", "b", "c"], ["a + b <= 0.5"], means=[0.5, 0.5, 0.1])
    results = sx.simulate(problem, sampler="uniform", runs=4, max_steps=100, delta=1e-9, workers=1)
    assert results.capped.all()
    assert (results.stopping_times == 100).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "ctsn"}, r"no sampler 'ctsn'\. Did you mean 'ctns'\?"),
        ({"sampler": "toptwo"}, r"Did you mean 'top-two'"),
        ({"sampler": "xyzzy"}, r"Known: ctns, cge, ptns, uniform, oracle, top-two, or a file"),
        ({"sampler": "missing.py"}, r"no sampler file 'missing\.py'"),
        ({"threshold": "kk12"}, r"no threshold 'kk12'\. Did you mean 'kk21'"),
        ({"tracking": "cumulativ"}, r"no tracking 'cumulativ'"),
        ({"runs": 0}, r"runs must be a whole number, 1 or more; got 0"),
        ({"runs": -3}, r"runs must be a whole number"),
        ({"runs": 2.5}, r"runs must be a whole number"),
        ({"runs": True}, r"runs must be a whole number"),
        ({"workers": 0}, r"workers must be a whole number, 1 or more; got 0"),
        ({"max_steps": 0}, r"max_steps must be a whole number"),
        ({"seed": -1}, r"seed must be a whole number, 0 or more; got -1"),
        ({"seed": 1.5}, r"seed must be a whole number"),
        ({"noise": -1.0}, r"noise must be positive and finite"),
        ({"noise": math.nan}, r"noise must be positive and finite"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(SettingError, match=message):
        sx.simulate(paper("exp1"), **{"sampler": "uniform", "runs": 1, **options})


def test_noise_is_gaussian():
    problem = Problem(2, rewards=Bernoulli(), means=[0.4, 0.6])
    with pytest.raises(SettingError, match="noise is for gaussian rewards; bernoulli"):
        sx.simulate(problem, sampler="uniform", noise=1.0)


def test_noise_is_what_rewards_are_drawn_with():
    # The sampler believes in deviation 1; rewards hardly vary, so the first statistics decide.
    problem = paper("exp2")
    quiet = sx.simulate(problem, sampler="ctns", runs=3, seed=2, noise=1e-6, workers=1)
    assert quiet.noise.tolist() == [1e-6] * problem.size
    assert quiet.correct.all()
    assert np.ptp(quiet.stopping_times) <= 2


@pytest.mark.parametrize(
    ("family", "means", "message"),
    [
        (Gaussian(1.0), [0.1, 0.2], "3"),
        (Gaussian(1.0), [0.1, math.nan, 0.2], "finite|nan"),
        (Bernoulli(), [0.1, 1.2, 0.2], "strictly between 0 and 1"),
        (Bernoulli(), [0.1, 0.0, 0.2], "strictly between 0 and 1"),
        (Poisson(), [0.1, -1.0, 0.2], "greater than 0"),
    ],
)
def test_bad_means(family, means, message):
    with pytest.raises(MeansError, match=message):
        sx.simulate(Problem(3, rewards=family), means, "uniform")


def test_the_oracle_needs_the_truth():
    with pytest.raises(SettingError, match="oracle sampler must be given the optimal allocation"):
        sx.Explorer(paper("exp1"), "oracle")


HEAD = "from numba import njit\n@njit\ndef allocate(setting, table, run, memory):\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def allocate(:\n", r"mine\.py, line 1"),
        ("X = 1\n", r"mine\.py defines no function 'allocate"),
        ("\x00", r"mine\.py: source code string cannot contain null bytes"),
        ("# \xff", r"mine\.py is not a text file in UTF-8"),
        ("TRACKING = 'sideways'\n" + HEAD + "    pass\n", r"TRACKING must be one of"),
        (
            "TRACKING = {'end-of-time': 'direct'}\n" + HEAD + "    pass\n",
            r"or say which for each scenario: \{'end-of-time': \.\.\., 'anytime': \.\.\.\}",
        ),
        ("TRACKING = {'anytime': ['direct']}\n" + HEAD + "    pass\n", r"TRACKING must be one of"),
        ("TRACKING: str = 'sideways'\n" + HEAD + "    pass\n", r"TRACKING must be one of"),
        ("ARM_VECTORS = -1\n" + HEAD + "    pass\n", r"ARM_VECTORS must be a whole"),
        ("EDGE_VECTORS = 1.5\n" + HEAD + "    pass\n", r"EDGE_VECTORS must be"),
        ("N = 2\nARM_VECTORS = N + 1\n" + HEAD + "    pass\n", r"line 2: ARM_VECTORS is read with"),
        ("WITHIN_CONSTRAINTS = 5\n" + HEAD + "    pass\n", r"there is no file 5 beside it"),
        (HEAD + "    memory.arms[0, 0] = 1.0\n", r"uses memory\.arms, so it must declare ARM_VECT"),
        (HEAD + "    maximin(setting)\n", r"uses maximin, so it must declare EDGE_VECTORS = 1"),
    ],
)
def test_bad_sampler_files(tmp_path, text, message):
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(SettingError, match=message):
        find_sampler(str(path))


def test_unreadable_sampler_files(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(HEAD + "    pass\n")

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refused)
    with pytest.raises(SettingError, match=r"cannot read mine\.py: Permission denied"):
        find_sampler(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "@numba.njit\ndef allocate(a, b, c, d):\n    pass\n",
            r"line 2: plain '@njit', and nothing",
        ),
        ("LIMIT: float = sqrt(2)\n" + HEAD + "    pass\n", r"name 'sqrt' is not defined; compiled"),
        ("LIMIT = 1 / 0\n" + HEAD + "    pass\n", r"mine\.py: division by zero"),
        (
            "import os\n" + HEAD + "    pass\n",
            r"line 1: 'os' cannot be imported; compiled",
        ),
        ("from . import x\n" + HEAD + "    pass\n", r"line 1: '\.' cannot be imported"),
    ],
)
def test_sampler_files_that_cannot_be_compiled(tmp_path, text, message):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(SettingError, match=message):
        engine_for(paper("exp1"), str(path))


def test_names_of_ones_own_are_free(tmp_path):
    # Names of our kernels, and one name in two files, mean what each file says.
    mine, rule = tmp_path / "mine.py", tmp_path / "rule.py"
    mine.write_text(
        "HALF = 0.5\ndef _track(x):\n    return HALF * x\n"
        "def allocate(setting, table, run, memory):\n"
        "    for a in range(setting.size):\n        run.w[a] = 2.0 * _track(setting.inside[a])\n"
    )
    rule.write_text(
        "HALF = 0.25\n@njit\ndef reached(setting, table, run, edge, statistic):\n"
        "    return statistic >= HALF\n"
    )
    settings = {"threshold": str(rule), "runs": 3, "seed": 5}
    result = sx.simulate(paper("exp1"), sampler=str(mine), **settings)
    assert result.stopping_times.max() < 1000  # 0.25 is little to ask
    same = sx.simulate(paper("exp1"), sampler="uniform", tracking="cumulative", **settings)
    assert result.stopping_times.tolist() == same.stopping_times.tolist()


def test_a_file_that_changes_is_compiled_anew(tmp_path):
    path = tmp_path / "mine.py"
    arms = []
    for arm in (0, 1):
        path.write_text(
            "def allocate(setting, table, run, memory):\n"
            "    for a in range(setting.size):\n        run.w[a] = 0.0\n"
            f"    run.w[{arm}] = 1.0\n"
        )
        pulls = sx.simulate(
            Problem(3, means=[0.9, 0.5, 0.1]), sampler=str(path), runs=1, max_steps=300
        ).pulls
        arms.append(int(pulls[0].argmax()))
    assert arms == [0, 1]


def test_what_fails_uncompiled_is_named(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(HEAD + "    run.w[0] = undefined(3)\n")
    explorer = sx.Explorer(Problem(2), str(path))
    explorer.tell("a1", 1.0)
    with pytest.raises(SettingError, match=r"mine\.py, line 4: NameError: name 'undefined'"):
        explorer.tell("a2", 0.5)


def test_allocations_of_ones_own_are_checked(tmp_path):
    # Compiled once: delta says which mistake to make. Types are for the reader.
    path = tmp_path / "mine.py"
    path.write_text(
        "from numba import njit\nWHOLE: Final = 1.0\n@njit\n"
        "def allocate(setting: Setting, table: Table, run: Run, memory: Memory) -> None:\n"
        "    for a in range(setting.size):\n        run.w[a] = 0.0\n"
        "    run.w[0] = WHOLE if setting.delta < 0.2 else 2.0\n"
        "    if setting.delta > 0.3:\n        run.w[0] = math.nan\n"
    )
    problem = Problem(["a", "b", "c"], ["a <= 0.6"], means=[0.9, 0.5, 0.1])

    def run(delta, scenario="end-of-time"):
        return sx.simulate(
            problem, None, str(path), delta=delta, scenario=scenario, runs=1, max_steps=30
        )

    assert run(0.1).runs == 1
    with pytest.raises(
        SettingError, match=r"\[1\.0, 0\.0, 0\.0\] in run\.w, which does not satisfy"
    ):
        run(0.1, "anytime")
    with pytest.raises(
        SettingError, match=r"mine\.py left the allocation \[2\.0, 0\.0, 0\.0\] in run"
    ):
        run(0.25)
    with pytest.raises(SettingError, match=r"nonnegative and sum to 1"):
        run(0.35)
    explorer = sx.Explorer(problem, str(path), threshold="gk16", scenario="anytime")
    explorer.tell("a", 1.0)
    explorer.tell("b", 0.5)
    with pytest.raises(SettingError, match="does not satisfy the constraints"):
        explorer.tell("c", 0.5)

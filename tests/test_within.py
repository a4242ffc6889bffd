"""Exploration within limits: the pulls themselves keep them, from the first one on."""

import numpy as np
import pytest
from scipy.optimize import linprog

import simplexplore as sx
from engines import engine_for, follow
from instances import drawn
from simplexplore import SAMPLERS, Bernoulli, Problem
from simplexplore.geometry.polytope import Polytope
from simplexplore.kernels.maximin import most_between_limits

TIGHT = Problem(4, {"c": "40*a1 + 40*a2 + a3 <= 0.5"}, scenario="anytime")


def test_fair_policy_gives_each_arm_a_part_of_what_it_could_get():
    assert Polytope(TIGHT).interior_allocation == pytest.approx([0.005, 0.005, 0.1, 0.89])
    assert Polytope(Problem(5)).interior_allocation == pytest.approx([0.2] * 5)
    capped = Problem(12, [f"a{i} <= 0.21" for i in range(1, 13)])
    assert Polytope(capped).interior_allocation == pytest.approx([1 / 12] * 12)
    # a2 may have 0.1 at most and a1 at least 0.7: claims of 1/3, 0.1 and 0.3.
    limited = Problem(3, ["a1 >= 0.7", "a2 <= 0.1"])
    assert Polytope(limited).interior_allocation == pytest.approx([0.7, 0.075, 0.225])


@pytest.mark.parametrize("seed", range(22))
def test_fair_policies_of_random_problems(seed):
    rng = np.random.default_rng([seed, 3])
    size = int(rng.integers(3, 8)) if seed < 20 else 150
    centre = rng.dirichlet(np.full(size, 0.5))
    rows = rng.random((2, size)) * rng.choice([1.0, 20.0], (2, size))
    limits = rows @ centre + 0.01
    texts = [
        " + ".join(f"{x}*a{a}" for a, x in enumerate(row.tolist(), 1)) + f" <= {limit}"
        for row, limit in zip(rows, limits.tolist(), strict=True)
    ]
    if seed % 2:
        texts.append(f"a1 <= {min(1.0, centre[0] + 0.1)}")
        texts.append(f"a2 >= {centre[1] / 2}")
    polytope = Polytope(Problem(size, texts))
    policy = polytope.interior_allocation
    most = np.array([polytope.optimal_vertex(np.eye(size)[a]).policy[a] for a in range(size)])
    assert (rows @ policy <= limits + 1e-9).all()
    assert policy.sum() == pytest.approx(1)
    claims = np.minimum(most, 1 / size)
    assert (policy >= claims / size - 1e-9).all()
    matrix = polytope.problem.matrix
    given = np.vstack([matrix, -matrix])
    ends = np.concatenate([polytope.problem.upper, -polytope.problem.lower])
    finite = np.isfinite(ends)
    found = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.vstack(
            [
                np.column_stack([given[finite], np.zeros(finite.sum())]),
                np.column_stack([-np.eye(size), claims]),
            ]
        ),
        b_ub=np.concatenate([ends[finite], np.zeros(size)]),
        A_eq=np.append(np.ones(size), 0.0)[None],
        b_eq=[1.0],
    )
    assert (policy / claims)[claims > 1e-12].min() == pytest.approx(-found.fun, rel=1e-6)


MEANS = {4: [1.0, 0.9, 0.6, 0.3], 5: [1.0, 0.97, 0.98, 0.95, 0.99], 3: [1.0, 0.5, 0.4]}

# Problems by what their pulls may exceed: nothing where some arm alone keeps all limits.
NEVER = {
    "tight": TIGHT,
    "doses": Problem(
        4,
        {"toxicity": "0.01*a1 + 0.05*a2 + 0.12*a3 + 0.3*a4 <= 0.06"},
        Bernoulli(),
        means=[0.3, 0.45, 0.6, 0.68],
    ),
    "cap": Problem(4, ["a1 <= 0.2", "a2 <= 0.1", "a1 + a3 <= 0.5"]),
    "triangle": sx.catalog.instance("triangle").problem,
    "eight-arms": sx.catalog.instance("eight-arms").problem,
}
BOUNDED = {
    "ratio": Problem(5, {"e": "a1 + a2 == 0.4", "z": "-0.1 <= a2 - a3 <= 0.1"}),
    "fixed": Problem(3, ["a1 == 0.3"]),
    "fair": Problem(4, [f"a{i} >= 0.05" for i in range(1, 5)]),
    "caps": Problem(4, [f"a{i} <= 0.4" for i in range(1, 5)]),
    "movies": sx.catalog.instance("movies").problem,
}


def most_excess(problem):
    """By how many pulls limits can be exceeded at most."""
    return engine_for(problem.replace(scenario="anytime"), "uniform").workspace.excess_bound


def excesses(problem, sampler, steps=400, seed=0):
    """Largest excess over each of the problem's own limits after any pull, in pulls."""
    if problem.means is None:
        known = {
            p: i.means
            for i in map(sx.catalog.instance, ("triangle", "eight-arms", "movies"))
            for p in [i.problem]
        }
        problem = problem.replace(means=known.get(problem, MEANS.get(problem.size)))
    problem = problem.replace(scenario="anytime")
    engine = engine_for(problem, sampler, delta=1e-9)
    arms = follow(engine, drawn(problem, steps, [seed, 1]), steps, seed)
    counts = np.cumsum(np.eye(problem.size)[arms], axis=0)
    pulls = np.arange(1, len(arms) + 1)[:, None]
    scale = np.abs(problem.matrix).max(axis=1)
    used = counts @ problem.matrix.T
    over = np.maximum(used - pulls * problem.upper, pulls * problem.lower - used) / scale
    return np.nan_to_num(over, neginf=0.0).max(axis=0)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", NEVER)
def test_no_prefix_of_the_pulls_exceeds_a_limit(name, sampler):
    problem = NEVER[name]
    assert most_excess(problem) == 0
    assert excesses(problem, sampler).max() <= 1e-6


@pytest.mark.parametrize("sampler", ["ctns", "top-two", "uniform"])
@pytest.mark.parametrize("name", BOUNDED)
def test_excesses_are_bounded_elsewhere(name, sampler):
    problem = BOUNDED[name]
    most = most_excess(problem)
    found = excesses(problem, sampler, steps=1000).max()
    assert 0 < found <= most + 1e-9
    assert most < 20
    assert found <= 1.01  # one pull, in practice


def test_one_equality_is_missed_by_no_more_than_a_pull_must():
    problem = BOUNDED["fixed"]
    assert most_excess(problem) == pytest.approx(0.7)
    assert excesses(problem, "ctns", steps=1000).max() <= 0.7 + 1e-6


def test_without_constraints_both_scenarios_are_one():
    free = Problem(4, means=[1.0, 0.5, 0.3, 0.0])
    first, second = (
        sx.simulate(free, sampler="top-two", runs=3, scenario=scenario)
        for scenario in ("end-of-time", "anytime")
    )
    assert first.stopping_times.tolist() == second.stopping_times.tolist()


@pytest.mark.parametrize(
    "rows",
    [["20*a1 + a2 + a3 <= 0.5"], ["20*a1 + a2 + a3 <= 0.5", "10*a1 + 5*a2 + a4 <= 1"]],
    ids=["one row", "two rows"],
)
def test_forced_turns_are_saved_for(rows):
    """Two policies that tie for ever use up the row that a dear arm needs a lot of."""
    means, steps = [-1.0, 1.0, 1.0, 0.0, 0.0][: 3 + len(rows)], 3000
    size = len(means)
    engine = engine_for(Problem(size, rows, means=means, scenario="anytime"), "top-two", delta=1e-9)
    arms = follow(engine, np.tile(np.array(means)[:, None], (1, steps)), steps)
    turns = size * (np.sqrt(size**2 + steps) - size)
    assert (
        np.bincount(arms, minlength=size) > engine.workspace.config.interior_allocation * turns / 2
    ).all()


def test_ties_do_not_starve_an_unlucky_arm():
    # A run that was unlucky with a3 took 40 times the median while the two dear arms tied.
    problem = Problem(
        4, ["40*a1 + 40*a2 + a3 <= 0.5"], means=[1.0, 0.9, 0.6, 0.3], scenario="anytime", delta=0.1
    )
    times = sx.simulate(problem, threshold="gk16", runs=200, seed=5000, workers=1).stopping_times
    assert times.max() < 8 * np.median(times)


def test_late_and_lost_rewards_count(tmp_path):
    """A study of four doses: whatever comes late or never, patients treated are what counts."""
    problem = NEVER["doses"].replace(scenario="anytime", delta=0.05)
    rng = np.random.default_rng(2)
    toxicity = problem.matrix[0]
    handed = []
    now = [0.0]
    with sx.Study.create(tmp_path / "doses.db", "doses", problem, expire_after=50.0) as study:
        study.store.clock = lambda: now[0]
        waiting = []
        for _ in range(80):
            now[0] += 1.0
            for pull in study.ask(2):
                handed.append(problem.arms.index(pull.arm))
                assert toxicity[handed].sum() <= 0.06 * len(handed) + 1e-9
                waiting.append((now[0] + rng.exponential(20.0), pull))
            due = [pull for at, pull in waiting if at <= now[0] and rng.random() < 0.9]
            waiting = [(at, pull) for at, pull in waiting if at > now[0]]
            if due:
                means = problem.means
                study.tell_many(
                    (pull, float(rng.random() < means[problem.arms.index(pull.arm)]))
                    for pull in due
                )
        assert study.status()["expired"] > 0
        assert study.verify()


def test_room_for_the_first_round():
    """Two pulls above, while arms are tried: all of them at once, and what is owed is saved."""
    problem = TIGHT.replace(means=MEANS[4], initial_excess=2.0)
    engine = engine_for(problem, "ctns", delta=1e-9)
    arms = follow(engine, drawn(problem, 400, [0, 1]), 400)
    counts = np.cumsum(np.eye(4)[arms], axis=0)
    over = (counts @ problem.matrix[0] - 0.5 * np.arange(1, 401)) / 40
    assert sorted(set(arms[:10])) == [0, 1, 2, 3]
    assert 1.9 < over.max() <= 2 + 1e-6
    # 80 pulls pay for one of the dear arms; never again above once that is done.
    assert over[200:].max() <= 1e-6
    assert most_excess(problem) == 2
    assert Problem.from_text(problem.to_text()) == problem


@pytest.mark.parametrize("seed", range(12))
def test_most_gain_between_floors_and_caps_is_that_of_a_linear_program(seed):
    rng = np.random.default_rng([seed, 21])
    size = int(rng.integers(2, 40))
    floor = rng.random(size) * rng.choice([0.0, 0.5 / size], size)
    cap = np.where(rng.random(size) < 0.2, np.inf, floor + rng.random(size) * 4 / size)
    cap[0] = np.inf
    gain, price = 10 ** rng.uniform(-3, 3, (2, size))
    gain[1:] = np.where(rng.random(size - 1) < 0.3, gain[0], gain[1:])  # ties
    net = gain - price
    program = linprog(
        -net, A_eq=np.ones((1, size)), b_eq=[1.0], bounds=np.column_stack([floor, cap])
    )
    config = engine_for(Problem(size), "top-two").workspace.config
    limits = config.spend._replace(
        size=size, limited=True, lower=floor, upper=cap, interior_allocation=np.full(size, 1 / size)
    )
    share = np.empty(size)
    found = most_between_limits(limits, gain, price, share)
    assert found == pytest.approx(-program.fun, rel=1e-9, abs=1e-9 * np.abs(net).max())
    assert found == pytest.approx(net @ share, rel=1e-12, abs=1e-12 * np.abs(net).max())

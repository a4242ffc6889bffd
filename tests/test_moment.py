"""Confidence so far, p-values and the regret bound: what they say, and that looking is free."""

import itertools
import math

import numpy as np
import pytest

from engines import engine_for, follow
from instances import drawn
from nightly import some
from reference import sampled
from simplexplore import Bernoulli, Bounded, Explorer, Gaussian, Poisson, Problem, lower_bound
from tilting import Comparison

PROBLEMS = {
    "rows": Problem(4, ["a1 + a2 <= 0.5", "2*a2 + a3 <= 0.8"], means=[1.0, 0.8, 0.5, 0.0]),
    "caps": Problem(4, [f"a{i} <= 0.4" for i in range(1, 5)], means=[1.0, 0.8, 0.5, 0.0]),
    "coins": Problem(3, ["a1 <= 0.5"], Bernoulli(), means=[0.7, 0.5, 0.2]),
    "counts": Problem(3, ["a1 + a2 <= 0.7"], Poisson(), means=[3.0, 2.0, 1.0]),
    "bounded": Problem(3, ["a1 + a2 <= 0.7"], Bounded(0.0, 4.0), means=[3.0, 2.0, 1.0]),
    "epsilon": Problem(3, ["a1 <= 0.5"], epsilon=0.1, means=[0.7, 0.5, 0.2]),
}


def told(problem, steps, seed=0, each=None, **given):
    """An explorer after some steps of a run."""
    explorer, rng = Explorer(problem, seed=seed, **given), np.random.default_rng(seed)
    means, sigma = np.asarray(problem.means), problem.rewards.sigmas(problem.size)
    while not explorer.stopped and explorer.pulls < steps:
        a = problem.arms.index(explorer.ask())
        reward = sampled(problem.rewards, rng, means[a : a + 1], sigma[a : a + 1])
        explorer.tell(problem.arms[a], float(reward[0]))
        if each is not None:
            each(explorer)
    return explorer


def asked(problem, steps, seed=0):
    """An engine after as many steps."""
    engine = engine_for(problem, "top-two", threshold="tilt")
    follow(engine, drawn(problem, steps, seed), steps, seed)
    return engine


def p_values(explorer):
    """Of each edge, for one comparison that was fixed beforehand."""
    return np.exp([-edge["log_evidence"] for edge in explorer.edges()])


def looks(explorer):
    """All that can be said of now."""
    values = explorer.confidence, explorer.regret_bound, explorer.policy
    return [
        explorer.edges(),
        *(None if value is None else np.asarray(value).tolist() for value in values),
    ]


@pytest.mark.parametrize("name", PROBLEMS)
def test_looking_leaves_no_trace(name):
    arms = ([], [])
    looked, other = (
        told(PROBLEMS[name], 120, each=each)
        for each in (
            lambda x: arms[0].append(x.ask()) or x.pulls % 10 or looks(x),
            lambda x: arms[1].append(x.ask()),
        )
    )
    assert arms[0] == arms[1]
    assert looks(looked) == looks(other)


@pytest.mark.parametrize("name", PROBLEMS)
def test_confidence_is_delta_where_the_rule_stops(name):
    problem = PROBLEMS[name].replace(delta=0.2)
    stopped = told(problem, 20_000)
    assert stopped.confidence >= 1 - problem.delta - 1e-9
    if name != "epsilon":
        shorter = told(problem, int(0.7 * stopped.pulls))
        assert shorter.confidence < 1 - problem.delta


@pytest.mark.parametrize("size", [2, 3])
def test_confidence_follows_the_evidence(size):
    # Pairs: the rule with delta = p would stop when each has log((size - 1) / p).
    problem = Problem(size, means=[0.5, 0.0, 0.1][:size], delta=1e-4)
    found = []

    def look(explorer):
        if explorer.pulls % 50 == 0:
            p = (size - 1) * p_values(explorer).max()
            assert explorer.confidence == pytest.approx(max(0.0, 1 - p), abs=1e-9)
            found.append(1 - p)

    told(problem, 450, 6, look, sampler="uniform")
    assert sum(0.99 > one > 0.4 for one in found) >= 3


@pytest.mark.parametrize("name", ["rows", "caps", "coins"])
def test_regret_bound_against_all_vertices(name):
    engine = asked(PROBLEMS[name], 60)
    gains, directions = engine.evidence.gain_bounds(), engine.evidence.directions()
    bound = engine.evidence.regret().bound
    assert (
        len(directions) == engine.workspace.polytope.dimension
    )  # not degenerate: decompositions are unique
    best = 0.0
    for vertex, _ in engine.workspace.polytope.ranked_vertices(np.zeros(engine.plan.problem.size)):
        shares, *_ = np.linalg.lstsq(directions.T, vertex.policy - engine.policy)
        assert shares.min() > -1e-9
        best = max(best, float(gains @ shares))
    assert best <= bound <= best * (1 + 2e-6)  # never less, by the solver's tolerance more


def test_gains_shrink_and_end_below_zero():
    problem = PROBLEMS["rows"].replace(delta=0.05)
    few, more = told(problem, 50), told(problem, 5_000)
    assert few.regret_bound > more.regret_bound >= 0


@pytest.mark.parametrize("name", some(["rows", "coins", "bounded"], "rows"))
def test_they_hold_at_every_look(name):
    # 25 runs at delta = 0.3: more than 20 of them are wrong with probability below 1e-6 even if
    # each of them is with probability 0.3.
    problem = PROBLEMS[name].replace(delta=0.3)
    wrong = sure_and_wrong = 0

    def look(explorer):
        if explorer.policy is not None and explorer.pulls in moments:
            regret = best @ problem.means - explorer.policy @ problem.means
            bad[0] |= regret > explorer.regret_bound + 1e-9
            bad[1] |= regret > 1e-9 and explorer.confidence >= 1 - problem.delta

    best = lower_bound(problem).policy
    moments = {int(4 * 1.6**k) for k in range(8)}
    for seed in range(25):
        bad = [False, False]
        told(problem, max(moments), seed, look)
        wrong += bad[0]
        sure_and_wrong += bad[1]
    assert wrong <= 20
    assert sure_and_wrong <= 20


def test_p_values_are_those_of_the_edges():
    engine = asked(PROBLEMS["rows"], 400)
    evidence, needed = engine.evidence.values()
    assert (evidence >= 0).all()
    assert needed == pytest.approx(needed[0])
    explorer = Explorer(PROBLEMS["rows"])
    assert explorer.confidence is explorer.regret_bound is None
    assert explorer.edges() == []
    for arm, reward in itertools.product(explorer.problem.arms, (1.0, 0.0)):
        explorer.tell(arm, reward)
    assert p_values(explorer).max() <= 1
    assert 0 <= explorer.confidence < 0.9
    assert explorer.regret_bound > 0.5


def test_other_rules_have_no_e_values():
    for threshold in ("gk16", "kk21"):
        explorer = told(PROBLEMS["rows"], 50, threshold=threshold)
        assert explorer.confidence is explorer.regret_bound is None
        for edge in explorer.edges():
            assert edge["log_evidence"] is edge["p_best"] is edge["p_pays"] is None


def test_a_lonely_reward_says_next_to_nothing():
    explorer = told(Problem(2, means=[1.0, 0.0], rewards=Gaussian(1.0)), 2)
    assert explorer.confidence < 0.5
    assert explorer.regret_bound > 1 or math.isinf(explorer.regret_bound)


@pytest.mark.parametrize(("name", "union"), [("caps", 4 * 3), ("epsilon", None)])
def test_gains_pay_for_both_orientations_of_every_direction(name, union):
    """A gain is what the evidence rules out by union / delta: signed supports of all edges."""
    engine = asked(PROBLEMS[name], 40)
    union = union or engine.workspace.table.answers.signed_union
    level, run = math.log(union / PROBLEMS[name].delta), engine.run
    finite = 0
    for direction, gain in zip(
        engine.evidence.directions(), engine.evidence.gain_bounds(), strict=True
    ):
        arms = np.flatnonzero(direction)
        if 0 < gain < math.inf:
            given = -direction[arms], run.n[arms], run.mean[0, arms]
            found = [
                Comparison(Gaussian(1.0), *given, offset=gain * times).evidence()
                for times in (0.999, 1.001)
            ]
            assert found[0] < level < found[1]
            finite += 1
    assert finite > 0


def test_evidence_is_that_of_the_moment():
    # Each comparison was clear at some time, but never both at once: a rule that kept the most
    # there ever was would stop.
    explorer = Explorer(Problem(3, delta=0.1), sampler="uniform")

    def tell(arm, reward, count):
        for _ in range(count):
            explorer.tell(arm, reward)

    for arm, reward in (("a1", 1.0), ("a2", 0.0), ("a3", 1.0)):
        tell(arm, reward, 60)
    one = p_values(explorer).min()
    assert one < 0.01
    tell("a2", 1.2, 300)  # a2 catches up
    tell("a3", 0.0, 200)  # and a3 falls behind
    assert p_values(explorer).min() < 0.01
    assert p_values(explorer).max() > 0.5
    assert explorer.confidence < 0.5
    assert not explorer.stopped


@pytest.mark.parametrize("name", PROBLEMS)
def test_at_a_stop_no_neighbour_could_be_best(name):
    """Each row's p_best is at most delta, as the rule has just said of all policies together."""
    problem = PROBLEMS[name].replace(delta=0.1)
    for seed in range(2):
        stopped = told(problem, 20_000, seed)
        rows = stopped.edges()
        assert rows
        assert max(row["p_best"] for row in rows) <= problem.delta + 1e-6
        for row in rows:
            assert row["p_best"] <= 1
            assert row["p_pays"] >= math.exp(-row["log_evidence"]) * (1 - 1e-9)
            assert row["neighbour"] is not None
            assert sum(row["neighbour"].values()) == pytest.approx(1)


def test_neighbours_are_where_moves_lead():
    explorer = told(PROBLEMS["rows"], 60)
    for row in explorer.edges():
        moved = {
            arm: row["neighbour"].get(arm, 0.0) - share
            for arm, share in zip(explorer.problem.arms, explorer.policy, strict=True)
        }
        step = max(moved.values()) / max(row["direction"].values())
        assert moved == pytest.approx(
            {arm: step * row["direction"].get(arm, 0.0) for arm in moved}, abs=1e-12
        )


@pytest.mark.parametrize(
    ("rows", "lines"), [([], 3), (["a1 <= 0.5"], 3), (["2*a1 + a2 <= 0.8", "a2 <= 0.6"], 4)]
)
def test_moves_pay_for_all_lines(rows, lines):
    """p_pays: the e-value times the number of directions that edges can have."""
    explorer = told(Problem(3, rows, means=[1.0, 0.8, 0.2]), 300)
    for row in explorer.edges():
        expected = min(1.0, lines * math.exp(-row["log_evidence"]))
        assert row["p_pays"] == pytest.approx(expected)


def test_the_best_neighbour_seldom_gets_a_small_p():
    """At every look and row: the share of runs is at most alpha, as if one had looked once.

    30 runs at alpha = 0.3: more than 22 of them have a probability below 1e-6.
    """
    problem = PROBLEMS["rows"].replace(means=[0.5, 0.5, 0.49, 0.49], delta=1e-9)
    best = lower_bound(problem).policy
    wrong = 0
    for seed in range(30):
        least = [1.0]

        def look(explorer, least=least):
            if explorer.pulls in (8, 24, 72):
                for row in explorer.edges():
                    shares = [row["neighbour"].get(arm, 0.0) for arm in problem.arms]
                    if np.allclose(shares, best, atol=1e-9):
                        least.append(row["p_best"])

        told(problem, 72, seed, look, sampler="uniform")
        wrong += min(least) <= 0.3
    assert wrong <= 22

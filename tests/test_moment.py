"""Confidence so far, p-values and the regret bound: what they say, and that looking is free."""

import itertools
import math

import numpy as np
import pytest

from engines import engine_for
from nightly import some
from simplexplore.exploration.explorer import Explorer
from simplexplore.exploration.moment import moment_of
from simplexplore.exploration.seeding import streams
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.families import Bernoulli, Bounded, Gaussian, Poisson
from simplexplore.problem.problem import Problem

PROBLEMS = {
    "rows": Problem(4, ["a1 + a2 <= 0.5", "2*a2 + a3 <= 0.8"], means=[1.0, 0.8, 0.5, 0.0]),
    "caps": Problem(4, [f"a{i} <= 0.4" for i in range(1, 5)], means=[1.0, 0.8, 0.5, 0.0]),
    "coins": Problem(3, ["a1 <= 0.5"], Bernoulli(), means=[0.7, 0.5, 0.2]),
    "counts": Problem(3, ["a1 + a2 <= 0.7"], Poisson(), means=[3.0, 2.0, 1.0]),
    "bounded": Problem(3, ["a1 + a2 <= 0.7"], Bounded(0.0, 4.0), means=[3.0, 2.0, 1.0]),
    "epsilon": Problem(3, ["a1 <= 0.5"], epsilon=0.1, means=[0.7, 0.5, 0.2]),
}


def told(problem, steps, seed=0, threshold="tilt", each=None):
    """An engine after some steps of a run."""
    engine = engine_for(problem, "top-two", threshold=threshold)
    rng = np.random.default_rng(seed)
    arm = engine.begin(streams(seed, range(1))[0])
    means, sigma = np.asarray(problem.means), problem.rewards.sigmas(problem.size)
    for _ in range(steps):
        if arm is None:
            break
        reward = problem.rewards.sample(rng, means[arm : arm + 1], sigma[arm : arm + 1])
        engine.observe(arm, float(reward[0]))
        arm = engine.advance()
        if each is not None:
            each(engine)
    return engine


@pytest.mark.parametrize("name", PROBLEMS)
def test_looking_leaves_no_trace(name):
    problem = PROBLEMS[name]
    looked, other = (
        told(problem, 120, each=each) for each in (lambda e: e.pulls % 40 or moment_of(e), None)
    )
    before, after = other.state(), looked.state()
    assert before.keys() == after.keys()
    for key, array in before.items():
        assert array.tobytes() == after[key].tobytes(), key


@pytest.mark.parametrize("name", PROBLEMS)
def test_confidence_is_delta_where_the_rule_stops(name):
    problem = PROBLEMS[name].replace(delta=0.2)
    engine = told(problem, 20_000)
    stopped_at = engine.pulls
    moment = moment_of(engine)
    assert moment.confidence >= 1 - problem.delta - 1e-9
    if name != "epsilon":
        shorter = moment_of(told(problem, int(0.7 * stopped_at)))
        assert shorter.confidence < 1 - problem.delta


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("delta", [0.3, 1e-4])
def test_confidence_follows_the_evidence(size, delta):
    # Pairs: the rule with delta = p would stop when each has log((size - 1) / p).
    problem = Problem(size, means=[0.5, 0.0, 0.1][:size], delta=delta)
    engine = engine_for(problem, "uniform", threshold="tilt")
    rng = np.random.default_rng(6)
    engine.begin(streams(6, range(1))[0])
    sure = 0
    for pull in range(450):
        engine.observe(pull % size, float(rng.normal(problem.means[pull % size], 1.0)))
        engine.advance()  # it goes on though the evidence may be enough
        if pull % 50 == 49:
            p = (size - 1) * np.exp(-engine.evidence()[0].min())
            assert moment_of(engine).confidence == pytest.approx(max(0.0, 1 - p), abs=1e-9)
            sure += 0.99 > 1 - p > 0.4
    assert sure >= 3


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_edge_without_evidence_says_what_all_edges_say(name, monkeypatch):
    shown = []

    def look(engine):
        if engine.is_warm and (engine.pulls < 20 or engine.pulls % 20 == 0):
            found, needed = engine.evidence()
            lacking = (found - needed).argmin()
            assert engine.weakest() == (found[lacking], needed[lacking])
            shown.append((engine.surplus(), found.min()))
            with monkeypatch.context() as patch:
                patch.setattr(type(engine), "_has_none", False)  # look at every edge
                assert engine.surplus() == shown[-1][0]

    told(PROBLEMS[name], 200, each=look)
    assert {least > 0 for _, least in shown} == {False, True}


def regret_of(engine):
    """What the best policy earns more than the recommended one, at true means."""
    means = np.asarray(engine.plan.problem.means)
    polytope = Polytope(engine.plan.problem)
    best = polytope.optimal_vertex(means).policy
    return float(means @ best - means @ engine.policy)


@pytest.mark.parametrize("name", ["rows", "caps", "coins"])
def test_regret_bound_against_all_vertices(name):
    engine = told(PROBLEMS[name], 60)
    gains, directions = engine.gain_bounds(), engine.directions()
    bound = engine.regret().bound
    assert len(directions) == engine.polytope.dimension  # not degenerate: decompositions are unique
    best = 0.0
    for vertex, _ in engine.polytope.ranked_vertices(np.zeros(engine.plan.problem.size)):
        shares, *_ = np.linalg.lstsq(directions.T, vertex.policy - engine.policy)
        assert shares.min() > -1e-9
        best = max(best, float(gains @ shares))
    assert best <= bound <= best * (1 + 2e-6)  # never less, by the solver's tolerance more


def test_gains_shrink_and_end_below_zero():
    problem = PROBLEMS["rows"].replace(delta=0.05)
    few, more = told(problem, 50), told(problem, 5_000)
    assert few.regret().bound > more.regret().bound >= 0
    assert few.gain_bounds().max() > more.gain_bounds().max()


@pytest.mark.parametrize("name", some(["rows", "coins", "bounded"], "rows"))
def test_they_hold_at_every_look(name):
    # 25 runs at delta = 0.3: more than 20 of them are wrong with probability below 1e-6 even if
    # each of them is with probability 0.3.
    problem = PROBLEMS[name].replace(delta=0.3)
    wrong = sure_and_wrong = 0

    def look(engine, seen):
        if engine.is_warm and engine.pulls in seen:
            regret = regret_of(engine)
            moment = moment_of(engine)
            bad[0] |= regret > moment.regret_bound + 1e-9
            bad[1] |= regret > 1e-9 and moment.confidence >= 1 - problem.delta

    looks = {int(4 * 1.6**k) for k in range(8)}
    for seed in range(25):
        bad = [False, False]
        told(problem, max(looks), seed, each=lambda e: look(e, looks))
        wrong += bad[0]
        sure_and_wrong += bad[1]
    assert wrong <= 20
    assert sure_and_wrong <= 20


def test_p_values_are_those_of_the_edges():
    engine = told(PROBLEMS["rows"], 400)
    evidence, needed = engine.evidence()
    assert (evidence >= 0).all()
    assert needed == pytest.approx(needed[0])
    explorer = Explorer(PROBLEMS["rows"])
    assert explorer.p_values is explorer.confidence is explorer.regret_bound is None
    for arm, reward in itertools.product(explorer.problem.arms, (1.0, 0.0)):
        explorer.tell(arm, reward)
    assert explorer.p_values.max() <= 1
    assert 0 <= explorer.confidence < 0.9
    assert explorer.regret_bound > 0.5


def test_other_rules_have_no_e_values():
    engine = told(PROBLEMS["rows"], 50, threshold="gk16")
    assert moment_of(engine) is None
    assert Explorer(PROBLEMS["rows"], threshold="kk21").confidence is None


def test_a_lonely_reward_says_next_to_nothing():
    engine = told(Problem(2, means=[1.0, 0.0], rewards=Gaussian(1.0)), 2)
    moment = moment_of(engine)
    assert moment.confidence < 0.5
    assert moment.regret_bound > 1 or math.isinf(moment.regret_bound)


def test_gains_pay_for_both_orientations_of_every_direction():
    engine = told(PROBLEMS["caps"], 20)
    assert engine._gain_union == 4 * 3
    engine = told(PROBLEMS["epsilon"], 20)
    assert engine._gain_union == engine.table.answers.signed_union

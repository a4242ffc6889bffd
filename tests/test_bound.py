"""The whole answer, against the truth of the paper's instances and its own promises."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simplexplore as sx
from contract import BOUND_KEYS, SCENARIO_KEYS
from instances import TRUTH
from nightly import examples
from simplexplore import (
    Bernoulli,
    Bounded,
    Constraint,
    Gaussian,
    InfeasibleError,
    MeansError,
    NotConvergedError,
    Poisson,
    Problem,
    ProblemError,
    SettingError,
    lower_bound,
)
from strategies import CASES, case, distinct_means, exact_means, systems

HYPOTHESIS = examples(15)

SCENARIOS = ("end-of-time", "anytime")

# Exact vertices, then Newton's method on the optimality conditions in 40-digit arithmetic (mpmath),
# certified as in docs/theory/characteristic_time.md; rounded to floats.


def problem_of(truth):
    rewards = Gaussian(truth["sigma"]) if truth["family"] == "gaussian" else Bernoulli()
    size = len(truth["mu"])
    return Problem(size, (truth["B"], truth["c"]), rewards, delta=truth["delta"], means=truth["mu"])


@pytest.fixture(scope="module", params=TRUTH)
def instance(request):
    truth = TRUTH[request.param]
    return truth, lower_bound(problem_of(truth))


def floats(row):
    return [float(Fraction(x)) for x in row]


# ------------------------------------------------------------ the paper's instances


def test_policy(instance):
    truth, bound = instance
    assert bound.policy.tolist() == floats(truth["policy"])
    assert bound.value == pytest.approx(np.dot(floats(truth["policy"]), truth["mu"]), rel=1e-15)
    assert bound.ties == ()
    # Active constraints: all but the total are counted in the truth.
    assert len(bound.active) == truth["active"] + 1
    assert bound.degenerate == (truth["active"] > len(truth["mu"]) - 1)


def test_gaps_and_neighbours(instance):
    truth, bound = instance
    expected = {tuple(floats(edge["direction"])): edge for edge in truth["edges"]}
    assert len(bound.edges) == len(expected)
    for edge in bound.edges:
        true = expected.pop(
            min(expected, key=lambda d, e=edge: float(np.abs(np.array(d) - e.direction).max()))
        )
        assert edge.direction == pytest.approx(floats(true["direction"]), abs=1e-15)
        assert edge.gap == pytest.approx(float(Fraction(true["gap"])), rel=1e-12)
        step = float(Fraction(true["step"]))
        assert edge.neighbour == pytest.approx(bound.policy + step * edge.direction, abs=1e-15)
    assert not expected


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_characteristic_time(instance, scenario):
    truth, bound = instance
    true, found = truth[scenario], bound.scenarios[scenario]
    assert found.characteristic_time == pytest.approx(true["T"], rel=1e-8)
    assert found.lower_bound == pytest.approx(true["lower_bound"], rel=1e-8)
    assert found.allocation == pytest.approx(true["w"], abs=1e-6)
    assert found.unique == true.get("unique", True)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_certificate_covers_the_error(instance, scenario):
    truth, bound = instance
    exact, found = truth[scenario]["T"], bound.scenarios[scenario]
    rounding = 4 * np.finfo(float).eps  # of the truth as a float
    assert found.relative_gap <= 1e-8
    assert exact <= found.characteristic_time * (1 + 1e-13)
    assert found.characteristic_time / (1 + found.relative_gap) <= exact * (1 + rounding)


def test_unconstrained(instance):
    truth, bound = instance
    true, found = truth["unconstrained"], bound.unconstrained
    assert found.arm == bound.problem.arms[true["arm"]]
    assert found.characteristic_time == pytest.approx(true["T"], rel=1e-8)
    assert found.lower_bound == pytest.approx(true["lower_bound"], rel=1e-8)
    assert found.allocation == pytest.approx(true["w"], abs=1e-6)


def test_time_of_an_allocation(instance):
    truth, bound = instance
    assert bound.time_of(np.ones(len(truth["mu"]))) == pytest.approx(truth["T_uniform"], rel=1e-10)
    for scenario in bound.scenarios.values():
        time = bound.time_of(10 * scenario.allocation)
        assert time == pytest.approx(scenario.characteristic_time, rel=1e-7)


def test_time_of_an_allocation_that_is_none():
    bound = lower_bound(Problem(2), [1.0, 0.0])
    assert lower_bound(Problem(2), [1.0, 1.0]).time_of([1, 1]) == math.inf
    assert lower_bound(Problem(1), [1.0]).time_of([1]) == 0
    for bad, message in (
        ([1, 2, 3], r"one number for each of the 2 arms; got \[1, 2, 3\]"),
        (["x", 1], "one number for each of the 2 arms"),
        ([1, 0], r"must be positive; got \[1, 0\]"),
        ([1, math.nan], "must be positive"),
    ):
        with pytest.raises(SettingError, match=message):
            bound.time_of(bad)


def test_corollaries(instance):
    truth, bound = instance
    time = bound.scenarios["end-of-time"].characteristic_time
    bounds = bound.bounds
    assert bounds["distance_lower"] <= time <= bounds["distance_upper"]
    assert bounds["distance_upper"] == pytest.approx(truth["T_uniform"], rel=1e-10)
    assert bounds["kappa"] >= 1
    if truth["family"] != "gaussian":
        assert bounds["H"] is None
        return
    mu, sigma = np.array(truth["mu"]), np.broadcast_to(truth["sigma"], len(truth["mu"]))
    assert bounds["H"] <= time
    assert bounds["H"] == pytest.approx(2 / (((mu.max() - mu) / sigma) ** 2).sum())
    directions = np.array([floats(edge["direction"]) for edge in truth["edges"]])
    distances = 2 * (np.abs(directions) @ sigma) ** 2 / (directions @ mu) ** 2
    assert bounds["distance_lower"] == pytest.approx(distances.max(), rel=1e-10)


def test_set_of_allocations_of_bern_app1():
    truth = TRUTH["bern_app1"]["anytime"]
    found = lower_bound(problem_of(TRUTH["bern_app1"])).scenarios["anytime"]
    assert not found.unique
    # Arms 3 and 4 are pinned; the others are the leximin choice within these ranges.
    assert found.allocation == pytest.approx(truth["w"], abs=1e-7)
    for arm, (low, high) in truth["ranges"].items():
        assert low < found.allocation[int(arm) - 1] < high
        assert high - low > 0.01


def test_printed_upper_bound_of_the_paper_would_fail():
    # Corollary 1 prints a minimum over edges where a maximum is needed.
    truth = TRUTH["exp1"]
    mu = np.array(truth["mu"])
    distances = [
        abs(mu @ floats(edge["direction"])) / np.linalg.norm(floats(edge["direction"]))
        for edge in truth["edges"]
    ]
    printed = min(2 * len(mu) / d**2 for d in distances)
    assert (
        printed
        < truth["end-of-time"]["T"]
        <= lower_bound(problem_of(truth)).bounds["distance_upper"]
    )


# ------------------------------------------------------------ random problems


@HYPOTHESIS
@given(systems(max_size=5, max_rows=3), st.sampled_from(CASES), st.booleans(), st.data())
def test_corollaries_hold(system, name, domain, data):
    chosen = case(name, system.size, domain=domain)
    means = chosen.means(data.draw(distinct_means(system.size)))
    bound = lower_bound(system.problem(chosen.family), means)
    time = bound.scenarios["end-of-time"].characteristic_time
    assert bound.bounds["distance_lower"] <= time * (1 + 1e-9)
    assert time <= bound.bounds["distance_upper"] * (1 + 1e-9)
    hardness = bound.bounds["H"]
    if name in ("gaussian", "hetero") and bound.edges:
        assert hardness is not None
        assert hardness <= time * (1 + 1e-9)
    assert bound.bounds["kappa"] >= 1 - 1e-12


@HYPOTHESIS
@given(systems(max_size=4, max_rows=3), st.sampled_from(CASES), st.data())
def test_every_problem_has_an_answer_or_a_tie(system, name, data):
    chosen = case(name, system.size, domain=False)
    means = chosen.means(np.array([float(x) for x in data.draw(exact_means(system.size))]))
    bound = lower_bound(system.problem(chosen.family), means)
    tied = [edge for edge in bound.edges if edge.gap == 0]
    assert bool(bound.ties) == bool(tied)
    for found in bound.scenarios.values():
        assert found.allocation.sum() == pytest.approx(1, abs=1e-9)
        if bound.ties:
            assert found.characteristic_time == found.lower_bound == math.inf
        elif bound.edges:
            assert 0 < found.characteristic_time < math.inf
        else:
            assert found.characteristic_time == found.lower_bound == 0
    for tie in bound.ties:
        assert tie @ means == pytest.approx(bound.value, rel=1e-12)
        assert np.abs(tie - bound.policy).max() > 1e-9
    json.dumps(bound.to_dict())


# ------------------------------------------------------------ ties and single points


def test_ties_are_named_and_infinite():
    problem = Problem(["a", "b", "c"], ["a <= 1/2"], Bernoulli())
    bound = lower_bound(problem, [0.9, 0.3, 0.3])
    assert bound.policy[0] == 0.5
    assert {tuple(bound.policy), *map(tuple, bound.ties)} == {(0.5, 0.5, 0.0), (0.5, 0.0, 0.5)}
    for found in bound.scenarios.values():
        assert found.characteristic_time == math.inf
        assert found.lower_bound == math.inf
        assert [bound.edges[e].gap for e in found.binding_edges] == [0.0]
    assert bound.bounds["distance_lower"] == bound.bounds["distance_upper"] == math.inf
    # Without constraints arm a is the only best one.
    assert bound.unconstrained.arm == "a"
    assert bound.unconstrained.characteristic_time < math.inf


@pytest.mark.parametrize("ulps", [1, 4, 16, 100, 250])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_near_ties_of_means_are_ties(ulps, scale):
    near = 0.3 + ulps * math.ulp(0.3)
    bound = lower_bound(Problem(3, ["a1 + a2 <= 0.8"]), scale * np.array([0.3, near, 0.1]))
    assert [len(bound.ties), bound.samples] == [1, math.inf]
    for found in bound.to_dict()["scenarios"].values():
        assert found["lower_bound"] is None
        assert found["note"].startswith("several policies are equally good, up to rounding")


@pytest.mark.parametrize("coefficient", [0.1 * 3, 0.1 + 0.2, 0.3 + 16 * math.ulp(0.3)])
def test_near_ties_of_coefficients_are_ties(coefficient):
    bound = lower_bound(Problem(3, ([[coefficient, 0.1, 0.0]], [0.05])), [0.6, 0.2, 0.0])
    assert len(bound.ties) == 1
    assert bound.to_dict()["scenarios"]["anytime"]["lower_bound"] is None


def test_gaps_just_above_a_tie_are_certified():
    for rewards in (Gaussian(), Bernoulli(), Poisson()):
        bound = lower_bound(Problem(3, ["a1 + a2 <= 0.8"], rewards), [0.3, 0.3 + 3e-14, 0.1])
        assert bound.ties == ()
        assert 0 < bound.relative_gap < 1e-2


def test_a_scenario_that_fails_leaves_the_others_alone():
    problem = Problem(
        3,
        ["0.3 <= a1 + a2 <= 0.3000000000000016"],
        exploration=["a1 >= 0.6", "a2 >= 0.5"],
        scenario="end-of-time",
    )
    bound = lower_bound(problem, [0.3, 0.2, 0.1])
    assert bound.relative_gap < 1e-8
    found = bound.to_dict()["scenarios"]
    assert found["end-of-time"]["lower_bound"] == bound.samples
    assert list(found["anytime"]) == list(found["exploration"]) == ["error"]
    assert "no wider than rounding errors" in found["anytime"]["error"]
    assert "no allocation of samples satisfies" in found["exploration"]["error"]
    with pytest.raises(InfeasibleError, match="no allocation of samples satisfies"):
        lower_bound(problem.replace(scenario="exploration"), [0.3, 0.2, 0.1])


def test_a_tie_of_the_unconstrained_problem_only():
    bound = lower_bound(Problem(["a", "b", "c"], ["a <= 1/4", "b <= 1/2"]), [1.0, 1.0, 0.0])
    assert bound.ties == ()
    assert bound.policy.tolist() == [0.25, 0.5, 0.25]
    assert bound.characteristic_time < math.inf
    assert bound.unconstrained.characteristic_time == math.inf


@pytest.mark.parametrize(
    ("size", "rows"), [(1, []), (2, ["a1 == 1/3"]), (3, ["a1 <= 0", "a2 >= 1"])]
)
def test_one_feasible_policy_needs_no_samples(size, rows):
    bound = lower_bound(Problem(size, rows), np.arange(1.0, size + 1))
    assert bound.edges == ()
    assert bound.ties == ()
    for found in bound.scenarios.values():
        assert found.characteristic_time == found.lower_bound == found.relative_gap == 0
        assert found.closest_alternative is None
        assert found.allocation.sum() == pytest.approx(1)
    assert bound.bounds["distance_lower"] == bound.bounds["distance_upper"] == 0


# ------------------------------------------------------------ arguments and output

# Keys beside those of the first contract.
BESIDE = {"unique", "ties", "redundant", "forced_to_zero"}


@pytest.mark.parametrize(
    ("means", "note"),
    [([1.0, 0.5, 0.4], set()), ([1.0, 0.4, 0.4], {"note"})],
    ids=["unique", "tied"],
)
def test_dict_has_the_keys_of_the_contract(means, note):
    problem = Problem(["a", "b", "c"], ["a <= 1/2", "b <= 2"], Poisson())
    content = lower_bound(problem, means).to_dict()
    assert set(content) == BOUND_KEYS | BESIDE
    assert set(content["scenarios"]) == {"end-of-time", "anytime"}
    for scenario in content["scenarios"].values():
        # What the program itself would take is added where it is shown (report/bound_json.py).
        assert set(scenario) == SCENARIO_KEYS - {"expected_samples"} | {"unique"} | note
    for edge in content["edges"]:
        assert set(edge) == {"direction", "gap", "neighbour"}
    assert set(content["unconstrained"]) == {
        "arm",
        "characteristic_time",
        "allocation",
        "lower_bound",
    }
    assert set(content["bounds"]) == {"distance_lower", "distance_upper", "kappa", "H"}
    assert json.loads(json.dumps(content)) == content  # plain numbers, lists and texts only
    assert content["redundant"] == ["c2"]


def test_dict_says_what_the_bound_says():
    problem = Problem(["a", "b", "c"], ["a <= 1/2"], Gaussian(2.0), scenario="anytime", delta=0.01)
    bound = lower_bound(problem, [1.0, 0.5, 0.4])
    content = bound.to_dict()
    assert content["arms"] == ["a", "b", "c"]
    assert content["family"] == "gaussian"
    assert content["delta"] == 0.01
    assert content["means"] == [1.0, 0.5, 0.4]
    assert content["policy"] == [0.5, 0.5, 0.0]
    assert content["value"] == 0.75
    assert content["active"] == ["c1", "c >= 0", "total"]
    assert content["degenerate"] is False
    assert content["unique"] is True
    assert content["scenarios"]["anytime"]["characteristic_time"] == bound.characteristic_time
    assert content["scenarios"]["anytime"]["allocation"] == bound.allocation.tolist()
    assert content["scenarios"]["anytime"]["lower_bound"] == bound.samples
    assert content["scenarios"]["anytime"]["relative_gap"] == bound.relative_gap
    for edge in content["edges"]:
        assert edge["gap"] == pytest.approx(-np.dot(edge["direction"], content["means"]))
        assert sum(x for x in edge["direction"] if x > 0) == pytest.approx(1)


def kl_of(delta):
    return (1 - 2 * delta) * math.log((1 - delta) / delta)


def test_own_scenario_and_defaults():
    problem = Problem(2, (), delta=0.05, means=[1.0, 0.0])
    bound = lower_bound(problem)
    assert bound.delta == 0.05
    assert bound.means.tolist() == [1.0, 0.0]
    assert bound.samples == pytest.approx(8 * kl_of(0.05))
    assert lower_bound(problem, delta=0.2).samples == pytest.approx(8 * kl_of(0.2))
    assert lower_bound(problem, [3.0, 1.0]).characteristic_time == pytest.approx(2.0)
    assert bound.characteristic_time == bound.scenarios["end-of-time"].characteristic_time
    anytime = lower_bound(problem.replace(scenario="anytime"))
    assert anytime.characteristic_time == anytime.scenarios["anytime"].characteristic_time


def test_bounds_at_every_delta():
    for delta in (0.4, 0.1, 1e-3, 1e-10):
        samples = lower_bound(Problem(2), [1.0, 0.0], delta=delta).samples
        assert samples == pytest.approx(8 * kl_of(delta), rel=1e-8)
    # Half of the time right is no promise: nothing needs to be sampled.
    for delta in (0.5, 0.7, 0.9):
        assert lower_bound(Problem(2), [1.0, 0.0], delta=delta).samples == 0
    assert lower_bound(Problem(2), [1.0, 1.0], delta=0.7).samples == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((), MeansError, "no means given"),
        (([1.0],), MeansError, "means"),
        (([1.0, math.nan],), MeansError, "must be finite"),
        (([1.0, math.inf],), MeansError, "must be finite"),
        (([1.0, 0.0], 0.0), ProblemError, "delta must lie strictly between 0 and 1; got 0"),
        (([1.0, 0.0], 1.0), ProblemError, "delta must lie strictly between 0 and 1; got 1"),
        (([1.0, 0.0], math.nan), ProblemError, "delta"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        lower_bound(Problem(2), *arguments)


def test_bad_means_of_a_family():
    with pytest.raises(MeansError, match="strictly between 0 and 1"):
        lower_bound(Problem(2, (), Bernoulli()), [0.5, 1.0])


def test_infeasible():
    with pytest.raises(InfeasibleError, match="cannot hold together"):
        lower_bound(Problem(2, ["a1 <= 0.4", "a2 <= 0.4"]), [1.0, 0.0])


def test_a_set_thinner_than_rounding_is_said_to_be_so():
    # An equality written as two inequalities, whose limits then differ in their last digit.
    row = np.random.default_rng(0).normal(size=10)
    limit = float(row.mean())
    problem = Problem(10, ([row, -row], [np.nextafter(limit, 1.0), -limit]))
    with pytest.raises(NotConvergedError, match=r"no wider than rounding.* write it as one"):
        lower_bound(problem.replace(scenario="anytime"), np.linspace(0.0, 1.0, 10))
    free = lower_bound(problem, np.linspace(0.0, 1.0, 10))
    assert free.relative_gap < 1e-8
    assert "no wider than rounding" in free.failed["anytime"]
    equality = Problem(10, [Constraint("mean", row, limit, limit)])
    assert lower_bound(equality, np.linspace(0.0, 1.0, 10)).characteristic_time > 0


@pytest.mark.parametrize(
    ("rewards", "means"),
    [
        (Gaussian(), [1e308, -1e308, 0.0]),
        (Gaussian(), [1e200, -1e200, 0.0]),
        (Gaussian(), [1e-200, -1e-200, 0.0]),
        (Gaussian(1e150), [1e-50, 0.5e-50, 0.2e-50]),
        (Gaussian(1e-150), [1e50, 0.5e50, 0.2e50]),
        (Gaussian((1e-100, 1e100, 1.0)), [1.0, 0.5, 0.2]),
        (Bounded(-1e308, 1e308), [1.0, 0.5, 0.2]),
        (Poisson(), [1e300, 0.5, 0.2]),
    ],
    ids=str,
)
def test_numbers_that_floats_cannot_hold_are_said_to_be_so(rewards, means):
    with pytest.raises(NotConvergedError, match="choose units in which"):
        lower_bound(Problem(3, (), rewards), means)


def test_forced_and_redundant_are_passed_on():
    bound = lower_bound(Problem(["a", "b", "c"], ["a <= 0", "b <= 1", "c <= 0.9"]), [1.0, 2.0, 3.0])
    assert bound.forced_to_zero == ("a",)
    assert bound.redundant == ("c2",)
    assert bound.policy == pytest.approx([0, 0.1, 0.9])


def test_public_names_work():
    bound = sx.lower_bound(sx.Problem(3, ["a1 <= 1/2"]), [3.0, 2.0, 1.0])
    assert isinstance(bound, sx.Bound)
    assert bound.policy.tolist() == [0.5, 0.5, 0.0]


def test_condition_number_does_not_depend_on_the_scale_of_rows():
    means = TRUTH["ptns8"]["mu"]
    rows, limit = np.array(TRUTH["ptns8"]["B"], dtype=float), np.array(TRUTH["ptns8"]["c"])
    kappas = [
        lower_bound(Problem(8, (s * rows, s * limit)), means).bounds["kappa"]
        for s in (1, 100, 1e300, 1e-300)
    ]
    assert kappas == pytest.approx([kappas[0]] * 4, rel=1e-9)
    active = np.vstack([np.ones(8), rows[0] / np.linalg.norm(rows[0]), np.eye(8)])
    active[0] /= np.sqrt(8)
    policy = lower_bound(Problem(8, (rows, limit)), means).policy
    tight = np.r_[True, True, policy == 0]
    sizes = np.linalg.svd(active[tight], compute_uv=False)
    assert kappas[0] == pytest.approx(sizes[0] / sizes[-1], rel=1e-9)


def test_condition_number_where_arms_have_limits_of_their_own():
    rng = np.random.default_rng(5)
    for _ in range(20):
        row, means = rng.normal(size=7), rng.normal(size=7)
        limits = ["0.05 <= a1 <= 0.3", "each <= 0.25", "a2 <= 0.25", "a3 == 0.1"]
        problem = Problem(7, [*limits, Constraint("row", row, upper=float(row.mean()))])
        bound = lower_bound(problem, means)
        rows = [np.ones(7)]
        rows += [c.coefficients for c in problem.constraints if c.name in bound.active]
        rows += list(np.eye(7)[bound.policy == 0])
        sizes = np.linalg.svd([x / np.linalg.norm(x) for x in rows], compute_uv=False)
        assert bound.bounds["kappa"] == pytest.approx(sizes[0] / sizes[-1], rel=1e-9)


def test_rows_that_are_almost_parallel_are_no_reason_to_refuse_a_bound():
    # At (1/2, 1/2) the total and this row bind; the squares of their difference are rounding.
    tiny = 1e-10
    row = Constraint("row", [1 + tiny, 1 - tiny], upper=1.0)
    bound = lower_bound(Problem(2, [row]), [1.0, 0.0])
    assert bound.policy == pytest.approx([0.5, 0.5])
    assert bound.bounds["kappa"] == pytest.approx(2 / tiny, rel=1e-4)


def test_condition_number_of_a_vertex_that_uses_every_arm_or_one():
    every = lower_bound(Problem(2, ["a1 == 1/3"]), [1.0, 0.0]).bounds["kappa"]
    sizes = np.linalg.svd([[1, 0], [0.5**0.5, 0.5**0.5]], compute_uv=False)
    assert every == pytest.approx(sizes[0] / sizes[1])
    assert lower_bound(Problem(1), [1.0]).bounds["kappa"] == 1.0


@pytest.mark.parametrize("room", [1e-2, 1e-6])
def test_many_nearly_tight_rows_are_certified(room):
    """Every row passes close to one policy; some are redundant."""
    rng = np.random.default_rng(6)
    rows, policy = rng.normal(size=(15, 6)), rng.dirichlet(np.ones(6))
    problem = Problem(6, (rows, rows @ policy + room), scenario="anytime")
    bound = lower_bound(problem, rng.normal(size=6))
    assert all(scenario.relative_gap <= 1e-8 for scenario in bound.scenarios.values())
    assert (problem.matrix @ bound.policy <= problem.upper + 1e-12).all()
    for k, name in enumerate(problem.names):
        if name in bound.redundant:
            continue
        without = problem.replace(
            constraints=problem.constraints[:k] + problem.constraints[k + 1 :]
        )
        assert lower_bound(without, rows[k]).value > problem.upper[k]


def test_without_constraints_all_scenarios_are_the_same():
    free = lower_bound(Problem(3, (), Bernoulli()), [0.5, 0.4, 0.3])
    times = {s.characteristic_time for s in (*free.scenarios.values(), free.unconstrained)}
    assert len(times) == 1


def test_of_very_many_edges_plain_data_hold_the_hardest():
    size = 280
    problem = Problem(size, ["each <= 1/140"])  # half of the arms at their caps
    bound = lower_bound(problem, np.random.default_rng(0).uniform(0.1, 0.9, size))
    assert len(bound.edges) == 140 * 140
    found = bound.to_dict()
    edges, left = found["edges"], found["edges_left_out"]
    assert len(edges) == 140 * 140 - left < 15_000
    number = {edge.gap: e for e, edge in enumerate(bound.edges)}  # no two gaps are the same
    places = [number[edge["gap"]] for edge in edges]
    assert places == sorted(places)
    for n in (0, len(edges) // 2, len(edges) - 1):
        there = bound.edges[places[n]]
        assert edges[n]["direction"] == there.direction.tolist()
        assert edges[n]["neighbour"] == there.neighbour.tolist()
    binding = set()
    for name, scenario in bound.scenarios.items():
        there = found["scenarios"][name]["binding_edges"]
        assert [places[e] for e in there] == list(scenario.binding_edges)
        binding.update(scenario.binding_edges)
    rest = sorted(gap for gap, e in number.items() if e not in binding)
    chosen = sorted(edge["gap"] for edge, e in zip(edges, places, strict=True) if e not in binding)
    assert chosen == rest[: len(chosen)]


def test_few_edges_are_all_there():
    assert "edges_left_out" not in lower_bound(Problem(3), [1.0, 0.5, 0.0]).to_dict()

"""Costs of pulls: the problem, and the least cost of finding the best policy."""

import copy
import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simplexplore as sx
from instances import TRUTH, paper
from nightly import NIGHTLY, crossed, examples
from pictures import assert_texts_apart, bound_figure, texts
from reference_times import conic_time, gaussian_cost
from simplexplore import Constraint, NotConvergedError, Problem, ProblemError
from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.bound.bound import in_samples
from simplexplore.bound.epsilon_proof import least_of
from simplexplore.geometry.polytope import Polytope
from strategies import CASES, case, distinct_means, factors, systems
from tables import bound_table, bound_to_dict, headline, notes, times_alone

# By Newton's method in 30 digits, with a dual certificate that agrees in 16.
COSTLY = json.loads((Path(__file__).parent / "data" / "truth_costs.json").read_text())

HEAD = 'arms = ["a", "b", "c d"]\nmeans = [1.0, 0.8, 0.5]\n'


# ------------------------------------------------------------ the problem


def test_costs_are_read_written_copied_and_compared():
    problem = Problem.from_text(HEAD + '[costs]\na = 4\n"c d" = 0.5\n')
    assert problem.costs.tolist() == [4.0, 1.0, 0.5]
    assert problem.has_costs
    assert problem == Problem(problem.arms, means=problem.means, costs=[4, 1, 0.5])
    assert problem == Problem(problem.arms, means=problem.means, costs={"a": 4, "c d": 0.5})
    assert problem.to_text().endswith('[costs]\na = 4.0\n"c d" = 0.5\n')
    assert Problem.from_text(problem.to_text()) == problem
    for twin in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert twin == problem
        assert hash(twin) == hash(problem)
    assert "costs 0.5 to 4, " in repr(problem)
    with pytest.raises(ValueError, match="read-only"):
        problem.costs[0] = 1.0
    cheap = problem.replace(costs=None)
    assert cheap != problem
    assert not cheap.has_costs
    assert cheap == Problem.from_text(HEAD + "[costs]\na = 1\n")
    assert "costs" not in cheap.to_text()
    assert Problem(3).replace(arms=2) == Problem(2)


@pytest.mark.parametrize(
    ("lines", "says", "field", "line"),
    [
        ("a = 0", "the cost of arm 'a' must be a positive number; got 0.", "a", 4),
        ("b = -2", "the cost of arm 'b' must be a positive number; got -2.", "b", 4),
        ("a = 1\nb = inf", "the cost of arm 'b' must be a positive number; got inf.", "b", 5),
        ("b = nan", "the cost of arm 'b' must be a positive number; got nan.", "b", 4),
        ('b = "4"', "costs: the entry for arm 'b' must be a number; got '4'.", None, 3),
        ("b = true", "costs: the entry for arm 'b' must be a number; got True.", None, 3),
        ("B = 2", "costs names 'B', which is not an arm; did you mean 'b'?", "B", 4),
        ("zzz = 2", "costs names 'zzz', which is not an arm; the arms are a, b, `c d`.", "zzz", 4),
        ("delta = 0.1", "'delta' stands below the line [costs] and so became", "delta", 4),
        ("[groups]\nab = ['a', 'b']\n[costs]\nab = 2", "'ab' in costs is a group; give", "ab", 6),
    ],
)
def test_mistakes_are_named_with_their_place(lines, says, field, line):
    text = lines if lines.startswith("[") else f"[costs]\n{lines}"
    with pytest.raises(ProblemError) as caught:
        Problem.from_text(HEAD + text, source="mix.toml")
    assert str(caught.value).startswith(f"mix.toml: {says}")
    field = "costs" if field is None else f"costs.{field}"
    place = caught.value.place
    assert (place.file, place.line, place.field) == ("mix.toml", line, field)


def test_python_mistakes():
    with pytest.raises(ProblemError, match=r"^costs has 2 numbers for 3 arms; give one per arm\."):
        Problem(3, costs=[1, 2])
    with pytest.raises(ProblemError, match=r"^costs must be a list of numbers; got 7\."):
        Problem(3, costs=7)
    with pytest.raises(ProblemError, match=r"^costs names 3, which is not an arm"):
        Problem(3, costs={3: 1.0})


def test_an_arm_may_be_named_like_a_setting():
    text = 'arms = ["delta", "b"]\n[costs]\ndelta = 2.0\n'
    assert Problem.from_text(text).costs.tolist() == [2.0, 1.0]


# ------------------------------------------------------------ the least cost


def binary_kl(delta):
    """Of delta and 1 - delta."""
    return (1 - 2 * delta) * math.log((1 - delta) / delta)


@pytest.mark.parametrize("name", COSTLY)
def test_costs_that_are_known_to_sixteen_digits(name):
    truth = COSTLY[name]
    problem = paper(truth["instance"]).replace(costs=truth["costs"])
    scenario = "end-of-time"
    if truth["above"]:
        limits = (np.array(truth["above"]), np.array(truth["limit"]))
        problem = problem.replace(exploration=limits, scenario="exploration")
        scenario = "exploration"
    bound = sx.lower_bound(problem)
    found = bound.scenarios[scenario]
    expected = float(truth["characteristic_time"])
    assert found.characteristic_time == pytest.approx(expected, rel=1e-9)
    assert found.relative_gap <= 1e-8
    assert found.allocation == pytest.approx(truth["allocation"], abs=2e-6)
    assert expected / found.cost_per_sample == pytest.approx(truth["pulls"], rel=1e-6)
    assert found.lower_bound == pytest.approx(expected * binary_kl(bound.delta), rel=1e-9)
    assert found.lower_bound_samples == found.lower_bound / found.cost_per_sample
    assert (bound.cost, bound.samples) == (found.lower_bound, found.lower_bound_samples)
    if truth["limit"] == TRUTH[truth["instance"]]["c"]:
        anytime = bound.scenarios["anytime"]
        assert anytime.characteristic_time == found.characteristic_time


def test_two_arms_in_closed_form():
    """T = 2 (sqrt(c1) s1 + sqrt(c2) s2)^2 / gap^2, pulls in proportion to s / sqrt(c)."""
    problem = Problem(2, rewards=sx.Gaussian((1.0, 3.0)), costs=[4.0, 9.0])
    bound = sx.lower_bound(problem, [1.0, 0.5], delta=0.1)
    assert bound.characteristic_time == pytest.approx(2 * (2 + 9) ** 2 / 0.25, rel=1e-12)
    assert bound.allocation == pytest.approx([1 / 3, 2 / 3])
    assert bound.scenarios["end-of-time"].spend == pytest.approx([2 / 11, 9 / 11])
    assert bound.scenarios["end-of-time"].cost_per_sample == pytest.approx(22 / 3)
    assert bound.unconstrained.characteristic_time == bound.characteristic_time
    assert bound.bounds["distance_lower"] == pytest.approx(968.0)
    assert times_alone(bound) == pytest.approx([968.0])
    assert bound.bounds["distance_upper"] == pytest.approx(6.5 * 2 / 0.25 * 2 * 10)
    assert bound.bounds["H"] == pytest.approx(2 * 81 / 0.25)
    assert bound.time_of([1, 1]) == pytest.approx(bound.bounds["distance_upper"])
    assert bound.time_of([1, 2]) == pytest.approx(968.0)


@pytest.mark.parametrize("name", ["exp1", "exp2", "ptns8", "gauss_app2", "bern_app1"])
@pytest.mark.parametrize("cost", [0.001, 7.0])
def test_the_same_cost_of_all_pulls_is_a_factor(name, cost):
    problem = paper(name).replace(exploration=["each >= 0.01"])
    plain = sx.lower_bound(problem)
    costly = sx.lower_bound(problem.replace(costs=np.full(problem.size, cost)))
    for scenario in problem.scenarios:
        one, other = plain.scenarios[scenario], costly.scenarios[scenario]
        assert other.characteristic_time == pytest.approx(cost * one.characteristic_time, rel=1e-9)
        assert other.allocation == pytest.approx(one.allocation, abs=1e-7)
        assert other.spend == pytest.approx(other.allocation, rel=1e-12)
        assert other.cost_per_sample == pytest.approx(cost)
        assert other.lower_bound_samples == pytest.approx(one.lower_bound, rel=1e-9)
    for key in ("distance_lower", "distance_upper", "H"):
        if plain.bounds[key] is not None:
            assert costly.bounds[key] == pytest.approx(cost * plain.bounds[key], rel=1e-6)


def cone_of(rows, costs):
    """Rows of {n : c . n = 1, n / sum n within the rows}: cost-one samples, not shares."""
    above, limit, equal, total = rows
    return (
        above - limit[:, None],
        np.zeros(len(limit)),
        np.vstack([costs, equal[1:] - total[1:, None]]),
        np.r_[1.0, np.zeros(len(total) - 1)],
    )


def costly(name, size, domain=False):
    """A random problem with costs, and floors, caps, rows and an equality on exploration.

    Gaps are wide enough for the cone solver.
    """
    rng = np.random.default_rng(size)
    while True:
        found = drawn(name, size, domain, rng)
        bound = sx.lower_bound(found[1])
        if min(edge.gap for edge in bound.edges) > 0.02 * (found[0].high - found[0].low):
            return *found, bound


def drawn(name, size, domain, rng):
    chosen = case(name, size, domain=domain)
    means = chosen.means(0.1 + 0.8 * (rng.permutation(size) + rng.uniform(0.2, 0.8, size)) / size)
    matrix = rng.integers(-2, 4, size=(2, size)) / 2
    matrix[~matrix.any(axis=1)] = 1.0
    limit = matrix @ rng.dirichlet(np.full(size, 3.0)) + rng.uniform(0.05, 0.3, 2)
    point = 0.5 / size + 0.5 * rng.dirichlet(np.full(size, 2.0))
    one = np.eye(size)
    above = [-one[0], one[-1], rng.integers(0, 3, size).astype(float)]
    bounds = [-0.9 * point[0], 1.1 * point[-1], above[2] @ point + 0.05]
    equal, total = [np.ones(size)], [1.0]
    if size > 3 and size % 2:
        equal.append(rng.normal(size=size))
        total.append(equal[1] @ point)
    limits = [
        Constraint(f"l{i}", row, upper=b)
        for i, (row, b) in enumerate(zip(above, bounds, strict=True))
        if row.any()
    ]
    limits += [Constraint("e", row, b, b) for row, b in zip(equal[1:], total[1:], strict=True)]
    problem = Problem(
        size,
        (matrix, limit),
        chosen.family,
        means=means,
        exploration=limits,
        costs=np.round(10 ** rng.uniform(-1, 1, size), 2),
    )
    free = np.zeros((0, size)), np.zeros(0), np.ones((1, size)), np.ones(1)
    rows = {
        "end-of-time": free,
        "anytime": (matrix, limit, np.ones((1, size)), np.ones(1)),
        "exploration": (np.array(above), np.array(bounds), np.array(equal), np.array(total)),
    }
    return chosen, problem, rows


TWIN = {"gaussian": 1e-6, "hetero": 1e-6, "bernoulli": 5e-4, "poisson": 5e-4, "bounded": 5e-4}


@pytest.mark.parametrize(("name", "domain"), crossed(CASES, [False, True]))
def test_costs_equal_those_of_a_cone_solver(name, domain):
    for size in range(2, 13, 1 if NIGHTLY else 3):
        chosen, problem, rows, bound = costly(name, size, domain)
        directions = np.array([edge.direction for edge in bound.edges])
        for scenario, found in bound.scenarios.items():
            where = (size, scenario)
            cone = cone_of(rows[scenario], problem.costs)
            expected = conic_time(directions, problem.means, chosen.twin, *cone)
            assert found.characteristic_time == pytest.approx(expected, rel=TWIN[name]), where
            assert found.relative_gap <= 1e-8, where
            above, limit, equal, total = rows[scenario]
            assert (above @ found.allocation <= limit + 1e-9).all(), where
            assert equal @ found.allocation == pytest.approx(total, abs=1e-9), where
            spent = problem.costs * found.allocation
            assert found.spend == pytest.approx(spent / spent.sum(), rel=1e-9), where


@pytest.mark.parametrize("limits", [["each <= 0.06"], ["each >= 0.01", "each <= 0.1"]])
def test_many_limits_beside_costs(limits):
    rng = np.random.default_rng(4)
    size = 30
    means = 0.1 + 0.8 * (rng.permutation(size) + rng.uniform(0.2, 0.8, size)) / size
    costs = 10 ** rng.uniform(-1, 1, size)
    problem = Problem(size, exploration=limits, means=means, costs=costs)
    bound = sx.lower_bound(problem)
    one = np.eye(size)
    above, limit = [], []
    for text in limits:
        sign, number = (1, text.split()[-1]) if "<=" in text else (-1, text.split()[-1])
        above.append(sign * one)
        limit.append(np.full(size, sign * float(number)))
    rows = np.vstack(above), np.concatenate(limit)
    directions = np.array([edge.direction for edge in bound.edges])
    expected = gaussian_cost(directions, means, np.ones(size), costs, *rows)
    assert bound.characteristic_time == pytest.approx(expected, rel=1e-7)
    assert bound.relative_gap <= 1e-8
    assert (rows[0] @ bound.allocation <= rows[1] + 1e-12).all()


@pytest.mark.parametrize("size", range(2, 13))
def test_what_is_reported_is_reached_in_exact_arithmetic(size):
    """c.w max_e sum_a 2 s^2 v_a^2 / (gap_e^2 w_a), in fractions, at the allocation reported."""
    _, problem, _, bound = costly("gaussian", size)
    mu = [Fraction(float(x)) for x in problem.means]
    costs = [Fraction(float(x)) for x in problem.costs]
    for found in bound.scenarios.values():
        w = [Fraction(float(x)) for x in found.allocation]
        times = []
        for edge in bound.edges:
            v = [Fraction(float(x)) for x in edge.direction]
            gap = sum(x * m for x, m in zip(v, mu, strict=True))
            moved = [a for a, x in enumerate(v) if x]
            times.append(sum(Fraction(1, 2) * v[a] ** 2 / w[a] for a in moved) / gap**2)
        spent = sum(c * x for c, x in zip(costs, w, strict=True))
        exact = float(spent * max(times))
        assert found.characteristic_time == pytest.approx(exact, rel=1e-11)
        least = found.characteristic_time / (1 + found.relative_gap)
        assert exact >= least * (1 - 1e-12)


@given(system=systems(min_size=2, limits=True), data=st.data())
@examples(12)
def test_scaling_rows_changes_nothing_and_rows_never_help(system, data):
    means = data.draw(distinct_means(system.size))
    costs = data.draw(
        st.lists(st.sampled_from([0.1, 1.0, 3.0, 20.0]), min_size=system.size, max_size=system.size)
    )
    problem = Problem(system.size, means=means, costs=costs)
    scaled = system.scaled(data.draw(factors(len(system.rows))))
    if not system.rows:
        return
    bounds = [
        sx.lower_bound(problem.replace(exploration=rows.constraints(), scenario=None))
        for rows in (system, scaled)
    ]
    first, second = (bound.scenarios["exploration"] for bound in bounds)
    if math.isinf(first.characteristic_time):
        assert first.unidentifiable
        assert math.isinf(second.characteristic_time)
        return
    gaps = 1e-9 + first.relative_gap + second.relative_gap
    assert first.characteristic_time == pytest.approx(second.characteristic_time, rel=gaps)
    free = bounds[0].scenarios["end-of-time"].characteristic_time
    assert first.characteristic_time >= free * (1 - 1e-8)


def far_apart(cost):
    limits = ["a3 - 0.5*a4 == 0.05", "a1 + 0.3*a3 == 0.2"]
    problem = Problem(4, exploration=limits, costs=[1, 1, cost, cost])
    return sx.lower_bound(problem, [1.0, 0.8, 0.5, 0.2]).scenarios["exploration"]


@pytest.mark.parametrize("cost", [1e9, 1e13, 1e18, 1e100])
def test_costs_far_apart_are_certified(cost):
    found = far_apart(cost)
    assert found.characteristic_time == pytest.approx(cost * 21.8811097, rel=1e-7)
    assert found.relative_gap <= 1e-8
    assert found.allocation @ [0, 0, 1, -0.5] == pytest.approx(0.05, abs=1e-9)


def test_spent_shares_satisfy_the_rows_that_samples_satisfy():
    problem = Problem(4, ["a1 + a2 <= 0.5", "a3 - a4 == 0.1", "a1 <= 0.3"], costs=[1, 2, 5, 0.5])
    allowed = AllocationSet.of(Polytope(problem), "anytime").as_rows()
    spent = allowed.in_spend()
    rng = np.random.default_rng(0)
    for _ in range(20):
        w = rng.dirichlet(np.ones(4))
        u = problem.costs * w / (problem.costs @ w)
        before = allowed.b_ub - allowed.A_ub @ w
        after = spent.b_ub - spent.A_ub @ u
        assert (np.sign(np.round(before, 12)) == np.sign(np.round(after, 12))).all()
    assert spent.A_eq @ spent.max_slack == pytest.approx(spent.b_eq, abs=1e-12)
    assert spent.holds_strictly(spent.max_slack)
    assert len(spent.A_eq) == len(allowed.A_eq)
    assert allowed.in_spend() is not allowed
    same = replace_costs(problem, np.full(4, 3.0))
    assert same.in_spend() is same


def replace_costs(problem, costs):
    return AllocationSet.of(Polytope(problem.replace(costs=costs)), "anytime").as_rows()


def test_samples_that_miss_a_limit_are_not_reported():
    problem = Problem(3, ["a1 <= 0.5"], costs=[1, 2, 4])
    allowed = AllocationSet.of(Polytope(problem), "anytime").as_rows()
    found = sx.lower_bound(problem, [1.0, 0.5, 0.0]).scenarios["anytime"]
    at_limit = problem.costs * [0.5, 0.3, 0.2]
    kept = in_samples(replace(found, allocation=at_limit / at_limit.sum()), allowed)
    assert kept.allocation == pytest.approx([0.5, 0.3, 0.2])
    beyond = problem.costs * [0.5 + 2e-9, 0.3 - 2e-9, 0.2]
    with pytest.raises(NotConvergedError, match="are too far apart"):
        in_samples(replace(found, allocation=beyond / beyond.sum()), allowed)


# ------------------------------------------------------------ good enough


@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_linear_programs_are_proven(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-1, 3, (2, 5)).astype(float)
    problem = Problem(5, (rows, rows @ np.full(5, 0.2) + 0.1))
    polytope = Polytope(problem)
    cost = rng.uniform(-1, 1, 5)
    own = AllocationSet.of(polytope, "anytime").as_rows()
    least = min(vertex.policy @ cost for vertex, _ in polytope.ranked_vertices(-cost))
    found, point = least_of(cost, own.A_ub, own.b_ub, own.A_eq, own.b_eq, np.ones(5))
    assert least - 1e-9 <= found <= least + 1e-12
    assert cost @ point == pytest.approx(least)
    none, point = least_of(cost, own.A_ub, own.b_ub - 100, own.A_eq, own.b_eq, np.ones(5))
    assert none == -np.inf
    assert point is None


def test_epsilon_with_costs():
    problem = paper("exp2").replace(epsilon=0.05, exploration=["each >= 0.05"])
    plain = sx.lower_bound(problem)
    same = sx.lower_bound(problem.replace(costs=np.full(5, 3.0)))
    for name, one in plain.scenarios.items():
        other = same.scenarios[name]
        assert other.characteristic_time == pytest.approx(3 * one.characteristic_time, rel=1e-3)
        assert other.least_time == pytest.approx(3 * one.least_time, rel=1e-3)
    found = sx.lower_bound(problem.replace(costs=[1, 2, 1, 4, 1]))
    for one in found.scenarios.values():
        assert 0 < one.least_time <= one.characteristic_time <= 1.01 * one.least_time
        assert one.relative_gap <= 1e-6
    times = [one.characteristic_time for one in found.scenarios.values()]
    assert times[0] <= min(times[1:]) * (1 + 1e-6)
    assert found.time_of(found.allocation) == pytest.approx(found.characteristic_time, rel=1e-9)


# ------------------------------------------------------------ words, tables and pictures


@pytest.mark.parametrize("width", [80, 120])
def test_money_and_pulls_are_both_said(width):
    problem = paper("exp1").replace(costs=[1, 2, 1, 4, 1])
    bound = sx.lower_bound(problem)
    kl = binary_kl(bound.delta)
    assert headline(bound) == (
        f"At least a cost of {2141.054607997887 * kl:,.0f} on average to find it with confidence "
        f"{1 - bound.delta:g} (end-of-time): {1259.069596448419 * kl:,.0f} samples."
    )
    text = bound_table(bound, width, forecasts=True)
    for part in ("cost, at least", "samples for that", "characteristic cost: the", "cost alone"):
        assert part in text
    assert "…" not in text
    expected = float(f"{sx.forecast(bound).cost:.2g}")
    assert f" samples at a cost of about {expected:,.0f} with top-two" in " ".join(text.split())
    assert "at least a cost of" in notes(bound)[-1]


def test_json_has_both_only_with_costs():
    problem = paper("exp1")
    found = bound_to_dict(sx.lower_bound(problem.replace(costs=[1, 2, 1, 4, 1])))
    assert found["costs"] == [1.0, 2.0, 1.0, 4.0, 1.0]
    scenario = found["scenarios"]["end-of-time"]
    assert scenario["cost_per_sample"] == pytest.approx(2141.054607997887 / 1259.069596448419)
    samples = scenario["lower_bound"] / scenario["cost_per_sample"]
    assert scenario["lower_bound_samples"] == pytest.approx(samples)
    assert sum(scenario["spend"]) == pytest.approx(1)
    assert scenario["expected_samples"] < scenario["expected_cost"]
    assert found["unconstrained"]["cost_per_sample"] > 1
    plain = bound_to_dict(sx.lower_bound(problem))
    assert "costs" not in plain
    assert not {"cost_per_sample", "lower_bound_samples", "spend", "expected_cost"} & set(
        plain["scenarios"]["anytime"]
    )
    assert "spend" not in plain["unconstrained"]


@pytest.mark.parametrize("arms", [3, 6])
def test_picture_speaks_of_cost(arms):
    problem = Problem(arms, ["a1 <= 0.5"], means=np.linspace(1, 0, arms), costs=range(1, arms + 1))
    figure = bound_figure(sx.lower_bound(problem))
    assert_texts_apart(figure)
    words = " ".join(text.get_text() for text in texts(figure))
    assert "in cost" in words
    assert "line: of the cost" in words
    assert "cost each would take alone" in words


def test_ties_and_single_policies_with_costs():
    tied = sx.lower_bound(Problem(3, costs=[1, 2, 3]), [1.0, 1.0, 0.0])
    assert tied.cost == tied.samples == math.inf
    single = sx.lower_bound(Problem(2, ["a1 == 0.5"], costs=[1, 2]), [1.0, 0.0])
    assert single.cost == single.samples == 0
    bound_figure(tied)
    bound_figure(single)

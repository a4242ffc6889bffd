"""Limits on exploration: the third scenario, and what they cost."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

import simplexplore as sx
from instances import LIMITED, paper
from nightly import NIGHTLY, crossed, examples
from pictures import assert_texts_apart, bound_figure
from reference_times import conic_time
from simplexplore import Bernoulli, Constraint, Gaussian, Poisson, Problem
from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.geometry.polytope import Polytope
from strategies import CASES, case, distinct_means, factors, systems
from tables import bound_table, bound_to_dict, exploration_usage, headline, notes

# ------------------------------------------------------------ where samples may go


def test_the_set_has_the_limits_rows_and_the_policies_arms():
    problem = Problem(4, ["a4 <= 0"], exploration=["a1 <= 0", "a2 + a3 <= 0.75", "a2 == a3"])
    allowed = AllocationSet.of(Polytope(problem), "exploration")
    assert allowed.arms.tolist() == [False, True, True, True]
    assert allowed.useful_arms.tolist() == [True, True, True, False]
    assert allowed.A_ub.shape == (1, 4)
    assert allowed.A_eq.shape == (2, 4)
    assert allowed.max_slack[0] == 0
    assert allowed.holds_strictly(allowed.max_slack)
    assert allowed.polytope.problem.constraints == problem.exploration


# ------------------------------------------------------------ the bound


@pytest.mark.parametrize("name", ["exp1", "exp2", "ptns8", "gauss_app1", "gauss_app2", "bern_app1"])
def test_with_the_constraints_as_limits_it_is_anytime_to_the_last_bit(name):
    problem = paper(name)
    bound = sx.lower_bound(problem.replace(exploration=problem.constraints))
    anytime, limited = bound.scenarios["anytime"], bound.scenarios["exploration"]
    assert limited.characteristic_time == anytime.characteristic_time
    assert limited.allocation.tolist() == anytime.allocation.tolist()
    assert limited.relative_gap == anytime.relative_gap
    assert limited.binding_edges == anytime.binding_edges


@pytest.mark.parametrize("name", ["exp1", "bern_app1"])
def test_limits_without_effect_cost_nothing(name):
    bound = sx.lower_bound(paper(name).replace(exploration=["a1 <= 1"]))
    free, limited = bound.scenarios["end-of-time"], bound.scenarios["exploration"]
    assert limited.characteristic_time == pytest.approx(free.characteristic_time, rel=1e-9)
    assert any("cost nothing" in note for note in notes(bound))


def test_fairness_costs_what_it_should():
    """Every arm at least a tenth of the samples; 16 digits by Newton's method in 30 digits."""
    bound = sx.lower_bound(paper("exp2").replace(exploration=["each >= 0.1"], scenario=None))
    assert bound.characteristic_time == pytest.approx(530.7692294717365, rel=1e-9)
    expected = [0.12918990293196897, 0.1, 0.1, 0.32296484295830924, 0.34784525410972184]
    assert bound.allocation == pytest.approx(expected, abs=1e-7)
    assert bound.relative_gap <= 1e-8
    (words,) = [note for note in notes(bound) if note.startswith("The limits on exploration")]
    assert words == "The limits on exploration cost 20% more than exploring freely."
    assert [use.name for use in exploration_usage(bound, 9) if use.active] == ["c1[a2]", "c1[a3]"]


def rows_of_exploration(problem):
    """(above, limit, equal, total) of the limits, for the twins."""
    size = problem.size
    above, limit, equal, total = [], [], [np.ones(size)], [1.0]
    for row in problem.exploration:
        if row.lower == row.upper:
            equal.append(row.coefficients)
            total.append(row.upper)
            continue
        for sign, bound in ((1.0, row.upper), (-1.0, -row.lower)):
            if np.isfinite(bound):
                above.append(sign * row.coefficients)
                limit.append(bound)
    return np.reshape(above, (-1, size)), np.array(limit), np.array(equal), np.array(total)


def with_limits(name, seed, domain=False):
    """A random problem with other limits on exploration: floors, caps, rows, an equality."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 13))
    chosen = case(name, size, domain=domain)
    means = chosen.means(0.1 + 0.8 * (rng.permutation(size) + rng.uniform(0.2, 0.8, size)) / size)
    inside = rng.dirichlet(np.full(size, 3.0))
    matrix = rng.integers(-2, 4, size=(2, size)) / 2
    matrix[~matrix.any(axis=1)] = 1.0
    point = 0.5 / size + 0.5 * rng.dirichlet(np.full(size, 2.0))
    limits = [Constraint("floor", np.eye(size)[0], 0.9 * point[0])]
    limits += [Constraint("cap", np.eye(size)[-1], upper=1.1 * point[-1])]
    row = rng.integers(0, 3, size).astype(float)
    if row.any():
        limits.append(Constraint("row", row, upper=row @ point + 0.05))
    if size > 3 and seed % 2:
        row = rng.normal(size=size)
        limits.append(Constraint("equal", row, row @ point, row @ point))
    constraints = (matrix, matrix @ inside + rng.uniform(0.05, 0.3, 2))
    return chosen, Problem(size, constraints, chosen.family, means=means, exploration=limits)


TWIN = {"gaussian": 1e-6, "hetero": 1e-6, "bernoulli": 2e-4, "poisson": 2e-4, "bounded": 2e-4}


@pytest.mark.parametrize(("name", "domain"), crossed(CASES, [False, True]))
def test_times_equal_those_of_a_cone_solver(name, domain):
    for seed in range(8 if NIGHTLY else 4):
        chosen, problem = with_limits(name, seed, domain)
        bound = sx.lower_bound(problem)
        directions = np.array([edge.direction for edge in bound.edges])
        rows = rows_of_exploration(problem)
        expected = conic_time(directions, problem.means, chosen.twin, *rows)
        assert bound.characteristic_time == pytest.approx(expected, rel=TWIN[name])
        assert bound.relative_gap <= 1e-8
        above, limit, equal, total = rows
        assert (above @ bound.allocation <= limit + 1e-12).all()
        assert equal @ bound.allocation == pytest.approx(total, abs=1e-12)


@given(system=systems(min_size=2, limits=True), data=st.data())
@examples(12)
def test_scaling_limits_changes_nothing(system, data):
    means = data.draw(distinct_means(system.size))
    problem = Problem(system.size, means=means)
    scaled = system.scaled(data.draw(factors(len(system.rows))))
    assume(system.rows)
    bounds = [
        sx.lower_bound(problem.replace(exploration=rows.constraints(), scenario=None))
        for rows in (system, scaled)
    ]
    first, second = (bound.scenarios["exploration"] for bound in bounds)
    assert [x.arm for x in first.unidentifiable] == [x.arm for x in second.unidentifiable]
    if not first.unidentifiable:
        gaps = 1e-10 + first.relative_gap + second.relative_gap
        assert first.characteristic_time == pytest.approx(second.characteristic_time, rel=gaps)
        free = bounds[0].scenarios["end-of-time"]
        assert first.characteristic_time >= free.characteristic_time / (
            1 + 1e-9 + free.relative_gap
        )


@pytest.mark.parametrize(
    ("floor", "words"),
    [
        (0.6, "cost 150% more than"),
        (0.499, "cost 99.6% more than"),
        (0.3, "cost 43% more than"),
        (0.05, "cost 5.3% more than"),
        (0.001, "cost 0.098% more than"),
        (0.0, "cost nothing: "),
    ],
)
def test_what_limits_cost_is_said_in_words(floor, words):
    """The third arm is far behind; a share of it is lost on the two others."""
    problem = Problem(3, exploration=[f"a3 >= {floor}"])
    bound = sx.lower_bound(problem, [1.0, 0.9, -9.0])
    (found,) = [note for note in notes(bound) if note.startswith("The limits on exploration")]
    times = bound.characteristic_time / bound.scenarios["end-of-time"].characteristic_time
    assert words in found, times


def test_one_allocation_is_all_there_is():
    shares = np.array([0.2, 0.3, 0.5])
    limits = [f"a{i} == {w}" for i, w in enumerate(shares, 1)]
    bound = sx.lower_bound(Problem(3, exploration=limits), [1.0, 0.5, 0.0])
    assert bound.allocation == pytest.approx(shares)
    assert bound.characteristic_time == pytest.approx(2 / 0.25 * (1 / 0.2 + 1 / 0.3), rel=1e-12)
    assert bound.time_of(shares) == pytest.approx(bound.characteristic_time, rel=1e-12)
    assert bound.scenarios["exploration"].unique
    # A rare arm, whose share is a difference of others.
    limits = ["a1 + a2 == 0.250000001", "a2 - a3 == -0.499999999", "a2 >= 0"]
    bound = sx.lower_bound(Problem(3, exploration=limits), [1.0, 0.5, 0.0])
    assert bound.allocation == pytest.approx([1e-9, 0.25, 0.749999999], rel=1e-15)
    assert bound.characteristic_time == pytest.approx(2 / 0.25 * (1e9 + 4), rel=1e-14)
    assert bound.relative_gap <= 1e-12


def test_limits_need_not_lie_in_the_feasible_set():
    """Samples of an arm that no policy uses are allowed, and of no use."""
    problem = Problem(3, ["a3 <= 0"], exploration=["a3 >= 0.5"])
    bound = sx.lower_bound(problem, [1.0, 0.5, 0.0])
    assert bound.allocation == pytest.approx([0.25, 0.25, 0.5])
    assert bound.characteristic_time == pytest.approx(2 * 32)


# ------------------------------------------------------------ what cannot be known


@pytest.mark.parametrize(
    ("limits", "arm", "names"),
    [
        ({"never": "b <= 0", "rest": "a <= 0.5"}, "b", ("never",)),
        ({"x": "a >= 0.7", "y": "c >= 0.3"}, "b", ("x", "y")),
        ({"x": "each >= 0.01", "y": "a + c <= 0.6"}, None, ()),
        ({"same": "a + c == 1", "x": "a <= 0.6"}, "b", ("same",)),
        ({"x": "b <= c - a", "y": "c <= a"}, "b", ("x", "y")),
        ({"x": "a <= 0.9", "y": "-2*b >= 0"}, "b", ("y",)),
    ],
)
def test_an_arm_without_samples_is_named_with_its_limits(limits, arm, names):
    problem = Problem(["a", "b", "c"], exploration=limits)
    bound = sx.lower_bound(problem, [1.0, 0.8, 0.5])
    limited = bound.scenarios["exploration"]
    if arm is None:
        assert limited.unidentifiable == ()
        assert np.isfinite(limited.characteristic_time)
        return
    assert [(x.arm, x.limits) for x in limited.unidentifiable] == [(arm, names)]
    assert limited.characteristic_time == limited.lower_bound == np.inf
    assert headline(bound) == (
        f"Not identifiable: the limits on exploration leave no samples for {arm} "
        f"({', '.join(names)})."
    )
    found = bound_to_dict(bound)["scenarios"]["exploration"]
    assert found["unknowable"] == [{"arm": arm, "limits": list(names)}]
    assert found["expected_samples"] is None
    free = sx.lower_bound(problem.replace(scenario="end-of-time"), [1.0, 0.8, 0.5])
    (words,) = [note for note in notes(free) if "scenario exploration" in note]
    assert words.startswith("Not identifiable in the scenario exploration: the limits on explor")
    assert not any(note.startswith("Other allocations") for note in notes(bound))
    assert_printed(bound, "Not identifiable: ", "infinite")
    bound_figure(bound)


def test_many_arms_without_samples_are_named_quickly():
    size = 60
    groups = {"rest": [f"a{i}" for i in range(11, size + 1)]}
    problem = Problem(size, exploration=["each rest <= 0"], groups=groups)
    bound = sx.lower_bound(problem, np.linspace(1, 0, size))
    found = bound.scenarios["exploration"].unidentifiable
    assert [x.arm for x in found] == groups["rest"]
    assert [x.limits for x in found[:10]] == [(f"c1[a{i}]",) for i in range(11, 21)]
    assert headline(bound).endswith(", a13 (c1[a13]), 47 more.")


def test_an_arm_that_does_not_matter_needs_no_samples():
    problem = Problem(["a", "b", "c"], ["c <= 0"], exploration=["c <= 0"])
    bound = sx.lower_bound(problem, [1.0, 0.5, 3.0])
    assert bound.characteristic_time == pytest.approx(32.0)
    assert bound.scenarios["exploration"].unidentifiable == ()


@pytest.mark.parametrize(
    ("rewards", "ends"),
    [
        (Bernoulli(), (0.0, 1.0)),
        (Bernoulli(domain=(0.05, 0.95)), (0.05, 0.95)),
        (Poisson(domain=(0.05, 0.95)), (0.05, 0.95)),
        (Gaussian(0.5, domain=(0.05, 0.95)), (0.05, 0.95)),
    ],
    ids=str,
)
def test_an_arm_of_bounded_means_may_do_without_samples(rewards, ends):
    """Its mean takes the worst end of its range for nothing; the others are looked at.

    Policies are a third of b for each other arm given up, so b's worst end moves little.
    """
    constraints = ["a - 2*b == 0.1", "a <= 0.7"]
    means = np.array([0.9, 0.3, 0.2])
    problem = Problem(["a", "b", "c"], constraints, rewards, exploration=["b <= 0"])
    bound = sx.lower_bound(problem, means)
    (edge,) = bound.edges
    v, (low, high) = -edge.direction, ends
    end = low if v[1] > 0 else high

    def time(share):
        """By minimising over one mean: the other then lies on the edge's hyperplane."""
        w = np.array([share, 1 - share])
        sigma = np.full(2, 0.5)

        def information(x):
            other = -(v[0] * x + v[1] * end) / v[2]
            lam = np.array([x, other])
            if not (low <= lam.min() and lam.max() <= high):
                return 1e3
            return float(w @ rewards.divergence(means[[0, 2]], lam, sigma))

        grid = np.linspace(low + 1e-9, high - 1e-9, 4001)
        start = grid[np.argmin([information(x) for x in grid])]
        step = grid[1] - grid[0]
        fine = minimize(
            lambda x: information(x[0]),
            [start],
            bounds=[(start - step, start + step)],
            method="Nelder-Mead",
            options={"xatol": 1e-12, "fatol": 1e-15},
        )
        return 1 / fine.fun

    limited = bound.scenarios["exploration"]
    assert limited.unidentifiable == ()
    assert limited.allocation[1] == 0
    shares = limited.allocation[[0, 2]]
    assert limited.characteristic_time == pytest.approx(time(shares[0]), rel=1e-6)
    for other in (0.9, 1.1):  # no allocation is better
        assert time(other * shares[0]) >= limited.characteristic_time * (1 - 1e-6)
    assert limited.closest_alternative[1] == pytest.approx(end)
    assert limited.closest_alternative @ v == pytest.approx(0, abs=1e-9)
    free = bound.scenarios["end-of-time"]
    assert limited.characteristic_time >= free.characteristic_time * (1 - 1e-9)
    unlimited = problem.replace(rewards=Gaussian(0.5))
    assert sx.lower_bound(unlimited, means).scenarios["exploration"].unidentifiable


# ------------------------------------------------------------ good enough


def test_epsilon_within_limits():
    problem = paper("exp2").replace(epsilon=0.05, exploration=["each >= 0.1"], scenario=None)
    bound = sx.lower_bound(problem)
    free, limited = bound.scenarios["end-of-time"], bound.scenarios["exploration"]
    assert limited.characteristic_time > free.characteristic_time
    assert limited.allocation.min() >= 0.1 - 1e-9
    assert limited.least_time <= limited.characteristic_time
    same = sx.lower_bound(problem.replace(exploration=problem.constraints))
    anytime, limited = same.scenarios["anytime"], same.scenarios["exploration"]
    assert limited.characteristic_time == anytime.characteristic_time
    assert limited.least_time == anytime.least_time


def test_epsilon_with_an_arm_without_samples():
    problem = paper("exp2").replace(epsilon=0.05, exploration=["a1 <= 0"], scenario=None)
    bound = sx.lower_bound(problem)
    limited = bound.scenarios["exploration"]
    assert limited.characteristic_time == limited.least_time == limited.lower_bound == np.inf
    assert [(x.arm, x.limits) for x in limited.unidentifiable] == [("a1", ("c1",))]
    assert headline(bound).startswith("Not identifiable: ")
    bound_figure(bound)
    coins = Problem(3, ["a1 <= 0.05"], Bernoulli(), epsilon=0.1, exploration=["a1 <= 0"])
    limited = sx.lower_bound(coins, [0.9, 0.6, 0.1]).scenarios["exploration"]
    assert limited.characteristic_time < np.inf  # a1 is worth at most 0.05
    assert limited.unidentifiable == ()


# ------------------------------------------------------------ words, tables and pictures


def assert_printed(bound, *parts, width=80):
    text = bound_table(bound, width)
    for part in parts:
        assert part in text
    assert "…" not in text
    return text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_table_has_the_third_scenario(width):
    bound = sx.lower_bound(Problem.from_text(LIMITED))
    text = assert_printed(bound, "Limits on exploration", "lab", "(exploration)", width=width)
    assert "The limits on exploration cost" in text
    about = float(f"{sx.forecast(bound).samples:.2g}")
    said = " ".join(bound_table(bound, width, forecasts=True).split())
    assert f"Expect about {about:,.0f} samples with top-two and tilt" in said
    scenario = bound.to_dict()["scenarios"]["exploration"]
    assert scenario["unknowable"] == []
    assert scenario["lower_bound"] == bound.samples
    assert "unknowable" not in bound.to_dict()["scenarios"]["anytime"]


@pytest.mark.parametrize("arms", [3, 5])
def test_picture_has_the_third_scenario(arms):
    problem = Problem(
        arms, ["a1 <= 0.5"], means=np.linspace(1, 0, arms), exploration=["each <= 0.4"]
    )
    figure = bound_figure(sx.lower_bound(problem))
    labels = [axes.get_label() for axes in figure.axes]
    assert {"exploration", "limits"} <= set(labels)
    assert_texts_apart(figure)

"""Characteristic times against independent solvers, and certificates against the truth.

Random problems come from fixed seeds; nothing here is random from run to run.
"""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nightly import NIGHTLY, crossed, examples, nightly
from reference_times import best_arm_time, conic_time, gaussian_lower_time, time_between
from simplexplore import (
    Bernoulli,
    Constraint,
    Gaussian,
    NotConvergedError,
    Problem,
    lower_bound,
)
from strategies import CASES, System, case, distinct_means, factors, rows_of, systems

HYPOTHESIS = examples(12)

SCENARIOS = ("end-of-time", "anytime")

FAMILIES = [
    pytest.param(name, domain, id=f"{name}{'-domain' if domain else ''}")
    for name, domain in itertools.product(CASES, (False, True))
]

# Relative accuracy of clarabel on these problems, with a margin.
TWIN = {"gaussian": 1e-6, "hetero": 1e-6, "bernoulli": 1e-4, "poisson": 1e-4, "bounded": 1e-4}


def well_posed(name, domain, count, seed):
    """Problems with room inside and no close calls: (case, problem, means)."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        size, rows = int(rng.integers(2, 9)), int(rng.integers(0, 5))
        if rng.random() < 0.5:
            matrix = rng.integers(-2, 4, size=(rows, size)) / rng.choice([1, 2, 3])
        else:
            matrix = rng.normal(size=(rows, size))
        matrix[~matrix.any(axis=1)] = 1.0
        inside = rng.dirichlet(np.full(size, 3.0))
        limit = matrix @ inside + rng.uniform(0.05, 0.3, rows)
        chosen = case(name, size, domain=domain)
        means = chosen.means(rng.uniform(0.1, 0.9, size))
        problem = Problem(size, (matrix, limit), chosen.family)
        bound = lower_bound(problem, means)
        if min(edge.gap for edge in bound.edges) > 0.02 * (chosen.high - chosen.low):
            found.append((chosen, problem, means, bound))
    return found


@functools.cache
def solved(name, domain):
    return well_posed(name, domain, 12 if NIGHTLY else 4, seed=CASES.index(name) + 10 * domain)


def directions_of(bound):
    return np.array([edge.direction for edge in bound.edges])


def allowed(problem, scenario):
    """(above, limit, equal, total) of the allocations of a scenario."""
    one = np.ones((1, problem.size)), np.ones(1)
    if scenario == "end-of-time":
        return np.zeros((0, problem.size)), np.zeros(0), *one
    assert np.isinf(problem.lower).all()
    return problem.matrix, problem.upper, *one


# ------------------------------------------------------------ against other solvers


@pytest.mark.parametrize(("name", "domain"), FAMILIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_times_equal_those_of_a_cone_solver(name, domain, scenario):
    for chosen, problem, means, bound in solved(name, domain):
        found = bound.scenarios[scenario]
        expected = conic_time(directions_of(bound), means, chosen.twin, *allowed(problem, scenario))
        assert found.characteristic_time == pytest.approx(expected, rel=TWIN[name])


def with_genres(size, seed):
    """Many arms in ten overlapping groups, each with a limit, and the means."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.2, 0.8, size)
    matrix = (rng.random((10, size)) < 1 / 3).astype(float)
    matrix[5:] *= -1.0
    limit = np.round(rng.uniform(0.2, 0.4, 10), 3) * np.repeat([1, -1], 5)
    return Problem(size, (matrix, limit)), means


def test_times_of_many_arms_are_close_to_a_proven_lower_bound():
    problem, means = with_genres(300, seed=0)
    bound = lower_bound(problem, means)
    for scenario in SCENARIOS:
        lower = gaussian_lower_time(
            directions_of(bound), means, np.ones(300), *allowed(problem, scenario)
        )
        assert lower <= bound.scenarios[scenario].characteristic_time <= 1.01 * lower


@pytest.mark.parametrize(
    ("rewards", "size", "seed"),
    [
        (Gaussian(), 400, 2),
        (Bernoulli(), 300, 5),
        *(
            pytest.param(rewards, 1000, seed, marks=nightly)
            for rewards, seed in itertools.product((Gaussian(), Bernoulli()), (2, 5, 7))
        ),
    ],
    ids=str,
)  # seeds on which simpler steps got stuck
def test_times_of_a_thousand_arms_are_certified(rewards, size, seed):
    problem, means = with_genres(size, seed)
    for found in lower_bound(problem.replace(rewards=rewards), means).scenarios.values():
        assert found.relative_gap <= 1e-8


@pytest.mark.parametrize("name", ["gaussian", "hetero"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_gaussian_lower_times_respect_a_proven_lower_bound(name, scenario):
    close = 0
    for chosen, problem, means, bound in solved(name, False):
        found = bound.scenarios[scenario]
        lower = gaussian_lower_time(
            directions_of(bound), means, chosen.twin.sigma, *allowed(problem, scenario)
        )
        assert found.characteristic_time >= lower * (1 - 1e-12)
        close += found.characteristic_time <= lower * (1 + 1e-5)
    assert 2 * close > len(solved(name, False))  # the bound is tight most of the time


@pytest.mark.parametrize(("name", "domain"), FAMILIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_times_lie_between_independently_proven_bounds(name, domain, scenario):
    for chosen, problem, means, bound in solved(name, domain):
        found = bound.scenarios[scenario]
        lower, upper = time_between(
            found.allocation,
            directions_of(bound),
            means,
            chosen.twin,
            *allowed(problem, scenario),
        )
        # What the allocation attains is what is reported; no allocation attains less.
        assert found.characteristic_time == pytest.approx(upper, rel=1e-10)
        assert found.characteristic_time >= lower * (1 - 1e-9)
        assert found.characteristic_time <= lower * (1 + 1e-6)


@pytest.mark.parametrize("name", CASES)
def test_simplex_only_equals_the_best_arm_formula(name):
    rng = np.random.default_rng(8)
    for size in (2, 3, 5, 8):
        chosen = case(name, size, domain=False)
        means = chosen.means(0.1 + 0.8 * (rng.permutation(size) + rng.random(size)) / size)
        bound = lower_bound(Problem(size, (), chosen.family), means)
        # The formula holds for the rescaled coins, too: the best arm stays the best.
        expected, w = best_arm_time(means, chosen.twin)
        for scenario in SCENARIOS:
            found = bound.scenarios[scenario]
            assert found.characteristic_time == pytest.approx(expected, rel=1e-8)
            assert found.allocation == pytest.approx(w, abs=1e-6)
            assert found.unique
        assert bound.unconstrained.characteristic_time == pytest.approx(expected, rel=1e-8)
        assert bound.unconstrained.allocation == pytest.approx(w, abs=1e-6)


def test_two_arms_by_hand():
    problem = Problem(2, (), Gaussian((1.0, 3.0)))
    found = lower_bound(problem, [0.5, 0.0]).scenarios["anytime"]
    # T = 2 (sigma_1 + sigma_2)^2 / gap^2, w proportional to sigma.
    assert found.characteristic_time == pytest.approx(128.0, rel=1e-9)
    assert found.allocation == pytest.approx([0.25, 0.75], abs=1e-7)
    assert found.closest_alternative == pytest.approx([0.375, 0.375], abs=1e-6)
    assert found.binding_edges == (0,)


# ------------------------------------------------------------ certificates


@pytest.mark.parametrize(("name", "domain"), FAMILIES)
def test_gap_is_small_on_well_posed_problems(name, domain):
    for _, _, _, bound in solved(name, domain):
        for found in bound.scenarios.values():
            assert 0 <= found.relative_gap <= 1e-8


def check_feasible(problem, scenario, w):
    above, limit, equal, total = allowed(problem, scenario)
    assert (above @ w - limit).max(initial=0.0) <= 1e-9
    assert np.abs(equal @ w - total).max() <= 1e-9
    assert w.min() >= 0


@pytest.mark.parametrize(("name", "domain"), FAMILIES)
def test_allocations_are_feasible_and_anytime_is_harder(name, domain):
    for _, problem, _, bound in solved(name, domain):
        end, anytime = (bound.scenarios[scenario] for scenario in SCENARIOS)
        check_feasible(problem, "end-of-time", end.allocation)
        check_feasible(problem, "anytime", anytime.allocation)
        assert anytime.characteristic_time >= end.characteristic_time / (1 + 1e-8)


@pytest.mark.parametrize(("name", "domain"), FAMILIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_closest_alternative_makes_another_policy_best(name, domain, scenario):
    for chosen, _, means, bound in solved(name, domain):
        found = bound.scenarios[scenario]
        lam = found.closest_alternative
        rival = bound.edges[found.binding_edges[0]].direction
        assert lam @ rival == pytest.approx(0, abs=1e-9 * np.abs(rival) @ np.abs(lam))
        cost = found.allocation @ chosen.twin.divergence(means, lam, np.arange(len(means)))
        assert cost * found.characteristic_time == pytest.approx(1, rel=1e-6)


# ------------------------------------------------------------ symmetries

families = st.sampled_from([(name, domain) for name in CASES for domain in (False, True)])


def compare(one, other, order=None):
    """Both bounds say the same; `order` maps arms of the first to arms of the second."""
    order = np.arange(len(one.means)) if order is None else order
    assert other.policy[order].tolist() == one.policy.tolist()
    assert {tuple(np.round(e.direction[order], 12) + 0.0) for e in other.edges} == {
        tuple(np.round(e.direction, 12) + 0.0) for e in one.edges
    }
    assert bool(other.ties) == bool(one.ties)
    for scenario in SCENARIOS:
        here, there = one.scenarios[scenario], other.scenarios[scenario]
        assert there.characteristic_time == pytest.approx(
            here.characteristic_time, rel=2e-9 + here.relative_gap + there.relative_gap
        )
        assert there.unique == here.unique
        assert there.allocation[order] == pytest.approx(here.allocation, abs=1e-5)


@st.composite
def instances(draw):
    system = draw(systems(min_size=2, max_size=5, max_rows=3))
    name, domain = draw(families)
    chosen = case(name, system.size, domain=domain)
    means = chosen.means(draw(distinct_means(system.size)))
    try:
        bound = lower_bound(system.problem(chosen.family), means)
    except NotConvergedError:
        bound = None
    # Ill-conditioned ones have tests of their own.
    assume(bound is not None)
    assume(all(edge.gap > 0.01 * (chosen.high - chosen.low) for edge in bound.edges))
    return system, chosen, means, bound


def permute_arms(system, chosen, means, bound, data):
    order = np.array(data.draw(st.permutations(range(system.size))))
    moved = np.empty(system.size, dtype=int)
    moved[order] = np.arange(system.size)  # arm a becomes arm order[a]
    rows = tuple((tuple(row[a] for a in moved), low, high) for row, low, high in system.rows)
    family = chosen.family
    if isinstance(family, Gaussian) and isinstance(family.sigma, tuple):
        sigma = tuple(family.sigma[a] for a in moved)
        family = Gaussian(sigma, domain=family.domain)
    other = lower_bound(System(system.size, rows).problem(family), means[moved])
    compare(bound, other, order)


def scale_rows(system, chosen, means, bound, data):
    scaled = system.scaled(data.draw(factors(len(system.rows))))
    compare(bound, lower_bound(scaled.problem(chosen.family), means))


def add_a_redundant_row(system, chosen, means, bound, data):
    extra = np.array([float(x) for x in data.draw(rows_of(system.size))])
    # Any bound that holds on the whole simplex is redundant; at its largest entry it touches.
    room = data.draw(st.sampled_from([0.0, 0.5]))
    rows = [*system.constraints(), Constraint("extra", extra, upper=extra.max() + room)]
    again = lower_bound(Problem(system.size, rows, chosen.family), means)
    assert "extra" in again.redundant
    compare(bound, again)


def repeat_all_rows(system, chosen, means, bound, _):
    rows = system.constraints()
    rows += [
        Constraint(f"{c.name} again", 2 * c.coefficients, 2 * c.lower, 2 * c.upper) for c in rows
    ]
    compare(bound, lower_bound(Problem(system.size, rows, chosen.family), means))


@examples(6)
@given(instances(), st.data())
def test_what_changes_nothing(instance, data):
    for change in (permute_arms, scale_rows, add_a_redundant_row, repeat_all_rows):
        change(*instance, data)


@HYPOTHESIS
@given(instances())
def test_random_systems_are_solved_well(instance):
    """Equalities, forced arms and flat sets included."""
    system, chosen, means, bound = instance
    above, limit, equal, total = system.matrices()
    end, anytime = (bound.scenarios[scenario] for scenario in SCENARIOS)
    for found in (end, anytime):
        assert found.relative_gap <= 1e-8
        assert found.allocation.sum() == pytest.approx(1, abs=1e-9)
        assert found.allocation.min() >= 0
    assert (above @ anytime.allocation - limit).max(initial=0.0) <= 1e-9
    assert np.abs(equal @ anytime.allocation - total).max() <= 1e-9
    assert anytime.characteristic_time >= end.characteristic_time / (1 + 1e-8)
    if not bound.edges:
        assert end.characteristic_time == anytime.characteristic_time == 0
        return
    directions = directions_of(bound)
    expected = conic_time(directions, means, chosen.twin, above, limit, equal, total)
    assert anytime.characteristic_time == pytest.approx(expected, rel=1e-6)


# ------------------------------------------------------------ sets of allocations


def test_leximin_choice_where_allocations_form_a_set():
    # Two separate comparisons, each with half of the samples; the first is the harder one.
    rows = ["a + b == 1/2"]
    problem = Problem(["a", "b", "c", "d"], rows, Gaussian(1.0))
    bound = lower_bound(problem, [1.0, 0.9, 0.5, 0.0])
    found = bound.scenarios["anytime"]
    assert found.characteristic_time == pytest.approx(2 * (4 + 4) / 0.1**2, rel=1e-9)
    assert not found.unique
    assert found.allocation == pytest.approx([0.25, 0.25, 0.25, 0.25], abs=1e-6)
    # At the end of time the easy comparison gives samples to the hard one: unique again.
    assert bound.scenarios["end-of-time"].unique


def test_arms_that_no_edge_moves_get_no_samples_unless_they_must():
    problem = Problem(["a", "b", "c"], ["a == 1/4"], Gaussian(1.0))
    bound = lower_bound(problem, [3.0, 2.0, 1.0])
    end, anytime = (bound.scenarios[scenario] for scenario in SCENARIOS)
    assert end.allocation == pytest.approx([0, 0.5, 0.5], abs=1e-8)
    assert end.characteristic_time == pytest.approx(8.0, rel=1e-9)
    assert anytime.allocation == pytest.approx([0.25, 0.375, 0.375], abs=1e-8)
    assert anytime.characteristic_time == pytest.approx(8.0 / 0.75, rel=1e-9)


def test_forced_arms_get_no_samples_at_any_time():
    problem = Problem(["a", "b", "c"], ["a <= 0"], Bernoulli())
    bound = lower_bound(problem, [0.9, 0.5, 0.4])
    assert bound.scenarios["anytime"].allocation[0] == 0
    alone = lower_bound(Problem(["b", "c"], (), Bernoulli()), [0.5, 0.4])
    for scenario in SCENARIOS:
        assert bound.scenarios[scenario].characteristic_time == pytest.approx(
            alone.scenarios[scenario].characteristic_time, rel=1e-9
        )


def test_narrow_domain_makes_an_arm_useless():
    # The mean of c cannot rise above 0.5, so that a stays better: no sample is spent on it.
    family = Gaussian(1.0, domain=(0.0, 0.9))
    free = lower_bound(Problem(3, ["a1 <= 1/2"], Gaussian(1.0)), [0.9, 0.5, 0.1])
    tight = lower_bound(Problem(3, ["a1 <= 1/2"], family), [0.9, 0.5, 0.1])
    for scenario in SCENARIOS:
        assert tight.scenarios[scenario].characteristic_time <= free.scenarios[
            scenario
        ].characteristic_time * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "extra"),
    crossed(["gaussian", "bernoulli", "poisson"], [(), ("a1 + a2 + a3 <= 0.1", "a1 >= 0.01")]),
)
def test_a_thousand_edges_and_caps(name, extra):
    # Half of the arms at their caps, none between: edges are all 1,089 pairs.
    size = 66
    chosen = case(name, size, domain=False)
    means = chosen.means(np.random.default_rng(5).uniform(0.1, 0.9, size))
    problem = Problem(size, ["each <= 1/33", *extra], chosen.family)
    bound = lower_bound(problem, means)
    assert len(bound.edges) >= 1089
    for found in bound.scenarios.values():
        assert found.relative_gap < 1e-8
        assert found.allocation.sum() == pytest.approx(1)
        reached = bound.time_of(found.allocation)
        assert reached == pytest.approx(found.characteristic_time, rel=1e-10)
    anytime = bound.scenarios["anytime"]
    assert (problem.matrix @ anytime.allocation <= problem.upper + 1e-9).all()
    assert (problem.matrix @ anytime.allocation >= problem.lower - 1e-9).all()

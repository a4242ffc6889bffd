"""What tables and pictures say about bounds."""

import numpy as np
import pytest

import simplexplore as sx
from simplexplore.bound.result import Edge
from simplexplore.problem.spelling import policy_in_words
from simplexplore.report.bound_text import (
    hardest_first,
    move,
    notes,
    prominent_arms,
    recommended,
    times_alone,
    uses,
)


def test_move_counts_what_it_does_not_name():
    direction = np.array([-0.4, -0.3, -0.2, -0.1, 0.25, 0.75])
    edge = Edge(direction=direction, gap=1.0, neighbour=np.zeros(6))
    assert move(edge, list("abcdef")) == ("0.4 a + 0.3 b + 2 more", "0.75 f + 0.25 e")


def test_policy_in_words_names_the_largest_shares():
    policy = np.array([0.1, 0.2, 0.3, 0.4])
    assert policy_in_words(policy, list("abcd"), limit=2) == "0.4 d, 0.3 c, 2 more"
    assert policy_in_words(policy, list("abcd")) == "0.1 a, 0.2 b, 0.3 c, 0.4 d"
    assert policy_in_words(np.array([0.0, 1.0]), ["a", "b"]) == "b alone"


def test_gaussian_edge_alone_has_the_closed_form():
    sigma = np.array([1.0, 2.0, 0.5, 3.0])
    problem = sx.Problem(4, ["a1 + a2 <= 0.5", "a3 - a4 <= 0.1"], sx.Gaussian(tuple(sigma)))
    bound = sx.lower_bound(problem, [1.0, 0.3, 0.2, -0.4])
    expected = [2 * (sigma @ abs(e.direction)) ** 2 / e.gap**2 for e in bound.edges]
    assert times_alone(bound) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rewards", [sx.Bernoulli(), sx.Poisson(), sx.Bounded(0.0, 2.0)])
def test_the_only_edge_alone_is_the_whole_problem(rewards):
    bound = sx.lower_bound(sx.Problem(["a", "b"], rewards=rewards), [0.8, 0.3])
    time = bound.scenarios["end-of-time"].characteristic_time
    assert times_alone(bound) == pytest.approx([time], rel=1e-6)


def test_ties_are_the_hardest():
    bound = sx.lower_bound(sx.Problem(3), [1.0, 1.0, 0.0])
    times = times_alone(bound)
    first, second = hardest_first(times)
    assert times[first] == np.inf
    assert times[second] == pytest.approx(8.0)
    assert bound.edges[first].gap == 0


def test_prominent_arms_are_used_or_sampled():
    means = np.linspace(0, 1, 50) ** 3
    problem = sx.Problem(50, ["a1 >= 0.01"])
    bound = sx.lower_bound(problem, means)
    shown = prominent_arms(bound, 10)
    assert len(shown) == 10
    assert shown == sorted(shown)
    assert {0, 49} <= set(shown)  # the policy uses the worst arm too
    sampled = bound.scenarios["end-of-time"].allocation + bound.scenarios["anytime"].allocation
    left_out = np.setdiff1d(np.arange(50), shown)
    assert sampled[left_out].max() <= np.delete(sampled[shown], 0).min()
    assert prominent_arms(bound, 50) == list(range(50))


def test_uses():
    constraints = {"two": "0.1 <= a1 - a2 <= 0.9", "least": "a3 >= 0.2", "exact": "2*a2 == 0.2"}
    bound = sx.lower_bound(sx.Problem(3, constraints), [1.0, 0.5, 0.2])
    two, least, exact = uses(bound, 3)
    assert [use.limit for use in (two, least, exact)] == [
        "0.1 to 0.9",
        "at least 0.2",
        "exactly 0.2",
    ]
    assert (two.amount, two.slack, two.active) == (pytest.approx(0.6), pytest.approx(0.3), False)
    assert two.reach == (-1, 1)
    assert (least.slack, least.active) == (0.0, True)
    assert [use.name for use in uses(bound, 2)] == ["least", "exact"]


def test_recommended_only_where_samples_help():
    tied = sx.lower_bound(sx.Problem(2), [1.0, 1.0])
    assert recommended(tied.scenarios["anytime"]) is None
    assert recommended(tied.unconstrained) is None
    fixed = sx.lower_bound(sx.Problem(2, ["a1 == 1/2"]), [1.0, 0.0])
    assert recommended(fixed.scenarios["anytime"]) is None
    assert recommended(fixed.unconstrained) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    ("constraints", "means", "kinds"),
    [
        ([], [1.0, 1.0, 0.0], ["ties", "no constraints"]),
        (["a3 <= 0"], [1.0, 0.5, 0.0], ["forced to zero", "no constraints"]),
        (
            ["a1 <= 0.5", "a1 <= 0.6", "a2 <= 0.5"],
            [1.0, 0.5, 0.0],
            ["degenerate", "redundant", "no constraints"],
        ),
    ],
)
def test_notes_say_what_they_are_about(constraints, means, kinds):
    found = notes(sx.lower_bound(sx.Problem(3, constraints), means))
    assert [n.kind for n in found if n.kind != "other allocations"] == kinds
    assert all(n.text.endswith(".") for n in found)


def test_notes_of_answers_within_epsilon():
    bound = sx.lower_bound(sx.Problem(3), [1.0, 0.9, 0.0], epsilon=0.05)
    first = notes(bound)[0]
    assert first.kind == "answer"
    assert first.text.startswith("Quickest to be sure of within 0.05: ")

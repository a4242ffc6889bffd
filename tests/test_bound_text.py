"""What the command says about bounds."""

import math
import re

import numpy as np
import pytest

import simplexplore as sx
from commands import run


@pytest.fixture
def said(tmp_path):
    """The lines that `simplexplore bound` prints about a problem."""

    def say(problem):
        problem.to_file(tmp_path / "problem.toml")
        return run("bound", tmp_path / "problem.toml").stdout.splitlines()

    return say


def part(lines, title):
    """The rows of a table by its title, each as its cells."""
    start = next(i for i, line in enumerate(lines) if line.startswith(title))
    rows = []
    for line in lines[start + 3 :]:
        if not line or line.startswith(("...", "decides:", "characteristic time:")):
            break
        rows.append(re.split(r" {2,}", line.strip()))
    return rows


def samples_alone(lines):
    return [row[2] for row in part(lines, "Comparisons to settle")]


def number(text):
    return float(text.replace(",", ""))


# At delta 0.1, by what a characteristic time is multiplied.
KL = 0.8 * math.log(9)


def test_a_move_counts_what_it_does_not_name(said):
    # The only other policy is 0.75 f + 0.25 e.
    rows = ["3*a == 4*b", "2*b == 3*c", "c == 2*d", "3*e == f"]
    lines = said(sx.Problem(list("abcdef"), rows, means=[1, 1, 1, 1, 0, 0]))
    (row,) = part(lines, "Comparisons to settle")
    assert row[0] == "0.4 a + 0.3 b + 2 more -> 0.75 f + 0.25 e"


def test_a_policy_names_its_largest_shares(said):
    shares = [f"a{i} == {i}/45" for i in range(1, 9)]
    text = " ".join(said(sx.Problem(9, shares, means=[1] * 9)))
    assert "Best mix: 0.2 a9, 0.178 a8, 0.156 a7, 0.133 a6, 0.111 a5, 0.0889 a4, 3 more" in text
    assert "Best mix: b alone (earns 1)" in said(sx.Problem(["a", "b"], means=[0, 1]))


def test_gaussian_edge_alone_has_the_closed_form(said):
    sigma = np.array([1.0, 2.0, 0.5, 3.0])
    rows = ["a1 + a2 <= 0.5", "a3 - a4 <= 0.1"]
    problem = sx.Problem(4, rows, sx.Gaussian(tuple(sigma)), means=[1.0, 0.3, 0.2, -0.4])
    edges = sx.lower_bound(problem).edges
    expected = [KL * 2 * (sigma @ abs(e.direction)) ** 2 / e.gap**2 for e in edges]
    found = [number(x) for x in samples_alone(said(problem))]
    assert found == pytest.approx(sorted(expected, reverse=True), rel=1e-3)


@pytest.mark.parametrize("rewards", [sx.Bernoulli(), sx.Poisson(), sx.Bounded(0.0, 2.0)])
def test_the_only_edge_alone_is_the_whole_problem(said, rewards):
    problem = sx.Problem(["a", "b"], rewards=rewards, means=[0.8, 0.3])
    (found,) = samples_alone(said(problem))
    assert number(found) == pytest.approx(sx.lower_bound(problem).samples, rel=1e-3)


def test_ties_are_the_hardest(said):
    first, second = part(said(sx.Problem(3, means=[1.0, 1.0, 0.0])), "Comparisons to settle")
    assert first[:3] == ["a1 -> a2", "tie", "-"]
    assert number(second[2]) == pytest.approx(8 * KL, rel=1e-3)


def test_arms_that_are_used_or_sampled_are_shown(said):
    problem = sx.Problem(50, ["a1 >= 0.01"], means=np.linspace(0, 1, 50) ** 3)
    lines = said(problem)
    table = "\n".join(lines).partition("Samples, and where")[2]
    numbers = [int(arm) - 1 for arm in re.findall(r"^a(\d+) ", table, re.MULTILINE)]
    assert numbers == sorted(numbers)
    assert {0, 49} <= set(numbers)  # the policy uses the worst arm too
    scenarios = sx.lower_bound(problem).scenarios
    sampled = scenarios["end-of-time"].allocation + scenarios["anytime"].allocation
    left_out = np.setdiff1d(np.arange(50), numbers)
    assert sampled[left_out].max() <= np.delete(sampled[numbers], 0).min()
    assert f"... and {len(left_out)} more with fewer samples" in lines


def test_constraints_say_how_far_they_are_used(said):
    constraints = {"two": "0.1 <= a1 - a2 <= 0.9", "least": "a3 >= 0.2", "exact": "2*a2 == 0.2"}
    rows = part(said(sx.Problem(3, constraints, means=[1.0, 0.5, 0.2])), "Constraints at")
    assert rows == [
        ["two", "0.6", "0.1 to 0.9", "0.3"],
        ["least", "0.2", "at least 0.2", "none"],
        ["exact", "0.2", "exactly 0.2", "none"],
    ]


@pytest.mark.parametrize(
    ("constraints", "means", "notes"),
    [
        (
            [],
            [1.0, 1.0, 0.0],
            ["As good as the policy shown: a2 alone.", "several arms tie for the best."],
        ),
        (["a3 <= 0"], [1.0, 0.5, 0.0], ["No feasible policy uses: a3.", "the best arm is a1"]),
        (
            ["a1 <= 0.5", "a1 <= 0.6", "a2 <= 0.5"],
            [1.0, 0.5, 0.0],
            [
                "More constraints meet at the policy than are needed to fix it (degenerate).",
                "Redundant, since others imply them: c2.",
            ],
        ),
    ],
)
def test_notes_say_what_is_special(said, constraints, means, notes):
    text = " ".join(" ".join(said(sx.Problem(3, constraints, means=means))).split())
    for note in notes:
        assert note in text


def test_samples_are_advised_only_where_they_help(said):
    (row,) = [x for x in said(sx.Problem(2, means=[1.0, 1.0])) if x.startswith("a1  ")]
    assert row.split() == ["a1", "1", "1.000"]  # mean and policy, no shares of samples
    lines = said(sx.Problem(2, ["a1 == 1/2"], means=[1.0, 0.0]))
    (row,) = [x for x in lines if x.startswith("a1  ")]
    assert row.split() == ["a1", "1", "0.500"]

"""One line of a constraint for each arm."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightly import examples
from sentences import ARMS, GROUPS, INF, message, names, parse, written
from simplexplore import Constraint, ConstraintError, Problem, ProblemError


def rows(text: str, arms: list[str] = ARMS, groups: dict[str, list[str]] | None = None) -> list:
    found = Problem(arms, {"mix": text}, groups=GROUPS if groups is None else groups).constraints
    return [(row.name, row.coefficients.tolist(), row.lower, row.upper) for row in found]


@pytest.mark.parametrize(
    ("text", "arms", "one_by_one"),
    [
        ("each <= 0.4", ARMS, "{} <= 0.4"),
        ("0.4 >= each", ARMS, "{} <= 0.4"),
        ("each front <= 0.2", ["a", "b"], "{} <= 0.2"),
        ("each `the rest` >= 0.2", ["c", "e3"], "{} >= 0.2"),
        ("0.1 <= each front <= 1/3", ["a", "b"], "0.1 <= {} <= 1/3"),
        ("3 each - 2*a <= 1/3 - front", ["b", "c", "The Net", "e3"], "3 {} - 2*a <= 1/3 - front"),
        ("(each front + c)/3 == 0.1*each front", ["a", "b"], "({} + c)/3 == 0.1*{}"),
        ("-each <= -0.01", ARMS, "-{} <= -0.01"),
    ],
)
def test_each_is_one_constraint_per_arm(text: str, arms: list[str], one_by_one: str) -> None:
    found = rows(text)
    for arm in arms:
        row = parse(one_by_one.replace("{}", f"`{arm}`"))
        assert (f"mix[{arm}]", row.coefficients.tolist(), row.lower, row.upper) in found
    assert len(found) == len(arms) + ("3 each" in text)


def test_each_leaves_out_what_cancels_and_holds() -> None:
    """That no arm has more than b says nothing of b itself."""
    assert [name for name, *_ in rows("each <= b", ["a", "b", "c"], {})] == ["mix[a]", "mix[c]"]
    says = message("each one <= b", ["a", "b"], {"one": ["b"]})
    assert "no arm is left in it: they cancel out" in says


def test_each_is_a_name_where_something_is_called_so() -> None:
    (found,) = rows("each <= 0.4", ["each", "b"], {})
    assert found == ("mix", [1.0, 0.0], -INF, 0.4)
    assert rows("each <= 0.4", ["a", "b"], {"each": ["a"]})[0] == ("mix", [1.0, 0.0], -INF, 0.4)
    problem = Problem(
        ["each", "b"], [Constraint("c[each]", [1, 0], 0.1), Constraint("c[b]", [0, 1], 0.1)]
    )
    assert Problem.from_text(problem.to_text()) == problem


def test_each_is_counted_row_by_row() -> None:
    problem = {f"c{i}": "each <= 0.5" for i in range(1000)}
    with pytest.raises(ProblemError, match=r"^the constraints have more than 10,000,000") as caught:
        Problem([f"a{i}" for i in range(1000)], problem)
    assert caught.value.place.field == "constraints.c500"
    assert len(Problem(10_000, ["each <= 0.3", "each >= 0"]).constraints) == 20_000


def test_each_in_problems_of_all_forms() -> None:
    arms, groups = ["a", "b", "c d"], {"front": ["b", "a"]}
    text = 'arms = ["a", "b", "c d"]\n[groups]\nfront = ["b", "a"]\n[constraints]\n'
    text += 'caps = "each <= 0.4"\nfloor = "each front >= 0.1"\nratio = "each front <= 2*`c d`"\n'
    problem = Problem.from_text(text)
    names = [f"caps[{arm}]" for arm in arms]
    names += [f"{name}[{arm}]" for name in ("floor", "ratio") for arm in ("b", "a")]
    assert list(problem.names) == names
    texts = {"caps": "each <= 0.4", "floor": "each front >= 0.1", "ratio": "each front <= 2*`c d`"}
    assert problem == Problem(arms, texts, groups=groups)
    assert Problem(arms, list(texts.values()), groups=groups).names[:3] == (
        "c1[a]",
        "c1[b]",
        "c1[c d]",
    )
    found = written(list(problem.constraints), arms, groups)
    assert found == texts | {"ratio": "each front - 2*`c d` <= 0"}
    assert Problem.from_text(problem.to_text()) == problem


def test_what_each_does_not_make_is_written_one_by_one() -> None:
    def row(name: str, *numbers: float, upper: float = 0.5) -> Constraint:
        return Constraint(name, numbers, upper=upper)

    kept = [
        [row("x[a]", 1, 0), row("x[b]", 0, 1, upper=0.4)],
        [row("x[a]", 1, 0), row("x[b]", 0, 2)],
        [row("x[b]", 0, 1), row("x[a]", 1, 0)],
        [row("x[a]", 1, 0), row("x", 1, 1), row("x[b]", 0, 1)],
        [row("x", 1, 1), row("x[a]", 1, 0), row("x[b]", 0, 1)],
        [row("[a]", 1, 0), row("[b]", 0, 1)],
        [row("x[a]", 1, 1), row("x[b]", 1, 1)],
        [row("x[a]", 1, 0)],
        [row("x[a]", 0.3, 0.2), row("x[b]", 0.2, 0.3)],
    ]
    for rows in kept:
        texts = written(rows, ["a", "b"], {"first": ["a"]})
        assert list(texts) == [r.name for r in rows]
    both = [row("x[a]", 1, -2), row("x[b]", 0, -1)]
    assert written(both, ["a", "b"]) == {"x": "each - 2*b <= 0.5"}


def test_names_that_each_makes_are_not_too_long() -> None:
    with pytest.raises(
        ProblemError, match=r"the name of one row of constraint 'n+' has 1,001 char"
    ):
        Problem(["a", "b"], {"n" * 998: "each <= 0.5"})


@examples(60)
@given(st.data())
def test_what_each_makes_is_written_and_read_back(data: st.DataObject) -> None:
    arms = data.draw(st.lists(names.filter(str.strip), min_size=2, max_size=4, unique=True))
    members = st.lists(st.sampled_from(arms), min_size=1, unique=True)
    groups = {} if "g" in arms else {"g": data.draw(members)}
    numbers = st.sampled_from([0.1, 1 / 3, 2.0, -1.0, 0.7]) | st.floats(-9, 9).filter(bool)
    texts = {}
    for name in data.draw(st.lists(st.sampled_from(["x", "y", "x[a]"]), unique=True)):
        word = data.draw(st.sampled_from(["each", "each g"] if groups else ["each"]))
        more, rest, bound = data.draw(st.tuples(numbers, numbers, numbers))
        other = data.draw(st.sampled_from(["", f" + {Fraction(rest)}*`{arms[0]}`"]))
        texts[name] = f"{Fraction(more)}*{word}{other} <= {bound!r}"
    with suppress(ConstraintError):
        problem = Problem(arms, texts, groups=groups)
        text = problem.to_text()
        assert Problem.from_text(text) == problem
        assert Problem.from_text(text).to_text() == text

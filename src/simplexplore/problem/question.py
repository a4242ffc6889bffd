"""Questions besides the best mix: what is asked of the arms, and when an answer is right.

The answer to one of the first three kinds is a set of arms; answers of one's own have names.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import ProblemError

from .checks import check_keys, check_name, check_number, entries_of, whole_number
from .constraint import Constraint
from .families import Family
from .locations import error_context
from .messages import suggestion, unknown
from .parser import Names, Parser
from .stop_when import StopWhen

Array = npt.NDArray[np.float64]

# What each kind takes.
KINDS = {
    "top": ("m",),
    "threshold": ("at",),
    "control": ("arm", "mean"),
    "own": ("answers",),
}

# Means at which answers of one's own are tried: at some of them one must be right.
TRIALS, SEED = 2000, 20240502


@dataclass(frozen=True)
class Question:
    """What is to be found out, if it is not the best mix.

    Parameters
    ----------
    kind : {"top", "threshold", "control", "own"}
        Which arms are the m best; which have means above `at`; which is best, or whether none is
        better than an `arm` whose `mean` is known and which gets no samples; or answers of one's
        own, for which the kind may be left out.
    m : int, optional
    at : float, optional
    arm : str, optional
    mean : float, optional
    answers : mapping of str to sequence of str, optional
        Conditions on means under which each answer is right, such as ``"a >= b"`` or
        ``"a + b <= 1"``: it is wrong as soon as one fails. Whatever the means are, at least one
        answer must be right.

    Examples
    --------
    >>> Question("top", m=2).in_words({2, 0}, ["a", "b", "c"])
    'top 2: a, c'
    >>> Question(answers={"up": ["a >= b"], "down": ["a <= b"]}).to_dict()
    {'kind': 'own', 'answers': {'up': ['a >= b'], 'down': ['a <= b']}}
    """

    kind: str = "own"
    m: int | None = None
    at: float | None = None
    arm: str | None = None
    mean: float | None = None
    answers: Any = None  # kept as pairs of a name and conditions

    def __post_init__(self) -> None:
        if self.kind not in [*KINDS]:
            raise ProblemError(
                f"unknown kind {reprlib.repr(self.kind)} of question"
                f"{suggestion(str(self.kind), tuple(KINDS))}"
            )
        for kind, keys in KINDS.items():
            for key in keys:
                if (getattr(self, key) is None) == (kind == self.kind):
                    verb = "needs" if kind == self.kind else "does not take"
                    raise ProblemError(f"the question {self.kind!r} {verb} {key}.")
        if self.m is not None:
            whole_number(self.m, "m", 1)
            object.__setattr__(self, "m", int(self.m))
        for key in ("at", "mean"):
            if getattr(self, key) is not None:
                object.__setattr__(self, key, check_number(getattr(self, key), key))
        if self.answers is not None:
            object.__setattr__(self, "answers", _check_answers(self.answers))

    def __str__(self) -> str:
        if self.kind == "own":
            return f"{len(self.answers)} answers"
        return f"{self.kind} {' '.join(f'{getattr(self, key)}' for key in KINDS[self.kind])}"

    def to_dict(self) -> dict[str, Any]:
        """The table that says the same."""
        if self.kind == "own":
            answers = {name: list(conditions) for name, conditions in self.answers}
            return {"kind": self.kind, "answers": answers}
        return {"kind": self.kind} | {key: getattr(self, key) for key in KINDS[self.kind]}

    def in_words(self, chosen: Collection[int], arms: Sequence[str]) -> str:
        """An answer in the question's own words, by the numbers of its arms, or by its own."""
        if self.kind == "own":
            return str(self.answers[min(chosen)][0])
        names = ", ".join(arms[a] for a in sorted(chosen)) or "none"
        if self.kind == "control":
            return names if names == self.arm else f"better than {self.arm}: {names}"
        return f"{f'top {self.m}' if self.kind == 'top' else f'above {self.at:g}'}: {names}"

    def conditions(
        self, arms: tuple[str, ...], groups: Mapping[str, tuple[str, ...]]
    ) -> list[list[tuple[Constraint, float, float]]]:
        """Of each answer of one's own when it is right: where sign * row @ means + offset >= 0."""
        names, found = Names(arms, groups, "constraints"), []
        names.noun = "condition"
        for name, texts in self.answers:
            rows = [row for text in texts for row in Parser(text, name, names).read()]
            sides = [(row, 1.0, -row.lower) for row in rows if row.lower > -math.inf]
            sides += [(row, -1.0, row.upper) for row in rows if row.upper < math.inf]
            if any(row.lower == row.upper for row in rows):
                raise ProblemError(
                    f"the answer {name!r} has a condition with '=='; no number of samples tells "
                    "whether that is so: use '<=' or '>='."
                )
            found.append(sides)
        return found


def _check_answers(given: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    pairs = tuple(given.items() if isinstance(given, Mapping) else entries_of(given) or ())
    if len(pairs) < 2:
        raise ProblemError(
            "answers must be a table of two answers or more with their conditions, such as "
            f'up = ["a >= b"]; got {reprlib.repr(given)}.'
        )
    found = []
    for name, texts in pairs:
        check_name(name, "an answer")
        conditions = (texts,) if isinstance(texts, str) else tuple(entries_of(texts) or ())
        if not conditions or not all(isinstance(text, str) for text in conditions):
            raise ProblemError(
                f"the answer {name!r} must have a list of conditions such as 'a >= b'; got "
                f"{reprlib.repr(texts)}."
            )
        found.append((name, conditions))
    return tuple(found)


def check_question(
    given: object,
    arms: tuple[str, ...],
    groups: Mapping[str, tuple[str, ...]],
    rewards: Family,
    constraints: object,
    exploration: object,
    scenario: str,
    epsilon: float,
    stop_when: StopWhen | None,
    measured: object,
) -> Question | None:
    """A question that fits the arms and their rewards, beside nothing that only mixes have."""
    if given is None or given == {}:
        return None
    if isinstance(given, Mapping):
        check_keys(given, ("kind", "m", "at", "arm", "mean", "answers"), " in [question]")
        given = Question(**given)
    if not isinstance(given, Question):
        raise ProblemError(
            f"a question is a Question, or a table with its kind; got {reprlib.repr(given)}."
        )
    low, high = rewards.domain or rewards.range_of_means()
    for key in ("at", "mean"):
        value = getattr(given, key)
        with error_context(key):
            if value is not None and not low < value < high:
                raise ProblemError(
                    f"{key} must lie strictly between {low:g} and {high:g}, where the means of "
                    f"{rewards.name} rewards do; got {value:g}."
                )
    if given.m is not None and given.m >= len(arms):
        raise ProblemError(f"the top {given.m} of {len(arms)} arms: m must be less.")
    if given.arm is not None and (given.arm not in arms or len(arms) < 2):
        raise ProblemError(unknown("arm", str(given.arm), arms))
    if given.kind == "own":
        _check_own(given, given.conditions(arms, groups), arms, (low, high))
    for what, is_given in {
        "constraints": constraints,
        "limits on exploration": exploration,
        "measured limits": measured,
        f"the scenario {scenario!r}": scenario != "end-of-time",
        "epsilon": epsilon,
        "stop_when with a regret": stop_when is not None and stop_when.regret is not None,
    }.items():
        if is_given:
            raise ProblemError(
                f"a question besides the best mix does not go with {what}; remove one of them."
            )
    return given


def _check_own(
    question: Question,
    conditions: list[list[tuple[Constraint, float, float]]],
    arms: Sequence[str],
    ends: tuple[float, float],
) -> None:
    """That every condition can fail, and that at random means some answer is right."""
    for (name, _), sides in zip(question.answers, conditions, strict=True):
        for row, sign, offset in sides:
            reach = np.multiply.outer(ends, sign * row.values).min(axis=0).sum() + offset
            if reach >= 0:
                raise ProblemError(
                    f"the answer {name!r} has a condition that holds at all possible means; "
                    "leave it out."
                )
    means = _random_means([side for sides in conditions for side in sides], len(arms), ends)
    right = np.zeros(TRIALS, dtype=bool)
    for sides in conditions:
        margins = [sign * (means[:, row.arms] @ row.values) + off for row, sign, off in sides]
        right |= np.min(margins, axis=0) >= -1e-9 * (1 + np.abs(means).max(axis=1))
    if not right.all():
        missed = means[int(right.argmin())]
        words = ", ".join(f"{arm} = {x:.4g}" for arm, x in zip(arms, missed, strict=True))
        raise ProblemError(
            f"no answer is right at the means {words}; one must be, whatever the means are: add "
            "an answer, or leave out conditions."
        )


def _random_means(
    sides: list[tuple[Constraint, float, float]], size: int, ends: tuple[float, float]
) -> Array:
    """Means all over the range, or about where conditions on single arms would change."""
    rng, (low, high) = np.random.default_rng(SEED), ends
    if math.isfinite(high - low):
        return rng.uniform(low, high, (TRIALS, size))
    borders = np.array([0.0, *(off / x for row, _, off in sides for x in np.abs(row.values))])
    spread = (1 + np.abs(borders).max()) * 10 ** rng.uniform(-3, 1, (TRIALS, 1))
    signs = rng.choice([-1.0, 1.0], (TRIALS, size))
    means = signs * rng.choice(borders, (TRIALS, size)) + spread * rng.standard_normal(spread.shape)
    means += spread * rng.standard_normal((TRIALS, size))
    return np.asarray(low + np.abs(means - low) if math.isfinite(low) else means)

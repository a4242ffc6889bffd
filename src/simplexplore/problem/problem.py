"""What an experimenter knows: arms, constraints, kind of rewards, confidence.

A problem is read from a short TOML file or built in Python, and checked here as far as
its parts go one by one. Whether the constraints can hold together is for geometry to say.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from html import escape
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from simplexplore.errors import ProblemError
from simplexplore.tabular import Row, Tabular

from .checks import (
    check_amount,
    check_arms,
    check_constraints,
    check_costs,
    check_delta,
    check_groups,
    check_means,
    frozen,
)
from .constraint import Constraint
from .families import Family, Gaussian
from .file import arguments, parse_toml, problem_text, read_text, write_text
from .locations import error_context, in_file
from .measured import Measured, check_combination, check_measured
from .messages import count, listed, suggestion
from .parser import NOUNS
from .question import Question, check_question
from .stop_when import StopWhen, check_stop_when

if TYPE_CHECKING:
    import os

Array: TypeAlias = npt.NDArray[np.float64]
Constraints: TypeAlias = (
    Sequence[str | Constraint] | Mapping[str, str] | tuple[npt.ArrayLike, npt.ArrayLike]
)

# What binds the allocation of samples: nothing, the constraints, or limits of its own.
SCENARIOS = ("end-of-time", "anytime")
EXPLORATION = "exploration"

MEASURED_LIMIT = "measured limit"


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem(Tabular):
    """A mix of arms to be found, and what is known about it beforehand.

    Immutable; its arrays are read-only. True means are no part of it: samplers are given
    a problem and never see them. `means` is a guess, for planning and simulation.

    Parameters
    ----------
    arms : sequence of str, or int
        Names of the arms, or how many there are; then they are called a1, a2, ...
    constraints : sequence, mapping or pair
        Texts such as ``"4*a - e <= 1"`` or ``"each <= 0.4"`` (named c1, c2, ... by their
        place; what `each` makes of one for arm a is c1[a]) or
        `Constraint` objects; a mapping from names to texts; or a tuple ``(B, c)`` for
        ``B @ policy <= c`` (named row1, row2, ...). Shares are always nonnegative and sum
        to one.
    rewards : Family, optional
        Gaussian with standard deviation 1 unless given.
    scenario : {"end-of-time", "anytime", "exploration"}, optional
        Whether only the final recommendation must satisfy the constraints, or the
        allocation of samples as well, or whether that has limits of its own. The default is
        "exploration" where such limits are given, else "end-of-time".
    delta : float
        Greatest probability of a wrong recommendation, strictly between 0 and 1.
    groups : mapping of str to sequence of str, optional
        Names that stand for sums of arms in constraints.
    means : array_like, shape (K,), optional
        A guess of the means.
    epsilon : float
        A policy that earns up to this much less than the best is good enough; 0 asks for the
        best itself.
    stop_when : StopWhen or mapping, optional
        When to stop before the best policy is known: ``{"regret": 0.05}``, as soon as no
        policy earns 0.05 more than the answer; or ``{"budget": 300}``, after 300 samples.
    exploration : sequence, mapping or pair
        Limits on the shares of samples in the scenario "exploration", given like
        `constraints` and independent of them.
    costs : mapping of str to float, or array_like, shape (K,), optional
        Cost of one pull of each arm, in any unit; 1 unless given.
    initial_excess : float
        Pulls by which a limit on samples may be exceeded while arms are tried for the first time.
    measured : sequence of Measured, or mapping, optional
        One or two limits on something that every pull reports beside its reward; the mean over
        the mix is limited, and each arm's mean is learned. A mapping goes from names to
        `Measured` or to the keys of a problem file's table.
    question : Question or mapping, optional
        What is asked instead of the best mix; without constraints then.

    Attributes
    ----------
    size : int
        Number of arms, K.
    scenarios : tuple of str
        The scenarios that the problem has: "exploration" needs limits.
    names : tuple of str
        Names of the constraints.
    matrix : ndarray, shape (m, K)
        Their coefficients.
    lower, upper : ndarray, shape (m,)
        Their bounds, infinite where there is none.

    Examples
    --------
    >>> problem = Problem(["a", "b", "c"], {"front": "a + b <= 1/2"}, scenario="anytime")
    >>> problem
    <Problem: 3 arms, 1 constraint, gaussian rewards, anytime, delta 0.1>
    >>> problem.matrix, problem.upper
    (array([[1., 1., 0.]]), array([0.5]))
    """

    arms: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    rewards: Family
    scenario: str
    delta: float
    groups: Mapping[str, tuple[str, ...]]
    means: Array | None
    epsilon: float
    stop_when: StopWhen | None
    exploration: tuple[Constraint, ...]
    initial_excess: float
    costs: Array
    measured: tuple[Measured, ...]
    question: Question | None

    def __init__(
        self,
        arms: Sequence[str] | int,
        constraints: Constraints = (),
        rewards: Family | None = None,
        scenario: str | None = None,
        delta: float = 0.1,
        groups: Mapping[str, Sequence[str]] | None = None,
        means: npt.ArrayLike | None = None,
        epsilon: float = 0.0,
        stop_when: StopWhen | Mapping[str, float] | None = None,
        exploration: Constraints = (),
        costs: Mapping[str, float] | npt.ArrayLike | None = None,
        initial_excess: float = 0.0,
        measured: Sequence[Measured] | Mapping[str, Measured | Mapping[str, Any]] = (),
        question: Question | Mapping[str, Any] | None = None,
    ) -> None:
        self._put(locals())

    def _put(
        self, given: Mapping[str, Any], kept: Problem | None = None, changed: Collection[str] = ()
    ) -> None:
        """Check fields; of a problem that is kept, those that change and those that must fit."""
        checked = set[str]()
        for name, (check, *fits) in FIELDS.items():
            if kept is None or name in changed or checked.intersection(fits):
                with error_context(name):
                    value = check(given[name], *(getattr(self, other) for other in fits))
                checked.add(name)
            else:
                value = getattr(kept, name)
            object.__setattr__(self, name, value)
        check_combination(self.measured, self.rewards, self.stop_when)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the constraints."""
        return tuple(row.name for row in self.constraints)

    @cached_property
    def matrix(self) -> Array:
        """Coefficients of the constraints, one row each."""
        rows = [row.coefficients for row in self.constraints]
        return frozen(np.reshape(rows, (-1, self.size)).astype(float))

    @cached_property
    def lower(self) -> Array:
        """Lower bounds of the constraints, infinite where there is none."""
        return frozen(np.array([row.lower for row in self.constraints], dtype=float))

    @cached_property
    def upper(self) -> Array:
        """Upper bounds of the constraints, infinite where there is none."""
        return frozen(np.array([row.upper for row in self.constraints], dtype=float))

    @property
    def size(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def regret_goal(self) -> float | None:
        """The regret that ends an exploration, if one does."""
        return self.stop_when.regret if self.stop_when else None

    @property
    def budget(self) -> int | None:
        """The number of samples that ends an exploration, if one does."""
        return self.stop_when.budget if self.stop_when else None

    def limits_on_samples(self, scenario: str) -> tuple[Constraint, ...]:
        """Limits on samples in a scenario: none, the constraints, or limits of their own.

        Parameters
        ----------
        scenario : str

        Returns
        -------
        tuple of Constraint
        """
        if scenario == EXPLORATION:
            return self.exploration
        return self.constraints if scenario == "anytime" else ()

    @property
    def has_costs(self) -> bool:
        """Whether pulls cost anything but 1."""
        return bool((self.costs != 1).any())

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Scenarios that the problem has."""
        if self.question:
            return SCENARIOS[:1]  # samples have no limits
        return (*SCENARIOS, EXPLORATION) if self.exploration else SCENARIOS

    def _content(self) -> dict[str, Any]:
        """Return the arguments that make this problem again."""
        return {name: getattr(self, name) for name in FIELDS} | {
            "groups": dict(self.groups),
            "means": None if self.means is None else tuple(self.means.tolist()),
            "costs": tuple(self.costs.tolist()) if self.has_costs else None,
        }

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Problem) else NotImplemented

    def __hash__(self) -> int:
        content = self._content()
        return hash((frozenset(content.pop("groups").items()), *content.values()))

    def __reduce__(self) -> tuple[object, ...]:
        # Through the constructor: mapping proxies cannot be pickled, and arrays would
        # come back writeable.
        return partial(Problem, **self._content()), ()

    def __repr__(self) -> str:
        limits = len(self.exploration)
        return (
            f"<Problem: {count(self.size, 'arm')}, {count(len(self.names), 'constraint')}, "
            f"{f'{count(limits, NOUNS[EXPLORATION])}, ' if limits else ''}"
            f"{f'{count(len(self.measured), MEASURED_LIMIT)}, ' if self.measured else ''}"
            f"{f'costs {self.costs.min():g} to {self.costs.max():g}, ' if self.has_costs else ''}"
            f"{self.rewards.name} rewards, {self.scenario}, delta {self.delta:g}"
            f"{f', epsilon {self.epsilon:g}' if self.epsilon else ''}"
            f"{f', stops at {self.stop_when}' if self.stop_when else ''}"
            f"{f', {self.question}' if self.question else ''}>"
        )

    def rows(self) -> list[Row]:
        """One row per arm: its guessed means, its cost, its coefficient in each constraint."""
        matrix = self.matrix
        return [
            {
                "arm": arm,
                "mean": None if self.means is None else float(self.means[a]),
                **({"cost": float(self.costs[a])} if self.has_costs else {}),
                **{row.name: row.means and row.means[a] for row in self.measured},
                **dict(zip(self.names, matrix[:, a].tolist(), strict=True)),
            }
            for a, arm in enumerate(self.arms)
        ]

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<pre>{escape(self.to_text())}</pre>"

    def replace(self, **changes: Any) -> Problem:
        """Return a copy with some of the constructor's arguments changed.

        Parameters
        ----------
        **changes
            Arguments of `Problem` by name.

        Returns
        -------
        Problem

        Examples
        --------
        >>> Problem(2).replace(delta=0.01).delta
        0.01
        """
        if unknown := changes.keys() - FIELDS.keys():
            raise TypeError(f"a problem has no {listed(unknown)}; it has {listed(FIELDS, 20)}.")
        problem = object.__new__(Problem)
        problem._put(self._content() | changes, self, changes)
        return problem

    def check_means(self, means: npt.ArrayLike) -> Array:
        """Return means as a read-only array, or say what is wrong with them.

        Parameters
        ----------
        means : array_like, shape (K,)
            One mean per arm.

        Returns
        -------
        ndarray, shape (K,)

        Raises
        ------
        MeansError
            If their number is wrong, or one is not finite or outside the range of the
            rewards' family.
        """
        with error_context("means"):
            found = check_means(means, self.arms)
            if self.question and self.question.arm:
                found[self.arms.index(self.question.arm)] = self.question.mean
            self.rewards.check_means(found, self.arms)
        return frozen(found)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Problem:
        """Read a problem file.

        Parameters
        ----------
        path : str or path
            Of a TOML file; docs/problem_file.md lists its keys.

        Returns
        -------
        Problem

        Raises
        ------
        ProblemError
            If the file cannot be read or does not describe a problem. The message
            starts with the file's name.

        Examples
        --------
        >>> Problem.from_file("examples/meal.toml").arms  # doctest: +SKIP
        ('pizza', 'salmon', 'lentils')
        """
        with in_file(str(path)):
            text = read_text(path)
        return cls.from_text(text, source=str(path))

    @classmethod
    def from_text(cls, text: str, source: str = "<text>") -> Problem:
        r"""Read a problem from the text of a problem file.

        Parameters
        ----------
        text : str
            TOML.
        source : str
            What error messages call it.

        Returns
        -------
        Problem

        Examples
        --------
        >>> Problem.from_text('arms = ["a", "b"]\n[constraints]\ncap = "a <= 1/3"').upper
        array([0.33333333])
        """
        with in_file(source, text):
            return cls(**arguments(parse_toml(text)))

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write a problem file, which `from_file` reads back as an equal problem.

        Parameters
        ----------
        path : str or path
            The TOML file to write.
        """
        write_text(path, self.to_text())

    def to_text(self) -> str:
        """Return the text that `to_file` writes.

        Returns
        -------
        str

        Examples
        --------
        >>> print(Problem(["a", "b"], {"cap": "3*a <= 1"}).to_text(), end="")
        arms = ["a", "b"]
        delta = 0.1
        scenario = "end-of-time"
        <BLANKLINE>
        [rewards]
        family = "gaussian"
        sigma = 1.0
        <BLANKLINE>
        [constraints]
        cap = "3*a <= 1"
        """
        return problem_text(self._content())


def check_problem(problem: object) -> Problem:
    """Return a problem, or say how to get one from what was given instead."""
    if isinstance(problem, Problem):
        return problem
    hint = ""
    if isinstance(problem, str | PathLike):
        hint = f"; Problem.from_file({str(problem)!r}) reads a file"
    elif isinstance(getattr(problem, "problem", None), Problem):
        hint = "; it has one: .problem"
    raise ProblemError(f"a Problem is wanted, not {reprlib.repr(problem)}{hint}.")


def _check_guess(given: object, arms: Sequence[str], rewards: Family) -> Array | None:
    if given is None:
        return None
    means = check_means(given, arms)
    rewards.check_means(means, arms)
    return frozen(means)


def _check_rewards(given: object, arms: Sequence[str]) -> Family:
    rewards = Gaussian() if given is None else given
    if not isinstance(rewards, Family):
        raise ProblemError(
            "rewards must be Gaussian(...), Bernoulli(...), Poisson(...) or Bounded(...); "
            f"got {reprlib.repr(rewards)}."
        )
    rewards.check_size(len(arms))
    return rewards


def _check_scenario(given: object, exploration: Sequence[Constraint]) -> str:
    if given is None:
        return EXPLORATION if exploration else SCENARIOS[0]
    known = (*SCENARIOS, EXPLORATION)
    if not isinstance(given, str) or given not in known:
        raise ProblemError(f"unknown scenario {reprlib.repr(given)}{suggestion(str(given), known)}")
    if given == EXPLORATION and not exploration:
        raise ProblemError(
            f"the scenario {EXPLORATION!r} has no limits; write them below a line "
            f'[{EXPLORATION}], such as fair = "each >= 0.02", or choose '
            f"{SCENARIOS[0]!r} or {SCENARIOS[1]!r}."
        )
    return str(given)


# How each field is checked, and which ones it must fit: those above it.
FIELDS: dict[str, tuple[Callable[..., Any], *tuple[str, ...]]] = {
    "arms": (check_arms,),
    "groups": (check_groups, "arms"),
    "constraints": (check_constraints, "arms", "groups"),
    "exploration": (partial(check_constraints, table=EXPLORATION), "arms", "groups"),
    "rewards": (_check_rewards, "arms"),
    "scenario": (_check_scenario, "exploration"),
    "delta": (check_delta,),
    "means": (_check_guess, "arms", "rewards"),
    "epsilon": (partial(check_amount, what="epsilon", unit=", in the unit of rewards"),),
    "costs": (check_costs, "arms", "groups"),
    "initial_excess": (partial(check_amount, what="initial_excess", unit=" of pulls"),),
    "stop_when": (check_stop_when, "epsilon"),
    "measured": (check_measured, "arms", "groups", "constraints", "exploration"),
    "question": (
        check_question,
        *("arms", "groups", "rewards", "constraints", "exploration", "scenario", "epsilon"),
        *("stop_when", "measured"),
    ),
}

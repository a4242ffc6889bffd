"""What an experimenter knows: arms, constraints, kind of rewards, confidence.

A problem is read from a short TOML file or built in Python, and checked here as far as
its parts go one by one. Whether the constraints can hold together is for geometry to say.
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Mapping, Sequence
from html import escape
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from simplexplore.errors import MeansError, Place, ProblemError, RewardError
from simplexplore.tabular import Row, Tabular, to_html

from .checks import (
    check_arms,
    check_constraints,
    check_costs,
    check_groups,
    check_number,
    check_vector,
)
from .constraint import Constraint, format_constraints
from .families import Gaussian
from .family import Family
from .file import arguments, parameter_names, parse_toml, read_text, toml_key, toml_text, write_text
from .language import NOUNS
from .measured import Measured, check_company, check_measured
from .places import about, line_of
from .spelling import count, guess, listed, nearest
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

# Floats hold arms / delta and its logarithm down to here, and nobody is this sure of anything.
LEAST_DELTA = 1e-300


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
    room : float
        Pulls by which a limit on samples may be exceeded while arms are tried for the first time.
    measured : sequence of Measured, or mapping, optional
        One or two limits on something that every pull reports beside its reward; the mean over
        the mix is limited, and each arm's mean is learned. A mapping goes from names to
        `Measured` or to the keys of a problem file's table.

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
    room: float
    costs: Array
    measured: tuple[Measured, ...]
    names: tuple[str, ...]
    matrix: Array
    lower: Array
    upper: Array

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
        room: float = 0.0,
        measured: Sequence[Measured] | Mapping[str, Measured | Mapping[str, Any]] = (),
    ) -> None:
        with about("arms"):
            checked_arms = check_arms(arms)
        with about("groups"):
            checked_groups = check_groups({} if groups is None else groups, checked_arms)
        with about("constraints"):
            rows = check_constraints(constraints, checked_arms, checked_groups)
        with about(EXPLORATION):
            limits = check_constraints(exploration, checked_arms, checked_groups, EXPLORATION)

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("arms", checked_arms)
        put("groups", MappingProxyType(checked_groups))
        put("constraints", rows)
        put("exploration", limits)
        put("names", tuple(row.name for row in rows))
        put("matrix", _frozen(np.reshape([row.coefficients for row in rows], (-1, self.size))))
        put("lower", _frozen(np.array([row.lower for row in rows], dtype=float)))
        put("upper", _frozen(np.array([row.upper for row in rows], dtype=float)))
        with about("rewards"):
            put("rewards", _check_rewards(Gaussian() if rewards is None else rewards, self.size))
        with about("scenario"):
            put("scenario", _check_scenario(scenario, bool(limits)))
        with about("delta"):
            put("delta", _check_delta(delta))
        put("means", None if means is None else self.check_means(means))
        with about("epsilon"):
            put("epsilon", _check_epsilon(epsilon))
        with about("costs"):
            put("costs", _frozen(check_costs(costs, checked_arms, checked_groups)))
        with about("room"):
            put("room", _check_room(room))
        with about("stop_when"):
            put("stop_when", check_stop_when(stop_when))
            if self.epsilon and self.stop_when:
                if self.stop_when.budget is not None:
                    raise ProblemError(
                        "epsilon and a budget do not go together: a budget asks for the best "
                        "policy that its samples find; remove one of them."
                    )
                raise ProblemError(
                    "epsilon and stop_when both say what is good enough; keep one of them: epsilon "
                    "takes fewer samples, stop_when has no limit on the number of policies."
                )
        with about("measured"):
            taken = (row.name for row in (*rows, *limits))
            put("measured", check_measured(measured, checked_arms, checked_groups, taken))
        check_company(self.measured, self.rewards, self.stop_when)

    @property
    def size(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def accepted_regret(self) -> float:
        """How much less than the best an answer may earn: epsilon, or the regret of stop_when."""
        return self.regret_goal or self.epsilon

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
        return (*SCENARIOS, EXPLORATION) if self.exploration else SCENARIOS

    def _content(self) -> dict[str, Any]:
        """Return the arguments that make this problem again."""
        return {
            "arms": self.arms,
            "constraints": self.constraints,
            "rewards": self.rewards,
            "scenario": self.scenario,
            "delta": self.delta,
            "groups": dict(self.groups),
            "means": None if self.means is None else tuple(self.means.tolist()),
            "epsilon": self.epsilon,
            "stop_when": self.stop_when,
            "exploration": self.exploration,
            "costs": tuple(self.costs.tolist()) if self.has_costs else None,
            "room": self.room,
            "measured": self.measured,
        }

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Problem) else NotImplemented

    def __hash__(self) -> int:
        content = self._content()
        return hash((frozenset(content.pop("groups").items()), *content.values()))

    def __reduce__(self) -> tuple[object, ...]:
        # Through the constructor: mapping proxies cannot be pickled, and arrays would
        # come back writeable.
        return Problem, tuple(self._content().values())

    def __repr__(self) -> str:
        limits = len(self.exploration)
        return (
            f"<Problem: {count(self.size, 'arm')}, {count(len(self.names), 'constraint')}, "
            f"{f'{count(limits, NOUNS[EXPLORATION])}, ' if limits else ''}"
            f"{f'{count(len(self.measured), MEASURED_LIMIT)}, ' if self.measured else ''}"
            f"{f'costs {self.costs.min():g} to {self.costs.max():g}, ' if self.has_costs else ''}"
            f"{self.rewards.name} rewards, {self.scenario}, delta {self.delta:g}"
            f"{f', epsilon {self.epsilon:g}' if self.epsilon else ''}"
            f"{f', stops at {self.stop_when}' if self.stop_when else ''}>"
        )

    def rows(self) -> list[Row]:
        """One row per arm: its guessed means, its cost, its coefficient in each constraint."""
        return [
            {
                "arm": arm,
                "mean": None if self.means is None else float(self.means[a]),
                **({"cost": float(self.costs[a])} if self.has_costs else {}),
                **{row.name: row.means and row.means[a] for row in self.measured},
                **{row.name: float(row.coefficients[a]) for row in self.constraints},
            }
            for a, arm in enumerate(self.arms)
        ]

    def _repr_html_(self) -> str:
        texts = format_constraints(self.constraints, self.arms, self.groups)
        limits = format_constraints(self.exploration, self.arms, self.groups)
        columns = ("arm", "mean", "cost", *(row.name for row in self.measured))
        return f"<p>{escape(repr(self))}</p>" + "".join(
            to_html(rows)
            for rows in (
                [{key: row[key] for key in row if key in columns} for row in self.rows()],
                [{"constraint": name, "": str(text)} for name, text in texts.items()],
                [{"limit on exploration": name, "": str(text)} for name, text in limits.items()],
                [
                    {"measured": row.name, "limit": row.limit, "tolerance": row.tolerance}
                    for row in self.measured
                ],
            )
            if rows
        )

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
        return Problem(**(self._content() | changes))

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
        with about("means"):
            try:
                array = check_vector(means, "means", "arm", self.arms)
            except ProblemError as error:
                raise MeansError(str(error)) from None
            for arm, mean in zip(self.arms, array, strict=True):
                if not math.isfinite(mean):
                    raise MeansError(f"the mean of arm {arm!r} is {mean}; it must be finite.")
            self.rewards.check_means(array, self.arms)
        return _frozen(array)

    def measured_means(self, given: Mapping[str, npt.ArrayLike] | None = None) -> Array:
        """Means of the measured rows, as given by name or else their own guesses.

        Parameters
        ----------
        given : mapping, optional
            From names of rows to one mean per arm.

        Returns
        -------
        ndarray, shape (rows, K)
            As the user gives them; `Measured.signed` makes limits from above of them.

        Raises
        ------
        MeansError
            If a row has none, or what is given does not fit.
        """
        given = {} if given is None else given
        for name in given:
            if name not in (row.name for row in self.measured):
                raise MeansError(
                    f"there is no measured row {reprlib.repr(name)}; "
                    f"known: {listed(row.name for row in self.measured) or 'none'}."
                )
        rows = [row.means_in(given.get(row.name), self.arms) for row in self.measured]
        return _frozen(np.reshape(rows, (-1, self.size)))

    def check_measurements(self, given: Mapping[str, float] | None) -> tuple[float, ...]:
        """Measurements of one pull in the order of the rows.

        Parameters
        ----------
        given : mapping or None
            From names of rows to numbers.

        Returns
        -------
        tuple of float

        Raises
        ------
        RewardError
            If one is missing, belongs to no row, or is impossible.
        """
        if given is None and not self.measured:
            return ()
        names = tuple(row.name for row in self.measured)
        if given is not None and not isinstance(given, Mapping):
            raise RewardError(
                f"measured must map names to numbers, such as {{{(names or ('toxicity',))[0]!r}: "
                f"0.2}}; got {reprlib.repr(given)}."
            )
        given = given or {}
        for name in given:
            if name not in names:
                near = nearest(str(name), names)
                raise RewardError(
                    f"there is no measured row {reprlib.repr(name)}; known: "
                    f"{listed(names) or 'none'}.{f' Did you mean {near!r}?' if near else ''}"
                )
        missing = [name for name in names if name not in given]
        if missing:
            raise RewardError(
                f"a pull is told with its measurements: {listed(missing)} is missing; give "
                f"measured={{{missing[0]!r}: ...}}."
            )
        return tuple(row.check_value(given[row.name]) for row in self.measured)

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
        return cls.from_text(read_text(path), source=str(path))

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
        table = parse_toml(text, source)
        try:
            return cls(**arguments(table))
        except (ProblemError, MeansError) as error:
            place = dataclasses.replace(
                error.place or Place(), file=source, line=line_of(text, error.place)
            )
            raise type(error)(f"{source}: {error}", place=place) from None

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
        top: dict[str, object] = {"arms": self.arms}
        if self.means is not None:
            top["means"] = self.means.tolist()
        top["delta"] = self.delta
        if self.epsilon:
            top["epsilon"] = self.epsilon
        if self.stop_when:
            top["stop_when"] = self.stop_when.to_dict()
        top["scenario"] = self.scenario
        if self.room:
            top["room"] = self.room
        parameters = {key: getattr(self.rewards, key) for key in parameter_names(self.rewards)}
        tables: dict[str, Mapping[str, object]] = {
            "rewards": {"family": self.rewards.name} | parameters,
            "groups": self.groups,
            "constraints": format_constraints(self.constraints, self.arms, self.groups),
            "exploration": format_constraints(self.exploration, self.arms, self.groups),
            "costs": {
                arm: cost
                for arm, cost in zip(self.arms, self.costs.tolist(), strict=True)
                if cost != 1
            },
            **{f"measured.{toml_key(row.name)}": row.to_dict() for row in self.measured},
        }
        return toml_text(top, tables)


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


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _check_rewards(rewards: object, size: int) -> Family:
    if not isinstance(rewards, Family):
        raise ProblemError(
            "rewards must be Gaussian(...), Bernoulli(...), Poisson(...) or Bounded(...); "
            f"got {reprlib.repr(rewards)}."
        )
    rewards.check_size(size)
    return rewards


def _check_scenario(scenario: object, has_limits: bool) -> str:
    if scenario is None:
        return EXPLORATION if has_limits else SCENARIOS[0]
    known = (*SCENARIOS, EXPLORATION)
    if not isinstance(scenario, str) or scenario not in known:
        raise ProblemError(
            f"unknown scenario {reprlib.repr(scenario)}{guess(str(scenario), known)}"
        )
    if scenario == EXPLORATION and not has_limits:
        raise ProblemError(
            f"the scenario {EXPLORATION!r} has no limits; write them below a line "
            f'[{EXPLORATION}], such as fair = "each >= 0.02", or choose '
            f"{SCENARIOS[0]!r} or {SCENARIOS[1]!r}."
        )
    return str(scenario)


def _check_delta(delta: object) -> float:
    number = check_number(delta, "delta")
    if not 0 < number < 1:
        raise ProblemError(f"delta must lie strictly between 0 and 1; got {number:g}.")
    if number < LEAST_DELTA:
        raise ProblemError(f"delta must be at least {LEAST_DELTA:g}; got {number:g}.")
    return number


def _check_room(room: object) -> float:
    number = check_number(room, "room")
    if not 0 <= number < math.inf:
        raise ProblemError(f"room must be 0 or a positive number of pulls; got {number:g}.")
    return number + 0.0  # no negative zero


def _check_epsilon(epsilon: object) -> float:
    number = check_number(epsilon, "epsilon")
    if not 0 <= number < math.inf:
        raise ProblemError(
            f"epsilon must be 0 or a positive number, in the unit of rewards; got {number:g}."
        )
    return number + 0.0  # no negative zero

"""Bounds in words for people: what tables and pictures both say.

Nothing here decides anything; it chooses what to show first and how to write it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.bound.information import binary_kl
from simplexplore.bound.measured_result import MeasuredBound
from simplexplore.bound.result import RelaxedBound
from simplexplore.bound.unknown_sigma import information_about, time_with
from simplexplore.exploration.excess import excess_bound, limits_in_words
from simplexplore.exploration.expected_samples import expected_samples
from simplexplore.problem.problem import EXPLORATION, SCENARIOS
from simplexplore.problem.spelling import policy_in_words

from .measured_text import measured_headline, measured_notes
from .numbers import number, rough_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplexplore.bound.result import (
        Bound,
        Edge,
        ScenarioBound,
        Unconstrained,
        Unsampled,
    )

Array = npt.NDArray[np.float64]

# A limit on exploration with less room than this, in units of its largest coefficient, binds.
BINDING = 1e-6

# More arms than this on one side of a move are counted, not named.
MAX_NAMED = 3


def move(edge: Edge, arms: Sequence[str]) -> tuple[str, str]:
    """Say which arms lose use along an edge, and which gain it.

    Weights are given where a side has several arms; each side's sum to 1.

    Examples
    --------
    >>> from simplexplore.bound.result import Edge
    >>> edge = Edge(direction=np.array([-0.5, 1.0, -0.5]), gap=1.0, neighbour=np.zeros(3))
    >>> move(edge, ["a", "b", "c"])
    ('0.5 a + 0.5 c', 'b')
    """

    def side(members: npt.NDArray[np.intp]) -> str:
        names = [str(arms[a]) for a in members]
        if len(names) == 1:
            return names[0]
        weights = np.abs(edge.direction[members])
        parts = [f"{w:.2g} {name}" for w, name in zip(weights, names, strict=True)]
        if len(parts) > MAX_NAMED:
            parts = [*parts[: MAX_NAMED - 1], f"{len(parts) - MAX_NAMED + 1} more"]
        return " + ".join(parts)

    # The largest changes first; equal ones in the order of the arms.
    order = np.argsort(-np.abs(edge.direction), kind="stable")
    return side(order[edge.direction[order] < 0]), side(order[edge.direction[order] > 0])


def times_alone(bound: Bound) -> Array:
    """Characteristic time of each edge, in units of cost, if it were the only one to rule out.

    This is how hard a comparison is by itself, end-of-time; infinite for a tie.
    """
    gaps = bound._edges.gaps(bound.means)
    times = np.full(len(gaps), math.inf)
    apart = gaps > 0
    if apart.any():
        edges = bound._edges.only(apart)
        problem = bound.problem
        information = information_about(
            edges, gaps[apart], bound.means, problem.rewards, costs=problem.costs
        )
        times[apart] = [time_with(problem.rewards, x) for x in information.edge_times()]
    return times


def hardest_first(times: Array) -> list[int]:
    """Return the indices of edges by their times, the longest first."""
    order: list[int] = np.argsort(-times, kind="stable").tolist()
    return order


def recommended(scenario: ScenarioBound | Unconstrained) -> Array | None:
    """Return where samples should go, if any number of them is of use."""
    return scenario.allocation if 0 < scenario.characteristic_time < math.inf else None


def spending(scenario: ScenarioBound) -> Array | None:
    """Return where money should go, if any of it is of use and pulls differ in cost from 1."""
    return None if recommended(scenario) is None else scenario.spend


def prominent_arms(bound: Bound, limit: int) -> list[int]:
    """Choose the arms to show, at most `limit`: used by the policy, or sampled most.

    They come in the order of the problem.
    """
    size = len(bound.problem.arms)
    if size <= limit:
        return list(range(size))
    weight = 10.0 * (bound.policy > 0) + bound.policy
    weight += sum(scenario.allocation for scenario in bound.scenarios.values())
    return sorted(np.argsort(-weight, kind="stable")[:limit].tolist())


@dataclass(frozen=True)
class Use:
    """How much of one constraint the policy uses.

    Attributes
    ----------
    name : str
    amount : float
        Value of the constraint's sum at the policy.
    lower, upper : float
        Its limits; infinite where there is none.
    reach : (float, float)
        Smallest and largest value over all policies, feasible or not.
    active : bool
        Whether a limit is met with equality.
    """

    name: str
    amount: float
    lower: float
    upper: float
    reach: tuple[float, float]
    active: bool

    @property
    def slack(self) -> float:
        """Distance to the nearest limit, 0 if active."""
        return 0.0 if self.active else min(self.amount - self.lower, self.upper - self.amount)

    @property
    def limit(self) -> str:
        """The limits in words."""
        if self.lower == self.upper:
            return f"exactly {number(self.upper)}"
        if math.isinf(self.lower):
            return f"at most {number(self.upper)}"
        if math.isinf(self.upper):
            return f"at least {number(self.lower)}"
        return f"{number(self.lower)} to {number(self.upper)}"


def limits_used(bound: Bound, limit: int) -> list[Use]:
    """Say how much of each limit on exploration its best allocation uses, like `uses`."""
    scenario = bound.scenarios.get(EXPLORATION)
    w = None if scenario is None else recommended(scenario)
    if w is None:
        return []
    every = []
    for row in bound.problem.exploration:
        amount = float(row.coefficients @ w)
        room = min(amount - row.lower, row.upper - amount)
        reach = float(row.coefficients.min()), float(row.coefficients.max())
        binds = room <= BINDING * float(np.abs(row.coefficients).max())
        every.append(Use(row.name, amount, row.lower, row.upper, reach, binds))
    return _tightest(every, limit)


def uses(bound: Bound, limit: int) -> list[Use]:
    """Say how much of each constraint the policy uses; if there are too many, of the tightest."""
    problem = bound.problem
    every = [
        Use(
            name=name,
            amount=float(row @ bound.policy),
            lower=float(lower),
            upper=float(upper),
            reach=(float(row.min()), float(row.max())),
            active=name in bound.active,
        )
        for name, row, lower, upper in zip(
            problem.names, problem.matrix, problem.lower, problem.upper, strict=True
        )
    ]
    return _tightest(every, limit)


def _tightest(every: list[Use], limit: int) -> list[Use]:
    return every if len(every) <= limit else sorted(every, key=lambda use: use.slack)[:limit]


def effort(bound: Bound, amount: float) -> str:
    """Write a number of samples, or with costs what they cost."""
    return f"a cost of {number(amount)}" if bound.problem.has_costs else f"{number(amount)} samples"


def title(bound: Bound, limit: int = 6) -> str:
    """Name the best mix, or its largest shares."""
    words = policy_in_words(bound.policy, bound.problem.arms, limit)
    if bound.problem.measured and not bound.ties:
        return f"Best mix, if all is as guessed: {words}"
    if bound.ties:
        return f"One of {len(bound.ties) + 1} best mixes: {words}"
    return f"Best mix: {words}"


def headline(bound: Bound) -> str:
    """Say in one sentence what it takes to find the best mix, or one that is good enough."""
    if isinstance(bound, MeasuredBound):
        return measured_headline(bound)
    own = bound.scenarios[bound.problem.scenario]
    if own.unknowable:
        what = "can find it"
        if isinstance(own, RelaxedBound) and own.least_time == 0:
            what = "settles any answer that was tried"
        return f"No number of samples {what}: {_without_samples(own.unknowable)}."
    if bound.problem.epsilon and bound.edges:
        return _relaxed_headline(bound)
    if bound.ties:
        return "Several mixes are equally good: no number of samples can tell which is best."
    if not bound.edges:
        return "Only one mix is feasible: there is nothing to find out, 0 samples."
    confidence = f"{1 - bound.delta:.10g}"
    if bound.samples == 0:
        return f"A confidence of {confidence} needs no evidence: the lower bound is 0 samples."
    pays_for = f": {number(bound.samples)} samples" if bound.problem.has_costs else ""
    return (
        f"At least {effort(bound, bound.cost)} on average to find it with confidence "
        f"{confidence} ({bound.problem.scenario}){pays_for}."
    )


def _without_samples(arms: Sequence[Unsampled]) -> str:
    """Say which arms matter and get no samples, and because of which limits."""
    named = arms[:MAX_NAMED]
    parts = [f"none for {x.arm} ({_listed(x.limits, 3)})" for x in named]
    if len(arms) > MAX_NAMED:
        parts.append(f"{len(arms) - MAX_NAMED} more")
    return f"the limits on exploration leave {', '.join(parts)}"


def _relaxed_headline(bound: Bound) -> str:
    own = relaxed(bound)
    assert own is not None
    good_enough = f"a mix within {number(bound.problem.epsilon)} of it"
    if own.characteristic_time == 0:
        return f"Any means leave {policy_in_words(own.answer, bound.problem.arms)} good enough."
    about = effort(bound, own.characteristic_time * binary_kl(bound.delta))
    return (
        f"About {about} to find {good_enough} with confidence {1 - bound.delta:.10g} "
        f"({bound.problem.scenario}), at least {number(own.lower_bound)}."
    )


def expectation(bound: Bound) -> list[str]:
    """Say what the program itself takes on average, where that can be estimated."""
    expected = expected_samples(bound)
    if expected is None or not 0 < expected < math.inf:
        return []
    about = number(float(f"{expected:.2g}"))
    least = number(bound.samples)
    if bound.problem.has_costs:
        each = bound.scenarios[bound.problem.scenario].cost_per_sample
        cost = number(float(f"{expected * each:.2g}"))
        least = number(bound.cost)
        with_these = f"Expect a cost of about {cost}, {about} samples, with top-two and tilt"
        return [f"{with_these}; no method can do with less than {least}."]
    return [
        f"Expect about {about} with top-two and tilt; no method can do with fewer than {least}."
    ]


def relaxed(bound: Bound) -> RelaxedBound | None:
    """What there is to say about answers within epsilon, in the problem's scenario."""
    own = bound.scenarios[bound.problem.scenario]
    return own if isinstance(own, RelaxedBound) else None


NoteKind = Literal[
    "measured",
    "answer",
    "mix",
    "stop when",
    "budget",
    "limits",
    "ties",
    "other allocations",
    "degenerate",
    "redundant",
    "forced to zero",
    "exploration",
    "unknown sigma",
    "no constraints",
]


@dataclass(frozen=True)
class Note:
    """Something else that a reader should know: what it is about, and a sentence."""

    kind: NoteKind
    text: str


def notes(bound: Bound) -> list[Note]:
    """What else a reader should know."""
    arms = bound.problem.arms
    remarks = []
    if isinstance(bound, MeasuredBound):
        remarks += [Note("measured", words) for words in measured_notes(bound)]
    remarks += _of_goal(bound)
    if bound.problem.scenario != "end-of-time" and bound.edges and not bound.problem.measured:
        allowed = AllocationSet.of(bound._polytope, bound.problem.scenario)
        if not allowed.is_simplex:
            remarks.append(
                Note("limits", limits_in_words(excess_bound(allowed, bound.problem.room)))
            )
    remarks += _of_shape(bound)
    remarks += _of_exploration(bound)
    remarks += _of_sigma(bound)
    free = bound.unconstrained
    if len(arms) > 1:
        least = effort(bound, free.lower_bound)
        best = f"the best arm is {free.arm}, at least {least} to find it"
        if math.isinf(free.characteristic_time):
            best = "several arms tie for the best"
        remarks.append(Note("no constraints", f"Without constraints: {best}."))
    return remarks


def _of_goal(bound: Bound) -> list[Note]:
    """What is good enough, and what ends an exploration."""
    arms, remarks = bound.problem.arms, []
    if (own := relaxed(bound)) is not None and not own.unknowable:
        rivals = "; ".join(policy_in_words(policy, arms) for policy in own.rivals[:4])
        words = (
            f"Quickest to be sure of within {number(bound.problem.epsilon)}: "
            f"{policy_in_words(own.answer, arms)}; hardest to tell from: {rivals or 'nothing'}."
        )
        remarks.append(Note("answer", words))
        if own.answer_kind == "mix":
            time = own.vertex_characteristic_time / own.characteristic_time
            words = f"The best vertex of the feasible set takes {time:.3g} times as long."
            if math.isinf(time):
                words = "No samples within the limits settle any vertex of the feasible set."
            remarks.append(Note("mix", words))
    if (spent := bound.budget) is not None and bound.edges:
        words = f"With {number(spent.samples)} samples, spread as well as possible, "
        if spent.error_probability is None:
            words += "nothing can be said: policies tie, or arms that matter get none."
        else:
            words += (
                f"the best-looking mix is wrong with probability about "
                f"{spent.error_probability:.2g}; {number(spent.characteristic_time)} more divide "
                "that by e. This is an estimate, not a guarantee, and does not depend on delta."
            )
        remarks.append(Note("budget", words))
    if bound.problem.regret_goal and bound.edges:
        words = (
            f"All this is about the best mix itself. Exploration stops earlier: as soon as no mix "
            f"earns {number(bound.problem.regret_goal)} more than the answer (see 'simulate')."
        )
        remarks.append(Note("stop when", words))
    return remarks


def _of_shape(bound: Bound) -> list[Note]:
    """Ties, other allocations, and constraints that do nothing or too much."""
    arms, remarks = bound.problem.arms, []
    if bound.ties:
        tied = "; ".join(policy_in_words(policy, arms) for policy in bound.ties[:4])
        more = f"; {len(bound.ties) - 4} more" if len(bound.ties) > 4 else ""
        remarks.append(Note("ties", f"As good as the policy shown: {tied}{more}."))
    loose = [name for name, x in bound.scenarios.items() if not (x.unique or x.unknowable)]
    if loose and not bound.ties and bound.edges:
        least = "cost as little" if bound.problem.has_costs else "need as few samples"
        words = f"Other allocations {least} ({' and '.join(loose)}); one is shown."
        remarks.append(Note("other allocations", words))
    if bound.degenerate:
        words = "More constraints meet at the policy than are needed to fix it (degenerate)."
        remarks.append(Note("degenerate", words))
    if bound.redundant:
        words = f"Redundant, since others imply them: {_listed(bound.redundant)}."
        remarks.append(Note("redundant", words))
    if bound.forced_to_zero:
        words = f"No feasible policy uses: {_listed(bound.forced_to_zero)}."
        remarks.append(Note("forced to zero", words))
    return remarks


def _of_exploration(bound: Bound) -> list[Note]:
    """What limits on exploration cost."""
    limited = bound.scenarios.get(EXPLORATION)
    if limited is None or bound.ties or not bound.edges:
        return []
    is_own = bound.problem.scenario == EXPLORATION
    if limited.unknowable:
        why = _without_samples(limited.unknowable)
        words = f"In the scenario exploration no samples find it: {why}."
        return [] if is_own else [Note("exploration", words)]
    least = bound.scenarios[SCENARIOS[0]].characteristic_time
    times = limited.characteristic_time / least if least > 0 else 1.0
    more = 100 * (times - 1)
    how_much = f"{more:.0f}% more than" if more >= 10 else f"{more:.2g}% more than"
    if times >= 2:
        how_much = f"{times:.3g} times as much as"
    words = f"The limits on exploration cost {how_much} exploring freely."
    if times < 1.00005:
        words = "The limits on exploration cost nothing: exploring freely takes as long."
    return [Note("exploration", words)]


def _of_sigma(bound: Bound) -> list[Note]:
    """What not knowing sigma costs."""
    own = bound.scenarios[bound.problem.scenario]
    known, time = own.known_sigma_time, own.characteristic_time
    if not known or not 0 < time < math.inf:
        return []
    more = 100 * (time / known - 1)
    what = "cost" if bound.problem.has_costs else "samples"
    words = (
        f"An unknown sigma takes {rough_percent(more)} more {what} than a known one if delta is "
        "small, and more at ordinary deltas, since thresholds must allow for it. The guess of "
        "sigma is used for this plan only."
    )
    return [Note("unknown sigma", words)]


def _listed(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown

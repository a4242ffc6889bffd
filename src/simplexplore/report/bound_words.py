"""Bounds in words for people: what documents and pictures both say.

Nothing here decides anything; it chooses what to show first and how to write it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.bound.information import Information, binary_kl
from simplexplore.bound.measured_result import Deciding, MeasuredPlan
from simplexplore.bound.result import (
    Bound,
    Edge,
    RelaxedBound,
    ScenarioBound,
    UnidentifiableArm,
)
from simplexplore.errors import NotConvergedError, SimplexploreError
from simplexplore.exploration.forecast import forecast, forecast_budget
from simplexplore.exploration.limits import excess_bound, limits_in_words, promise
from simplexplore.geometry.question_polytope import QuestionPolytope
from simplexplore.problem.constraint import Constraint, format_constraint
from simplexplore.problem.families import Gaussian
from simplexplore.problem.measured import Measured
from simplexplore.problem.messages import count, policy_in_words
from simplexplore.problem.problem import EXPLORATION, MEASURED_LIMIT, SCENARIOS, Problem

from .numbers import number, rough, rough_percent

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
        rewards = problem.rewards.with_known_variance()
        information = Information(edges, gaps[apart], bound.means, rewards, costs=problem.costs)
        times[apart] = information.edge_times()
    return times


def hardest(bound: Bound, limit: int) -> list[int]:
    """Indices of the edges that take longest by themselves, the longest first."""
    order: list[int] = np.argsort(-times_alone(bound), kind="stable")[:limit].tolist()
    return order


@dataclass(frozen=True)
class Comparison:
    """One edge, and how hard it is to rule out by itself.

    Attributes
    ----------
    words : str
        What is used instead of what; of other questions, what would make the answer wrong.
    gap : float
    time, amount : float
        Characteristic time, and samples or cost; infinite for a tie.
    decides : bool
        Whether the bound depends on it.
    """

    words: str
    gap: float
    time: float
    amount: float
    decides: bool


def comparisons(bound: Bound, arms: Sequence[str], limit: int) -> list[Comparison]:
    """The hardest edges; the names of arms are given."""
    times, found = times_alone(bound), []
    binding = bound.scenarios[bound.problem.scenario].binding_edges
    for e in hardest(bound, limit):
        edge, time = bound.edges[e], float(times[e])
        words = _wrong_if(bound, e) if bound.answer else " -> ".join(move(edge, arms))
        is_tie = edge.gap <= 0
        amount = math.inf if is_tie else time * binary_kl(bound.delta)
        found.append(Comparison(words, edge.gap, time, amount, is_tie or e in binding))
    return found


def _wrong_if(bound: Bound, e: int) -> str:
    """Say what makes an answer to a question besides the best mix wrong, by one of its edges."""
    direction, offset = bound.edges[e].direction, float(np.asarray(bound._edges.offset)[e])
    if (direction > 0).any():
        row = Constraint("", direction, lower=offset)
    else:
        row = Constraint("", -direction, upper=-offset)
    return format_constraint(row, bound.problem.arms)


def recommended(scenario: ScenarioBound) -> Array | None:
    """Return where samples should go, if any number of them is of use."""
    return scenario.allocation if 0 < scenario.characteristic_time < math.inf else None


def top_arms(bound: Bound, limit: int) -> list[int]:
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
class Usage:
    """How much of one constraint a mix or an allocation uses.

    Attributes
    ----------
    name : str
    amount : float
        Value of the constraint's sum.
    lower, upper : float
        Its limits; infinite where there is none.
    reach : (float, float)
        Smallest and largest value over all mixes, feasible or not.
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


def constraint_usage(bound: Bound, limit: int) -> list[Usage]:
    """How much of each constraint the best mix uses; if there are too many, of the tightest."""
    active = set(bound.active)
    rows = bound.problem.constraints
    return _tightest([_usage(row, bound.policy, row.name in active) for row in rows], limit)


def exploration_usage(bound: Bound, limit: int) -> list[Usage]:
    """How much of each limit on exploration its best allocation uses, like `constraint_usage`."""
    scenario = bound.scenarios.get(EXPLORATION)
    w = None if scenario is None else recommended(scenario)
    if w is None:
        return []
    return _tightest([_usage(row, w) for row in bound.problem.exploration], limit)


def _usage(row: Constraint, shares: Array, is_active: bool | None = None) -> Usage:
    amount = row.used(shares)
    if is_active is None:
        slack = min(amount - row.lower, row.upper - amount)
        is_active = slack <= BINDING * float(np.abs(row.values).max())
    others = [0.0] * (len(row.values) < row.size)
    every = [*row.values.tolist(), *others]
    reach = min(every), max(every)
    return Usage(row.name, amount, row.lower, row.upper, reach, is_active)


def _tightest(every: list[Usage], limit: int) -> list[Usage]:
    return every if len(every) <= limit else sorted(every, key=lambda usage: usage.slack)[:limit]


def problem_in_words(problem: Problem) -> str:
    """How large a problem is, and its rewards."""
    measured = f"{count(len(problem.measured), MEASURED_LIMIT)}, " if problem.measured else ""
    return (
        f"{count(problem.size, 'arm')}, "
        f"{problem.question or count(len(problem.names), 'constraint')}, "
        f"{measured}{problem.rewards.in_words}"
    )


def effort(bound: Bound, amount: float) -> str:
    """Write a number of samples, or with costs what they cost."""
    return f"a cost of {number(amount)}" if bound.problem.has_costs else f"{number(amount)} samples"


def title(bound: Bound, limit: int = 6) -> str:
    """Name the best mix, or its largest shares."""
    if bound.answer:
        return f"{'One of several answers' if bound.ties else 'Answer'}: {bound.answer}"
    words = policy_in_words(bound.policy, bound.problem.arms, limit)
    if bound.problem.measured and not bound.ties:
        return f"Best mix, if all is as guessed: {words}"
    if bound.ties:
        return f"One of {len(bound.ties) + 1} best mixes: {words}"
    return f"Best mix: {words}"


def headline(bound: Bound) -> str:
    """Say in one sentence what it takes to find the best mix, or one that is good enough."""
    if isinstance(bound, MeasuredPlan):
        return _plan_headline(bound)
    own = bound.scenarios[bound.problem.scenario]
    if own.unidentifiable:
        what = "Not identifiable"
        if isinstance(own, RelaxedBound) and own.least_time == 0:
            what = "No answer that was tried is identifiable"
        return f"{what}: {_without_samples(own.unidentifiable)}."
    if bound.problem.epsilon and bound.edges:
        return _relaxed_headline(bound)
    if bound.ties:
        what = "answers are right" if bound.answer else "mixes are equally good"
        return f"Several {what}: no number of samples can tell which is best."
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


def _without_samples(arms: Sequence[UnidentifiableArm]) -> str:
    """Say which arms matter and get no samples, and because of which limits."""
    named = arms[:MAX_NAMED]
    parts = [f"{x.arm} ({_listed(x.limits, 3)})" for x in named]
    if len(arms) > MAX_NAMED:
        parts.append(f"{len(arms) - MAX_NAMED} more")
    return f"the limits on exploration leave no samples for {', '.join(parts)}"


def _relaxed_headline(bound: Bound) -> str:
    own = relaxed(bound)
    assert own is not None
    good_enough = f"a mix within {number(bound.problem.epsilon)} of it"
    if own.characteristic_time == 0:
        return f"Any means leave {policy_in_words(own.answer, bound.problem.arms)} good enough."
    confidence = f"with confidence {1 - bound.delta:.10g} ({bound.problem.scenario})"
    words = (
        f"At least {effort(bound, own.lower_bound)} on average, for small delta, to find "
        f"{good_enough} {confidence}"
    )
    if own.characteristic_time > 1.02 * own.least_time:
        most = number(own.characteristic_time * binary_kl(bound.delta))
        words += f"; for the best answer found, at least {most}"
    return f"{words}."


def _plan_headline(bound: MeasuredPlan) -> str:
    own, problem = bound.own, bound.problem
    if own.unidentifiable:
        arms = ", ".join(x.arm for x in own.unidentifiable)
        return f"No number of samples is enough: limits on samples leave none for {arms}."
    if math.isinf(own.characteristic_time):
        return (
            "No number of samples is enough: the best mix is at a measured limit, or others tie "
            "with it, and epsilon and the tolerances leave no room. Give epsilon > 0 and, where "
            "no mix stays clear of the limit, a tolerance."
        )
    rows = " and ".join(_limit(row) for row in problem.measured)
    missed = " and ".join(number(row.tolerance) for row in problem.measured if row.tolerance)
    return (
        f"A plan to find a mix that keeps {rows}{f', to within {missed},' if missed else ''} and "
        f"earns at most {number(problem.epsilon)} less, with confidence {1 - bound.delta:.10g} "
        f"({problem.scenario})."
    )


def _limit(row: Measured) -> str:
    return f"{row.name} {row.limit}"


def reason(deciding: Deciding, bound: MeasuredPlan) -> str:
    """Say what one alternative would be: the limit exceeded, or another mix better."""
    if deciding.limit is not None:
        row = next(row for row in bound.problem.measured if row.name == deciding.limit)
        by = f" by more than {number(row.tolerance)}" if row.tolerance else ""
        return f"it misses {_limit(row)}{by}"
    assert deciding.rival is not None
    words = policy_in_words(deciding.rival, bound.problem.arms, 4)
    exceeded = [
        _limit(row)
        for row, means in zip(bound.problem.measured, bound.measured_means, strict=True)
        if float(row.signed(means) @ deciding.rival) > row.bound
    ]
    kept = f" and keeps {' and '.join(exceeded)}" if exceeded else ""
    return f"{words} earns more{kept}"


def expectation(bound: Bound) -> list[str]:
    """Say what the program itself takes, as simulated runs do; nothing if policies tie."""
    try:
        words = [_expected_samples(bound)]
        if bound.problem.budget is not None and bound.edges:
            words.append(_expected_errors(bound))
    except SimplexploreError as error:
        return [f"Samples to expect are not known: {error}"]
    return list(filter(None, words))


def _expected_samples(bound: Bound) -> str:
    found = forecast(bound)
    if found is None or found.samples == 0:
        return ""
    low, high = rough(found.low), rough(found.high)
    spent = f" at a cost of about {rough(found.cost)}" if bound.problem.has_costs else ""
    less = " with less noise" if found.ease > 1 else ""
    return (
        f"Expect about {rough(found.samples)} samples{spent} with top-two and tilt, {low} to "
        f"{high} in four runs of five ({found.runs} runs simulated{less})."
    )


def _expected_errors(bound: Bound) -> str:
    found = forecast_budget(bound)
    low, high = (rough_percent(100 * end) for end in found.error_range)
    return (
        f"After {number(found.samples)} samples of top-two the answer is wrong with probability "
        f"{rough_percent(100 * found.error_probability)} ({low} to {high}: 95% interval, "
        f"{found.runs:,} runs simulated). This is an estimate, not a guarantee, and does not "
        "depend on delta."
    )


def relaxed(bound: Bound) -> RelaxedBound | None:
    """What there is to say about answers within epsilon, in the problem's scenario."""
    own = bound.scenarios[bound.problem.scenario]
    return own if isinstance(own, RelaxedBound) else None


def notes(bound: Bound) -> list[str]:
    """What else a reader should know, sentence by sentence."""
    return [
        *_of_measured(bound),
        *_of_question(bound),
        *_of_answer(bound),
        *_of_goal(bound),
        *_of_limits(bound),
        *of_ties(bound),
        *_of_shape(bound),
        *(f"No bound in the scenario {name}: {why}" for name, why in bound.failed.items()),
        *_of_exploration(bound),
        *_of_sigma(bound),
        *_of_no_constraints(bound),
    ]


def _of_question(bound: Bound) -> Iterator[str]:
    """Which other answers are right."""
    polytope = bound._polytope
    if isinstance(polytope, QuestionPolytope) and not bound.ties:
        right = map(polytope.in_words, polytope.right_vertices(bound.means))
        if others := _listed([words for words in right if words != bound.answer]):
            easiest = "The bound is that of the easiest, for small delta."
            yield f"Right as well: {others}. {easiest}"


def _of_measured(bound: Bound) -> Iterator[str]:
    """What a plan is, and what it takes for granted."""
    problem = bound.problem
    if not isinstance(bound, MeasuredPlan) or math.isinf(bound.own.characteristic_time):
        return
    easiest = policy_in_words(bound.own.answer, problem.arms)
    earned = float(bound.means @ bound.own.answer)
    yield f"Easiest to be sure of: {easiest}, the answer here, which earns {number(earned)}."
    yield "This is a plan, no lower bound: another answer may take fewer samples."
    if 0 < bound.own.known_limits_time < math.inf:
        part = rough_percent(100 * bound.own.known_limits_time / bound.own.characteristic_time)
        yield f"If the means of measurements were known it would take {part} of that."
    noises = (problem.rewards, *(row.noise for row in problem.measured))
    if not all(isinstance(noise, Gaussian) for noise in noises):
        yield "Noise within a range counts as Gaussian with half the range as standard deviation."
    if not all(noise.knows_sigma for noise in noises):
        yield "Sigma is taken as guessed; not knowing it takes more samples."
    if problem.scenario == "anytime":
        yield (
            "Samples keep measured limits only as far as these are known: in expectation, at the "
            "upper end of what is plausible. The plan is for shares that keep them as guessed."
        )
        yield promise(problem, bound.delta)


def _of_answer(bound: Bound) -> Iterator[str]:
    """What is good enough."""
    own, arms = relaxed(bound), bound.problem.arms
    if own is None or own.unidentifiable:
        return
    rivals = "; ".join(policy_in_words(policy, arms) for policy in own.rivals[:4])
    yield (
        f"Easiest answer within {number(bound.problem.epsilon)} of the optimum: "
        f"{policy_in_words(own.answer, arms)}; hardest to tell from: {rivals or 'nothing'}."
    )
    if own.listed_time and 1.01 * own.characteristic_time < own.listed_time < math.inf:
        times = own.listed_time / own.characteristic_time
        yield (
            "Runs choose among the vertices and mixes of them in equal steps: those found take "
            f"{times:.3g} times as long or longer."
        )


def _of_goal(bound: Bound) -> Iterator[str]:
    """What ends an exploration, if it is not the evidence for the best mix."""
    if bound.problem.regret_goal and bound.edges:
        yield (
            f"The bound is about the best mix itself. Exploration stops earlier, as soon as no mix "
            f"earns {number(bound.problem.regret_goal)} more than the answer: that is when the "
            "samples to expect end."
        )


def _of_limits(bound: Bound) -> Iterator[str]:
    """How far samples may be above limits."""
    problem = bound.problem
    if problem.scenario != "end-of-time" and bound.edges and not problem.measured:
        allowed = AllocationSet.of(bound._polytope, problem.scenario)
        if (most := excess_bound(allowed, problem.initial_excess)) is not None:
            yield limits_in_words(most)


def of_ties(bound: Bound) -> Iterator[str]:
    """Other policies, and other allocations, that are as good."""
    if bound.ties and not bound.answer:
        tied = "; ".join(policy_in_words(policy, bound.problem.arms) for policy in bound.ties[:4])
        more = f"; {len(bound.ties) - 4} more" if len(bound.ties) > 4 else ""
        yield f"As good as the policy shown: {tied}{more}."
    loose = [name for name, x in bound.scenarios.items() if not (x.unique or x.unidentifiable)]
    if loose and not bound.ties and bound.edges:
        least = "cost as little" if bound.problem.has_costs else "need as few samples"
        yield f"Other allocations {least} ({' and '.join(loose)}); one is shown."


def _of_shape(bound: Bound) -> Iterator[str]:
    """Constraints that do nothing or too much."""
    if bound.degenerate:
        yield "More constraints meet at the policy than are needed to fix it (degenerate)."
    if bound.redundant:
        yield f"Redundant, since others imply them: {_listed(bound.redundant)}."
    if bound.forced_to_zero:
        yield f"No feasible policy uses: {_listed(bound.forced_to_zero)}."


def _of_exploration(bound: Bound) -> Iterator[str]:
    """What limits on exploration cost."""
    limited = bound.scenarios.get(EXPLORATION)
    free = bound.scenarios.get(SCENARIOS[0])
    if limited is None or free is None or bound.ties or not bound.edges:
        return
    if limited.unidentifiable:
        if bound.problem.scenario != EXPLORATION:  # else the headline says it
            why = _without_samples(limited.unidentifiable)
            yield f"Not identifiable in the scenario exploration: {why}."
        return
    least = free.characteristic_time
    times = limited.characteristic_time / least if least > 0 else 1.0
    if times < 1.00005:
        yield "The limits on exploration cost nothing: exploring freely takes as long."
        return
    more = rough_percent(100 * (times - 1))
    yield f"The limits on exploration cost {more} more than exploring freely."


def _of_sigma(bound: Bound) -> Iterator[str]:
    """What the bound takes sigma for."""
    if not bound.problem.rewards.knows_sigma:
        yield (
            "The bound takes the guess of sigma for the truth. It holds for methods that do not "
            "know sigma, too, which need more, since they have to learn it."
        )


def _of_no_constraints(bound: Bound) -> Iterator[str]:
    """How hard the ordinary problem of the best arm is, if its bound can be found."""
    if bound.answer or bound.problem.size == 1:
        return
    try:
        free = bound.unconstrained
    except NotConvergedError:
        return
    best = f"the best arm is {free.arm}, at least {effort(bound, free.lower_bound)} to find it"
    if math.isinf(free.characteristic_time):
        best = "several arms tie for the best"
    yield f"Without constraints: {best}."


def _listed(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown

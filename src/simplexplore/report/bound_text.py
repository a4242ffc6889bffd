"""Bounds and results in words and numbers for people: what tables and pictures both say.

Nothing here decides anything; it chooses what to show first and how to write it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from simplexplore.bound.information import Information, binary_kl
from simplexplore.bound.result import RelaxedBound
from simplexplore.problem.spelling import count, policy_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simplexplore.bound.result import Bound, Edge, ScenarioBound, Unconstrained
    from simplexplore.simulation.results import Results

Array = npt.NDArray[np.float64]

# A share this small would read 0.000.
VISIBLE = 5e-4

# More arms than this on one side of a move are counted, not named.
MAX_NAMED = 3


def number(value: float) -> str:
    """Write a number with four significant digits, thousands separated.

    Examples
    --------
    >>> number(774.387), number(0.15), number(1234567.8), number(1.5e11), number(float("inf"))
    ('774.4', '0.15', '1,234,568', '1.5e+11', 'infinite')
    """
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if abs(value) >= 1e10:  # longer ones would not fit into columns
        return f"{value:.4g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{round(value, 12):.4g}"


def share(value: float) -> str:
    """Write a share of 1 with three decimals, an absent one as a dash.

    Examples
    --------
    >>> share(0.5), share(0.0), share(0.0002)
    ('0.500', '-', '<0.001')
    """
    if value <= 0:
        return "-"
    return f"{value:.3f}" if value >= VISIBLE else "<0.001"


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a text that is longer than a width.

    Examples
    --------
    >>> shorten("Star Trek: The Motion Picture", 16), shorten("Das Boot", 16)
    ('Star Tre…Picture', 'Das Boot')
    """
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def move(edge: Edge, arms: Sequence[str], name_width: int = 80) -> tuple[str, str]:
    """Say which arms lose use along an edge, and which gain it.

    Weights are given where a side has several arms; each side's sum to 1.

    Examples
    --------
    >>> from simplexplore.bound import Edge
    >>> edge = Edge(direction=np.array([-0.5, 1.0, -0.5]), gap=1.0, neighbour=np.zeros(3))
    >>> move(edge, ["a", "b", "c"])
    ('0.5 a + 0.5 c', 'b')
    """

    def side(members: npt.NDArray[np.intp]) -> str:
        names = [shorten(arms[a], name_width) for a in members]
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
    """Characteristic time of each edge if it were the only one to rule out.

    This is how hard a comparison is by itself, end-of-time; infinite for a tie.
    """
    gaps = np.array([edge.gap for edge in bound.edges])
    times = np.full(len(gaps), math.inf)
    apart = gaps > 0
    if apart.any():
        all_edges = bound._edges
        edges = replace(all_edges, index=all_edges.index[apart], value=all_edges.value[apart])
        information = Information(edges, gaps[apart], bound.means, bound.problem.rewards)
        times[apart] = information.edge_times()
    return times


def hardest_first(times: Array) -> list[int]:
    """Return the indices of edges by their times, the longest first."""
    order: list[int] = np.argsort(-times, kind="stable").tolist()
    return order


def recommended(scenario: ScenarioBound | Unconstrained) -> Array | None:
    """Return where samples should go, if any number of them is of use."""
    return scenario.allocation if 0 < scenario.characteristic_time < math.inf else None


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
    return every if len(every) <= limit else sorted(every, key=lambda use: use.slack)[:limit]


def title(bound: Bound, limit: int = 6) -> str:
    """Name the best mix, or its largest shares."""
    words = policy_in_words(bound.policy, bound.problem.arms, limit)
    if bound.ties:
        return f"One of {len(bound.ties) + 1} best mixes: {words}"
    return f"Best mix: {words}"


def headline(bound: Bound) -> str:
    """Say in one sentence what it takes to find the best mix, or one that is good enough."""
    if bound.problem.epsilon and bound.edges:
        return _relaxed_headline(bound)
    if bound.ties:
        return "Several mixes are equally good: no number of samples can tell which is best."
    if not bound.edges:
        return "Only one mix is feasible: there is nothing to find out, 0 samples."
    confidence = f"{1 - bound.delta:.10g}"
    if bound.samples == 0:
        return f"A confidence of {confidence} asks for nothing: the bound is 0 samples."
    return (
        f"At least {number(bound.samples)} samples on average to find it with confidence "
        f"{confidence} ({bound.problem.scenario})."
    )


def _relaxed_headline(bound: Bound) -> str:
    own = relaxed(bound)
    assert own is not None
    good_enough = f"a mix within {number(bound.problem.epsilon)} of it"
    if own.characteristic_time == 0:
        return f"Any means leave {policy_in_words(own.answer, bound.problem.arms)} good enough."
    samples = number(own.characteristic_time * binary_kl(bound.delta))
    return (
        f"About {samples} samples to find {good_enough} with confidence {1 - bound.delta:.10g} "
        f"({bound.problem.scenario}), at least {number(own.lower_bound)}."
    )


def relaxed(bound: Bound) -> RelaxedBound | None:
    """What there is to say about answers within epsilon, in the problem's scenario."""
    own = bound.scenarios[bound.problem.scenario]
    return own if isinstance(own, RelaxedBound) else None


def notes(bound: Bound) -> list[str]:
    """What else a reader should know, as sentences."""
    arms = bound.problem.arms
    remarks = []
    if (own := relaxed(bound)) is not None:
        rivals = "; ".join(policy_in_words(policy, arms) for policy in own.rivals[:4])
        remarks.append(
            f"Quickest to be sure of within {number(bound.problem.epsilon)}: "
            f"{policy_in_words(own.answer, arms)}; hardest to tell from: {rivals or 'nothing'}."
        )
        if own.answer_kind == "mix":
            time = own.vertex_characteristic_time / own.characteristic_time
            remarks.append(f"The best vertex of the feasible set takes {time:.3g} times as long.")
    if bound.ties:
        tied = "; ".join(policy_in_words(policy, arms) for policy in bound.ties[:4])
        more = f"; {len(bound.ties) - 4} more" if len(bound.ties) > 4 else ""
        remarks.append(f"As good as the policy shown: {tied}{more}.")
    loose = [name for name, scenario in bound.scenarios.items() if not scenario.unique]
    if loose and not bound.ties and bound.edges:
        remarks.append(
            f"Other allocations need as few samples ({' and '.join(loose)}); one is shown."
        )
    if bound.degenerate:
        remarks.append(
            "More constraints meet at the policy than are needed to fix it (degenerate)."
        )
    if bound.redundant:
        remarks.append(f"Without effect, since others imply them: {_listed(bound.redundant)}.")
    if bound.forced_to_zero:
        remarks.append(f"The constraints leave no use for: {_listed(bound.forced_to_zero)}.")
    free = bound.unconstrained
    if len(arms) > 1:
        best = f"the best arm is {free.arm}, at least {number(free.lower_bound)} samples to find it"
        if math.isinf(free.characteristic_time):
            best = "several arms tie for the best"
        remarks.append(f"Without constraints: {best}.")
    return remarks


def _listed(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


# ---------------------------------------------------------------------- results


def comparable(results: Sequence[Results]) -> list[list[Results]]:
    """Group results of one instance, scenario, delta and threshold, in the order they came."""
    groups: dict[object, list[Results]] = {}
    for result in results:
        plan = result.plan
        means = tuple(result.bound.means.tolist())
        noise = None if result.noise is None else tuple(result.noise.tolist())
        key = (plan.problem, plan.scenario, means, noise, plan.delta, plan.threshold.name)
        groups.setdefault(key, []).append(result)
    return list(groups.values())


def sampler_labels(results: Sequence[Results]) -> list[str]:
    """Name results by their samplers, and by what else tells them apart."""
    labels = [
        f"{r.plan.sampler.name}, {r.plan.tracking}" if r.plan.tracking else r.plan.sampler.name
        for r in results
    ]
    if len(set(labels)) < len(labels):
        labels = [f"{x}, seed {r.seed}" for x, r in zip(labels, results, strict=True)]
    return [
        f"{label} ({labels[: i + 1].count(label)})" if labels.count(label) > 1 else label
        for i, label in enumerate(labels)
    ]


def circumstances(results: Sequence[Results]) -> str:
    """Say on which problem, and how, comparable results came about."""
    first = results[0]
    problem, plan = first.plan.problem, first.plan
    runs = sorted({result.runs for result in results})
    seeds = sorted({result.seed for result in results})
    shown = number(runs[0]) if len(runs) == 1 else f"{number(runs[0])} to {number(runs[-1])}"
    return (
        f"{count(problem.size, 'arm')}, {count(len(problem.names), 'constraint')}, "
        f"{problem.rewards.name} rewards{'' if first.noise is None else ' (noise not as told)'}, "
        f"delta {plan.delta:g}, {f'epsilon {problem.epsilon:g}, ' if problem.epsilon else ''}"
        f"threshold {plan.threshold.name}, "
        f"{shown} {'run' if runs == [1] else 'runs'}"
        f"{' each' if len(results) > 1 else ''}, "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds[:5]))}"
    )


def standing(result: Results) -> str:
    """Say whether the error probability is a promise."""
    threshold, family = result.plan.threshold, result.plan.problem.rewards.name
    if result.is_proven:
        return (
            f"{threshold.name} is proven for {family} rewards: a wrong answer has probability at "
            f"most {result.plan.delta:g}, whatever the sampler."
        )
    if threshold.is_proven(family):
        return (
            f"{threshold.name} is proven for {family} rewards, but these vary more than was told: "
            "nothing promises that wrong answers are rarer than delta."
        )
    return (
        f"{threshold.name} is not proven for {family} rewards: nothing promises that wrong answers "
        f"are rarer than delta. The threshold 'mixture' does."
    )


def mean_and_error(mean: float | None, stderr: float | None) -> str:
    """Write a mean with its standard error, to the digits that make sense.

    Examples
    --------
    >>> mean_and_error(1984.53, 21.4), mean_and_error(12.345, 0.5), mean_and_error(7.0, None)
    ('1,985 ± 21', '12.3 ± 0.5', '7.0')
    """
    if mean is None:
        return "-"
    digits = 0 if mean >= 100 else 1
    error = "" if stderr is None else f" ± {stderr:,.{digits}f}"
    return f"{mean:,.{digits}f}{error}"


def percent(share: float | None) -> str:
    """Write a share as a percentage; only all is 100%.

    Examples
    --------
    >>> percent(1.0), percent(0.9996), percent(0.987), percent(None)
    ('100%', '99.9%', '98.7%', '-')
    """
    return "-" if share is None else f"{_rounded(share, math.floor)}%"


def percent_between(low: float, high: float) -> str:
    """Write an interval of shares, rounded outwards.

    Examples
    --------
    >>> percent_between(0.98172, 1.0), percent_between(0.5, 0.98172)
    ('98.1-100%', '50-98.2%')
    """
    return f"{_rounded(low, math.floor)}-{_rounded(high, math.ceil)}%"


def _rounded(share: float, direction: Callable[[float], int]) -> str:
    """Percents to one decimal, always up or always down; the last bit of a float does not count."""
    return f"{direction(round(1000 * share, 9)) / 10:g}"


def ratio(mean: float | None, lower_bound: float) -> str:
    """Say how many times the lower bound a mean is.

    Examples
    --------
    >>> ratio(1984.5, 774.4), ratio(1234567.0, 1.0), ratio(10.0, math.inf)
    ('2.56', '1,234,567', '-')
    """
    if mean is None or not 0 < lower_bound < math.inf:
        return "-"
    times = mean / lower_bound
    return f"{times:.3g}" if times < 1000 else number(times)

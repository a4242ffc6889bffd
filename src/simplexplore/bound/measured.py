"""How many samples it takes to find a mix that is good enough where limits are measured.

An answer is good enough if it exceeds no measured limit by more than its tolerance and earns at
most epsilon less than the best policy that keeps the limits (docs/theory/measured.md). Here an
instance is put into units of its noise, cases without a finite time are recognised, and what the
search finds is turned into records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from simplexplore.errors import InfeasibleError
from simplexplore.geometry.faces import faces
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.measured import Measured, spreads
from simplexplore.problem.problem import Problem
from simplexplore.problem.rational import rational
from simplexplore.problem.spelling import policy_in_words

from .allocation_set import AllocationSet
from .information import binary_kl
from .measured_bracket import Bracket
from .measured_information import MeasuredInformation
from .measured_result import Deciding, MeasuredBound, MeasuredScenario
from .measured_search import MIDDLING, Solved, certified, climb
from .result import Bound, ScenarioBound, Unsampled

Array = npt.NDArray[np.float64]

# Parts of what tolerance and epsilon allow, from which a search starts, and how far inside.
STARTS = (0.35, 0.65)
LEAN = 0.1

# Margins below this, in standard deviations, are none.
NO_MARGIN = 1e-12

# Weights of alternatives that are too small to mention.
LITTLE = 1e-3


def as_if_known(problem: Problem, means: Array) -> Problem:
    """The problem with its measured limits as constraints, their coefficients as guessed."""
    rows = list(problem.constraints)
    for row, mean in zip(problem.measured, means, strict=True):
        # Shares sum to one: what all arms have in common belongs to the limit.
        level = rational(row.level)
        above = [row.sign * float(rational(x) - level) for x in mean.tolist()]
        if any(above):
            rows.append(Constraint(row.name, np.array(above), upper=0.0))
    rewards = problem.rewards.as_if_known()
    known = problem.replace(constraints=rows, measured=(), rewards=rewards)
    try:
        Polytope(known)
    except InfeasibleError:
        Polytope(problem.replace(measured=()))  # where that is why, it is said there
        raise _infeasible(problem, means) from None
    return known


def measured_bound(problem: Problem, base: Bound, means: Array) -> MeasuredBound:
    """The bound of a problem with measured limits.

    Parameters
    ----------
    problem : Problem
    base : Bound
        That of the problem as if the limits were known.
    means : (m, K) array
        Means of the measurements, as guessed.
    """
    known = Polytope(problem.replace(measured=()))
    instance = _Instance.of(problem, known, base, means)
    kl = binary_kl(base.delta)
    solved: dict[str, MeasuredScenario] = {}
    least = 0.0
    # Where an answer is quicker although samples keep limits, it is so without them.
    for name in (*problem.scenarios, problem.scenarios[0]):
        first = [x.answer for x in solved.values() if x._information is not None]
        times = [x.characteristic_time for x in solved.values()]
        if name in solved and solved[name].characteristic_time <= min(times) * (1 + 1e-9):
            continue
        # Where samples keep the constraints, they keep the measured limits, too.
        polytope = base._polytope if name == "anytime" else known
        allowed = AllocationSet.of(polytope, name).as_rows().in_spend()
        needed = name in (problem.scenarios[0], problem.scenario)
        found = instance.scenario(allowed, base.scenarios[name], kl, first, bracketed=needed)
        least = found.least_time if name == problem.scenarios[0] else least
        solved[name] = replace(found, least_time=max(found.least_time, least))
    fields = {name: getattr(base, name) for name in base.__dataclass_fields__}
    bound = MeasuredBound(
        **fields | {"problem": problem, "_corollaries": dict, "budget": None}, measured_means=means
    )
    scenarios: dict[str, ScenarioBound] = {
        name: replace(x, lower_bound=x.least_time * kl if bound.is_gaussian and kl else 0.0)
        for name, x in solved.items()
    }
    return replace(bound, scenarios=scenarios)


def trade_off(bound: MeasuredBound, epsilon: Array, factors: Array) -> Array:
    """T for other epsilons and for tolerances times factors, (F, E), in the problem's scenario.

    Found by the same search, without its certificates.
    """
    problem, name = bound.problem, bound.problem.scenario
    known = Polytope(problem.replace(measured=()))
    allowed = AllocationSet.of(bound._polytope if name == "anytime" else known, name)
    allowed = allowed.as_rows().in_spend()
    times = np.full((len(factors), len(epsilon)), math.inf)
    for i, factor in enumerate(factors):
        for j, x in enumerate(epsilon):
            rows = [replace(r, tolerance=float(factor * r.tolerance)) for r in problem.measured]
            changed = problem.replace(measured=rows, epsilon=float(x))
            instance = _Instance.of(changed, known, bound, bound.measured_means)
            best = instance.best(allowed, STARTS[:1])
            if best is not None:
                times[i, j] = 1.0 / instance.information.least(*best)
    return times


@dataclass(frozen=True)
class _Instance:
    """A problem with guesses, in units of its noise, and where its search starts."""

    problem: Problem
    known: Polytope
    information: MeasuredInformation
    policy: Array
    means: Array
    units: Array  # of rewards, then of each row
    mu: Array

    @classmethod
    def of(cls, problem: Problem, known: Polytope, base: Bound | None, means: Array) -> _Instance:
        """Without a bound, the instance is about whether any policy keeps the limits."""
        size = problem.size
        mu = np.zeros(size) if base is None else base.means
        policy = known.deepest_policy() if base is None else base.policy
        sigma = spreads(problem.rewards, size)
        tau = np.array([row.deviations(size) for row in problem.measured])
        units = np.append(sigma.max(), tau.max(axis=1))
        rows = [
            row.signed(mean) - row.bound for row, mean in zip(problem.measured, means, strict=True)
        ]
        scale = units[1:, None]
        tolerance = np.array([row.tolerance for row in problem.measured]) / units[1:]
        edges, triangles = faces(known, len(rows))
        information = MeasuredInformation(
            edges=edges,
            triangles=triangles,
            mu=(mu - mu.mean()) / units[0],
            variance=problem.costs * (sigma / units[0]) ** 2,
            rows=np.array(rows) / scale,
            row_variance=problem.costs * (tau / scale) ** 2,
            tolerance=tolerance,
            epsilon=-math.inf if base is None else problem.epsilon / units[0],
            is_vertex=base is not None and not problem.epsilon and _is_best(known, base),
        )
        return cls(problem, known, information, policy, means, units, mu)

    @property
    def opt(self) -> float:
        """What the best policy that keeps the limits earns."""
        return float(self.information.mu @ self.policy)

    def scenario(
        self,
        allowed: AllocationSet,
        base: ScenarioBound,
        kl: float,
        first: list[Array],
        *,
        bracketed: bool,
    ) -> MeasuredScenario:
        """One scenario; `first` are answers of others, to start from."""
        in_play = np.ones(self.problem.size, dtype=bool)
        in_play[list(self.known.forced_arms)] = False
        missed = np.flatnonzero(in_play & ~allowed.arms)
        best = None if len(missed) else self.best(allowed, () if first else STARTS, first)
        solved = None if best is None else certified(self.information, allowed, *best)
        if solved is None:
            unsampled = tuple(Unsampled(self.problem.arms[a], ()) for a in missed)
            return self._never(allowed, base, kl, unsampled)
        least = 0.0
        if bracketed and not self.information.is_vertex:
            bracket = Bracket(self.information, self.known, allowed)
            gap, solved = bracket.improved(solved, self.opt)
            least = 1.0 / (solved.least * (1.0 + gap))
        elif self.information.is_vertex:
            least = 1.0 / solved.most
        return self._record(solved, allowed, base, least)

    def best(
        self, allowed: AllocationSet, starts: tuple[float, ...], first: Sequence[Array] = ()
    ) -> tuple[Array, Array] | None:
        """The best answer that is found and shares for it; None where no samples are enough."""
        information = self.information
        fixed = information.is_vertex or self.known.dimension == 0
        answers = [self.policy] if fixed else [*first, *self._starts(starts)]
        best: tuple[Array, Array] | None = None
        for pi in answers:
            if not information.margins(pi).min() > NO_MARGIN:
                continue
            if not information.least(pi, allowed.deep) > 0:
                continue
            start = (pi, allowed.deep)
            found = climb(information, self.known, allowed, *start, fixed=fixed, effort=MIDDLING)
            if best is None or information.least(*found) > information.least(*best):
                best = found
        return best and climb(information, self.known, allowed, *best, fixed=fixed)

    def _starts(self, parts: tuple[float, ...]) -> list[Array]:
        """Answers with some margin to all limits; none where the best has no such neighbours."""
        information, size = self.information, self.problem.size
        centre = self._farthest(np.append(information.tolerance, information.epsilon - self.opt), 1)
        if centre is None or centre[-1] <= NO_MARGIN:
            return []
        found = [centre[:size]]
        for part in parts:
            # As much reward as can be, with a part of the room kept on each side.
            cut = information.tolerance - part * (information.tolerance + information.epsilon)
            best = self._farthest(cut, 0)
            if best is not None:
                found.append((1 - LEAN) * best[:size] + LEAN * centre[:size])
        return found

    def _farthest(self, right: Array, margin: int) -> Array | None:
        """The policy that keeps most away from rows, or without `margin` earns most within them."""
        from scipy.optimize import linprog

        information, known = self.information, self.known
        above, limit = known.inequalities()
        equal, sums = known.equalities()
        low, high = known.limits()
        rows = information.rows
        cost = np.append(-information.mu, 0.0)
        if margin:
            rows, cost = np.vstack([rows, -information.mu]), np.append(0.0 * information.mu, -1.0)
        found = linprog(
            cost,
            A_ub=np.column_stack(
                [np.vstack([above, rows]), np.append(np.zeros(len(above)), [margin] * len(rows))]
            ),
            b_ub=np.append(limit, right),
            A_eq=np.column_stack([equal, np.zeros(len(equal))]),
            b_eq=sums,
            bounds=[*zip(low, np.minimum(high, 1.0), strict=True), (0.0, None if margin else 0.0)],
        )
        return np.asarray(found.x) if found.status == 0 else None

    def _never(
        self,
        allowed: AllocationSet,
        base: ScenarioBound,
        kl: float,
        unsampled: tuple[Unsampled, ...],
    ) -> MeasuredScenario:
        """No samples are enough."""
        return MeasuredScenario(
            characteristic_time=math.inf,
            allocation=allowed.deep,
            lower_bound=math.inf if kl else 0.0,
            relative_gap=0.0,
            closest_alternative=None,
            binding_edges=(),
            unique=True,  # it is none
            unknowable=unsampled,
            answer=self.policy,
            least_time=math.inf,
            known_limits_time=base.characteristic_time,
            deciding=(),
            closest_measured=None,
            _information=None,
        )

    def _record(
        self, solved: Solved, allowed: AllocationSet, base: ScenarioBound, least: float
    ) -> MeasuredScenario:
        deciding = self._deciding(solved)
        close, hardest = solved.alternatives, int(solved.weights.argmax())
        mu, measured = self.mu.copy(), self.means.copy()
        signs = np.array([row.sign for row in self.problem.measured])
        i, x = int(close.row[hardest]), close.rivals[hardest]
        if i >= 0:
            measured[i] += signs[i] * self.units[1 + i] * close.shift[hardest]
        else:
            mu += self.units[0] * close.shift[hardest]
            shift = self.information.limit_shift(x, solved.answer, solved.w)
            measured += (signs * self.units[1:])[:, None] * shift
        w = np.where(allowed.in_play, solved.w, 0.0) if allowed.is_simplex else solved.w
        return MeasuredScenario(
            characteristic_time=solved.time,
            allocation=np.asarray(w / w.sum()),
            lower_bound=0.0,  # set where all scenarios are known
            relative_gap=solved.most / solved.least - 1.0,
            closest_alternative=mu,
            binding_edges=(),
            unique=True,
            answer=solved.answer,
            least_time=least,
            known_limits_time=base.characteristic_time,
            deciding=deciding,
            closest_measured=measured,
            _information=self.information,
        )

    def _deciding(self, solved: Solved) -> tuple[Deciding, ...]:
        """Alternatives by weight; rivals that differ by less than a percent are one."""
        found: list[Deciding] = []
        close = solved.alternatives
        for j in np.argsort(-solved.weights, kind="stable"):
            weight, i, x = float(solved.weights[j]), int(close.row[j]), close.rivals[j]
            name = self.problem.measured[i].name if i >= 0 else None
            same = next(
                (
                    n
                    for n, other in enumerate(found)
                    if other.limit == name
                    and (other.rival is None or np.abs(other.rival - x).max() < 1e-2)
                ),
                None,
            )
            if same is None:
                found.append(Deciding(weight, name, None if i >= 0 else x))
            else:
                found[same] = replace(found[same], weight=found[same].weight + weight)
        return tuple(sorted((x for x in found if x.weight > LITTLE), key=lambda x: -x.weight))


def _is_best(known: Polytope, base: Bound) -> bool:
    """Whether the policy is the only best one without measured limits."""
    vertex = known.optimal_vertex(base.means)
    gaps = known.edges(vertex).gaps(base.means)
    return bool((gaps > 0).all() and np.abs(vertex.policy - base.policy).max() < 1e-12)


def infeasibility_time(problem: Problem, means: Array) -> float:
    """T of the answer that no mix keeps the measured limits, end-of-time, certified from above.

    Alternatives are those under which some policy keeps them: h without rewards, on the same faces.
    """
    known = Polytope(problem.replace(measured=()))
    instance = _Instance.of(problem, known, None, means)
    allowed = AllocationSet.simplex(known).in_spend()
    pi = known.deepest_policy()
    information = instance.information
    if known.dimension == 0:  # a policy that is an edge to itself
        information = replace(
            information, edges=np.stack([[pi, pi]]), triangles=np.zeros((0, 3, 1))
        )
    _, w = climb(information, known, allowed, pi, allowed.deep, fixed=True)
    return certified(information, allowed, pi, w).time


def _infeasible(problem: Problem, means: Array) -> InfeasibleError:
    """Say that no mix keeps the measured limits, and what one could do at best."""
    known = Polytope(problem.replace(measured=()))
    words, names = [], []
    for row, mean in zip(problem.measured, means, strict=True):
        vertex = known.optimal_vertex(-row.signed(mean))
        reached = float(mean @ vertex.policy)
        if row.sign * reached > row.bound:
            least = "least" if row.sign > 0 else "most"
            mix = policy_in_words(vertex.policy, problem.arms)
            words.append(f"no mix keeps {_limit(row)}: the {least} is {reached:.6g}, with {mix}")
            names.append(row.name)
    if not words:
        names = [row.name for row in problem.measured]
        words = [f"no mix keeps {' and '.join(map(_limit, problem.measured))} together"]
    with np.errstate(all="ignore"):
        samples = infeasibility_time(problem, means) * binary_kl(problem.delta)
    return InfeasibleError(
        f"with these means {'; '.join(words)}. Correct the means, or loosen a limit; if they are "
        f"right, about {samples:.4g} samples tell that no mix does.",
        names,
    )


def _limit(row: Measured) -> str:
    return f"{row.name} {row.limit}"

"""The answer that takes fewest samples where limits are measured, and how many any answer takes.

For a fixed answer the best shares of samples are a concave program: alternatives found along the
way bound it from above, whatever the shares, and prove how good a solution is. In the answer the
program is not concave. The best one is found by a local search from several starts; what no answer
can beat is proven by branch and bound (measured_bracket.py).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.polytope import Polytope

from .allocation_set import AllocationSet
from .measured_information import MeasuredInformation

Array = npt.NDArray[np.float64]

# Faces whose rivals are this many times as far as the closest are left out of a search at first.
FAR = 4.0

# Shares of samples in a search are at least this.
LEAST_SHARE = 1e-9


class Effort(NamedTuple):
    """How long a search goes on: rounds, while they gain a little, steps in each, and digits."""

    rounds: int
    steps: int
    accuracy: float


ROUGH, MIDDLING, FINE = Effort(1, 12, 1e-6), Effort(3, 60, 1e-8), Effort(8, 100, 1e-15)

# Alternatives within this of the closest make a certificate.
NEARLY = 1e-3

# Certificates are improved until they are this good, or so often.
CERTIFIED = 1e-10
IMPROVEMENTS = 60


@dataclass(frozen=True)
class Alternatives:
    """Alternatives that are close to an instance, for one answer.

    Attributes
    ----------
    reward, limits : (J, K) arrays
        Information of one sample of each arm, from rewards and from measurements.
    value : (J,) array
        Information of the shares that they were found with.
    shift : (J, K) array
        How means of rewards change, or those of the limit that is exceeded.
    rivals : (J, K) array
        Which policy becomes better; NaN where a limit is exceeded instead.
    row : (J,) array of int
        Which limit; -1 where a policy becomes better instead.
    """

    reward: Array
    limits: Array
    value: Array
    shift: Array
    rivals: Array
    row: npt.NDArray[np.int64]

    @property
    def gain(self) -> Array:
        """Information of one sample of each arm, (J, K)."""
        return np.asarray(self.reward + self.limits)

    def only(self, chosen: npt.NDArray[np.generic]) -> Alternatives:
        """Some of them."""
        return Alternatives(*(part[chosen] for part in self._parts))

    def and_(self, other: Alternatives) -> Alternatives:
        """These, then others."""
        pairs = zip(self._parts, other._parts, strict=True)
        return Alternatives(*(np.concatenate(pair) for pair in pairs))

    @property
    def _parts(self) -> tuple[npt.NDArray[Any], ...]:
        return self.reward, self.limits, self.value, self.shift, self.rivals, self.row


@dataclass(frozen=True)
class Solved:
    """An answer and shares of samples for it.

    Attributes
    ----------
    least, most : float
        Proven: the information of the best shares lies between these; `w` has the first.
    alternatives : Alternatives
        Those that prove it, with their weights.
    """

    answer: Array
    w: Array
    least: float
    most: float
    alternatives: Alternatives
    weights: Array

    @property
    def time(self) -> float:
        """Characteristic time of the answer, at most."""
        return 1.0 / self.least


def alternatives(
    information: MeasuredInformation, pi: Array, w: Array, extra: Array | None = None
) -> Alternatives:
    """The closest alternatives of all kinds, on all faces, those at `extra` policies included."""
    x, value = information.rivals(pi, w)
    if extra is not None and len(extra):
        x = np.concatenate([x, extra])
        value = np.append(value, information.distance(extra, pi, w))
    near = np.isfinite(value)
    x, value = x[near], value[near]
    reward, limits = information.rival_gains(x, pi, w)
    shift = information.rival_shift(x, pi, w)
    found = Alternatives(reward, limits, value, shift, x, np.full(len(x), -1))
    if information.epsilon == -np.inf:
        return found
    gains = information.violation_gains(pi, w)
    return Alternatives(
        np.zeros_like(gains),
        gains,
        information.violations(pi, w),
        information.violation_shift(pi, w),
        np.full_like(gains, np.nan),
        np.arange(len(gains)),
    ).and_(found)


def climb(
    information: MeasuredInformation,
    known: Polytope,
    allowed: AllocationSet,
    pi: Array,
    w: Array,
    *,
    fixed: bool = False,
    effort: Effort = FINE,
) -> tuple[Array, Array]:
    """Move an answer (unless it is fixed) and shares of samples until nothing close is farther off.

    Maximises t with sqrt(F_i) >= t and sqrt(min h) >= t, face by face, by sequential quadratic
    programming. What comes back is never worse than what came in.
    """
    from scipy.optimize import minimize

    size = len(pi)
    shares = slice(0, size) if fixed else slice(size, 2 * size)
    best = pi, w, information.least(pi, w)
    linear = [_rows(allowed.equal, allowed.total, allowed.above, allowed.limit)]
    ends = [(LEAST_SHARE if allowed.arms[a] else 0.0, 1.0) for a in range(size)]
    if not fixed:
        low, high = known.limits()
        linear.insert(0, _rows(*known.equalities(), *known.inequalities()))
        ends = [*zip(low.tolist(), np.minimum(high, 1.0).tolist(), strict=True), *ends]
    total = sum(block[0].shape[1] for block in linear)
    # The last variable is t.
    constraints: list[Any] = []
    place = 0
    for equal, sums, above, limit in linear:
        for kind, rows, right in (("eq", equal, sums), ("ineq", -above, -limit)):
            if len(rows):
                wide = np.zeros((len(rows), total + 1))
                wide[:, place : place + rows.shape[1]] = rows
                constraints.append(_linear(kind, wide, right))
        place += equal.shape[1]
    goal = np.zeros(total + 1)
    goal[-1] = -1.0
    limits = len(information.tolerance) if information.epsilon > -np.inf else 0
    chosen = np.zeros(limits + information.faces, dtype=bool)
    chosen[:limits] = True
    chosen |= _surface(information, pi, w, limits)[0] <= FAR * best[2]
    for _ in range(effort.rounds):
        pi, w, start = best
        surface = _Surface(information, chosen, limits, size, None if not fixed else pi, start)
        curved: Any = {"type": "ineq", "fun": surface.above, "jac": surface.slopes}
        first: Any = np.append(w if fixed else np.append(pi, w), 1.0)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a step outside the bounds is cut by the solver
            solver: Any = minimize
            found = solver(
                lambda z: -z[-1],
                first,
                jac=lambda _: goal,
                constraints=[*constraints, curved],
                bounds=[*ends, (0.0, np.inf)],
                method="SLSQP",
                options={"maxiter": effort.steps, "ftol": effort.accuracy},
            )
        if not np.isfinite(found.x).all():
            break
        share = allowed.mended(np.maximum(found.x[shares], 0.0))
        answer = pi if fixed else _mended(found.x[:size], known)
        if (share[allowed.arms] <= 0).any() or answer is None:
            break
        values, _ = _surface(information, answer, share, limits)
        reached = float(values.min())
        near = chosen | (values <= FAR * reached)  # others may have come close
        done = (near == chosen).all() and reached <= start * (1.0 + effort.accuracy**0.5)
        chosen = near
        if reached > start:
            best = answer, share, reached
        if done:
            break
    return best[0], best[1]


class _Surface:
    """sqrt(F_i) - t and sqrt(min h) - t for chosen faces, with slopes; the last point is kept."""

    def __init__(
        self,
        information: MeasuredInformation,
        chosen: npt.NDArray[np.bool_],
        rows: int,
        size: int,
        pi: Array | None,
        unit: float,
    ) -> None:
        edges, triangles = np.split(chosen[rows:], [len(information.edges)])
        self.information = replace(
            information,
            edges=information.edges[edges],
            triangles=information.triangles[triangles],
        )
        self.rows, self.size, self.pi, self.unit = rows, size, pi, unit
        self.latest: tuple[bytes, Array, Array] | None = None

    def _at(self, z: Array) -> tuple[Array, Array, Array, Array]:
        """The answer, shares of samples, square roots of values, and where they are."""
        pi = z[: self.size] if self.pi is None else self.pi
        w = np.maximum(z[:-1][-self.size :], 1e-15)
        key = z[:-1].tobytes()
        if self.latest is None or self.latest[0] != key:
            values, x = _surface(self.information, pi, w, self.rows)
            self.latest = key, np.sqrt(np.maximum(values / self.unit, 1e-30)), x
        return pi, w, *self.latest[1:]

    def above(self, z: Array) -> Array:
        return np.asarray(self._at(z)[2] - z[-1])

    def slopes(self, z: Array) -> Array:
        pi, w, root, x = self._at(z)
        by_answer, by_share = _slopes(self.information, pi, w, x, self.rows)
        slopes = by_share if self.pi is not None else np.hstack([by_answer, by_share])
        slopes = slopes / (2.0 * root * self.unit)[:, None]
        return np.column_stack([slopes, -np.ones(len(root))])


def _surface(
    information: MeasuredInformation, pi: Array, w: Array, rows: int
) -> tuple[Array, Array]:
    """F of each row, then the least h of each face, and where it is."""
    x, value = information.rivals(pi, w)
    return np.append(information.violations(pi, w)[:rows], np.minimum(value, 1e300)), x


def _slopes(
    information: MeasuredInformation, pi: Array, w: Array, x: Array, rows: int
) -> tuple[Array, Array]:
    """Derivatives by the answer and by shares of samples."""
    margin = np.maximum(information.margins(pi), 0.0)[:rows]
    spread = (information.row_variance * pi**2 / w).sum(axis=1)[:rows]
    pull = (margin / spread)[:, None]
    of_rows = -pull * (information.rows + information.violation_shift(pi, w))[:rows]
    r, q, _, _ = information.parts(x, pi, w)
    pull = np.divide(r, q, out=np.zeros_like(r), where=q > 0)[:, None]
    of_faces = pull * (information.mu + information.rival_shift(x, pi, w))
    reward, limits = information.rival_gains(x, pi, w)
    by_share = np.concatenate([information.violation_gains(pi, w)[:rows], reward + limits])
    return np.concatenate([of_rows, of_faces]), by_share


def _rows(equal: Array, sums: Array, above: Array, limit: Array) -> tuple[Array, ...]:
    return equal, sums, above, limit


def _linear(kind: str, rows: Array, right: Array) -> dict[str, object]:
    return {"type": kind, "fun": lambda z: rows @ z - right, "jac": lambda _: rows}


def _mended(pi: Array, known: Polytope) -> Array | None:
    """The same answer within the known constraints, to the last digits; None if it is far off."""
    low, high = known.limits()
    pi = np.clip(pi, low, high)
    pi = np.where(pi < 1e-13, 0.0, pi)
    equal, sums = known.equalities()
    above, limit = known.inequalities()
    missed = max(np.abs(equal @ pi - sums).max(initial=0.0), (above @ pi - limit).max(initial=0.0))
    if missed > 1e-6:
        return None
    deep = known.deepest_policy()
    pi = pi / pi.sum()
    excess = above @ pi - limit
    room = limit - above @ deep
    lean = float((excess / (excess + room))[excess > 0].max(initial=0.0))
    return np.asarray((1.0 - lean) * pi + lean * deep)


def certified(
    information: MeasuredInformation,
    allowed: AllocationSet,
    pi: Array,
    w: Array,
    goal: float = CERTIFIED,
    *,
    rough: bool = False,
) -> Solved:
    """Prove how good shares of samples are for an answer; improve them while that is not enough.

    Every alternative bounds the information of all shares w' by w' . gain, so the largest least
    of these is an upper bound for all; the least at w, proven on every face, is a lower one, which
    a rough solution does without.
    """
    pool: Alternatives | None = None
    best, best_w, most = -1.0, w, np.inf
    weights = np.zeros(0)
    for step in range(IMPROVEMENTS):
        found = alternatives(information, pi, w)
        if found.value.min() > best:
            best, best_w = float(found.value.min()), w
        near = found.value <= (1.0 + (NEARLY if step == 0 else 1.0)) * found.value.min()
        pool = found.only(near) if pool is None else pool.and_(found.only(near))
        most, weights, proposed = largest_least(pool.gain, allowed)
        if most <= best * (1.0 + goal):
            break
        w = 0.7 * best_w + 0.3 * proposed
        w = np.maximum(w, LEAST_SHARE * allowed.arms)
        w = allowed.mended(w)
    assert pool is not None
    used = weights > 1e-12
    if rough:
        return Solved(pi, best_w, best, most, pool.only(used), weights[used])
    least, known = information.proven(pi, best_w)
    if len(known.value) > information.faces:  # a closer one was missed until now
        found = alternatives(information, pi, best_w, known.policy[information.faces :])
        pool = pool.and_(found.only(found.value <= 2.0 * found.value.min()))
        most, weights, _ = largest_least(pool.gain, allowed)
    if information.epsilon > -np.inf:
        least = min(least, float(information.violations(pi, best_w).min()))
    used = weights > 1e-12
    return Solved(pi, best_w, least, max(most, least), pool.only(used), weights[used])


def largest_least(gain: Array, allowed: AllocationSet) -> tuple[float, Array, Array]:
    """max over shares of min over rows of w . gain: a proven upper bound, weights, and shares."""
    from scipy.optimize import linprog

    count, size = gain.shape
    unit = gain.max()
    found: Any = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.vstack(
            [
                np.column_stack([-gain / unit, np.ones(count)]),
                np.column_stack([allowed.above, np.zeros(len(allowed.limit))]),
            ]
        ),
        b_ub=np.append(np.zeros(count), allowed.limit),
        A_eq=np.column_stack([allowed.equal, np.zeros(len(allowed.total))]),
        b_eq=allowed.total,
        bounds=[(0.0, 1.0 if x else 0.0) for x in allowed.arms] + [(None, None)],
        method="highs-ds",
    )
    if found.status != 0:
        return float(gain.max()), np.eye(count)[0], allowed.deep
    weights = np.maximum(-found.ineqlin.marginals[:count], 0.0)
    weights = weights / weights.sum()
    # With these weights no shares get more than this, whatever the solver's rounding.
    return most_of(weights @ gain, allowed), weights, np.asarray(found.x[:size])


def most_of(gain: Array, allowed: AllocationSet) -> float:
    """The most information that allowed shares get from one alternative, or a mean of several."""
    if allowed.is_simplex:
        return float(gain.max())
    from scipy.optimize import linprog

    found: Any = linprog(
        -gain / gain.max(),
        A_ub=allowed.above if len(allowed.limit) else None,
        b_ub=allowed.limit if len(allowed.limit) else None,
        A_eq=allowed.equal,
        b_eq=allowed.total,
        bounds=[(0.0, 1.0 if x else 0.0) for x in allowed.arms],
    )
    return float(-found.fun * gain.max()) * (1.0 + 1e-12) if found.status == 0 else gain.max()

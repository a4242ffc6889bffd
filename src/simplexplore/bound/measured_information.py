"""What samples tell about an answer to a problem with measured limits.

For an answer pi and shares w of the samples, write |z|^2 = sum_a variance_a z_a^2 / w_a. Two kinds
of alternatives make pi wrong (docs/theory/measured.md):

- one under which it exceeds limit i by more than the tolerance; the closest is at

      F_i = (c_i + eta_i - B_i pi)_+^2 / (2 |pi|_i^2);

- one under which another policy x keeps all limits and earns more than epsilon more; the closest,
  for a given x, is at

      h(x) = (epsilon + mu . (pi - x))_+^2 / (2 |x - pi|^2) + sum_i (B_i x - c_i)_+^2 / (2 |x|_i^2).

The minimum of h over all policies lies on a face of at most as many dimensions as there are rows.
With one row that is an edge, and the minimum is a root of a polynomial. With two it may lie inside
a triangle, too, and is found there by search. In both cases a value v is *proven* to be a lower
bound by writing h >= v as an inequality between polynomials in barycentric coordinates: on a
simplex where none of its coefficients is negative it holds, and elsewhere the simplex is halved.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Coefficients = tuple[Array, ...]

# By how much a proven minimum may be below the one that was found, relative to it.
PROVEN = {1: 1e-11, 2: 1e-9}

# Halvings of a simplex, and simplices at a time, before a proof is given up.
DEEPEST = 120
MOST_PIECES = 200_000

# Rounding errors of a polynomial's coefficients, relative to the sum of its terms' sizes.
ROUNDING = 1e-14

# Leading coefficients below this part of the largest are lifted to it: their roots lie far outside.
LEAST_LEADING = 1e-14

# Policies closer than this are the same.
ITSELF = 1e-9

# Gains below this, relative to the scale of rewards, are rounding errors.
NOTHING = 1e-13

# Steps along a side of the lattice at which a search looks, how often it looks closer around the
# best point, and how much.
LATTICE, ZOOMS, CLOSER = 6, 30, 0.6


class Rivals(NamedTuple):
    """The closest policy on each face: coordinates, values of h."""

    policy: Array  # (N, K)
    value: Array  # (N,)


@dataclass(frozen=True)
class MeasuredInformation:
    """An instance with measured limits.

    Shares sum to one, so that a limit from above on B_i x may be written (B_i - c_i) x <= 0: only
    differences count, and large numbers in common do not cost digits.

    Attributes
    ----------
    edges, triangles : (N, 2, K) and (N, 3, K) arrays
        Faces on which the closest policies lie; no triangles where there is one row.
    mu, variance : (K,) arrays
        Means of the rewards, and the variance of a sample (per unit of cost).
    rows, row_variance : (m, K) arrays
        B_i - c_i, and the variances of measurements.
    tolerance : (m,) array
        eta.
    epsilon : float
        With -inf every policy earns more than epsilon more: what remains is whether any keeps the
        limits.
    is_vertex : bool
        Whether the answer is the only policy that is best without measured limits, and epsilon is
        0: then it is no rival of itself.
    """

    edges: Array
    triangles: Array
    mu: Array
    variance: Array
    rows: Array
    row_variance: Array
    tolerance: Array
    epsilon: float
    is_vertex: bool = False

    @property
    def faces(self) -> int:
        """How many edges and triangles there are."""
        return len(self.edges) + len(self.triangles)

    # ------------------------------------------------------------------ at one policy

    def margins(self, pi: Array) -> Array:
        """How far an answer keeps from each limit and its tolerance."""
        return np.asarray(self.tolerance - self.rows @ pi)

    def violations(self, pi: Array, w: Array) -> Array:
        """F_i for each row."""
        margin = np.maximum(self.margins(pi), 0.0)
        return np.asarray(
            margin**2 / (2.0 * (self.row_variance * pi**2 / _positive(w)).sum(axis=1))
        )

    def parts(self, x: Array, pi: Array, w: Array) -> tuple[Array, Array, Array, Array]:
        """r, |x - pi|^2, k and |x|_i^2 for policies along the last axis."""
        gain = self.epsilon + (pi - x) @ self.mu
        r = np.where(gain > NOTHING * np.ptp(self.mu), gain, 0.0)
        q = ((x - pi) ** 2 * (self.variance / _positive(w))).sum(axis=-1)
        k = np.maximum(np.einsum("...a,ia->...i", x, self.rows), 0.0)
        u = np.einsum("...a,ia->...i", x**2, self.row_variance / _positive(w))
        return r, q, k, u

    def distance(self, x: Array, pi: Array, w: Array) -> Array:
        """h at policies along the last axis."""
        r, q, k, u = self.parts(x, pi, w)
        with np.errstate(divide="ignore", invalid="ignore"):
            reward = np.where(r > 0, r**2 / (2.0 * q), 0.0)
        if self.is_vertex:
            reward = np.where(np.abs(x - pi).max(axis=-1) < ITSELF, np.inf, reward)
        return np.asarray(reward + (k**2 / (2.0 * u)).sum(axis=-1))

    def least(self, pi: Array, w: Array) -> float:
        """Information about the closest alternative that is found."""
        least = float(self.rivals(pi, w).value.min(initial=np.inf))
        if self.epsilon > -np.inf:
            least = min(least, float(self.violations(pi, w).min()))
        return least

    # ------------------------------------------------------------------ alternatives

    def violation_shift(self, pi: Array, w: Array) -> Array:
        """How the means of each row change at its closest violation, (m, K)."""
        spread = (self.row_variance * pi**2 / _positive(w)).sum(axis=1)
        margin = np.maximum(self.margins(pi), 0.0)
        return np.asarray((margin / spread)[:, None] * self.row_variance * pi / _positive(w))

    def violation_gains(self, pi: Array, w: Array) -> Array:
        """Information of one sample of each arm about these, (m, K)."""
        return np.asarray(self.violation_shift(pi, w) ** 2 / (2.0 * self.row_variance))

    def rival_shift(self, x: Array, pi: Array, w: Array) -> Array:
        """How the means of rewards change for rivals to be better, (N, K)."""
        r, q, _, _ = self.parts(x, pi, w)
        pull = np.divide(r, q, out=np.zeros_like(r), where=q > 0)
        return np.asarray(pull[:, None] * self.variance * (x - pi) / _positive(w))

    def limit_shift(self, x: Array, pi: Array, w: Array) -> Array:
        """How the means of each row change for one rival to keep the limits, (m, K)."""
        _, _, k, u = self.parts(x, pi, w)
        return np.asarray(-(k / u)[:, None] * self.row_variance * x / _positive(w))

    def rival_gains(self, x: Array, pi: Array, w: Array) -> tuple[Array, Array]:
        """Information of one sample of each arm about rivals, (N, K): rewards, measurements."""
        _, _, k, u = self.parts(x, pi, w)
        reward = self.rival_shift(x, pi, w) ** 2 / (2.0 * self.variance)
        limits = (
            np.einsum("ni,ia->na", (k / u) ** 2, self.row_variance) * (x / _positive(w)) ** 2 / 2.0
        )
        return np.asarray(reward), np.asarray(limits)

    # ------------------------------------------------------------------ closest policies

    def rivals(self, pi: Array, w: Array) -> Rivals:
        """The closest policy on every edge, then on every triangle, as far as they are found."""
        found = self._on_edges(pi, w)
        if not len(self.triangles):
            return found
        inside = self._in_triangles(pi, w)
        return Rivals(*(np.concatenate(pair) for pair in zip(found, inside, strict=True)))

    def _on_edges(self, pi: Array, w: Array) -> Rivals:
        """Stationary points along edges, where terms of h vanish, and ends."""
        start, way = self.edges[:, 0], self.edges[:, 1] - self.edges[:, 0]
        # h is a sum of squares of linear over quadratic functions.
        lines: list[Coefficients] = [(self.epsilon + (pi - start) @ self.mu, -way @ self.mu)]
        squares = [_quadratic(start - pi, way, self.variance / _positive(w))]
        if self.epsilon == -np.inf:
            lines, squares = [], []
        for row, variance in zip(self.rows, self.row_variance, strict=True):
            lines.append((start @ row, way @ row))
            squares.append(_quadratic(start, way, variance / _positive(w)))
        falls = [_falling(line, square) for line, square in zip(lines, squares, strict=True)]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = [-p[0] / p[1] for p in (*lines, *falls)]
        found += [np.zeros(len(start)), np.ones(len(start))]
        # Any of the terms may vanish.
        for count in range(2, len(lines) + 1):
            for chosen in itertools.combinations(range(len(lines)), count):
                slopes = []
                for t in chosen:
                    slope = _times(lines[t], falls[t])
                    for s in chosen:
                        if s != t:
                            slope = _times(slope, _times(squares[s], squares[s]))
                    slopes.append(slope)
                found.append(_roots(slopes))
        steps = np.clip(np.nan_to_num(np.column_stack(found)), 0.0, 1.0)
        x = start[:, None] + steps[..., None] * way[:, None]
        value = self.distance(x, pi, w)
        best = value.argmin(axis=1)
        every = np.arange(len(start))
        return Rivals(x[every, best], value[every, best])

    def _in_triangles(self, pi: Array, w: Array) -> Rivals:
        """The best point of a lattice on each triangle, then of smaller ones around it."""
        offsets = _lattice(3, LATTICE) - 1.0 / 3.0
        every = np.arange(len(self.triangles))
        best = np.full((len(every), 3), 1.0 / 3.0)
        size = 1.0
        for _ in range(ZOOMS):
            mixed = np.maximum(best[:, None] + size * offsets, 0.0)
            mixed = np.concatenate([best[:, None], mixed / mixed.sum(axis=2, keepdims=True)], 1)
            x = np.einsum("nlv,nva->nla", mixed, self.triangles)
            value = self.distance(x, pi, w)
            chosen = value.argmin(axis=1)
            best = mixed[every, chosen]
            size, offsets = size * CLOSER, _lattice(3, 2) - 1.0 / 3.0
        return Rivals(x[every, chosen], value[every, chosen])

    # ------------------------------------------------------------------ proof

    def proven(self, pi: Array, w: Array) -> tuple[float, Rivals]:
        """A proven lower bound on the least h, and the closest policies that are known.

        Wherever a proof fails because h is smaller there, that policy joins them.
        """
        known = self.rivals(pi, w)
        least = float(known.value.min(initial=np.inf))
        if not 0 < least < np.inf:
            return least, known
        allowed = 1.0 - PROVEN[2 if len(self.triangles) else 1]
        while True:
            least = allowed * float(known.value.min())
            below = self._below(pi, w, least)
            if below is None:
                return least, known
            known = Rivals(
                np.concatenate([known.policy, below]),
                np.append(known.value, self.distance(below, pi, w)),
            )

    def _below(self, pi: Array, w: Array, level: float) -> Array | None:
        """Prove that h is at least a level everywhere, or return policies where it is less."""
        pieces = self.triangles if len(self.triangles) else self.edges
        for _ in range(DEEPEST):
            pieces = pieces[~self._settled(pieces, pi, w, level)]
            if not len(pieces):
                return None
            if len(pieces) > MOST_PIECES:
                break
            middle = pieces.mean(axis=1)
            less = self.distance(middle, pi, w) < level
            if less.any():
                return np.asarray(middle[less])
            pieces = _halved(pieces)
        raise NotConvergedError(
            "the closest alternative could not be certified: some numbers of the problem are too "
            "far apart; choose units in which means, limits and noise are near 1."
        )

    def _settled(self, pieces: Array, pi: Array, w: Array, level: float) -> Mask:
        """Simplices on which polynomials in barycentric coordinates show that h is large enough.

        With h = r^2 / (2 q) + sum_i k_i^2 / (2 u_i), multiplied by all denominators, h >= level is
        an inequality between polynomials. Where r or k_i changes its sign its term is left out,
        which only makes the proof harder. Close to the answer itself, where q vanishes, the limits
        alone may be enough.
        """
        corners = pieces.shape[1]
        r = self.epsilon + (pi - pieces) @ self.mu
        gain = _form(np.where(r.min(axis=1, keepdims=True) >= 0, r, 0.0))
        away = pieces - pi
        q = _square(np.einsum("nva,nwa,a->nvw", away, away, 2.0 * self.variance / _positive(w)))
        excess, u = [], []
        for row, variance in zip(self.rows, self.row_variance, strict=True):
            k = pieces @ row
            excess.append(_form(np.where(k.min(axis=1, keepdims=True) > 0, k, 0.0)))
            u.append(
                _square(np.einsum("nva,nwa,a->nvw", pieces, pieces, 2.0 * variance / _positive(w)))
            )

        def shown(terms: list[Polynomial], whole: Polynomial) -> Mask:
            total = sum((t.value for t in terms), -level * whole.value)
            size = sum((np.abs(t.value) for t in terms), level * np.abs(whole.value))
            return np.asarray((total >= ROUNDING * size).all(axis=1))

        limits = [
            _product([excess[i], excess[i], *(u[j] for j in range(len(u)) if j != i)], corners)
            for i in range(len(u))
        ]
        below = _product(u, corners)
        alone = shown(limits, below)
        terms = [_product([gain, gain, below], corners)]
        terms += [_product([term, q], corners) for term in limits]
        return alone | shown(terms, _product([q, below], corners))


def _positive(w: Array) -> Array:
    """Shares to divide by: arms without any are those that no policy uses."""
    return np.maximum(w, 1e-300)


# ---------------------------------------------------------------------- along edges


def _quadratic(start: Array, way: Array, weight: Array) -> Coefficients:
    """|start + s way|^2 as a polynomial in s."""
    return (start**2 @ weight, 2.0 * (start * way) @ weight, way**2 @ weight)


def _falling(line: Coefficients, square: Coefficients) -> Coefficients:
    """2 line' square - line square', which is linear."""
    (a, b), (c, d, e) = line, square
    return 2.0 * b * c - a * d, b * d - 2.0 * a * e


def _times(first: Coefficients, second: Coefficients) -> Coefficients:
    total = [np.zeros_like(first[0]) for _ in range(len(first) + len(second) - 1)]
    for (i, x), (j, y) in itertools.product(enumerate(first), enumerate(second)):
        total[i + j] = total[i + j] + x * y
    return tuple(total)


def _roots(terms: list[Coefficients]) -> Array:
    """Real parts of all roots of sums of polynomials of one degree, one row each."""
    sums = np.stack([sum(parts) for parts in zip(*terms, strict=True)], axis=1)
    largest = np.abs(sums).max(axis=1, keepdims=True)
    sums = np.nan_to_num(sums / np.where(largest > 0, largest, 1.0))
    sums[:, -1] = np.where(np.abs(sums[:, -1]) < LEAST_LEADING, LEAST_LEADING, sums[:, -1])
    degree = sums.shape[1] - 1
    companion = np.zeros((len(sums), degree, degree))
    companion[:, np.arange(1, degree), np.arange(degree - 1)] = 1.0
    companion[:, :, -1] = -sums[:, :-1] / sums[:, -1:]
    return np.asarray(np.linalg.eigvals(companion).real)


# ---------------------------------------------------------------------- barycentric coordinates


class Polynomial(NamedTuple):
    """Homogeneous polynomials of one degree, one per row, by the coefficients of monomials."""

    degree: int
    value: Array  # (n, monomials)


@lru_cache
def _monomials(corners: int, degree: int) -> tuple[tuple[int, ...], ...]:
    """Exponents that sum to the degree."""
    return tuple(
        powers
        for powers in itertools.product(range(degree + 1), repeat=corners)
        if sum(powers) == degree
    )


@lru_cache
def _places(corners: int, first: int, second: int) -> Array:
    """Which monomial the product of two is, as a matrix of zeros and ones."""
    place = {powers: i for i, powers in enumerate(_monomials(corners, first + second))}
    pairs = itertools.product(_monomials(corners, first), _monomials(corners, second))
    chosen = [place[tuple(map(sum, zip(a, b, strict=True)))] for a, b in pairs]
    matrix = np.zeros((len(chosen), len(place)))
    matrix[np.arange(len(chosen)), chosen] = 1.0
    return matrix


@lru_cache
def _lattice(corners: int, steps: int) -> Array:
    return np.array(_monomials(corners, steps)) / steps


def _form(at_corners: Array) -> Polynomial:
    """A linear function from its values at the corners."""
    order = [powers.index(1) for powers in _monomials(at_corners.shape[1], 1)]
    return Polynomial(1, at_corners[:, order])


def _square(gram: Array) -> Polynomial:
    """A quadratic form from its matrix."""
    corners = gram.shape[1]
    columns = []
    for powers in _monomials(corners, 2):
        i, j = (v for v, power in enumerate(powers) for _ in range(power))
        columns.append(gram[:, i, j] if i == j else 2.0 * gram[:, i, j])
    return Polynomial(2, np.stack(columns, axis=1))


def _product(factors: list[Polynomial], corners: int) -> Polynomial:
    total = factors[0]
    for factor in factors[1:]:
        pairs = total.value[:, :, None] * factor.value[:, None, :]
        places = _places(corners, total.degree, factor.degree)
        total = Polynomial(total.degree + factor.degree, pairs.reshape(len(pairs), -1) @ places)
    return total


def _halved(pieces: Array) -> Array:
    """Cut each simplex in two across its longest side."""
    count, corners = pieces.shape[:2]
    sides = list(itertools.combinations(range(corners), 2))
    length = np.stack([np.abs(pieces[:, i] - pieces[:, j]).sum(axis=1) for i, j in sides], axis=1)
    cut = np.array(sides)[length.argmax(axis=1)]
    every = np.arange(count)
    middle = (pieces[every, cut[:, 0]] + pieces[every, cut[:, 1]]) / 2.0
    halves = np.concatenate([pieces, pieces])
    halves[every, cut[:, 0]] = middle
    halves[count + every, cut[:, 1]] = middle
    return halves

"""What could be wrong with a live study, from its journal: derived by who asks, kept by nobody.

A study rests on what its problem file says: means that stay, rewards that spread no wider than
declared, arrivals that do not depend on values. Each of these is watched by an e-value
(health_checks.py); all of them together raise a false alarm in a whole study with probability at
most `FALSE_ALARMS` (docs/theory/health.md).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from typing_extensions import TypedDict

from simplexplore.problem.families import Bernoulli, Gaussian
from simplexplore.problem.messages import count
from simplexplore.problem.problem import Problem

from .decision import Corrections
from .events import REWARDED, Event
from .health_checks import (
    COMMON_CHANGES,
    changed,
    changed_mean,
    changed_rate,
    changed_share,
    lost_of,
    some_place,
    too_wide_since,
)

Array = npt.NDArray[np.float64]

FALSE_ALARMS = 0.001

# What each check has of them: of drift, one arm's alone and that of all arms together.
MISSING, DRIFT, COMMON, SPREAD, OUTLIER = 0.25, 0.2, 0.15, 0.2, 0.2

# Rewards are looked at one by one at first, then at every hundredth part more.
_ONE_BY_ONE = 100
_LOOKS = 1.01

# Changes of all arms together, and spreads, are looked for from these rewards on: 8, 16, 32, ...
_FIRST_PLACE = 8

# Logarithms of e-values that are larger are shown as this one; and what is said of no alarm.
_LARGEST = 700.0
_NOTHING = "Nothing unusual."

# Outliers that are named.
_NAMED = 3


class HealthCheck(TypedDict):
    """One thing that could be wrong."""

    check: Literal["drift", "missing", "spread", "shares", "outlier"]
    state: Literal["ok", "alarm"]
    e_value: float | None  # the largest so far; None where nothing is watched, and of outliers
    words: str


class _Seen(NamedTuple):
    """Rewards by arm up to some moment: how many, their means, and squared distances from them."""

    n: Array
    mean: Array
    squares: Array

    def since(self, earlier: _Seen) -> _Seen:
        """Those that came after an earlier moment."""
        n = self.n - earlier.n
        some = np.maximum(n, 1.0)
        mean = np.where(n > 0, (self.n * self.mean - earlier.n * earlier.mean) / some, 0.0)
        between = earlier.n * n / np.maximum(self.n, 1.0) * (mean - earlier.mean) ** 2
        squares = np.maximum(self.squares - earlier.squares - between, 0.0)
        return _Seen(n, mean, np.where(n > 1, squares, 0.0))


class _Most:
    """The largest evidence of a check so far, and what it was seen in if that is an alarm."""

    def __init__(self, weight: float) -> None:
        self.weight, self.log, self.words = weight, 0.0, ""

    @property
    def odds(self) -> float:
        """Chance brings this about in fewer than one of so many studies."""
        return self.weight * math.exp(min(self.log, _LARGEST))

    def offer(self, log: float, words: Callable[[], str]) -> None:
        if log > self.log:
            self.log = log
            if self.odds >= 1 / FALSE_ALARMS:
                self.words = words()

    def check(self, name: Literal["drift", "missing", "spread"]) -> HealthCheck:
        words = _NOTHING
        if self.words:
            seldom = f"{min(self.odds, 1e9):,.0f}"
            words = f"{self.words} By chance that happens in fewer than 1 of {seldom} studies."
        state: Literal["ok", "alarm"] = "alarm" if self.words else "ok"
        e_value = math.exp(min(self.log, _LARGEST))
        return {"check": name, "state": state, "e_value": e_value, "words": words}


class _Outlier(NamedTuple):
    seq: int
    arm: int
    reward: float
    far: float  # in standard deviations


class Health:
    """What is unusual about the events taken in so far.

    Parameters
    ----------
    problem : Problem
    corrections : Corrections
        Rewards that were voided: they are left out.
    checksum : int
        Of the journal before its first event.

    Attributes
    ----------
    seq, checksum : int
        The last event, and the journal's checksum up to it.
    """

    def __init__(
        self, problem: Problem, corrections: Corrections | None = None, checksum: int = 0
    ) -> None:
        self.seq, self.checksum = 0, checksum
        self.corrections = corrections or Corrections()
        self._arms, size = problem.arms, problem.size
        family = problem.rewards
        self._family = family
        self._zero, self._width = float(family.from_unit(0.0)), family.width
        # Sub-Gaussian, in unit coordinates; of unknown sigmas and of counts there is none.
        self._sigma = family.gaussian_deviations(size)
        self._seen = _Seen(np.zeros(size), np.zeros(size), np.zeros(size))
        self._rewards, self._next_look = 0, 1
        self._firsts: list[list[tuple[float, float]]] = [[] for _ in range(size)]
        self._of_arms, self._is_new = np.full(size, -math.inf), np.zeros(size, dtype=bool)
        self._places = [self._copy()]
        self._batches: deque[_Batch] = deque()
        self._open: dict[int, _Batch] = {}
        self._losses: Array | float = 0.0
        self._lost, self._asked = np.zeros(size), np.zeros(size)
        self._missing, self._drift = _Most(MISSING), _Most(DRIFT + COMMON)
        self._spread = _Most(SPREAD)
        self._outliers: list[_Outlier] = []

    def take(self, events: Sequence[Event]) -> None:
        """Take in what was recorded."""
        for event in events:
            self.seq, self.checksum = event.seq, event.checksum
            if event.seq in self.corrections.voided:
                continue
            if event.kind == "asked":
                self._ask(event)
            elif event.kind in ("told", "expired"):
                self._resolve(event)
            elif event.kind == "confirmed":
                assert event.data is not None
                meant = event.data["confirms"]
                self._outliers = [one for one in self._outliers if one.seq != meant]
            if event.kind in REWARDED:
                assert event.arm is not None
                assert event.reward is not None
                x = (event.reward - self._zero) / self._width
                self._note_outlier(event, event.arm, x)
                if event.kind != "batch":  # of sums nothing else is watched
                    self._take(event.arm, x)

    # ------------------------------------------------------------------ pulls that are lost

    def _ask(self, event: Event) -> None:
        """Pulls that were asked for together: nothing of their fate was known to who chose arms."""
        assert event.pull is not None
        assert event.arm is not None
        last = self._batches[-1] if self._batches else None
        if last is None or (last.at, last.last) != (event.at, event.seq - 1):
            size = len(self._arms)
            last = _Batch(event.at, np.zeros(size), np.zeros(size))
            self._batches.append(last)
        last.last = event.seq
        last.asked[event.arm] += 1
        last.pending += 1
        self._open[event.pull] = last

    def _resolve(self, event: Event) -> None:
        assert event.pull is not None
        batch = self._open.pop(event.pull)
        batch.pending -= 1
        if event.kind == "expired":
            if event.data is None:
                batch.lost[event.arm] += 1
            else:  # given back: somebody decided that it is not made
                batch.asked[event.arm] -= 1
        # In the order of asking: which of them is complete first may depend on what was lost.
        while self._batches and not self._batches[0].pending:
            self._close(self._batches.popleft())

    def _close(self, batch: _Batch) -> None:
        self._asked += batch.asked
        self._lost += batch.lost
        self._losses = self._losses + lost_of(batch.asked, batch.lost)
        logs = np.asarray(self._losses)
        if logs.ndim:
            by_arm = logsumexp(logs, axis=1) - math.log(logs.shape[1])
            self._missing.offer(float(logsumexp(by_arm) - math.log(len(by_arm))), self._lost_words)

    def _lost_words(self) -> str:
        logs = logsumexp(np.asarray(self._losses), axis=1)
        a = int(logs.argmax())
        others = self._asked.sum() - self._asked[a]
        share = self._lost[a] / max(self._asked[a], 1)
        rest = (self._lost.sum() - self._lost[a]) / max(others, 1)
        often = "more" if share > rest else "less"
        return (
            f"Rewards of {self._arms[a]} go missing {often} often: {share:.0%} of its pulls, and "
            f"{rest:.0%} of the others. If a reward's value decides whether it arrives, means are "
            "wrong."
        )

    # ------------------------------------------------------------------ rewards

    def _note_outlier(self, event: Event, a: int, x: float) -> None:
        """Remember a reward that looked impossible when it was told (outliers.py)."""
        held = (event.data or {}).get("held")
        if held is not None:
            assert self._sigma is not None
            mean = (sum(held["usual"]) / 2 - self._zero) / self._width
            far = abs(x - mean) / float(self._sigma[a])
            self._outliers.append(_Outlier(event.seq, a, x, far))

    def _take(self, a: int, x: float) -> None:
        n, mean, squares = self._seen
        n[a] += 1
        off = x - mean[a]
        mean[a] += off / n[a]
        squares[a] += off * (x - mean[a])
        self._rewards += 1
        self._is_new[a] = True
        if self._rewards >= self._next_look:
            self._look()
            later = math.ceil(_LOOKS * self._rewards)
            self._next_look = self._rewards + 1 if self._rewards < _ONE_BY_ONE else later
        # What comes from here on may be different.
        if math.log2(n[a]).is_integer():
            self._firsts[a].append((float(n[a]), float(mean[a])))
        if self._rewards >= _FIRST_PLACE and math.log2(self._rewards).is_integer():
            self._places.append(self._copy())

    def _copy(self) -> _Seen:
        return _Seen(*(part.copy() for part in self._seen))

    def _look(self) -> None:
        self._look_for_drift()
        if isinstance(self._family, Gaussian) and self._sigma is not None:
            later = [self._seen.since(place) for place in self._places]
            squares = np.array([(one.squares / self._sigma**2).sum() for one in later])
            counts = np.array([one.n.sum() for one in later])
            self._spread.offer(too_wide_since(squares, counts), self._spread_words)

    def _spread_words(self) -> str:
        assert self._sigma is not None
        n, _, squares = self._seen
        free = max(float(np.maximum(n - 1, 0).sum()), 1.0)
        ratio = math.sqrt(float((squares / self._sigma**2).sum()) / free)
        return (
            f"Rewards spread {ratio:.2f} times as far as sigma says, over all. With a sigma that "
            "is too small the study stops too early."
        )

    # ------------------------------------------------------------------ means that change

    def _look_for_drift(self) -> None:
        for a in np.flatnonzero(self._is_new).tolist():
            if self._firsts[a]:
                self._of_arms[a] = some_place(self._change_of(a))
        self._is_new[:] = False
        by_arm = float(logsumexp(self._of_arms) - math.log(len(self._of_arms)))
        common = -math.inf
        if self._sigma is not None and len(self._places) > 1:
            common = some_place(self._common_changes())
        both = np.logaddexp(math.log(DRIFT) + by_arm, math.log(COMMON) + common)
        alone = math.log(DRIFT) + by_arm > math.log(COMMON) + common
        words = self._change_words if alone else self._common_words
        self._drift.offer(float(both) - math.log(DRIFT + COMMON), words)

    def _change_of(self, a: int) -> Array:
        """Evidence that the mean of an arm changed after its first 1, 2, 4, ... rewards (J,)."""
        k, early = np.array(self._firsts[a]).T
        m, late = self._later(a, k, early)
        if isinstance(self._family, Bernoulli):
            return changed_share(k, early, m, late)
        if self._sigma is not None:
            return changed_mean(k, early, m, late, self._sigma[a])
        return (
            np.zeros(len(k))
            if isinstance(self._family, Gaussian)
            else changed_rate(k, early, m, late)
        )

    def _later(self, a: int, k: Array, early: Array) -> tuple[Array, Array]:
        n, mean, _ = self._seen
        m = n[a] - k
        return m, np.where(m > 0, (n[a] * mean[a] - k * early) / np.maximum(m, 1.0), 0.0)

    def _common_changes(self) -> Array:
        """Evidence that the means of all arms changed together at each place (J,)."""
        assert self._sigma is not None
        first = self._places[1:]
        k, early = np.array([one.n for one in first]), np.array([one.mean for one in first])
        rest = [self._seen.since(one) for one in first]
        m, late = np.array([one.n for one in rest]), np.array([one.mean for one in rest])
        found = changed(k, early, m, late, self._sigma, COMMON_CHANGES).sum(axis=-1)
        return np.asarray(logsumexp(found, axis=(0, 1)) - math.log(2 * len(COMMON_CHANGES)))

    def _change_words(self) -> str:
        a = int(self._of_arms.argmax())
        at = int(self._change_of(a).argmax())
        k, early = self._firsts[a][at]
        m, late = self._later(a, np.array(k), np.array(early))
        return (
            f"The mean of {self._arms[a]} seems to have changed: {self._number(early)} in its "
            f"first {count(int(k), 'reward')}, {self._number(float(late))} in the {int(m):,} after "
            "that. The answer may be about an average that no longer holds."
        )

    def _common_words(self) -> str:
        place = self._places[1 + int(self._common_changes().argmax())]
        later = self._seen.since(place)
        both = (place.n > 0) & (later.n > 0)
        weights = place.n[both] * later.n[both] / (place.n[both] + later.n[both])
        rise = float(weights @ (later.mean[both] - place.mean[both]) / weights.sum()) * self._width
        return (
            f"All means seem to have changed together: by {rise:+.3g} after the first "
            f"{int(place.n.sum()):,} rewards. Comparisons stay right as long as the shares of the "
            "arms stay the same; the means do not."
        )

    def _number(self, mean: float) -> str:
        return f"{self._zero + self._width * mean:.3g}"

    # ------------------------------------------------------------------ what to say

    def report(self) -> list[HealthCheck]:
        """Each check, and what it found."""
        known = self._sigma is not None
        gaussian = isinstance(self._family, Gaussian)
        unknown = "Not checked: sigma is unknown." if gaussian and not known else None
        kept = "Not checked: the range of rewards says it." if not gaussian else unknown
        return [
            _idle("drift", unknown) if unknown else self._drift.check("drift"),
            self._missing.check("missing"),
            _idle("spread", kept) if kept else self._spread.check("spread"),
            _idle("shares", "Not checked: the study itself names the arm of every pull."),
            _idle("outlier", kept) if kept else self._outlier(),
        ]

    def _outlier(self) -> HealthCheck:
        if not self._outliers:
            return _idle("outlier", _NOTHING)
        named = ", ".join(
            f"{self._number(one.reward)} of {self._arms[one.arm]} (event {one.seq}), "
            f"{one.far:.0f} standard deviations from its mean"
            for one in self._outliers[:_NAMED]
        )
        more = len(self._outliers) - _NAMED
        rest = f", and {more:,} more" if more > 0 else ""
        words = (
            f"Hardly possible by what the problem says: {named}{rest}. If it is a slip, void it; "
            "if it is meant, confirm it."
        )
        return {"check": "outlier", "state": "alarm", "e_value": None, "words": words}


def _idle(name: Literal["drift", "spread", "shares", "outlier"], words: str) -> HealthCheck:
    """A check without an e-value."""
    return {"check": name, "state": "ok", "e_value": None, "words": words}


class _Batch:
    """Pulls that were asked for at once."""

    def __init__(self, at: float, asked: Array, lost: Array) -> None:
        self.at, self.asked, self.lost = at, asked, lost
        self.pending, self.last = 0, 0

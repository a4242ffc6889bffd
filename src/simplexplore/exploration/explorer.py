"""Ask and tell in memory: the sampler says which arm to play, you tell it the reward."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from simplexplore import defaults
from simplexplore.errors import SettingError
from simplexplore.problem.checks import whole_number
from simplexplore.problem.measured import check_measurements
from simplexplore.problem.messages import count, unknown
from simplexplore.problem.problem import Problem
from simplexplore.problem.stop_when import StopWhen

from .confidence import Edge, anytime_confidence, edges_at
from .engine import Engine, streams
from .measured_status import MeasuredStatus, measured_status
from .plan import prepare

Array = npt.NDArray[np.float64]


class Explorer:
    """Exploration of a problem, one reward at a time.

    Parameters
    ----------
    problem : Problem
    sampler : str
        One of `simplexplore.SAMPLERS` (not the oracle), or the path of a sampler file.
    delta, epsilon, stop_when, scenario
        The problem's unless given.
    threshold : str
        One of `simplexplore.THRESHOLDS`, or the path of a threshold file. ``"tilt"`` guarantees
        delta for every family.
    tracking : str, optional
        How pulls follow the sampler's allocation; the sampler's own way unless given.
    seed : int
        With the same seed, rewards and order of tells, the arms are those of run 0 of
        `simulate`.

    Notes
    -----
    - `ask` twice without `tell` gives the same arm: asking changes nothing.
    - `tell` of another arm than the one asked for is accepted: the evidence counts, and the
      next arm takes it into account.
    - Rewards that the family cannot produce, NaN, and unknown arms are refused and change
      nothing.
    - After stopping, `ask` returns None and `tell` is refused.

    Examples
    --------
    >>> from simplexplore import Problem
    >>> explorer = Explorer(Problem(["a", "b"]), sampler="uniform", seed=0)
    >>> explorer.ask()
    'a'
    >>> explorer.tell("a", 1.3)
    >>> explorer.ask(), explorer.pulls
    ('b', 1)
    """

    def __init__(
        self,
        problem: Problem,
        sampler: str = defaults.SAMPLER,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        stop_when: StopWhen | Mapping[str, float] | None = None,
        scenario: str | None = None,
        threshold: str = defaults.THRESHOLD,
        tracking: str | None = None,
        seed: int = 0,
    ) -> None:
        whole_number(seed, "seed", 0)
        plan = prepare(
            problem,
            sampler,
            threshold,
            delta=delta,
            epsilon=epsilon,
            stop_when=stop_when,
            scenario=scenario,
            tracking=tracking,
        )
        self.problem = problem = plan.problem
        self._engine = Engine(plan)
        self._arm: int | None = self._engine.begin(streams(int(seed), range(1))[0])
        self._number = {arm: a for a, arm in enumerate(problem.arms)}

    def ask(self) -> str | None:
        """Say which arm to play next.

        Returns
        -------
        str or None
            None once the exploration has stopped.
        """
        return None if self._arm is None else self.problem.arms[self._arm]

    def tell(self, arm: str, reward: float, measured: Mapping[str, float] | None = None) -> None:
        """Report a reward of an arm.

        Parameters
        ----------
        arm : str
            The arm that was played.
        reward : float
            In the unit of the problem's means.
        measured : mapping, optional
            The measurements of the pull by name, if the problem has measured limits.

        Raises
        ------
        RewardError
            If the family cannot produce such a reward, or a measurement is missing.
        SettingError
            If there is no such arm, no feasible policy uses it, or the exploration has stopped.
        """
        if self.stopped:
            raise SettingError(
                "the exploration has stopped: its answer is in 'policy', and more rewards would "
                "not change it."
            )
        try:
            number = self._number[arm]
        except (KeyError, TypeError):
            raise SettingError(unknown("arm", str(arm), self.problem.arms)) from None
        if not self._engine.may_play(number):
            raise SettingError(
                f"{self._engine.plan.why_unused(arm)}, so its rewards tell nothing; drop them."
            )
        self.problem.rewards.check_reward(reward)
        values = check_measurements(self.problem.measured, measured)
        self._engine.observe(number, float(reward), values)
        self._arm = self._engine.advance()

    def __repr__(self) -> str:
        state = "stopped" if self.stopped else f"next: {self.ask()}"
        return f"<Explorer: {count(self.pulls, 'reward')}, {state}>"

    @property
    def stopped(self) -> bool:
        """Whether the answer is known with the confidence asked for."""
        return self._arm is None

    @property
    def pulls(self) -> int:
        """Rewards told so far."""
        return self._engine.pulls

    @property
    def means(self) -> Array:
        """Empirical means; NaN for arms without rewards."""
        run = self._engine.run
        known = self.problem.rewards.from_unit(run.mean[0])
        return np.where(run.n > 0, known, math.nan)

    @property
    def counts(self) -> Array:
        """Rewards told per arm."""
        return np.array(self._engine.run.n)

    @property
    def cost(self) -> float:
        """Cost of the rewards told so far; `pulls` if each costs 1."""
        return float(self.counts @ self.problem.costs)

    @property
    def confidence(self) -> float | None:
        """How sure one can be that `policy` is the best, however often one looks: 1 - p.

        For every alpha, the probability that a wrong policy is ever recommended with p <= alpha
        is at most alpha. None until every arm has a reward, and with thresholds other than
        ``"tilt"``.
        """
        moment = anytime_confidence(self._engine)
        return None if moment is None else moment.confidence

    @property
    def regret_bound(self) -> float | None:
        """How much more than `policy` any policy can earn, with probability 1 - delta.

        Valid at every moment at once. None if there is no `confidence`, and with measured limits,
        where epsilon says how much may be lost.
        """
        moment = anytime_confidence(self._engine)
        return None if moment is None or self.problem.measured else moment.regret_bound

    def edges(self) -> list[Edge]:
        """Edges from `policy` to its neighbours, with the evidence against each; see `Edge`.

        Valid however often one looks. Empty while there is no policy.
        """
        engine = self._engine
        return edges_at(engine, anytime_confidence(engine)) if engine.has_answer else []

    @property
    def policy(self) -> Array | None:
        """The best policy at the empirical means; None until every arm has a reward.

        With epsilon > 0 it is the answer that the run is committed to. With measured limits it is
        also None while no policy seems to keep them.
        """
        return self._engine.policy.copy() if self._engine.has_answer else None

    @property
    def answer(self) -> str | None:
        """The answer at the empirical means to a question besides the best mix, in its words."""
        return self._engine.answer

    @property
    def infeasible(self) -> bool:
        """Whether the exploration has stopped because no policy keeps the measured limits."""
        return self.stopped and self._engine.is_infeasible

    @property
    def measured(self) -> tuple[MeasuredStatus, ...]:
        """The status of each measured limit, valid however often one looks; empty without any."""
        return measured_status(self._engine)

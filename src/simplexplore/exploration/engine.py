"""One way of exploring one problem: arrays, compiled functions and the growing vertex table.

Simulation, the in-memory explorer and live studies all drive an `Engine`; none of them has
exploration logic of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from simplexplore.errors import ProblemError, SettingError
from simplexplore.geometry.answers import Answers
from simplexplore.geometry.polytope import Polytope
from simplexplore.kernels.build import build, has_machine_code
from simplexplore.kernels.records import (
    ARM,
    AVERAGED,
    BERNOULLI,
    CUMULATIVE,
    DIRECT,
    FOCUSED,
    GAUSSIAN,
    GO_ON,
    MISSING_EDGE,
    POISSON,
    PULLS,
    SAMPLED,
    STOPPED,
    UNKNOWN_VERTEX,
    VERTEX,
    WARM,
    Memory,
    Run,
    Setting,
    Table,
)
from simplexplore.problem.families import Gaussian
from simplexplore.problem.problem import Problem
from simplexplore.samplers import SAMPLERS, TRACKINGS, Sampler

from .stopping import Threshold, kk21_levels
from .vertex_table import AnswerTable, VertexTable, best_arm_table, empty_table

Array = npt.NDArray[np.float64]

_FAMILY = {"gaussian": GAUSSIAN, "bernoulli": BERNOULLI, "bounded": BERNOULLI, "poisson": POISSON}
_TRACKING = {
    "cumulative": CUMULATIVE,
    "averaged": AVERAGED,
    "direct": DIRECT,
    "sampled": SAMPLED,
    "focused": FOCUSED,
}

# How far a fixed allocation leans inwards when it would starve an arm.
LEAN = 0.05

# By how much a user's allocation may miss the set.
_OFF = 1e-6

# Empirical means at the very end of a family's range are moved this far inside.
_EDGE_OF_RANGE = 1e-9


@dataclass(frozen=True)
class Plan:
    """What defines an exploration, apart from the random stream."""

    problem: Problem
    sampler: Sampler
    threshold: Threshold
    delta: float
    scenario: str
    tracking: str | None = None
    allocation: tuple[float, ...] | None = None  # for samplers that must be given one

    def __post_init__(self) -> None:
        if self.tracking is not None and self.tracking not in TRACKINGS:
            raise SettingError(
                f"there is no tracking {self.tracking!r}. Known: {', '.join(TRACKINGS)}."
            )
        if self.sampler.needs_truth and self.allocation is None:
            raise SettingError(
                f"the {self.sampler.name} sampler must be given the optimal allocation: it "
                "exists in simulations only, where the means are known."
            )


class Engine:
    """Exploration of one problem in compiled code.

    Attributes
    ----------
    table : VertexTable or AnswerTable
        Policies met so far, or all answers within epsilon; number 0 is where a run starts.
    pending : (K,) array
        Pulls in flight by arm (live studies).
    is_enough : bool
        Whether the evidence was enough after the last event folded.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        problem = plan.problem
        self.polytope = Polytope(problem.replace(scenario=plan.scenario))
        if self.polytope.dimension == 0:
            raise ProblemError(
                "only one policy satisfies the constraints, so there is nothing to explore; "
                "'simplexplore bound' shows it."
            )
        self.table: VertexTable | AnswerTable
        if problem.epsilon:
            self.table = AnswerTable(Answers(self.polytope, problem.epsilon))
        else:
            # The start must not depend on any means: maximise nothing.
            start = self.polytope.optimal_vertex(np.zeros(problem.size))
            self.table = VertexTable(self.polytope, start)
        self._sampler = plan.sampler.in_scenario(plan.scenario)
        self._module = build(
            self._sampler.file,
            "gaussian" if self._closed_form else "exponential",
            plan.threshold.file,
            plan.threshold.function,
            "recommend_answer" if problem.epsilon else "recommend_vertex",
        )
        self._setting = self._make_setting()
        self._forget_growth()

    def twin(self) -> Engine:
        """Another engine for the same plan, for another thread: nothing that changes is shared."""
        other = object.__new__(Engine)
        other.plan, other.polytope = self.plan, self.polytope
        other._sampler, other._module = self._sampler, self._module
        other.table = self.table.fresh()
        pairs = self._setting.pairs
        other._setting = self._setting._replace(pairs=pairs._replace(root=pairs.root.copy()))
        other._forget_growth()
        return other

    # ------------------------------------------------------------------ set-up

    @property
    def _closed_form(self) -> bool:
        rewards = self.plan.problem.rewards
        return isinstance(rewards, Gaussian) and rewards.domain is None

    def _make_setting(self) -> Setting:
        plan, problem, polytope = self.plan, self.plan.problem, self.polytope
        size, rewards = problem.size, problem.rewards
        anytime = plan.scenario == "anytime"
        log_union = -np.log(plan.delta)
        levels = np.zeros(1)
        if plan.threshold.function in ("kk21", "mixture"):
            log_union += self.table.union_size()[0]
        if plan.threshold.function == "kk21":
            largest = size if problem.epsilon else len(polytope.form.rows) + 2
            levels = kk21_levels("gaussian" if self._closed_form else "other", log_union, largest)
        moving = np.ones(size, dtype=bool)
        moving[list(polytope.forced_arms)] = False
        if anytime:
            inside = polytope.deepest_policy(slacks=False)
            above, limit = polytope.inequalities()
            equal, total = polytope.equalities()
        else:
            inside = moving / moving.sum()
            above, limit = np.zeros((0, size)), np.zeros(0)
            equal, total = np.ones((1, size)), np.ones(1)
        start = np.linalg.lstsq(equal[:, moving].T, np.ones(moving.sum()), rcond=None)[0]
        low, high = rewards.to_unit(rewards.range_of_means())
        low = low + _EDGE_OF_RANGE if np.isfinite(low) else low
        high = high - _EDGE_OF_RANGE if np.isfinite(high) else high
        domain = rewards.unit_domain() or (-np.inf, np.inf)
        arms = np.flatnonzero(inside > 0)
        setting = Setting(
            size=size,
            family=_FAMILY[rewards.name],
            anytime=anytime,
            tracking=_TRACKING[plan.tracking or plan.sampler.tracking[plan.scenario]],
            delta=float(plan.delta),
            # One's own threshold may be anything; ours are never below log(1 / delta).
            least_level=0.0 if plan.threshold.file else float(-np.log(plan.delta)),
            log_union=float(log_union),
            variance=rewards.sigmas(size) ** 2,
            lowest=float(max(low, domain[0])),
            highest=float(min(high, domain[1])),
            domain_low=float(domain[0]),
            domain_high=float(domain[1]),
            above=np.ascontiguousarray(above),
            limit=np.ascontiguousarray(limit),
            equal=np.ascontiguousarray(equal),
            total=np.ascontiguousarray(total),
            start=np.concatenate([np.zeros(len(limit)), start]),
            inside=inside,
            deep=polytope.deepest_policy() if anytime else inside,
            first_arms=arms,
            fixed=inside.copy(),
            levels=levels,
            pairs=best_arm_table(size, arms) if self._sampler.pairs else empty_table(),
        )
        return setting._replace(fixed=self._fixed_allocation(setting))

    def _fixed_allocation(self, setting: Setting) -> Array:
        """Where every sampler starts, and where the ones that never move stay."""
        if self.plan.allocation is not None:
            return np.array(self.plan.allocation, dtype=float)
        if self.plan.sampler.name == "uniform" and setting.anytime:
            projected = self._project(setting, np.full(setting.size, 1.0 / setting.size))
            # An arm that the projection leaves out would never be sampled again, and a run
            # that needs it never end: lean inwards a little.
            starved = (projected < LEAN * setting.inside).any()
            return (1 - LEAN) * projected + LEAN * setting.inside if starved else projected
        return setting.inside.copy()

    def _project(self, setting: Setting, target: Array) -> Array:
        """Euclidean projection onto the allocation set, by the samplers' own kernel."""
        rows = len(setting.start)
        w = np.zeros(setting.size)
        self._module.project_point(
            setting,
            target,
            np.ones(setting.size),
            np.zeros((5, rows)),
            np.zeros((rows, rows)),
            np.zeros(setting.size),
            w,
        )
        return w

    def _forget_growth(self) -> None:
        """Arrays for the vertices known now; what is added later is remembered in order."""
        self._followed: list[int] = []
        self._arrays = self._make_arrays()
        self.pending: Array = np.zeros(self._setting.size)
        self.is_enough = False

    def _make_arrays(self) -> tuple[Table, Run, Memory]:
        setting, sampler = self._setting, self._sampler
        table = self.table.arrays()
        rows = len(setting.start)
        run = Run(
            n=np.zeros(setting.size),
            mean=np.zeros(setting.size),
            clipped=np.zeros(setting.size),
            target=np.zeros(setting.size),
            average=np.zeros(setting.size),
            w=np.zeros(setting.size),
            gap=np.zeros(0),
            spread=np.zeros(0),
            value=np.zeros(0),
            time=np.zeros(0),
            gradient=np.zeros(0),
            scale=np.zeros(1),
            rate=np.zeros(len(self.table.answers) if isinstance(self.table, AnswerTable) else 0),
            integers=np.zeros(9, dtype=np.int64),
            rewards=np.zeros(4, dtype=np.uint64),
            choices=np.zeros(4, dtype=np.uint64),
        )
        memory = Memory(
            arms=np.zeros((sampler.arm_vectors, setting.size)),
            # The last one is for the weights of answers' comparisons (kernels/sticking.py).
            edges=np.zeros((sampler.edge_vectors + bool(self.plan.problem.epsilon), 0)),
            rows=np.zeros((5, rows)),
            scratch=np.zeros((4, setting.size)),
            system=np.zeros((rows, rows)),
        )
        return _fitted(table, setting.pairs, run, memory)

    def _grow(self) -> None:
        """Add the vertex that a walk was missing."""
        self._follow(int(self.run.integers[MISSING_EDGE]))

    def _follow(self, edge: int) -> None:
        _, run, memory = self._arrays
        self.table.follow(edge)
        self._followed.append(edge)
        self._arrays = _fitted(self.table.arrays(), self._setting.pairs, run, memory)

    def announce_live(self) -> None:
        """Say on stderr that the functions of live studies are being compiled, if they are."""
        if not has_machine_code(self._module, "fold_events"):
            sys.stderr.write(f"compiling {self.plan.sampler.name} (once on this machine) ...\n")
            sys.stderr.flush()

    @property
    def announcement(self) -> str | None:
        """What to tell a person before a first, slow, compilation."""
        if self._module.is_cached:
            return None
        return f"compiling {self.plan.sampler.name} (once on this machine) ..."

    def announce(self) -> None:
        """Say on stderr that compilation is under way, if it is."""
        text = self.announcement
        if text is not None:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
            self._module.is_cached = True

    # ------------------------------------------------------------------ one run, step by step

    @property
    def run(self) -> Run:
        """The run's arrays: read them, do not write."""
        return self._arrays[1]

    def forget(self, words: npt.NDArray[np.uint64]) -> None:
        """Start over with the random streams (2, 4) of a run; no arm is chosen yet."""
        self._module.begin_run(self._setting, *self._arrays)
        self.run.rewards[:], self.run.choices[:] = words
        self.pending[:] = 0.0

    def begin(self, words: npt.NDArray[np.uint64]) -> int | None:
        """Start a run with its random streams (2, 4); returns the first arm."""
        self.forget(words)
        return self.advance()

    def observe(self, arm: int, reward: float) -> None:
        """Take in a reward, in the user's coordinates."""
        table, run, _ = self._arrays
        unit = float(self.plan.problem.rewards.to_unit(reward))
        self._module.observe_reward(self._setting, table, run, arm, unit)

    def advance(self) -> int | None:
        """Recommend, then the next arm, or None when the evidence is enough."""
        while True:
            status = self._module.advance_run(self._setting, *self._arrays)
            if status != UNKNOWN_VERTEX:
                break
            self._grow()
        self._check_allocation()
        return None if status == STOPPED else int(self.run.integers[ARM])

    def _check_allocation(self) -> None:
        """Raise `SettingError` if a sampler of the user's last wrote something else."""
        sampler, setting, w = self._sampler, self._setting, self.run.w
        if sampler.name in SAMPLERS:
            return
        shares = np.round(w, 6).tolist()
        if not (w.min() >= -_OFF and abs(w.sum() - 1) <= _OFF):
            raise SettingError(
                f"{sampler.file.name} left the allocation {shares} in run.w; shares must be "
                "nonnegative and sum to 1."
            )
        above, equal = setting.above @ w - setting.limit, setting.equal @ w - setting.total
        if max(above.max(initial=0.0), np.abs(equal).max()) > _OFF:
            raise SettingError(
                f"{sampler.file.name} left the allocation {shares} in run.w, which does not "
                "satisfy the constraints; project_within_rows finds the closest one that does."
            )

    def may_play(self, arm: int) -> bool:
        """Whether some feasible policy uses the arm."""
        return bool(self._setting.inside[arm] > 0)

    @property
    def is_warm(self) -> bool:
        """Whether every arm in play has a reward."""
        return bool(self.run.integers[WARM])

    @property
    def policy(self) -> Array:
        """The recommended policy."""
        return self.table.policy(int(self.run.integers[VERTEX]))

    @property
    def pulls(self) -> int:
        """Rewards taken in."""
        return int(self.run.integers[PULLS])

    # ------------------------------------------------------------------ live studies

    def fold(
        self,
        kinds: npt.NDArray[np.int64],
        arms: npt.NDArray[np.int64],
        rewards: Array,
        *,
        until_stopped: bool = False,
    ) -> int:
        """Take in events of a live study; see kernels/live.py.

        Rewards are in the user's coordinates; `arms` of pulls that are asked for may be -1 and
        are filled in. Returns how many events were taken in: fewer than there are only
        if the evidence was enough after the last of them.
        """
        progress = np.zeros(2, dtype=np.int64)
        unit = np.array(self.plan.problem.rewards.to_unit(rewards), dtype=float)
        while True:
            status = self._module.fold_events(
                self._setting,
                *self._arrays,
                self.pending,
                np.zeros((3, len(self.run.gap))),
                kinds,
                arms,
                unit,
                progress,
                until_stopped,
            )
            if status != UNKNOWN_VERTEX:
                break
            self._grow()
        self.is_enough = status == STOPPED
        return int(progress[0])

    def tighten(self, delta: float) -> None:
        """Go on with another delta: thresholds change, evidence and allocation do not."""
        self.plan = replace(self.plan, delta=delta)
        self._setting = self._make_setting()._replace(pairs=self._setting.pairs)

    def evidence(self) -> tuple[Array, Array, Array]:
        """Edges of the recommended vertex: directions (E, K), statistics and thresholds (E,)."""
        table, run, _ = self._arrays
        vertex = int(run.integers[VERTEX])
        first, last = int(table.first_edge[vertex]), int(table.first_edge[vertex + 1])
        directions, levels = np.zeros((last - first, self._setting.size)), np.zeros(last - first)
        for e, edge in enumerate(range(first, last)):
            entries = slice(table.first_entry[edge], table.first_entry[edge + 1])
            directions[e, table.arm[entries]] = -table.v[entries]
            levels[e] = self._module.level_of_edge(self._setting, table, run, edge)
        return directions, run.value[: last - first].copy(), levels

    def _kept(self) -> dict[str, npt.NDArray[np.generic]]:
        """Every array that the future depends on, by name; not copies."""
        table, run, memory = self._arrays
        return {
            **{f"run.{name}": array for name, array in run._asdict().items()},
            "memory.arms": memory.arms,
            "memory.edges": memory.edges,
            "memory.rows": memory.rows,
            "table.root": table.root,
            "pairs.root": self._setting.pairs.root,
            "pending": self.pending,
        }

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that `restore` needs to go on, bit for bit, in another engine of the same plan."""
        followed = np.array(self._followed, dtype=np.int64)
        return {name: array.copy() for name, array in self._kept().items()} | {"followed": followed}

    def restore(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go on from a `state`; a ValueError says that it is of another plan."""
        if self._followed:
            raise ValueError("only a fresh engine can be restored")
        for edge in state["followed"].tolist():
            self._follow(edge)
        kept = self._kept()
        if {name: array.shape for name, array in kept.items()} != {
            name: array.shape for name, array in state.items() if name != "followed"
        }:
            raise ValueError("the state does not fit this plan")
        for name, array in kept.items():
            array[...] = state[name]

    @property
    def fingerprint(self) -> str:
        """Changes whenever compiled code does: a state is of use to the same code only."""
        return self._module.__name__

    # ------------------------------------------------------------------ many runs

    def simulate(
        self,
        means: Array,
        noise: Array,
        seeds: npt.NDArray[np.uint64],
        max_steps: int,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Array]:
        """Complete runs: pulls (negative if capped), recommended vertices or answers, counts.

        A run that was capped before every arm had a reward recommends nothing, -1.
        """
        count = len(seeds)
        progress = np.array([0, 0, 0], dtype=np.int64)
        pulls = np.zeros(count, dtype=np.int64)
        vertices = np.zeros(count, dtype=np.int64)
        counts = np.zeros((count, self._setting.size))
        # Copies: a read-only array would be another type, and compiled once more.
        unit = np.array(self.plan.problem.rewards.to_unit(means), dtype=float)
        noise = np.array(noise, dtype=float)
        while True:
            status = self._module.simulate_runs(
                self._setting,
                *self._arrays,
                unit,
                noise,
                max_steps,
                seeds,
                progress,
                pulls,
                vertices,
                counts,
            )
            if status != UNKNOWN_VERTEX:
                assert status in (GO_ON, STOPPED)
                break
            self._grow()
        self._check_allocation()
        vertices[(counts[:, self._setting.first_arms] == 0).any(axis=1)] = -1
        return pulls, vertices, counts


def streams(seed: int, runs: range) -> npt.NDArray[np.uint64]:
    """Random streams (runs, 2, 4) of numbered runs: one for rewards, one for choices."""
    words = [
        np.random.SeedSequence(entropy=seed, spawn_key=(run,)).generate_state(8, np.uint64)
        for run in runs
    ]
    return np.array(words, dtype=np.uint64).reshape(len(runs), 2, 4)


def _fitted(table: Table, pairs: Table, run: Run, memory: Memory) -> tuple[Table, Run, Memory]:
    """The same records with room for every vertex of the tables, contents kept."""
    edges = max(len(table.following), len(pairs.following))
    widest = max(_most(table.first_edge), _most(pairs.first_edge))
    entries = max(_most_entries(table), _most_entries(pairs))
    if len(run.gap) < widest or len(run.gradient) < entries:
        run = run._replace(
            gap=_longer(run.gap, widest),
            spread=_longer(run.spread, widest),
            value=_longer(run.value, widest),
            time=_longer(run.time, widest),
            gradient=_longer(run.gradient, entries),
        )
    if memory.edges.shape[1] < edges:
        longer = np.zeros((len(memory.edges), edges))
        longer[:, : memory.edges.shape[1]] = memory.edges
        memory = memory._replace(edges=longer)
    return table, run, memory


def _longer(array: Array, size: int) -> Array:
    longer = np.zeros(max(size, len(array)))
    longer[: len(array)] = array
    return longer


def _most(first: npt.NDArray[np.int64]) -> int:
    """Most edges at one vertex; unused room at the end counts for nothing."""
    return int(np.diff(first).max(initial=1))


def _most_entries(table: Table) -> int:
    """Most entries that the edges of one vertex have."""
    return int(np.diff(table.first_entry[table.first_edge]).max(initial=1))

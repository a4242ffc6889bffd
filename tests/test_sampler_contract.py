"""What every sampler keeps, ours and one's own, on small problems that Hypothesis draws.

Most runs are machine code, for speed; that it does what the Python does is part of the contract.
"""

import copy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import simplexplore as sx
from engines import engine_for, follow, natively, uncompiled
from instances import drawn
from nightly import examples
from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.exploration.excess import excess_bound
from simplexplore.exploration.seeding import streams
from simplexplore.geometry.polytope import Polytope
from simplexplore.kernels.information import draw as draw_reward
from simplexplore.kernels.records import ASKED, AVERAGED, CAPPED, DIRECT, ITERATIONS, SAMPLED, TOLD
from simplexplore.problem.problem import SCENARIOS, Problem
from simplexplore.samplers import SAMPLERS, TRACKINGS
from strategies import CASES, case, distinct_means, systems

pytestmark = pytest.mark.usefixtures("bounds_once")

HERE = Path(__file__).parent
OWN = [str(HERE.parent / "examples" / "weakest_edge.py"), str(HERE / "data" / "inside.py")]
STEPS = 100

# Without shrinking: a step of a problem that fails may take long.
contract = settings(examples(4), phases=[Phase.generate])


def samplers(*but):
    """A parameter: every sampler but some."""
    names = [name for name in (*SAMPLERS, *OWN) if name not in but]
    return pytest.mark.parametrize("sampler", names, ids=lambda name: Path(name).stem)


@st.composite
def problems(draw, families=tuple(CASES), domains=(False, True)):
    """Two to six arms, degenerate vertices, equalities, forced arms; means may be clipped."""
    system = draw(systems(min_size=2, max_size=6, max_rows=3))
    domain = draw(st.sampled_from(domains))
    kind = case(draw(st.sampled_from(families)), system.size, domain=domain)
    problem = system.problem(kind.family).replace(
        means=kind.means(draw(distinct_means(system.size))),
        scenario=draw(st.sampled_from(SCENARIOS)),
        delta=draw(st.sampled_from([0.5, 1e-6])),
    )
    assume(Polytope(problem).dimension > 0)  # else there is nothing to explore
    return problem


seeds = st.integers(0, 2**16)


def bits(arrays):
    """Arrays by name, to be compared bit by bit; scratch is left out."""
    return {name: x.tobytes() for name, x in arrays.items() if name not in ("time", "gradient")}


def run_bits(engine):
    """What a run depends on, but for the environment's random stream."""
    arrays = bits(engine.run._asdict())
    del arrays["rewards"]
    return arrays


def violation(problem, w):
    """By how much an allocation misses the simplex, or the set where it must be in it."""
    worst = max(abs(w.sum() - 1.0), -w.min())
    if problem.scenario == "anytime":
        value = problem.matrix @ w
        worst = max([worst, *(problem.lower - value), *(value - problem.upper)])
    return worst


@samplers()
@contract
@given(problem=problems(), tracking=st.sampled_from([None, *TRACKINGS]), seed=seeds)
def test_allocations_are_points_of_the_set(sampler, problem, tracking, seed):
    engine = natively(engine_for(problem, sampler, tracking=tracking))
    forced = list(engine.polytope.forced_arms)
    before = np.zeros(problem.size)

    limited = engine._setting.anytime
    # The shares of top-two are those of one edge; its pulls keep the limits all the same.
    loose = limited and sampler == "top-two"

    def check(engine):
        if engine.is_warm:
            of = problem.replace(scenario="end-of-time") if loose else problem
            assert violation(of, engine.run.w) <= 1e-9
        # What is tracked leans to the inside. The step that ends the first round adds two.
        added = engine.run.target - before
        if added.any() and not loose:  # nothing is added once a run stops
            assert violation(problem, added / max(1, round(added.sum()))) <= 1e-9
        assert (added[forced] == 0).all()
        before[:] = engine.run.target

    arms = follow(engine, drawn(problem, STEPS, seed), STEPS, seed, check)
    first = engine._setting.first_arms.tolist()
    if not limited:
        assert arms[: len(first)] == first  # one of each, then as the sampler likes
    assert sorted({*first, *forced}) == list(range(problem.size))
    assert not {*arms} & {*forced}
    assert engine.pulls == len(arms)


@samplers()
@contract
@given(problem=problems(), tracking=st.sampled_from([None, *TRACKINGS]), seed=seeds)
def test_pulls_keep_the_limits(sampler, problem, tracking, seed):
    """After every pull, by no more than is proven: nothing where some arm alone keeps them."""
    problem = problem.replace(scenario="anytime")
    engine = natively(engine_for(problem, sampler, tracking=tracking))
    arms = follow(engine, drawn(problem, STEPS, seed), STEPS, seed)
    allowed = AllocationSet.of(engine.polytope, "anytime")
    most = excess_bound(allowed)
    counts = np.cumsum(np.eye(problem.size)[arms], axis=0)
    pulls = np.arange(1, len(arms) + 1)
    rows = counts @ allowed.above.T - np.outer(pulls, allowed.limit)
    caps = counts - np.outer(pulls, np.minimum(allowed.cap, 1.0))
    floors = np.outer(pulls, allowed.floor) - counts
    equal = np.abs(counts @ allowed.equal.T - np.outer(pulls, allowed.total))
    for excess in (rows, caps, floors, equal):
        assert excess.max(initial=0.0) <= most + 1e-6


@samplers("oracle")
@contract
@given(problem=problems(), seed=seeds)
def test_asking_changes_nothing(sampler, problem, seed):
    explorer = sx.Explorer(problem, sampler, threshold="gk16", seed=seed)
    natively(explorer._engine)
    rewards = drawn(problem, STEPS, seed)
    for pull in range(2 * problem.size):
        before = bits(explorer._engine.state())
        arm = explorer.ask()
        assert [explorer.ask() for _ in range(3)] == [arm] * 3
        answers = explorer.counts, explorer.means, explorer.policy
        kept = copy.deepcopy(answers)
        for answer in answers:
            if answer is not None:
                answer[:] = 99.0  # the caller's own
        np.testing.assert_equal((explorer.counts, explorer.means, explorer.policy), kept)
        assert bits(explorer._engine.state()) == before
        if arm is None:
            break
        explorer.tell(arm, float(rewards[explorer.problem.arms.index(arm), pull]))


@samplers()
@contract
@given(problem=problems(), seed=seeds)
def test_samplers_write_their_allocation_and_memory_alone(sampler, problem, seed):
    engine = natively(engine_for(problem, sampler, 1e-9))
    follow(engine, drawn(problem, 40, seed), 40, seed)
    assume(engine.is_warm)
    table, run, memory = engine._arrays
    fixed = [x for record in (engine._setting, table) for x in record if isinstance(x, np.ndarray)]
    # Multipliers of the last projections are a cache that all who project share; a count of
    # iterations is for the curious.
    others = {k: x for k, x in run._asdict().items() if k not in ("w", "root")}
    others["integers"] = run.integers[:ITERATIONS]
    before, kept = bits(others), [x.tobytes() for x in fixed]
    with np.errstate(all="ignore"):
        engine._setting.slots.allocate(engine._setting, table, run, memory)
    assert bits(others) == before
    assert [x.tobytes() for x in fixed] == kept


@samplers()
@contract
@given(problem=problems(), seed=seeds)
def test_replay_repeats_bit_for_bit(sampler, problem, seed):
    rewards = drawn(problem, STEPS, seed)
    engine = natively(engine_for(problem, sampler))
    half = {}

    def remember(engine):
        if engine.pulls == STEPS // 2:
            half.update(engine.state())

    arms = follow(engine, rewards, STEPS, seed, remember)
    end = bits(engine.state())
    # The same engine, whose table has grown; one for another thread; a new one.
    fresh = natively(engine_for(problem, sampler))
    for other in (engine, natively(engine.twin()), fresh):
        assert follow(other, rewards, STEPS, seed) == arms
    assert bits(fresh.state()) == end
    if half:  # from the middle on
        other = natively(engine_for(problem, sampler))
        other.restore(half)
        taken = np.bincount(arms[: STEPS // 2], minlength=problem.size)
        for arm in arms[STEPS // 2 :]:
            other.observe(arm, float(rewards[arm, taken[arm]]))
            taken[arm] += 1
            other.advance()
        assert bits(other.state()) == end


@samplers()
@contract
@given(problem=problems(), seed=seeds)
def test_inputs_are_not_aliased(sampler, problem, seed):
    means, noise = np.array(problem.means), problem.rewards.sigmas(problem.size)
    words = streams(seed, range(2))
    given = (means, noise, words)
    kept = [x.copy() for x in given]
    engine, other = (engine_for(problem, sampler) for _ in range(2))
    first = engine.simulate(means, noise, words, 40)
    assert all(x.tobytes() == y.tobytes() for x, y in zip(given, kept, strict=True))
    for x in (*first, *given):
        x[...] = 1
    assert (np.asarray(problem.means) == kept[0]).all()
    # What was given and what came back belong to the caller: nothing later depends on it.
    again, expected = engine.simulate(*kept, 40), other.simulate(*kept, 40)
    assert all(x.tobytes() == y.tobytes() for x, y in zip(again, expected, strict=True))


@samplers("oracle")
@contract
@given(problem=problems(), seed=seeds)
def test_samplers_do_not_see_the_means(sampler, problem, seed):
    rewards = drawn(problem, STEPS, seed)
    lies = problem.replace(means=np.roll(problem.means, 1))
    engines = [engine_for(x, sampler) for x in (problem, lies, problem.replace(means=None))]
    arms = [follow(natively(engine), rewards, STEPS, seed) for engine in engines]
    assert arms[0] == arms[1] == arms[2]
    assert run_bits(engines[0]) == run_bits(engines[1]) == run_bits(engines[2])


def owed(engine, before):
    """What tracking compares with the pulls of each arm."""
    if engine._setting.tracking == DIRECT:
        return (engine.pulls + 1) * (engine.run.target - before)
    if engine._setting.tracking == AVERAGED:
        return (engine.pulls + 1) * engine.run.average
    return engine.run.target


@samplers()
@contract
@given(data=st.data(), problem=problems(("gaussian", "hetero"), (False,)), seed=seeds)
def test_permuting_arms_permutes_answers(sampler, data, problem, seed):
    order = np.array(data.draw(st.permutations(range(problem.size))))
    sigma = problem.rewards.sigmas(problem.size)[order]
    rows = [
        sx.Constraint(c.name, np.asarray(c.coefficients)[order].tolist(), c.lower, c.upper)
        for c in problem.constraints
    ]
    permuted = Problem(
        problem.size,
        rows,
        sx.Gaussian(tuple(sigma.tolist())),
        means=np.asarray(problem.means)[order],
        scenario=problem.scenario,
        delta=problem.delta,
    )
    engine, other = (natively(engine_for(x, sampler)) for x in (problem, permuted))
    place = np.argsort(order)
    # First pulls and turns are in the order of the arms, which must be the same one; and several
    # allocations may have the largest least share.
    other._setting = other._setting._replace(
        first_arms=place[engine._setting.first_arms], inside=engine._setting.inside[order]
    )
    rewards = drawn(problem, STEPS, seed)
    taken = np.zeros(problem.size, dtype=int)
    first, second = (x.begin(streams(seed, range(1))[0]) for x in (engine, other))
    while first is not None and taken.sum() < STEPS:
        reward = float(rewards[first, taken[first]])
        taken[first] += 1
        before = engine.run.target.copy()
        engine.observe(first, reward)
        other.observe(int(place[first]), reward)
        first, second = engine.advance(), other.advance()
        assert (first is None) == (second is None)
        if not engine.is_warm:
            assert order[second] == first
            continue
        assert other.policy == pytest.approx(engine.policy[order], abs=1e-9)
        assert other.run.w == pytest.approx(engine.run.w[order], abs=1e-6)
        if first is not None and engine._setting.tracking != SAMPLED:  # draws know no arms
            lag = engine.run.n - owed(engine, before)  # a tie goes to the first arm in order
            assert lag[order[second]] == pytest.approx(lag[first], abs=1e-6)


@samplers()
@contract
@given(problem=problems(), seed=seeds)
def test_uncompiled_is_compiled(sampler, problem, seed):
    """`simulate`, steps, events and `Explorer` are one run, as machine code or not."""
    native = engine_for(problem, sampler)
    python, stepping, folding = (uncompiled(native.twin()) for _ in range(3))
    stepping_natively = natively(native.twin())
    cap = 60 if native._setting.closed_form else 20
    means, noise = np.array(problem.means), problem.rewards.sigmas(problem.size)
    words = streams(seed, range(2))
    pulls, answers, counts = native.simulate(means, noise, words, cap)
    for x, y in zip(
        python.simulate(means, noise, words, cap), (pulls, answers, counts), strict=True
    ):
        assert x.tobytes() == y.tobytes()
    unit = problem.rewards.to_unit(means)
    for run in range(2):
        arm, told = stepping.begin(words[run]), []
        while arm is not None and len(told) < cap:
            with np.errstate(over="ignore"):  # words wrap around
                reward = draw_reward(stepping._setting, stepping.run, unit[arm], noise[arm])
            told.append((arm, float(problem.rewards.from_unit(reward))))
            stepping.observe(*told[-1])
            arm = stepping.advance()
        assert len(told) == abs(pulls[run])
        assert (arm is None) == (pulls[run] > 0)
        assert stepping.run.n.tobytes() == counts[run].tobytes()

        same = stepping_natively.begin(words[run])
        folding.forget(words[run])
        for arm, reward in told:
            assert same == arm
            stepping_natively.observe(arm, reward)
            same = stepping_natively.advance()
            asked = np.array([-1, -1])
            folding.fold(np.array([ASKED]), asked[:1], np.zeros(1))
            assert asked[0] == arm
            folding.fold(np.array([TOLD]), asked[:1], np.array([reward]), until_stopped=True)
        if not folding.is_enough:
            folding.fold(np.array([ASKED]), asked[1:], np.zeros(1))
        if run == 0 and sampler != "oracle":
            explorer = sx.Explorer(problem, sampler, threshold="gk16", seed=seed)
            for arm, reward in told:
                assert explorer.ask() == problem.arms[arm]
                explorer.tell(problem.arms[arm], reward)
            assert explorer.stopped == (pulls[0] > 0)
            assert run_bits(explorer._engine) == run_bits(stepping)

    for simulating in (native, python):
        simulating.run.integers[CAPPED] = 0  # only simulations are
    assert native.run.rewards.tobytes() == stepping.run.rewards.tobytes()
    expected = run_bits(stepping)
    for other in (native, python, folding, stepping_natively):
        assert run_bits(other) == expected
        assert other.policy.tolist() == stepping.policy.tolist()

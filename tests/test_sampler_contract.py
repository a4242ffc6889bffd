"""What every sampler keeps, ours and one's own, on small problems that Hypothesis draws.

That machine code does what the Python does is part of it: test_machine_code.py.
"""

import copy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import simplexplore as sx
from engines import SCENARIOS, engine_for, follow, quick, stream
from instances import drawn
from nightly import examples
from random_numbers import rewards_of_run
from simplexplore import SAMPLERS, Problem
from strategies import CASES, case, distinct_means, systems

HERE = Path(__file__).parent
OWN = [str(HERE.parent / "examples" / "weakest_edge.py"), str(HERE / "data" / "inside.py")]
STEPS = 100
# Fields of RunState that `allocate` writes, and a cache that all who project share.
WRITTEN = ("w", "arm_state", "edge_state", "duals", "root")
TRACKINGS = ("cumulative", "direct", "sampled", "focused")

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
    assume(is_open(problem))
    return problem


def is_open(problem):
    """Whether more than one policy is feasible."""
    try:
        sx.Explorer(problem, "uniform", threshold="gk16")
    except sx.ProblemError:
        return False
    return True


seeds = st.integers(0, 2**16)


def bits(arrays):
    """Arrays by name, to be compared bit by bit; scratch is left out."""
    return {
        name: x.tobytes() for name, x in arrays.items() if name not in ("time", "gradient", "duals")
    }


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
    engine = quick(engine_for(problem, sampler, tracking=tracking))
    forced = list(engine.workspace.polytope.forced_arms)
    before = np.zeros(problem.size)

    limited = engine.workspace.config.anytime
    # The shares of top-two are those of one edge; its pulls keep the limits all the same.
    loose = limited and sampler == "top-two"

    def check(engine):
        if engine.has_answer:
            of = problem.replace(scenario="end-of-time") if loose else problem
            assert violation(of, engine.run.w) <= 1e-9
        # What is tracked leans to the inside. The step that ends the first round adds two.
        added = engine.run.target - before
        if added.any() and not loose:  # nothing is added once a run stops
            assert violation(problem, added / max(1, round(added.sum()))) <= 1e-9
        assert (added[forced] == 0).all()
        before[:] = engine.run.target

    arms = follow(engine, drawn(problem, STEPS, seed), STEPS, seed, check)
    first = engine.workspace.config.useful_arms.tolist()
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
    engine = quick(engine_for(problem, sampler, tracking=tracking))
    arms = follow(engine, drawn(problem, STEPS, seed), STEPS, seed)
    counts = np.cumsum(np.eye(problem.size)[arms], axis=0)
    used, pulls = counts @ problem.matrix.T, np.arange(1, len(arms) + 1)[:, None]
    most = 0.0 if engine.workspace.excess_bound is None else engine.workspace.excess_bound
    for excess in (used - pulls * problem.upper, pulls * problem.lower - used):
        assert (excess / np.abs(problem.matrix).max(axis=1)).max(initial=0.0) <= most + 1e-6


@samplers("oracle")
@contract
@given(problem=problems(), seed=seeds)
def test_asking_changes_nothing(sampler, problem, seed):
    asked, other = (sx.Explorer(problem, sampler, threshold="gk16", seed=seed) for _ in range(2))
    rewards = drawn(problem, STEPS, seed)
    for pull in range(2 * problem.size):
        arm = asked.ask()
        assert [asked.ask() for _ in range(3)] == [arm] * 3
        answers = asked.counts, asked.means, asked.policy
        kept = copy.deepcopy(answers)
        for answer in answers:
            if answer is not None:
                answer[:] = 99.0  # the caller's own
        np.testing.assert_equal((asked.counts, asked.means, asked.policy), kept)
        assert other.ask() == arm
        if arm is None:
            break
        for explorer in (asked, other):
            explorer.tell(arm, float(rewards[problem.arms.index(arm), pull]))
    np.testing.assert_equal((other.counts, other.policy), (asked.counts, asked.policy))


@samplers()
@contract
@given(problem=problems(), seed=seeds)
def test_samplers_write_their_allocation_and_state_alone(sampler, problem, seed):
    engine = quick(engine_for(problem, sampler, 1e-9))
    follow(engine, drawn(problem, 40, seed), 40, seed)
    assume(engine.has_answer)
    config, table, run, scratch = engine.workspace.records
    fixed = [x for record in (config, table) for x in record if isinstance(x, np.ndarray)]
    others = {k: x for k, x in run._asdict().items() if k not in WRITTEN}
    others["integers"] = run.integers[:7]  # a count of iterations is for the curious
    before, kept = bits(others), [x.tobytes() for x in fixed]
    with np.errstate(all="ignore"):
        config.functions.allocate(config, table, run, scratch)
    assert bits(others) == before
    assert [x.tobytes() for x in fixed] == kept


@samplers()
@contract
@given(problem=problems(), seed=seeds)
def test_replay_repeats_bit_for_bit(sampler, problem, seed):
    rewards = drawn(problem, STEPS, seed)
    engine = quick(engine_for(problem, sampler))
    half = {}

    def remember(engine):
        if engine.pulls == STEPS // 2:
            half.update(engine.workspace.state())

    arms = follow(engine, rewards, STEPS, seed, remember)
    end = bits(engine.workspace.state())
    # The same engine, whose table has grown; one for another thread; a new one.
    fresh = quick(engine_for(problem, sampler))
    for other in (engine, quick(engine.clone()), fresh):
        assert follow(other, rewards, STEPS, seed) == arms
    assert bits(fresh.workspace.state()) == end
    if half:  # from the middle on
        other = quick(engine_for(problem, sampler))
        other.workspace.restore(half)
        taken = np.bincount(arms[: STEPS // 2], minlength=problem.size)
        for arm in arms[STEPS // 2 :]:
            other.observe(arm, float(rewards[arm, taken[arm]]))
            taken[arm] += 1
            other.advance()
        assert bits(other.workspace.state()) == end


@samplers()
@contract
@given(problem=problems(), seed=seeds)
def test_inputs_are_not_aliased(sampler, problem, seed):
    means, noise = np.array(problem.means), problem.rewards.sigmas(problem.size)
    words = np.array([stream(seed, run) for run in range(2)])
    given = (means, noise, words)
    kept = [x.copy() for x in given]
    engine, other = (engine_for(problem, sampler) for _ in range(2))
    first = engine.simulate(means, noise, words, 40)
    assert all(x.tobytes() == y.tobytes() for x, y in zip(given, kept, strict=True))
    for x in (*first[:-1], *given):
        x[...] = 1
    assert (np.asarray(problem.means) == kept[0]).all()
    # What was given and what came back belong to the caller: nothing later depends on it.
    again, expected = (x.simulate(*kept, 40)[:-1] for x in (engine, other))
    assert all(x.tobytes() == y.tobytes() for x, y in zip(again, expected, strict=True))


@samplers("oracle")
@contract
@given(problem=problems(), seed=seeds)
def test_samplers_do_not_see_the_means(sampler, problem, seed):
    rewards = drawn(problem, STEPS, seed)
    lies = problem.replace(means=np.roll(problem.means, 1))
    engines = [engine_for(x, sampler) for x in (problem, lies, problem.replace(means=None))]
    arms = [follow(quick(engine), rewards, STEPS, seed) for engine in engines]
    assert arms[0] == arms[1] == arms[2]
    assert run_bits(engines[0]) == run_bits(engines[1]) == run_bits(engines[2])


def tracking_of(engine):
    scenario = "anytime" if engine.workspace.config.anytime else "end-of-time"
    return engine.plan.sampler.tracking[scenario]


def owed(engine, before):
    """What tracking compares with the pulls of each arm."""
    tracking = tracking_of(engine)
    if tracking == "direct":
        run, pulls = engine.run, engine.pulls
        rare = run.n < (np.sqrt(run.n.size**2 + pulls) - run.n.size) / 2
        return (pulls + 1) * np.where(rare, 3.0, run.target - before)
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
    engine, other = (quick(engine_for(x, sampler)) for x in (problem, permuted))
    place = np.argsort(order)
    # First pulls and turns are in the order of the arms, which must be the same one; and several
    # allocations may have the largest least share.
    ours, theirs = engine.workspace.config, other.workspace.config
    theirs.useful_arms[:], theirs.interior_allocation[:] = (
        place[ours.useful_arms],
        ours.interior_allocation[order],
    )
    rewards = drawn(problem, STEPS, seed)
    taken = np.zeros(problem.size, dtype=int)
    first, second = (x.begin(stream(seed)) for x in (engine, other))
    while first is not None and taken.sum() < STEPS:
        reward = float(rewards[first, taken[first]])
        taken[first] += 1
        before = engine.run.target.copy()
        engine.observe(first, reward)
        other.observe(int(place[first]), reward)
        first, second = engine.advance(), other.advance()
        assert (first is None) == (second is None)
        if not engine.has_answer:
            assert order[second] == first
            continue
        assert other.policy == pytest.approx(engine.policy[order], abs=1e-9)
        assert other.run.w == pytest.approx(engine.run.w[order], abs=1e-6)
        if first is not None and tracking_of(engine) != "sampled":  # draws know no arms
            lag = engine.run.n - owed(engine, before)  # a tie goes to the first arm in order
            assert lag[order[second]] == pytest.approx(lag[first], abs=1e-6)


@samplers("oracle")
@contract
@given(problem=problems(("gaussian", "hetero", "bernoulli")), seed=seeds)
def test_an_explorer_repeats_a_simulated_run(sampler, problem, seed):
    cap, given = 40, {"sampler": sampler, "threshold": "gk16", "seed": seed}
    runs = sx.simulate(problem, runs=1, max_steps=cap, workers=1, **given)
    explorer, draw = sx.Explorer(problem, **given), rewards_of_run(problem, seed)
    while not explorer.stopped and explorer.pulls < cap:
        explorer.tell(explorer.ask(), draw(explorer.ask()))
    assert explorer.pulls == runs.stopping_times[0]
    assert explorer.counts.tolist() == runs.pulls[0].tolist()

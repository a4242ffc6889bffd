"""Answers within epsilon: times against brute force, runs against a slow twin, and error rates."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import simplexplore as sx
from commands import invoke
from engines import SCENARIOS, engine_for, recommended, stream
from nightly import crossed, some
from optimum import Polytope
from reference import Rewards
from reference_polytope import sides, vertices
from reference_times import conic_time, least_times_within
from simplexplore import Bernoulli, Bounded, Gaussian, Poisson, Problem
from simplexplore.geometry.epsilon_answers import Answers
from simplexplore.kernels.records import NEXT_CHECK
from simplexplore.report.bound_words import notes
from twins import STOP, AnswerTwin

ROWS = [((1, 1, 0, 0), Fraction(3, 5)), ((0, 1, 2, 0), Fraction(1))]
SIDES = sides(4, [(tuple(map(Fraction, row)), None, upper) for row, upper in ROWS])
CORNERS = np.array([[float(x) for x in point] for point in vertices(SIDES, 4)])
FAMILIES = {
    "gaussian": (
        Gaussian((0.5, 1.0, 0.8, 1.2)),
        Rewards("gaussian", np.array([0.5, 1.0, 0.8, 1.2])),
    ),
    "bernoulli": (Bernoulli(), Rewards("bernoulli")),
    "poisson": (Poisson(), Rewards("poisson")),
    "bounded": (Bounded(-1.0, 3.0), Rewards("bounded", low=-1.0, high=3.0)),
}


def problem(family="gaussian", means=None, **options):
    rows = ([row for row, _ in ROWS], [float(upper) for _, upper in ROWS])
    return Problem(4, rows, FAMILIES[family][0], means=means, **options)


def brute_time(answer, mu, family, epsilon, scenario):
    """T of one answer, by a cone solver over all vertices, or infinity."""
    directions = CORNERS - answer
    directions = directions[np.abs(directions).max(axis=1) > 1e-9]
    if (directions @ mu >= epsilon).any():
        return math.inf
    rows, bounds = np.zeros((0, 4)), np.zeros(0)
    if scenario == "anytime":
        rows, bounds = (np.array(x, dtype=float) for x in zip(*ROWS, strict=True))
    total = np.ones((1, 4)), np.ones(1)
    return conic_time(directions, mu, FAMILIES[family][1], rows, bounds, *total, epsilon)


def draw_means(family, rng):
    mu = rng.uniform(0.25, 0.75, 4)
    if rng.random() < 0.3:
        mu[1] = mu[0]  # often a tie of policies
    return {"bounded": 4 * mu - 1, "poisson": 3 * mu}.get(family, mu)


# ---------------------------------------------------------------------- characteristic times


@pytest.mark.parametrize(("family", "seed"), crossed(FAMILIES, range(4), every=4))
def test_times_equal_brute_force(family, seed):
    rng = np.random.default_rng([seed, 7])
    mu = draw_means(family, rng)
    epsilon = float(rng.choice([0.03, 0.08])) * (4 if family in ("bounded", "poisson") else 1)
    bound = sx.lower_bound(problem(family), mu, epsilon=epsilon)
    close = 1e-6 if family == "gaussian" else 2e-3
    for scenario in SCENARIOS:
        own = bound.scenarios[scenario]
        times = [brute_time(corner, mu, family, epsilon, scenario) for corner in CORNERS]
        assert own.vertex_characteristic_time == pytest.approx(min(times), rel=close)
        # The answer found is good enough, its time is what it is said to be, ...
        assert (CORNERS @ mu).max() - own.answer @ mu <= epsilon
        expected = brute_time(own.answer, mu, family, epsilon, scenario)
        assert own.characteristic_time == pytest.approx(expected, rel=close)
        assert own.characteristic_time <= own.vertex_characteristic_time * (1 + 1e-9)
        # ... and no answer beats the least time, nor, by much, the one found.
        assert 0 <= own.least_time <= own.characteristic_time
        if family == "gaussian":
            assert own.characteristic_time <= 1.01 * own.least_time
        for shares in rng.dirichlet(np.full(len(CORNERS), 0.3), 6):
            other = brute_time(shares @ CORNERS, mu, family, epsilon, scenario)
            assert other >= own.least_time * (1 - close)
            assert other >= 0.999 * own.characteristic_time


@pytest.mark.parametrize("name", some(["triangle", "star", "bernoulli-2"], "triangle"))
def test_time_falls_with_epsilon_and_starts_at_the_exact_one(name):
    given = sx.catalog.instance(name).problem
    exact = sx.lower_bound(given)
    bounds = [sx.lower_bound(given, epsilon=e) for e in (1e-6, 0.01, 0.05, 0.2)]
    for scenario in SCENARIOS:
        first = exact.scenarios[scenario].characteristic_time
        times = [b.scenarios[scenario].characteristic_time for b in bounds]
        vertex = [b.scenarios[scenario].vertex_characteristic_time for b in bounds]
        assert times[0] == pytest.approx(first, rel=2e-4)
        assert vertex[0] == pytest.approx(first, rel=2e-4)
        assert times == sorted(times, reverse=True)
        assert vertex == sorted(vertex, reverse=True)


@pytest.mark.parametrize(("gap", "times"), [(0, 4.00), (0.02, 2.83), (0.05, 1.99), (0.1, 1.46)])
def test_two_arms_in_closed_form(gap, times):
    bound = sx.lower_bound(Problem(2), [gap, 0.0], epsilon=0.1)
    own = bound.scenarios["end-of-time"]
    assert own.vertex_characteristic_time == pytest.approx(8 / (0.1 + gap) ** 2)
    ratio = own.vertex_characteristic_time / own.characteristic_time
    assert ratio == pytest.approx(times, abs=0.006)
    # The share p of the better arm balances both comparisons.
    p = own.answer[0]
    assert 0.1 / (1 - p) - gap == pytest.approx(0.1 / p + gap, rel=1e-3)
    assert 0 <= own.characteristic_time - own.least_time <= 0.01 * own.least_time
    closed = {0: 8 / 0.2**2, 0.05: 8 / (0.05 * (2 + 5**0.5)) ** 2}  # p = (sqrt(5) - 1) / 2
    if gap in closed:
        assert own.characteristic_time == pytest.approx(closed[gap], rel=2e-6)


# Gaussian problems, and their times to 1e-4 or so by branch and bound over cone programs.
STAR = ([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]], [0.5, 0.5])
MEAL = ([[900, 600, 450], [4, 12, 3]], [650, 7])
ROW = ([[3, 2, 2, 1, 1, 1, 1, 1]], [1.6])
SOLVED = {
    "star": (STAR, 1, [1, 0.5, 0.4, 0.95, 0.8], 0.1, 97.877, 97.919),
    "star, less": (STAR, 1, [1, 0.5, 0.4, 0.95, 0.8], 0.02, 282.1148, 282.1426),
    "meal": (MEAL, 2, [8, 7.5, 6], 0.05, 34.42617, 34.42945),
    "meal, more": (MEAL, 2, [8, 7.5, 6], 0.2, 15.15726, 15.15866),
    "meal, tied": (MEAL, 2, [8, 7.5, 7.5], 0.1, 124.1098, 124.1214),
    "six": (["each <= 0.4"], 1, [1, 0.9, 0.9, 0.8, 0.6, 0.5], 0.1, 87.4746, 87.4829),
    "four": ([], (1, 1, 1, 2), [1, 0.95, 0.9, 0.5], 0.2, 108.2659, 108.2768),
    "eight": (ROW, 1, [1, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5], 0.1, 342.369, 342.679),
}


@pytest.mark.parametrize("name", SOLVED)
def test_no_answer_is_a_hundredth_faster(name):
    rows, sigma, mu, epsilon, low, high = SOLVED[name]
    bound = sx.lower_bound(Problem(len(mu), rows, Gaussian(sigma)), mu, epsilon=epsilon)
    for scenario in SCENARIOS if name == "star" else ["end-of-time"]:
        own = bound.scenarios[scenario]
        assert own.least_time <= high
        assert low <= own.characteristic_time <= 1.01 * own.least_time
        assert own.characteristic_time <= 1.0001 * high
        per_time = (1 - 2 * bound.delta) * math.log((1 - bound.delta) / bound.delta)
        assert own.lower_bound == pytest.approx(own.least_time * per_time)


@pytest.mark.parametrize("seed", some(range(12), 0, 1, 2))
def test_best_answer_is_that_of_a_cone_solver(seed):
    rng = np.random.default_rng([seed, 20])
    size = int(rng.integers(2, 5))
    rows = rng.integers(0, 4, (int(rng.integers(0, 3)), size)).tolist()
    upper = [Fraction(sum(row) + 1, size + 1) for row in rows]
    exact = [(tuple(map(Fraction, row)), None, u) for row, u in zip(rows, upper, strict=True)]
    corners = np.array([[float(x) for x in one] for one in vertices(sides(size, exact), size)])
    mu, sigma = rng.uniform(0, 1, size), rng.uniform(0.5, 1.5, size)
    epsilon = float(rng.choice([0.02, 0.1, 0.3]))
    limits = np.array(rows, dtype=float).reshape(-1, size), np.array(upper, dtype=float)
    low, high = least_times_within(corners, mu, sigma, *limits, epsilon, 200)
    given = Problem(size, limits, Gaussian(tuple(sigma.tolist())))
    own = sx.lower_bound(given, mu, epsilon=epsilon).scenarios["end-of-time"]
    assert own.least_time <= high * (1 + 1e-5)
    assert low * (1 - 1e-5) <= own.characteristic_time <= 1.01 * own.least_time


def test_runs_choose_from_a_list():
    given = Problem(6, ["each <= 0.4"])  # 60 vertices: too many for mixes of them
    bound = sx.lower_bound(given, [1, 0.9, 0.9, 0.8, 0.6, 0.5], epsilon=0.1)
    own = bound.scenarios["end-of-time"]
    assert own.listed_time == own.vertex_characteristic_time > 1.4 * own.characteristic_time
    assert (
        bound.to_dict()["scenarios"]["end-of-time"]["listed_characteristic_time"] == own.listed_time
    )
    times = own.listed_time / own.characteristic_time
    words = f"those found take {times:.3g} times as long or longer."
    assert any(note.endswith(words) for note in notes(bound))
    many = sx.lower_bound(Problem(12, ["each <= 0.25"]), np.linspace(0, 1, 12), epsilon=0.1)
    own = many.scenarios["end-of-time"]
    assert own.listed_time is None  # runs refuse it
    assert own.characteristic_time <= 1.02 * own.least_time


def test_rates_at_the_end_of_their_range_prove_nothing():
    """A shift of a rate by as much as it is has an infinite divergence."""
    means = [0.06, 0.035, 0.05, 0.025, 0.035, 0.02, 0.04, 0.03]
    problem = sx.Problem(8, ["each <= 0.5"], sx.Bernoulli(), means=means, epsilon=0.01)
    least = sx.lower_bound(problem).scenarios["end-of-time"].least_time
    assert 100 < least < 818.7


def test_ties_have_finite_times():
    tied = problem(means=[0.5, 0.5, 0.5, 0.5])
    assert math.isinf(sx.lower_bound(tied).characteristic_time)
    bound = sx.lower_bound(tied, epsilon=0.05)
    assert 0 < bound.samples < bound.characteristic_time * 2 < math.inf


def test_no_means_can_make_it_matter():
    bound = sx.lower_bound(problem("bernoulli", means=[0.5, 0.4, 0.3, 0.2]), epsilon=1.0)
    assert bound.characteristic_time == bound.samples == 0
    results = sx.simulate(bound.problem, runs=3, sampler="top-two")
    assert (results.stopping_times == 4).all()
    assert results.correct.all()


# ---------------------------------------------------------------------- answers


def test_answers_are_vertices_then_their_mixes():
    answers = Answers(Polytope(problem(epsilon=0.1)), 0.1)
    corners = answers.policies[: len(answers.vertices)]
    assert {tuple(x) for x in corners.round(9)} == {tuple(x) for x in CORNERS.round(9)}
    assert len({tuple(x) for x in answers.policies.round(9)}) == len(answers)
    matrix, upper = problem().matrix, problem().upper
    assert (answers.policies @ matrix.T <= upper + 1e-12).all()
    assert answers.policies.sum(axis=1) == pytest.approx(np.ones(len(answers)))
    supports = [
        {tuple(np.abs(answer - corner) > 1e-9) for answer in answers.policies} for corner in corners
    ]
    assert answers.union == max(len(each - {(False,) * 4}) for each in supports)


def test_goodness_is_exact():
    # 0.3 - 0.2 < 0.1 and 0.8 - 0.7 > 0.1 in floats; both lose exactly 0.1.
    for means in ([0.3, 0.2, 0.1], [0.8, 0.7, 0.1]):
        answers = Answers(Polytope(Problem(3)), 0.1)
        good = {tuple(answers.policies[i]) for i in answers.good(np.array(means))}
        assert {(1, 0, 0), (0, 1, 0)} < good
        assert (0, 0, 1) not in good


def test_too_many_vertices_are_refused():
    large = Problem(28, ([[1.0, -1.0] * 14, [1.0] * 14 + [0.0] * 14], [0.3, 0.4]))
    with pytest.raises(sx.TooLargeError, match=r"more than 400 vertices.*stop_when = {regret"):
        sx.Explorer(large, epsilon=0.1)
    with pytest.raises(sx.TooLargeError, match="poisson"):
        sx.lower_bound(large.replace(rewards=Poisson()), np.linspace(1, 3, 28), epsilon=0.1)


@pytest.mark.parametrize("family", some(["gaussian", "bernoulli", "bounded"], "gaussian"))
def test_many_vertices_give_a_bracket(family):
    # Any four of twelve arms are a vertex: 495 of them.
    size, epsilon = 12, 0.1
    rewards, twin = {
        "gaussian": (Gaussian(1.0), Rewards("gaussian", np.ones(size))),
        "bernoulli": (Bernoulli(), Rewards("bernoulli")),
        "bounded": (Bounded(0.0, 1.0), Rewards("bounded", low=0.0, high=1.0)),
    }[family]
    mu = np.array([0.71, 0.68, 0.66, 0.63, 0.6, 0.5, 0.45, 0.4, 0.36, 0.33, 0.31, 0.3])
    corners = np.array(
        [np.isin(np.arange(size), four) / 4 for four in itertools.combinations(range(size), 4)]
    )
    bound = sx.lower_bound(Problem(size, ["each <= 0.25"], rewards), mu, epsilon=epsilon)
    total = np.ones((1, size)), np.ones(1)

    def time_of(answer):
        directions = corners - answer
        directions = directions[np.abs(directions).max(axis=1) > 1e-9]
        return conic_time(directions, mu, twin, np.zeros((0, size)), np.zeros(0), *total, epsilon)

    close = 1e-5 if family == "gaussian" else 2e-3
    own = bound.scenarios["end-of-time"]
    time = time_of(own.answer)
    assert time <= own.characteristic_time * (1 + close)
    assert time >= own.characteristic_time / (1 + own.relative_gap) * (1 - close)
    assert 0 < own.least_time <= time * (1 + close)
    assert own.least_time <= time_of(corners[0]) * (1 + close)  # of the best one


# ---------------------------------------------------------------------- runs

# Each pair is compiled once, which takes most of the time here.
COMPILED = [("gaussian", "ctns"), ("bernoulli", "top-two")]


@pytest.mark.parametrize(("family", "sampler"), COMPILED)
def test_same_trajectory_as_the_twin(family, sampler):
    given = problem(family, means=[0.6, 0.55, 0.5, 0.58], epsilon=0.1, delta=1e-3)
    words = stream(5)
    engine = engine_for(given, sampler)
    arm = engine.begin(words)
    tracking = engine.plan.sampler.tracking["end-of-time"]
    twin = AnswerTwin(engine, sampler, tracking, words, given.delta)
    rng = np.random.default_rng(11)
    held = set()
    for step in range(400):
        if family == "bernoulli" and twin.n[arm] < 2:
            reward = twin.n[arm]  # one of each first: the twin's logarithms end at 0 and 1
        elif family == "bernoulli":
            reward = rng.random() < given.means[arm]
        else:
            reward = rng.normal(given.means[arm])
        engine.observe(arm, float(reward))
        twin.observe(arm, float(reward))
        arm = engine.advance()
        expected = twin.advance(engine.run)
        if engine.has_answer:
            evidence = twin.evidence
            found = engine.run.value[: len(evidence)]
            assert np.sort(found) == pytest.approx(np.sort(evidence), rel=1e-8, abs=1e-10), step
            held.add(recommended(engine))
        assert (arm is None) == (expected is STOP), step
        if arm is None:
            break
        assert arm == expected, step
        assert engine.run.w == pytest.approx(twin.w, abs=1e-6), step
    assert len(held) > 1


@pytest.mark.parametrize(("family", "sampler"), COMPILED)
def test_commits_to_plausible_answers(family, sampler):
    given = problem(family, means=[0.6, 0.55, 0.5, 0.58], epsilon=0.1, delta=1e-9)
    engine = engine_for(given, sampler)
    arm = engine.begin(stream(1))
    rng = np.random.default_rng(3)
    looks, passed_over, held = 0, 0, -1
    for step in range(600):
        reward = (
            rng.normal(given.means[arm])
            if family == "gaussian"
            else rng.random() < given.means[arm]
        )
        engine.observe(arm, float(reward))
        arm = engine.advance()
        due = engine.run.integers[NEXT_CHECK] == engine.pulls + 1 + engine.pulls // 10
        if arm is None:
            break
        if step < 100 or not due:
            continue
        looks += 1
        before, held = held, recommended(engine)
        rates, close = engine.run.rate, 1 - 0.5 * engine.run.n.min() ** -0.4
        mu, policies = engine.run.clipped_mean, engine.workspace.table.answers.policies
        some_of_them = {held, int(rates.argmax()), *rng.choice(len(policies), 3).tolist()}
        rate = {
            i: 1 / brute_time(policies[i], mu, family, 0.1, "end-of-time") for i in some_of_them
        }
        assert rates[held] == pytest.approx(rate[held], rel=0.03)
        for answer in some_of_them:
            assert rates[answer] <= 1.01 * rate[answer]
            assert close * rate[answer] <= 1.03 * rates[held]
            if answer < held != before:  # the first plausible one is taken
                assert rate[answer] <= 1.03 * close * rates.max()
                passed_over += 1
    assert passed_over > 0
    assert looks > 10


@pytest.mark.parametrize(
    ("means", "sampler"),
    crossed(([0.5, 0.5, 0.1, 0.5], [0.5, 0.49, 0.1, 0.36]), ("top-two", "ctns")),
)
def test_answers_are_good_enough(means, sampler):
    # Three policies tie, or two nearly do; others are not good enough. The upper limit exceeds
    # delta with probability below 1e-6 if one answer in twenty is wrong; far fewer are.
    given = problem(means=means, epsilon=0.12, delta=0.2)
    results = sx.simulate(given, sampler=sampler, runs=200, seed=8, threshold="mixture")
    assert results.is_proven
    assert not results.capped.any()
    assert 1 - results.summary()["correct"]["low"] <= 0.2
    assert results.stopping_times.mean() < 40 * results.bound.characteristic_time


def test_epsilon_saves_samples():
    given = sx.catalog.instance("star").problem
    means = [
        sx.simulate(
            given, sampler="top-two", epsilon=e, runs=60, threshold="mixture"
        ).stopping_times.mean()
        for e in (0.02, 0.05, 0.2)
    ]
    assert means[0] > means[1] > means[2]


@pytest.mark.parametrize("sampler", ["cge", "ptns", "uniform", "oracle"])
def test_all_samplers_run(sampler):
    tied = problem(means=[0.5, 0.5, 0.4, 0.3], epsilon=0.3, scenario="anytime")
    results = sx.simulate(tied, sampler=sampler, runs=5, threshold="mixture")
    assert results.correct.all()


def test_explorer_and_study_give_the_simulated_run(tmp_path):
    given = problem(means=[0.5, 0.5, 0.4, 0.3], epsilon=0.3)
    results = sx.simulate(given, sampler="top-two", runs=1, seed=4, threshold="mixture")
    engine = engine_for(given, "top-two", threshold="mixture")
    explorer = sx.Explorer(given, "top-two", seed=4)
    study = sx.Study.create(f"sqlite:///{tmp_path}/s.db", "mix", given, "top-two", seed=4)
    rng = np.random.default_rng(0)
    while not explorer.stopped:
        arm = explorer.ask()
        (pull,) = study.ask(1)
        assert pull.arm == arm
        reward = float(rng.normal(given.means[given.arms.index(arm)]))
        explorer.tell(arm, reward)
        study.tell(pull, reward)
    assert study.stopped
    assert study.answer["policy"] == explorer.policy.tolist()
    assert study.status()["epsilon"] == 0.3
    assert study.answer_in_words.startswith("The answer, within 0.3 of the best, wrong with")
    answers = engine.workspace.table.answers
    numbers = np.flatnonzero((answers.policies == explorer.policy).all(axis=1))
    assert len(numbers) == 1
    assert 10 < explorer.pulls < 40 * results.stopping_times[0]


# ---------------------------------------------------------------------- problem file and commands


def test_epsilon_in_the_problem_file():
    text = problem(epsilon=0.05).to_text()
    assert "epsilon = 0.05\n" in text
    assert Problem.from_text(text) == problem(epsilon=0.05) != problem()
    assert "epsilon" not in problem().to_text()
    assert "epsilon 0.05>" in repr(problem(epsilon=0.05))
    for wrong in (-0.1, math.inf, math.nan, "small"):
        with pytest.raises(sx.ProblemError, match="epsilon must be"):
            problem(epsilon=wrong)


def test_zero_changes_nothing():
    given = sx.catalog.instance("star").problem
    assert sx.lower_bound(given, epsilon=0.0).to_dict() == sx.lower_bound(given).to_dict()
    one, other = (sx.simulate(given, sampler="ctns", runs=4, **e) for e in ({}, {"epsilon": 0}))
    assert one.stopping_times.tolist() == other.stopping_times.tolist()
    assert "epsilon" not in one.summary()


def test_commands(tmp_path):
    file = tmp_path / "tie.toml"
    problem(means=[0.5, 0.5, 0.4, 0.3]).to_file(file)
    found = invoke("bound", file, "--epsilon", "0.1", "--json")
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert answer["epsilon"] == 0.1
    own = answer["scenarios"]["end-of-time"]
    assert own["answer_kind"] in ("vertex", "mix")
    assert own["least_characteristic_time"] <= own["characteristic_time"]
    assert own["characteristic_time"] <= own["vertex_characteristic_time"]
    assert len(own["answer"]) == 4
    assert own["rivals"]
    text = invoke("bound", file, "--epsilon", "0.1")
    assert "to find a mix within 0.1 of it" in " ".join(text.output.split())
    assert "Easiest answer within 0.1 of the optimum" in text.output
    refused = invoke("simulate", file, "--sampler", "top-two")
    assert refused.exit_code == 2
    assert "--epsilon" in refused.output
    options = ["--sampler", "top-two", "--threshold", "mixture", "--runs", "5", "--json"]
    done = invoke("simulate", file, *options, "--epsilon", "0.3")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)["results"][0]
    assert summary["epsilon"] == 0.3
    assert summary["correct"]["fraction"] == 1
    wrong = invoke("bound", file, "--epsilon", "-1")
    assert wrong.exit_code == 2
    assert "epsilon must be 0 or a positive number" in wrong.output

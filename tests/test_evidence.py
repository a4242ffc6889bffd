"""Evidence of explorers fed with past data, in any order, against 60-digit arithmetic."""

import itertools
import math

import numpy as np
import pytest

from engines import edges_of, engine_for, inform, stream
from precise import information
from simplexplore import Bernoulli, Bounded, Explorer, Gaussian, Poisson, Problem
from simplexplore.kernels.exponential import confidence_limit
from tilting import Comparison

FAMILIES = {
    "bernoulli": Bernoulli(),
    "poisson": Poisson(),
    "bounded": Bounded(-1.0, 3.0),
    "gaussian": Gaussian(0.7),
    "gaussian in a domain": Gaussian(1.0, domain=(-1.0, 1.0)),
    "poisson in a domain": Poisson(domain=(0.0, 3.0)),
    "bernoulli in a domain": Bernoulli(domain=(0.1, 0.9)),
}


def worst_error(engine):
    """Largest relative error of a statistic, given the empirical means as they are."""
    return abs(signed_error(engine))


def signed_error(engine):
    """The same, above 0 where the statistic overstates."""
    run, rewards = engine.run, engine.plan.problem.rewards
    kind = "bernoulli" if rewards.name == "bounded" else rewards.name
    variance = engine.workspace.config.variance.tolist() if kind == "gaussian" else None
    worst = 0.0
    for value, v, offset in edges_of(engine):
        mu, n = run.clipped_mean.tolist(), run.n.tolist()
        domain = rewards.unit_domain()
        true = float(information(kind, v, mu, n, variance, offset, domain))
        error = 0.0
        if true == 0.0:
            error = value
        elif math.isfinite(true):
            # Gaps of float means are known to so many digits only.
            size = sum(abs(x * m) for x, m in zip(v, mu, strict=True)) + abs(offset)
            gap = offset + math.fsum(x * m for x, m in zip(v, mu, strict=True))
            error = (value / true - 1) / (1 + 1e-6 * size / gap)
        worst = max(worst, error, key=abs)
    return worst


def random_state(rng, family, size):
    """An engine that was told the sums of past data, out of the blue."""
    rows = () if rng.random() < 0.5 or size == 2 else (f"a1 + a{size} <= 0.6",)
    epsilon = 0.02 if rng.random() < 0.2 and size < 5 else 0.0
    problem = Problem(size, rows, family, epsilon=epsilon, delta=0.05)
    engine = engine_for(problem, "top-two", threshold="mixture")
    engine.begin(stream())
    n = np.floor(10.0 ** rng.uniform(0, 6, size))
    rates = 10.0 ** rng.uniform(-6, 0.3, size)
    if family.name == "gaussian":
        mean = rng.normal(0, 10.0 ** rng.uniform(-4, 1), size)
    elif family.name == "poisson":
        mean = rng.poisson(n * rates) / n
    else:
        rates = np.where(rng.random(size) < 0.5, np.minimum(rates, 1), np.maximum(1 - rates, 0))
        mean = rng.binomial(n.astype(int), rates) / n
    # The recommended policy plays the arms with the largest means.
    played, best = np.argsort(-engine.policy, kind="stable"), np.argsort(-mean, kind="stable")
    told = np.zeros((2, size))
    told[:, played] = n[best], mean[best]
    engine.run.root[:] = rng.choice([0.0, 1e-6, 1.0, 1e6], len(engine.run.root))
    inform(engine, *told)
    return engine


def check_states(count, seed):
    """The worst signed error in each of many random states, by family."""
    rng = np.random.default_rng(seed)
    errors = {name: [] for name in FAMILIES}
    for name, _ in zip(itertools.cycle(FAMILIES), range(count), strict=False):
        engine = random_state(rng, FAMILIES[name], int(rng.integers(2, 9)))
        errors[name].append(signed_error(engine))
    return errors


def test_evidence_of_random_states_is_exact():
    for name, errors in check_states(60, seed=1).items():
        assert max(map(abs, errors)) <= 1e-9, name


def two_means(rng, family):
    """Down to 1e-12 and as close to each other, to 0 or to 1; in a domain to its ends."""
    high = 10.0 ** rng.uniform(-12, 0)
    low = high * (1 - 10.0 ** rng.uniform(-12, 0)) if rng.random() < 0.7 else 0.0
    if family.name != "poisson" and rng.random() < 0.4:
        high, low = 1 - low, 1 - high
    start, end = family.unit_domain() or (0.0, 1.0)
    return start + (end - start) * high, start + (end - start) * low


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "gaussian"])
def test_pairs_keep_their_digits(name):
    """As many as tilt.py counts on (`rounding_of_statistic`)."""
    family = FAMILIES[name]
    kind = "bernoulli" if family.name == "bounded" else family.name
    engine = engine_for(Problem(2, (), family), "top-two", threshold="mixture")
    variance = engine.workspace.config.variance.tolist() if kind == "gaussian" else None
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(40):
        n = np.floor(10.0 ** rng.uniform(0, 9, 2))
        inform(engine, n, sorted(two_means(rng, family)))
        [(value, v, offset)] = edges_of(engine)
        mu, n = engine.run.clipped_mean.tolist(), engine.run.n.tolist()
        true = information(kind, v, mu, n, variance, offset, family.unit_domain())
        if not 1e-290 < true < math.inf:
            continue
        assert abs(type(true)(value) / true - 1) < 2.0**-48
        compared += 1
    assert compared > 10


# Patterns on which Newton's method alone ran in a circle.
PATTERNS = [((69, 97), (37, 38)), ((7, 10), (150, 150)), ((0, 3), (40, 40))]


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
@pytest.mark.parametrize("order", [*itertools.permutations("bac")], ids="".join)
def test_evidence_after_past_data_in_any_order(pattern, order):
    told = dict(zip("ba", pattern, strict=True)) | {"c": (1, 40)}
    problem = Problem(list("bac"), (), Bernoulli(), delta=1e-3)
    engine = engine_for(problem, "top-two", threshold="mixture")
    arm = engine.begin(stream())
    for name in order:
        successes, total = told[name]
        for reward in [1.0] * successes + [0.0] * (total - successes):
            if arm is None:
                break
            engine.observe("bac".index(name), reward)
            arm = engine.advance()
            if engine.has_answer and engine.pulls % 7 == 0:
                assert worst_error(engine) <= 1e-11
    assert worst_error(engine) <= 1e-11


def test_no_false_stop_after_past_data():
    problem = Problem(list("bac"), (), Bernoulli(), delta=1e-3)
    explorer = Explorer(problem, sampler="top-two", threshold="mixture")
    for arm, successes, total in (("b", 69, 97), ("a", 37, 38), ("c", 1, 61)):
        for i in range(total):
            explorer.tell(arm, float(i < successes))  # refused once stopped
    assert not explorer.stopped


def test_poisson_mean_of_zero_is_exact():
    # lam of the arm without events is free at the pole: two arms meet at the weighted mean.
    problem = Problem(2, (), Poisson(), delta=1e-3)
    engine = engine_for(problem, "top-two", threshold="mixture")
    inform(engine, [1, 30], [2.0, 0.0])
    (value, _, _), *_ = edges_of(engine)
    together = 2 / 31
    exact = 2 * math.log(2 / together) + together - 2 + 30 * together
    assert value == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_farthest_means_are_at_their_level(name):
    engine = engine_for(Problem(2, (), FAMILIES[name]), "cge", threshold="mixture")
    config = engine.workspace.config
    rng = np.random.default_rng(4)
    for _ in range(200):
        mu, level = float(rng.choice([1e-6, 0.01, 0.3, 0.9])), float(10.0 ** rng.uniform(-9, 0))
        for upwards in (False, True):
            x = confidence_limit(config, 0, mu, level, upwards)
            assert (x > mu) == upwards
            found = float(FAMILIES[name].divergence(np.array(mu), np.array(x), np.ones(())))
            if 1e-11 < x < 1 - 1e-11 or name == "poisson":
                assert found == pytest.approx(level, rel=1e-6) or x <= 1e-12


def test_few_samples_at_one_end_against_many_at_the_other():
    # A mean at the end of its range leaves it at a kink, which a Newton step must not jump over.
    rng = np.random.default_rng(12)
    for _ in range(150):
        n = [int(rng.integers(1, 7)), int(10 ** rng.uniform(4, 6))]
        end = float(rng.integers(2))
        other = int(rng.integers(0, 3)) / n[1]
        means = [end, other if end else 1 - other]
        v = (np.array([1.0, -1.0]) * 10 ** rng.uniform(-1, 1, 2) * (1 if end else -1)).tolist()
        if np.dot(v, means) <= 0:
            continue
        found = Comparison(Bernoulli(), v, n, means).statistic
        true = float(information("bernoulli", v, means, n, None, 0.0, None))
        assert found == pytest.approx(true, rel=1e-9)


def test_no_event_within_a_domain():
    # At its pole the mean of zero jumps to the end of the domain: evidence is tiny, terms are not.
    rng = np.random.default_rng(13)
    rewards = Poisson(domain=(0.0, 3.0))
    for _ in range(150):
        n = [int(10 ** rng.uniform(3, 6)), int(10 ** rng.uniform(0, 3))]
        means = [int(rng.integers(1, 4)) / n[0], 0.0]
        found = Comparison(rewards, [1.0, -1.0], n, means).statistic
        true = float(information("poisson", [1.0, -1.0], means, n, None, 0.0, rewards.domain))
        assert found == pytest.approx(true, rel=1e-12)

"""Random numbers: the words of xoshiro256++, and the laws made from them.

Statistical tests have fixed seeds; each would fail for less than one seed in a million if
the law were right.
"""

import math

import numpy as np
import pytest
from scipy import stats

from engines import streams
from random_numbers import drawn
from simplexplore.kernels import rng
from twin_rewards import Xoshiro

MASK = 2**64 - 1
RARE = 1e-6
TAIL = 3.6541528853610088  # where the lowest of the 256 layers of normal numbers ends


def state_of(seed):
    return streams(seed, range(1))[0, 0].copy()


@pytest.mark.parametrize(
    "state",
    [(1, 2, 3, 4), (MASK, MASK, MASK, MASK), (0, 0, 0, 1), tuple(state_of(7).tolist())],
)
def test_words_are_those_of_xoshiro(state):
    compiled = np.array(state, dtype=np.uint64)
    out = drawn("next_word", compiled, 1000)
    published = Xoshiro(state)
    assert out.tolist() == [published.word() for _ in range(1000)]
    assert compiled.tolist() == published.s


def test_first_words_as_published():
    # The first outputs for the state 1, 2, 3, 4: the test vector of the rand_xoshiro crate.
    out = drawn("next_word", np.array([1, 2, 3, 4], dtype=np.uint64), 4)
    assert out.tolist() == [41943041, 58720359, 3588806011781223, 3591011842654386]


def test_uniform_has_53_bits_of_a_word():
    out = drawn("uniform", state_of(1), 1000)
    published = Xoshiro(state_of(1))
    assert out.tolist() == [(published.word() >> 11) / 2**53 for _ in range(1000)]
    assert out.min() >= 0
    assert out.max() < 1


def test_uniform_law():
    out = drawn("uniform", state_of(2), 1_000_000)
    assert stats.kstest(out, "uniform").pvalue > RARE
    assert abs(out.mean() - 0.5) < 5 / math.sqrt(12 * out.size)


@pytest.fixture(scope="module")
def normals():
    return drawn("normal", state_of(3), 4_000_000)


def test_normal_law(normals):
    assert stats.kstest(normals[:1_000_000], "norm").pvalue > RARE
    # Layers meet at these points; as many fall between two as the law says.
    edges = np.unique(np.concatenate([-rng.LAYER[1:], rng.LAYER[1:]]))
    seen, _ = np.histogram(normals, edges)
    expected = normals.size * np.diff(stats.norm.cdf(edges))
    outside = normals.size - seen.sum()
    seen = np.append(seen, outside)
    expected = np.append(expected, normals.size - expected.sum())
    assert stats.chisquare(seen, expected).pvalue > RARE


def test_normal_moments(normals):
    # Moment k has variance (m_2k - m_k^2) / n; five standard errors.
    for k, value in ((1, 0), (2, 1), (3, 0), (4, 3), (6, 15)):
        spread = stats.norm.moment(2 * k) - value**2
        assert abs(np.mean(normals**k) - value) < 5 * math.sqrt(spread / normals.size)


def test_normal_tail(normals):
    beyond = np.abs(normals[np.abs(normals) > TAIL])
    chance = 2 * stats.norm.sf(TAIL)
    assert abs(beyond.size - chance * normals.size) < 5 * math.sqrt(chance * normals.size)
    conditional = stats.truncnorm(TAIL, math.inf)
    assert stats.kstest(beyond, conditional.cdf).pvalue > RARE


def test_normals_do_not_remember(normals):
    x = normals[:1_000_000]
    for lag in (1, 2, 5):
        assert abs(np.mean(x[lag:] * x[:-lag])) < 5 / math.sqrt(x.size)


@pytest.mark.parametrize("mean", [0.01, 0.7, 9.99, 10.0, 25.0])
def test_poisson_law(mean):
    out = drawn("poisson", state_of(4), 200_000, mean)
    assert (out == np.floor(out)).all()
    assert out.min() >= 0
    low, high = (int(stats.poisson.ppf(q, mean)) for q in (1e-3, 1 - 1e-3))
    seen = np.array([(out <= low).sum(), *((out == k).sum() for k in range(low + 1, high))])
    law = np.array([stats.poisson.cdf(low, mean), *stats.poisson.pmf(range(low + 1, high), mean)])
    seen = np.append(seen, out.size - seen.sum())
    law = np.append(law, 1 - law.sum())
    assert stats.chisquare(seen, out.size * law).pvalue > RARE
    assert abs(out.mean() - mean) < 5 * math.sqrt(mean / out.size)


@pytest.mark.parametrize("shape", [0.003, 0.4, 0.9999, 1.0, 1.7, 30.0, 1e8])
def test_gamma_law(shape):
    out = drawn("log_gamma", state_of(8), 200_000, shape)
    assert stats.kstest(out, stats.loggamma(shape).cdf).pvalue > RARE


@pytest.mark.parametrize(
    ("mean", "deviation"),
    [
        (0.5, 0.05),
        (0.5, 0.288),
        (0.9, 0.29),
        (0.02, 0.1),
        (0.001, 0.0005),
        (0.56, 0.0494),
        (0.3, 0.45),
    ],
)
def test_beta_law(mean, deviation):
    out = drawn("beta", state_of(9), 200_000, mean, deviation)
    assert out.min() >= 0
    assert out.max() <= 1
    both = mean * (1 - mean) / deviation**2 - 1
    law = stats.beta(mean * both, (1 - mean) * both)
    # Close to an end floats are coarse, and many a number is the end itself.
    inside = (out > 1e-12) & (out < 1 - 1e-12)
    low, high = law.cdf([1e-12, 1 - 1e-12])
    assert abs(inside.mean() - (high - low)) <= 5 * math.sqrt(
        (high - low) * (1 - high + low) / out.size
    )
    assert stats.kstest(out[inside], lambda x: (law.cdf(x) - low) / (high - low)).pvalue > RARE
    for k in (1, 2, 3):
        spread = law.moment(2 * k) - law.moment(k) ** 2
        assert abs(np.mean(out**k) - law.moment(k)) < 5 * math.sqrt(spread / out.size)
    assert law.std() == pytest.approx(deviation)


@pytest.mark.parametrize("deviation", [0.05, 0.2, 0.45])
def test_beta_is_the_same_uncompiled(deviation):
    words, again = state_of(10), state_of(10)
    out = drawn("beta", words, 2000, 0.37, deviation)
    with np.errstate(over="ignore"):
        plain = [float(rng.beta(again, 0.37, deviation)) for _ in range(out.size)]
    assert plain == out.tolist()
    assert again.tolist() == words.tolist()


def test_streams_differ_between_runs_and_purposes():
    words = streams(11, range(100))
    assert words.shape == (100, 2, 4)
    assert len({tuple(w) for w in words.reshape(-1, 4).tolist()}) == 200
    assert (words.reshape(-1, 4) != 0).any(axis=1).all()  # all zero would never move
    assert not (streams(12, range(100)) == words).any()


def test_streams_depend_on_the_run_alone():
    words = streams(11, range(20))
    assert (streams(11, range(20)) == words).all()
    assert (streams(11, range(7, 9)) == words[7:9]).all()
    assert streams(11, range(0)).shape == (0, 2, 4)


def test_neighbouring_streams_are_independent():
    # 50 pairs of neighbouring runs, correlations of 20,000 uniform numbers each.
    draws = np.zeros((51, 20_000))
    for i, words in enumerate(streams(5, range(51))):
        draws[i] = drawn("uniform", words[0].copy(), draws.shape[1])
    centred = (draws - 0.5) * math.sqrt(12)
    correlations = (centred[1:] * centred[:-1]).mean(axis=1) * math.sqrt(draws.shape[1])
    assert np.abs(correlations).max() < stats.norm.isf(RARE / 2 / 50)

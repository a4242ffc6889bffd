"""What could be wrong with a live study: each e-value against its definition, and in studies."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import simplexplore as sx
from simplexplore.report.study_words import study_words
from simplexplore.study.events import Event
from simplexplore.study.health import FALSE_ALARMS, Health
from simplexplore.study.health_checks import (
    CHANGES,
    LOSSES,
    SPREADS,
    changed,
    changed_mean,
    changed_rate,
    changed_share,
    lost_of,
    some_place,
    too_wide,
    too_wide_since,
)
from simplexplore.study.outliers import farthest
from workers import star

TINY = 1e-9


def log_mixture(n, y, shift):
    """Of n rewards with standardised mean y: exp(n (theta y - theta^2 / 2)), theta normal."""
    s = 1 + n * (0.7 * shift) ** 2
    return n * y * y / 2 - n * (y - shift) ** 2 / (2 * s) - math.log(s) / 2


# ------------------------------------------------------------------ formulas


def test_values_from_another_program():
    given = map(np.array, (64.0, 1.0, 100.0, 0.4))
    assert changed_mean(*given, np.array(1.0)) == pytest.approx(3.3644682019797454, rel=1e-12)
    given = map(np.array, (64.0, 0.5, 100.0, 0.4))
    assert changed_mean(*given, np.array(1.0)) == pytest.approx(-0.8670647471687926, rel=1e-12)
    assert float(too_wide(np.array(150.0), np.array(100.0))) == pytest.approx(3.2792436479016094)
    assert float(too_wide(np.array(100.0), np.array(100.0))) == pytest.approx(-1.8033332100690822)
    assert 2 * farthest(20, 100, 5, 0.001) == pytest.approx(14.123829499882627, rel=1e-12)
    by_arm = lost_of(np.array([10.0, 8.0, 6.0]), np.array([4.0, 0.0, 1.0]))
    assert math.log(np.exp(by_arm).mean()) == pytest.approx(0.2517248666668215, rel=1e-12)


@pytest.mark.parametrize(("k", "m"), [(1, 1), (4, 60), (64, 7), (500, 2000), (9, 0)])
def test_a_changed_mean_is_the_least_over_the_common_mean(k, m):
    sigma = 1.7
    for early, late in ((0.3, 0.1), (-1.0, 0.5)):
        given = (np.array(float(x)) for x in (k, early, m, late))
        found = changed(*given, np.array(sigma))
        for (d, direction), (r, shift) in itertools.product(enumerate((1, -1)), enumerate(CHANGES)):

            def total(mean, direction=direction, shift=shift, early=early, late=late):
                first = log_mixture(k, direction * (early - mean) / sigma, shift)
                return first + (m and log_mixture(m, direction * (mean - late) / sigma, shift))

            least = optimize.minimize_scalar(total, bracket=(-1, 1), options={"xtol": 1e-12}).fun
            # Means that lie the other way are ruled out as well, which may be easier.
            c = 1 / (0.7 * shift) ** 2
            price = sum((0.5 / 0.49 + 0.5 * math.log1p(n / c)) * (n > 0) for n in (k, m))
            if found[d, r] > TINY - price:
                assert found[d, r] == pytest.approx(least, abs=1e-7)
            assert -price - TINY <= found[d, r] <= least + 1e-7


def arrays(*numbers):
    return [np.array(float(x)) for x in numbers]


def log_bets(n, total):
    """Of n rewards in [0, 1]: the Krichevsky-Trofimov mixture, by Gauss-Chebyshev quadrature."""
    p = 0.5 + 0.5 * np.cos((np.arange(200) + 0.5) * math.pi / 200)
    return math.log(np.mean(p**total * (1 - p) ** (n - total)))


@pytest.mark.parametrize(("k", "m"), [(1, 1), (3, 5)])
def test_a_changed_share_is_the_least_over_the_common_one(k, m):
    for s, t in itertools.product(range(k + 1), range(m + 1)):
        p = np.linspace(0, 1, 2001)[1:-1]
        least = (-(s + t) * np.log(p) - (k + m - s - t) * np.log1p(-p)).min()
        found = changed_share(*arrays(k, s / k, m, t / m))
        assert found == pytest.approx(log_bets(k, s) + log_bets(m, t) + least, abs=1e-2)
        assert found <= log_bets(k, s) + log_bets(m, t) + least + TINY


@pytest.mark.parametrize(("k", "m"), [(1, 1), (3, 5), (6, 4)])
def test_changes_of_shares_and_rates_are_no_more_than_one_on_average(k, m):
    for p in (0.1, 0.5):
        s, t = np.meshgrid(np.arange(k + 1.0), np.arange(m + 1.0))
        chance = stats.binom.pmf(s, k, p) * stats.binom.pmf(t, m, p)
        found = changed_share(np.full(s.shape, float(k)), s / k, np.full(s.shape, float(m)), t / m)
        assert (chance * np.exp(found)).sum() <= 1 + TINY
    for rate in (0.3, 2.0):
        s, t = np.meshgrid(np.arange(80.0), np.arange(80.0))
        chance = stats.poisson.pmf(s, k * rate) * stats.poisson.pmf(t, m * rate)
        found = changed_rate(np.full(s.shape, float(k)), s / k, np.full(s.shape, float(m)), t / m)
        assert (chance * np.exp(found)).sum() <= 1 + TINY


def test_counts_that_change_are_found():
    assert changed_rate(*arrays(200, 3.0, 300, 3.02)) < 0
    assert changed_rate(*arrays(200, 3.0, 300, 2.0)) > 10


def test_lost_pulls_have_mean_one_over_all_ways_to_lose_them():
    asked = np.array([3, 1, 2])
    arms = np.repeat(np.arange(3), asked)
    for gone in range(7):
        ways = [
            np.exp(
                lost_of(asked.astype(float), np.bincount(arms[list(w)], minlength=3).astype(float))
            )
            for w in itertools.combinations(range(6), gone)
        ]
        assert np.mean(ways, axis=0) == pytest.approx(np.ones((3, len(LOSSES))))


def test_spread_is_one_on_average_and_known_means_are_not_needed():
    for part in SPREADS[:3]:
        mean = integrate.quad(
            lambda x, part=part: math.exp(part * x * x / 2) * stats.norm.pdf(x), -40, 40
        )[0] * math.sqrt(1 - part)
        assert mean == pytest.approx(1.0, abs=1e-6)
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=50)
    about_mean, about_truth = ((rewards - x) ** 2 for x in (rewards.mean(), 0.0))
    assert too_wide(about_mean.sum(), np.array(50.0)) <= too_wide(about_truth.sum(), np.array(50.0))


def test_places_that_are_still_to_come_count_as_they_must():
    assert some_place(np.zeros(3)) == pytest.approx(math.log(3 / 4))
    assert too_wide_since(np.zeros(3), np.zeros(3)) == pytest.approx(0.0)


# ------------------------------------------------------------------ journals


def events(pulls, at_once=1, lost=None):
    """A journal of pulls (arm, reward), asked for some at a time; in plain words."""
    found = []

    def add(kind, **more):
        found.append(Event(kind, at=float(len(found) // 1000), seq=len(found) + 1, **more))

    number = 0
    for first in range(0, len(pulls), at_once):
        some = pulls[first : first + at_once]
        for arm, _ in some:
            number += 1
            add("asked", pull=number, arm=arm)
        start = number - len(some)
        for i, (arm, reward) in enumerate(some):
            if lost is not None and lost(arm):
                add("expired", pull=start + i + 1, arm=arm)
            else:
                add("told", pull=start + i + 1, arm=arm, reward=float(reward))
    return found


def health_of(problem, found):
    health = Health(problem)
    health.take(found)
    return {one["check"]: one for one in health.report()}


def top_two_like(rng, means, pulls, drift=None):
    """Pulls of arms that look good: what a sampler does, in a line."""
    size = len(means)
    n, total = np.zeros(size), np.zeros(size)
    found = []
    for t in range(pulls):
        if t < size:
            arm = t
        else:
            seen = total / n
            best = int(seen.argmax())
            rest = [a for a in range(size) if a != best]
            gaps = [(seen[best] - seen[a]) ** 2 / (1 / n[best] + 1 / n[a]) for a in rest]
            arm = best if rng.random() < 0.5 else rest[int(np.argmin(gaps))]
        reward = means[arm] + rng.normal()
        if drift is not None:
            reward += drift(arm, t)
        n[arm] += 1
        total[arm] += reward
        found.append((arm, reward))
    return found


PROBLEM = sx.Problem(5, rewards=sx.Gaussian(1.0))
MEANS = np.linspace(0.5, 0.0, 5)


@pytest.mark.parametrize(
    ("what", "drift", "pulls", "words"),
    [
        ("drift", lambda arm, t: 1.0 * (arm == 0 and t >= 400), 1600, "The mean of a1 seems"),
        (
            "drift",
            lambda _, t: -0.7 * (t >= 400),
            1600,
            "All means seem to have changed together: by -0.",
        ),
    ],
)
def test_drift_is_found_and_said(what, drift, pulls, words):
    rng = np.random.default_rng(4)
    found = health_of(PROBLEM, events(top_two_like(rng, MEANS, pulls, drift=drift)))
    assert found[what]["state"] == "alarm"
    assert words in found[what]["words"]
    assert found[what]["e_value"] * 0.35 > 1 / FALSE_ALARMS
    assert [one["state"] for one in found.values()].count("alarm") == 1


def test_drift_of_shares_and_counts_is_found():
    rng = np.random.default_rng(5)
    for problem, draw in (
        (sx.Problem(2, rewards=sx.Bernoulli()), lambda p: float(rng.random() < p / 10)),
        (sx.Problem(2, rewards=sx.Bounded(1.0, 5.0)), lambda p: 1 + 4 * rng.beta(p, 10 - p)),
        (sx.Problem(2, rewards=sx.Poisson()), lambda p: float(rng.poisson(p))),
    ):
        same = [(t % 2, draw(4.0)) for t in range(1200)]
        changing = [(t % 2, draw(4.0 + 3.0 * (t % 2) * (t >= 600))) for t in range(1200)]
        assert health_of(problem, events(same))["drift"]["state"] == "ok"
        found = health_of(problem, events(changing))
        assert found["drift"]["state"] == "alarm"
        assert found["drift"]["words"].startswith("The mean of a2 seems")
        for check in ("spread", "outlier"):
            assert found[check]["e_value"] is None
            assert found[check]["words"].startswith("Not checked")


def test_spread_is_found_from_the_beginning_or_later():
    rng = np.random.default_rng(6)
    for first in (0, 500):
        pulls = [(t % 5, rng.normal() * (2.0 if t >= first else 1.0)) for t in range(700)]
        found = health_of(PROBLEM, events(pulls))["spread"]
        assert found["state"] == "alarm"
        assert "times as far as sigma says" in found["words"]
    unknown = sx.Problem(5, rewards=sx.Gaussian("unknown"))
    found = health_of(unknown, events(pulls))
    for check in ("drift", "spread", "outlier"):
        assert found[check] == {
            "check": check,
            "state": "ok",
            "e_value": None,
            "words": "Not checked: sigma is unknown.",
        }


def test_lost_pulls_are_found_where_several_are_asked_for_at_once():
    rng = np.random.default_rng(7)
    pulls = [(int(a), 0.0) for a in rng.integers(5, size=24 * 60)]

    def lost(arm):
        return rng.random() < (0.3 if arm == 2 else 0.05)

    one_by_one = health_of(PROBLEM, events(pulls, lost=lost))["missing"]
    assert one_by_one["e_value"] == 1.0  # nothing is known of these
    found = health_of(PROBLEM, events(pulls, at_once=24, lost=lost))["missing"]
    assert found["state"] == "alarm"
    assert "Rewards of a3 go missing more often: " in found["words"]
    # Pulls that were given back are not lost: they were not made.
    back = [
        event._replace(data={"reason": "no salmon"}) if event.kind == "expired" else event
        for event in events(pulls, 24, lost)
    ]
    assert health_of(PROBLEM, back)["missing"]["e_value"] == 1.0
    evenly = events(pulls, at_once=24, lost=lambda _: rng.random() < 0.2)
    assert health_of(PROBLEM, evenly)["missing"]["state"] == "ok"


def test_it_does_not_matter_who_looks_when():
    rng = np.random.default_rng(8)
    journal = events(top_two_like(rng, MEANS, 300), at_once=3)
    once, often = (Health(PROBLEM) for _ in range(2))
    once.take(journal)
    for event in journal:
        often.take([event])
        often.report()
    assert once.report() == often.report()


def test_alarms_are_rare_while_nothing_is_wrong():
    # Of 40 studies, at the level 0.001, four or more have one with probability 9e-8 at most.
    alarms, largest = 0, []
    for seed in range(40):
        rng = np.random.default_rng([9, seed])
        pulls = top_two_like(rng, MEANS, 250)
        found = health_of(
            PROBLEM,
            events(pulls, at_once=12, lost=lambda _, rng=rng: rng.random() < 0.1),
        )
        alarms += any(one["state"] == "alarm" for one in found.values())
        largest.append([found[check]["e_value"] for check in ("drift", "spread", "missing")])
    assert alarms < 4
    # An e-value reaches 5 with probability 1/5 at most: 23 of 40 do with probability 2e-7.
    assert ((np.array(largest) >= 5).sum(axis=0) <= 22).all()


# ------------------------------------------------------------------ studies


def test_a_study_says_what_is_wrong_until_it_is_voided(sqlite_url):
    study = sx.Study.create(sqlite_url, "mix", star(delta=1e-9), "uniform")
    rng = np.random.default_rng(0)
    for _ in range(10):
        pulls = study.ask(10)
        study.tell_many([(pull, float(rng.normal())) for pull in pulls])
    fine = {one["check"]: one["state"] for one in study.status()["health"]}
    assert fine == dict.fromkeys(("drift", "missing", "spread", "shares", "outlier"), "ok")
    assert not [about for about in study_words(study.status()) if "warning" in about]
    study.tell(arm="b", reward=46.0)
    watching = sx.Study.open(sqlite_url, "mix")
    for one in (study, watching):
        wrong = [check for check in one.status()["health"] if check["state"] == "alarm"]
        assert "outlier" in {check["check"] for check in wrong}
        assert f"46 of b (event {study.head})" in wrong[-1]["words"]
        assert wrong[-1]["words"] in study_words(one.status())["health"]
    study.void(event=study.head, reason="4.6")
    for one in (study, watching):
        states = {check["check"]: check["state"] for check in one.status()["health"]}
        assert states == fine

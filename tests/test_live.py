"""What a live study asks for: order, grouping, pulls in flight, evidence."""

import itertools
import math

import numpy as np
import pytest

import simplexplore as sx

ARMS = ["a", "b", "c", "d", "e"]
MEANS = dict(zip(ARMS, (0.9, 0.5, 0.4, 0.85, 0.7), strict=True))
FAMILIES = {"closed": sx.Gaussian(1.0), "roots": sx.Bernoulli()}


def star(rewards=None, scenario="anytime"):
    rows = {"first": "a + b <= 0.5", "second": "c + d <= 0.5"}
    return sx.Problem(ARMS, rows, rewards or sx.Gaussian(1.0), scenario=scenario)


@pytest.fixture
def make(tmp_path):
    """Makes studies, each in a store of its own."""
    numbers = itertools.count()

    def make(problem=None, sampler="ctns", threshold="mixture", delta=1e-9, **settings):
        url = tmp_path / f"{next(numbers)}.db"
        settings = {"threshold": threshold, "delta": delta, "seed": 0, **settings}
        return sx.Study.create(url, "mix", problem or star(), sampler, **settings)

    return make


def warmed(study, rounds=20, batch=10, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        study.tell_many([(pull, float(rng.normal(MEANS[pull.arm]))) for pull in study.ask(batch)])
    return study


def arms_of(pulls):
    return [pull.arm for pull in pulls]


def column(study, name):
    return np.array([arm[name] for arm in study.status()["arms"]], dtype=float)


def known(study):
    """What a study knows, without what it is called and where."""
    return study.status() | dict.fromkeys(("store", "now", "created", "changed"))


def history(study, clock, count, seed, batched):
    """Everything that may happen, in a random order that makes sense; alone or in batches."""
    rng = np.random.default_rng(seed)
    flying, gone = [], []
    for _ in range(count):
        move, many = rng.random(), int(rng.integers(1, 6))
        if move < 0.45 or not flying:
            groups = [many] if batched else [1] * many
            flying += [pull for group in groups for pull in study.ask(group)]
        elif move < 0.8:
            chosen = [flying.pop(rng.integers(len(flying))) for _ in range(min(many, len(flying)))]
            told = [(pull, float(rng.random() < MEANS[pull.arm])) for pull in chosen]
            for group in [told] if batched else [[one] for one in told]:
                study.tell_many(group)
        elif move < 0.85:
            gone += flying
            flying.clear()
            clock.now += 100  # all of them expire with the next question
        elif move < 0.9 and gone:
            study.tell(gone.pop(), float(rng.integers(2)))
        else:
            study.tell(arm=str(rng.choice(ARMS)), reward=float(rng.integers(2)))
    return study


@pytest.mark.parametrize("family", FAMILIES)
def test_grouping_makes_no_difference(make, clock, family):
    start, problem = clock.now, star(FAMILIES[family])
    studies = []
    for batched in (False, True):
        clock.now = start
        study = make(problem, expire_after=60.0)
        studies.append(history(study, clock, 250, 3, batched))
    one, other = studies
    assert known(one) == known(other)
    assert {"told", "expired", "late", "elsewhere"} <= {event["event"] for event in one.events()}
    fresh = sx.Study.open(other.status()["store"], "mix")
    assert known(fresh) == known(other)
    assert fresh.verify()
    assert arms_of(one.ask(30)) == arms_of(fresh.ask(30))
    assert one.verify()


def test_asking_leaves_the_evidence_alone(make):
    for family in FAMILIES.values():
        study = make(star(family), delta=1e-60, expire_after=None)
        study.tell_many([(pull, float(pull.arm in "ad")) for pull in study.ask(300)])
        before = study.status()
        study.ask(40)
        after = study.status()
        for name in ("edges", "policy", "value", "value_interval", "confidence", "regret_bound"):
            assert after[name] == before[name]


@pytest.mark.parametrize("sampler", ["ctns", "top-two"])
def test_batches_do_not_pile_on_one_arm(make, sampler):
    study = warmed(make(star(scenario="end-of-time"), sampler), rounds=200, batch=1)
    pulled = column(study, "rewards")
    counts = np.array([arms_of(study.ask(200)).count(arm) for arm in ARMS])
    assert counts.max() <= 0.6 * 200
    pulled += counts
    # As far as the means are known, the whole is spread like the optimal allocation.
    bound = sx.lower_bound(study.problem, column(study, "mean"))
    rate = min(
        (edge.gap**2 / (2 * (edge.direction**2 / (pulled / pulled.sum())).sum()))
        for edge in bound.edges
    )
    assert rate * bound.characteristic_time > 0.75  # 1 is the optimum


def test_tracking_follows_pulled_counts(make):
    study = warmed(make())
    study.ask(500)
    pulled = column(study, "rewards") + column(study, "pending")
    assert np.abs(pulled - column(study, "target")).max() < 2
    # ... which are within the constraints up to a pull or two.
    share = pulled / 700
    assert share[0] + share[1] <= 0.5 + 2 / 700
    assert share[2] + share[3] <= 0.5 + 2 / 700


@pytest.mark.parametrize("scenario", ["end-of-time", "anytime"])
def test_first_pulls_in_one_batch(make, scenario):
    study = make(star(scenario=scenario))
    pulls = study.ask(60)
    # An arm in flight counts as tried; limits may change the order.
    assert sorted(arms_of(pulls)[:5]) == ARMS
    assert scenario == "anytime" or arms_of(pulls)[:5] == ARMS
    # Answers in any order; the policy is there once each arm has one.
    seen = set()
    for pull in reversed(pulls):
        study.tell(pull, MEANS[pull.arm])
        seen.add(pull.arm)
        assert (study.status()["policy"] is not None) == (len(seen) == 5)
    assert study.status()["pending"] == 0
    assert study.status()["policy"] == [0.5, 0, 0, 0.5, 0]


def test_pulls_that_never_come_back_starve_nobody(make, clock):
    rng = np.random.default_rng(4)
    study = warmed(make(expire_after=60.0))
    for _ in range(100):
        pulls = study.ask(10)
        study.tell_many([(p, float(rng.normal(MEANS[p.arm]))) for p in pulls if rng.random() > 0.4])
        clock.now += 61
    rewards = study.status()["rewards"]
    study.ask()
    assert study.status()["expired"] > 300
    target = column(study, "target")
    assert target.sum() == pytest.approx(rewards + 1)
    assert np.abs(column(study, "rewards") - target).max() < 10


def test_pulls_made_elsewhere_take_a_turn_of_the_target(make):
    study = warmed(make())
    study.tell_many([sx.Reward(MEANS["a"], arm="a")] * 60)
    assert column(study, "target").sum() == pytest.approx(study.status()["rewards"]) == 260


def test_late_rewards_take_their_share_back(make, clock):
    study = warmed(make(expire_after=60.0))
    pulls = study.ask(50)
    whole = column(study, "target")
    clock.now += 61
    (last,) = study.ask()
    assert column(study, "target").sum() == pytest.approx(201)
    told = study.tell_many([(pull, MEANS[pull.arm]) for pull in pulls])
    assert {one.outcome for one in told} == {"late"}
    study.tell(last, MEANS[last.arm])
    assert column(study, "target").sum() == pytest.approx(whole.sum() + 1)
    assert study.status()["rewards"] == 251
    assert column(study, "pending").sum() == 0


def test_vertices_met_on_the_way(make):
    # Without a union bound, vertices are met on the way and their order matters.
    problem = sx.Problem(8, ["a1 + a2 + a3 <= 0.5", "a4 + a5 <= 0.4", "a6 + a7 <= 0.7"])
    study = make(problem, threshold="gk16", delta=1e-12)
    rng = np.random.default_rng(0)
    policies = set()
    for _ in range(300):
        (pull,) = study.ask()
        study.tell(pull, float(rng.normal()))
        policies.add(str(study.status()["policy"]))
    assert len(policies) > 2
    fresh = sx.Study.open(study.status()["store"], "mix")
    assert known(fresh) == known(study)
    assert arms_of(fresh.ask(20)) == [event["arm"] for event in study.events(after=study.head - 20)]
    assert study.verify()


def test_thresholds_of_edges(make):
    study = warmed(make(threshold="gk16"))
    n, means = column(study, "rewards"), column(study, "mean")
    bound = sx.lower_bound(study.problem, means)
    statistics = sorted(
        (edge.direction @ means) ** 2 / (2 * (edge.direction**2 / n).sum()) for edge in bound.edges
    )
    edges = study.status()["edges"]
    assert sorted(edge["statistic"] for edge in edges) == pytest.approx(statistics)
    for edge in edges:
        assert edge["threshold"] == pytest.approx(math.log((1 + math.log(200)) / 1e-9), rel=1e-9)


def test_a_smaller_delta_only_moves_thresholds(make):
    study, other = (warmed(make(delta=1e-6)) for _ in range(2))
    levels = [edge["threshold"] for edge in study.status()["edges"]]
    study.extend(1e-8)
    moved = [edge["threshold"] for edge in study.status()["edges"]]
    assert all(new > old + 4 for new, old in zip(moved, levels, strict=True))
    assert arms_of(study.ask(50)) == arms_of(other.ask(50))


@pytest.mark.parametrize("seed", range(3))
def test_overdue_is_what_is_too_far_from_now(make, clock, seed):
    """Whatever the clock did."""
    rng = np.random.default_rng(seed)
    study = make(expire_after=12.0)
    start, at = clock.now, {}
    for _ in range(60):
        clock.now = start + float(rng.integers(30))
        assert study.status()["overdue"] == sum(abs(clock.now - one) > 12 for one in at.values())
        if rng.random() < 0.5:
            at = {pull: one for pull, one in at.items() if abs(clock.now - one) <= 12}
            at |= {pull.id: clock.now for pull in study.ask(int(rng.integers(1, 4)))}
        elif at:
            pull = str(rng.choice(list(at)))
            study.tell(pull, 0.5)
            del at[pull]
        assert {pull.id for pull in study.pending()} == {*at}
    assert study.verify()

"""Plans with measured limits: ground truth, brute force, symmetries, and what is refused."""

import itertools
import json
import math

import numpy as np
import pytest

import simplexplore as sx
from commands import run
from nightly import crossed

# A plan is within this of the exact characteristic time; with two rows within that.
CLOSE, CLOSE_OF_TWO = 1e-3, 1e-2


def problem(mu, rows, limits, epsilon, tolerance, sigma=1.0, tau=1.0, constraints=(), **more):
    rows, limits = np.atleast_2d(rows).tolist(), np.atleast_1d(limits).tolist()
    tolerances = np.broadcast_to(tolerance, len(rows)).tolist()
    measured = [
        sx.Measured(f"m{i}", limit, sigma=tau, tolerance=eta, means=row)
        for i, (row, limit, eta) in enumerate(zip(rows, limits, tolerances, strict=True))
    ]
    return sx.Problem(
        len(mu),
        constraints,
        means=mu,
        rewards=sx.Gaussian(sigma),
        epsilon=epsilon,
        measured=measured,
        **more,
    )


C1 = ([1, 0], [1, 0], 0.5)
C2 = ([1, 0.6, 0.2], [1.0, 0.5, 0.1], 0.5, 0.1, 0.05)
C3 = ([1, 0.8, 0.5, 0.3], [0.9, 0.6, 0.3, 0.2], 0.45, 0.1, 0.05, 1.0, 0.5)

# From KKT systems in 25 digits (two arms), and from semi-infinite programs with cutting planes.
TRUTH = {
    "C1a": ((*C1, 0.1, 0.0), 823.05617966512, [0.4504722161], [0.4991521471]),
    "C1b": ((*C1, 0.2, 0.0), 220.99558937611, [0.4032690351], [0.4953445727]),
    "C1c": ((*C1, 0.1, 0.1), 205.61899560324, [0.5009436404], [0.5475910183]),
    "C2": (C2, 503.592798, [0.1443, 0.6382], [0.2311, 0.5264]),
    "C3": (C3, 240.436292, [0.0622, 0.4111, 0.4364], [0.1482, 0.3504, 0.3346]),
}


@pytest.mark.parametrize("name", TRUTH)
def test_ground_truth(name):
    given, time, answer, shares = TRUTH[name]
    bound = sx.lower_bound(problem(*given))
    own = bound.own
    assert own.characteristic_time == pytest.approx(time, rel=CLOSE)
    assert 0 <= own.relative_gap < CLOSE
    np.testing.assert_allclose(own.answer[: len(answer)], answer, atol=5e-4)
    np.testing.assert_allclose(own.allocation[: len(shares)], shares, atol=5e-3)
    assert {"m0", None} <= {x.limit for x in own.deciding}
    assert bound.time_of(own.allocation) == pytest.approx(time, rel=CLOSE)
    assert bound.time_of(np.ones(len(own.answer))) > time * (1 - CLOSE)
    # Where samples keep the limits as well, it takes no less.
    assert bound.scenarios["anytime"].characteristic_time >= time * (1 - CLOSE)


# ------------------------------------------------------------------ brute force


def brute_force(mu, row, limit, epsilon, eta, steps):
    """T over grids of answers, shares and policies x on edges."""
    size = len(mu)
    grid = np.array(
        [p for p in itertools.product(range(steps + 1), repeat=size) if sum(p) == steps]
    )
    answers, shares = grid / steps, (grid + 0.3) / (steps + 0.3 * size)
    s = np.linspace(0, 1, 121)[:, None]
    x = np.concatenate(
        [
            s * np.eye(size)[a] + (1 - s) * np.eye(size)[b]
            for a, b in itertools.combinations(range(size), 2)
        ]
    )
    mu, row = np.array(mu), np.array(row)
    best = 0.0
    for pi in answers:
        r, margin = epsilon + mu @ pi - x @ mu, limit + eta - row @ pi
        k = np.maximum(x @ row - limit, 0)
        if margin <= 0 or ((r <= 0) & (k <= 0)).any():
            continue
        q = (x - pi) ** 2 @ (1 / shares.T) + 1e-300
        h = np.maximum(r, 0)[:, None] ** 2 / (2 * q) + k[:, None] ** 2 / (2 * x**2 @ (1 / shares.T))
        violated = margin**2 / (2 * (pi**2) @ (1 / shares.T))
        best = max(best, np.minimum(h.min(axis=0), violated).max())
    return 1 / best


@pytest.mark.parametrize(("grid", "seed"), crossed([(2, 100, 0.04), (3, 15, 0.4)], range(2)))
def test_brute_force_over_answers_and_alternatives(grid, seed):
    size, steps, off = grid
    rng = np.random.default_rng(seed)
    mu, row = rng.uniform(0, 1, size), rng.uniform(0, 1, size)
    limit = float(0.4 * row.min() + 0.6 * row.max())
    given = (mu.tolist(), row.tolist(), limit, 0.25, 0.1)
    own = sx.lower_bound(problem(*given)).own
    assert 0.997 < brute_force(*given, steps) / own.characteristic_time < 1 + off


# ------------------------------------------------------------------ symmetries


def time(*args, **more):
    return sx.lower_bound(problem(*args, **more)).characteristic_time


def test_units_and_origins_do_not_matter():
    given, first, *_ = TRUTH["C1c"]
    mu, row, (limit, epsilon, eta) = np.array(given[0]), np.array(given[1]), given[2:]
    assert time(mu + 7, row - 3, limit - 3, epsilon, eta) == pytest.approx(first, rel=CLOSE)
    assert time(50 * mu, 1e-3 * row, 1e-3 * limit, 50 * epsilon, 1e-3 * eta, 50.0, 1e-3) == (
        pytest.approx(first, rel=CLOSE)
    )
    halved = time(mu / 2, row / 2, limit / 2, epsilon / 2, eta / 2)
    assert halved == pytest.approx(4 * first, rel=CLOSE)
    assert time(mu[::-1], row[::-1], limit, epsilon, eta) == pytest.approx(first, rel=CLOSE)


def test_a_limit_from_below_is_one_from_above_mirrored():
    _, row, limit, _, eta = C2
    plain = sx.lower_bound(problem(*C2))
    mirrored = plain.problem.replace(
        measured=[sx.Measured("m0", f">= {-limit}", sigma=1, tolerance=eta, means=np.negative(row))]
    )
    bound = sx.lower_bound(mirrored)
    assert bound.characteristic_time == pytest.approx(plain.characteristic_time, rel=CLOSE)
    np.testing.assert_allclose(bound.own.answer, plain.own.answer, atol=5e-4)
    assert bound.policy.tolist() == plain.policy.tolist()


def test_a_second_row_far_away_changes_nothing():
    mu, row, limit, epsilon, eta = C2
    two = time(mu, [row, [0.1, 0.5, 0.2]], [limit, 9.0], epsilon, [eta, 0.0])
    assert two == pytest.approx(TRUTH["C2"][1], rel=CLOSE_OF_TWO)


def test_more_room_never_takes_longer():
    mu, row, limit = C1
    times = [time(mu, row, limit, x, y) for x, y in ((0.1, 0.02), (0.1, 0.05), (0.2, 0.05))]
    assert times == sorted(times, reverse=True)


def test_samples_of_their_own_price():
    dear = sx.lower_bound(problem(*C2, costs=[2.0, 2.0, 2.0]))
    assert dear.characteristic_time == pytest.approx(2 * TRUTH["C2"][1], rel=CLOSE)
    assert dear.own.cost_per_sample == pytest.approx(2.0)
    uneven = sx.lower_bound(problem(*C2, costs=[5.0, 1.0, 1.0]))
    assert uneven.allocation[0] < 0.23
    # The same by hand: a sample of a1 for 5 tells a fifth per unit, its variances are 5 times.
    sigma = (math.sqrt(5), 1.0, 1.0)
    assert uneven.characteristic_time == pytest.approx(time(*C2, sigma=sigma, tau=sigma), rel=CLOSE)


# ------------------------------------------------------------------ tight, degenerate


def test_a_margin_decides_alone():
    # T = 2 tau^2 / margin^2 for one arm.
    close = sx.lower_bound(problem([1.0, 0.0], [0.1, 0.9], 0.11, 0.05, 0.0, tau=0.5))
    alone = 2 * 0.5**2 / 0.01**2
    assert (1 - CLOSE) * alone < close.characteristic_time < 1.1 * alone
    assert close.own.deciding[0].limit == "m0"


def test_without_epsilon_there_is_no_plan():
    with pytest.raises(sx.SettingError, match="measured limits need epsilon > 0"):
        sx.lower_bound(problem([1, 0], [1, 0], 0.5, 0.0, 0.2))


@pytest.mark.parametrize(
    "given",
    [
        ([1, 0], [0.5, 0.3], 0.3, 0.1, 0.0),  # only one policy keeps the limit
        ([1, 0], [0.3, 0.5], 0.3, 0.1, 0.0),  # and it is the best one
    ],
)
def test_where_no_samples_are_enough(given):
    bound = sx.lower_bound(problem(*given))
    assert bound.characteristic_time == math.inf
    assert math.isnan(bound.samples)


def test_tolerance_makes_up_for_epsilon():
    # With 0.2 to exceed the limit by, half of it earns 0.1 more than the best that keeps it.
    found = sx.lower_bound(problem([1, 0], [1, 0], 0.5, 1e-3, 0.2))
    assert 100 < found.characteristic_time < 1000
    assert 0.5 < found.own.answer[0] < 0.7
    at_limit = sx.lower_bound(problem([1, 0], [1, 0], 1.0, 1e-3, 0.2))
    assert math.isfinite(at_limit.characteristic_time)


def test_one_policy_alone():
    # Its toxicity is all that is to be learned: T = 2 (sum tau pi)^2 / margin^2.
    one = problem([1, 0], [0.2, 0.6], 0.5, 0.1, 0.0, constraints=["a1 == 0.5"])
    assert sx.lower_bound(one).characteristic_time == pytest.approx(2 / 0.1**2, rel=1e-6)


def test_arms_without_use():
    more = problem([*C2[0], 5.0], [*C2[1], 3.0], *C2[2:], constraints=["a4 == 0"])
    bound = sx.lower_bound(more)
    assert bound.characteristic_time == pytest.approx(TRUTH["C2"][1], rel=CLOSE)
    assert bound.allocation[3] == 0


def test_what_no_run_could_follow_is_refused_as_runs_refuse_it():
    fair = problem(*C2, exploration=["a2 <= 0.3"])
    words = "limits on exploration do not go with measured limits"
    for refuse in (sx.lower_bound, sx.Explorer, sx.simulate):
        with pytest.raises(sx.SettingError, match=words):
            refuse(fair)


def test_what_no_mix_keeps_is_said():
    with pytest.raises(sx.InfeasibleError, match=r"no mix keeps m0 <= 0.2: the least is 0.3, with"):
        sx.lower_bound(problem([1, 0], [0.3, 0.5], 0.2, 0.1, 0.5))
    with pytest.raises(sx.InfeasibleError, match=r"keeps m0 <= 0.1 and m1 <= 0.1 together") as e:
        sx.lower_bound(problem([1, 0], [[0, 1], [1, 0]], [0.1, 0.1], 0.1, 0.1))
    assert e.value.conflict == ("m0", "m1")
    upper = sx.Measured("m", ">= 2", sigma=1, means=[0, 1])
    with pytest.raises(sx.InfeasibleError, match="no mix keeps m >= 2: the most is 1, with a2 al"):
        sx.lower_bound(sx.Problem(2, measured=[upper], means=[1, 0], epsilon=0.1))
    with pytest.raises(sx.InfeasibleError, match=r"the least is 0\.6, with"):
        sx.lower_bound(problem([1, 0], [0.7, 0.5], 0.5, 0.1, 0, constraints=["a1 == 0.5"]))
    with pytest.raises(sx.InfeasibleError, match="c1"):
        sx.lower_bound(problem([1, 0], [0, 0], 0.5, 0.1, 0.1, constraints=["a1 + a2 <= 0.5"]))


def test_bounded_noise_counts_as_half_its_range():
    plain = problem(*C2, sigma=0.5, tau=0.5)
    rows = [sx.Measured("m0", 0.5, low=0, high=1, tolerance=0.05, means=C2[1])]
    coins = plain.replace(measured=rows, rewards=sx.Bounded(0, 1), means=[0.99, 0.59, 0.19])
    bound = sx.lower_bound(coins)
    assert bound.characteristic_time == pytest.approx(
        sx.lower_bound(plain).characteristic_time, rel=CLOSE
    )


def test_unknown_sigma_is_taken_as_guessed():
    rows = [sx.Measured("m0", 0.5, sigma_guess=1.0, tolerance=0.05, means=C2[1])]
    rewards = sx.Gaussian("unknown", sigma_guess=1.0)
    bound = sx.lower_bound(problem(*C2).replace(measured=rows, rewards=rewards))
    assert bound.characteristic_time == pytest.approx(TRUTH["C2"][1], rel=CLOSE)


# ------------------------------------------------------------------ what people see


def test_the_command_says_it_all(tmp_path):
    file = tmp_path / "dose.toml"
    problem(*C2).to_file(file)
    found = json.loads(run("bound", file, "--json").stdout)
    own = found["scenarios"]["end-of-time"]
    assert own["characteristic_time"] == pytest.approx(TRUTH["C2"][1], rel=CLOSE)
    assert own["lower_bound"] is None
    assert own["note"].startswith("a plan, no lower bound")
    low, high = own["expected_range"]
    assert own["characteristic_time"] < low < own["expected_samples"] < high
    assert {x["limit"] for x in own["deciding"]} == {"m0", None}
    assert all((x["limit"] is None) != (x["rival"] is None) for x in own["deciding"])
    (row,) = found["measured"]
    assert (row["name"], row["limit"], row["tolerance"]) == ("m0", "<= 0.5", 0.05)
    assert row["value"] == pytest.approx(0.5)
    assert "m0" in found["active"]
    text = run("bound", file).stdout
    for words in ("1 measured limit", "What makes it hard", "m0 <= 0.5", "to within 0.05"):
        assert words in " ".join(text.split())

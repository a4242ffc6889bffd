"""Thresholds (docs/theory/stopping.md): levels against a table, through compiled functions."""

import math

import numpy as np
import pytest
from scipy.special import betaln, xlogy

import simplexplore as sx
from engines import PULLS, engine_for
from instances import TRUTH
from simplexplore import THRESHOLDS, Bernoulli, Gaussian, Poisson, Problem, SettingError
from simplexplore.exploration.stopping import kk21_levels
from simplexplore.kernels.thresholds import kk21_penalty

# min(supports of edges, vertices - 1), counted by an independent program.
UNION = {
    "exp1": 6,
    "exp2": 6,
    "ptns8": 19,
    "gauss_app1": 23,
    "gauss_app2": 12,
    "bern_app1": 17,
    "bern_app2": 11,
    "imdb_sigma1.33": 73,
}


def engine_of(name, threshold, delta, rewards=None):
    truth = TRUTH[name]
    problem = Problem(len(truth["mu"]), (truth["B"], truth["c"]), rewards or Gaussian(1.0))
    return engine_for(problem, "uniform", delta, threshold=threshold)


def explored(engine):
    """The same engine, once it knows every vertex."""
    known = 0
    while known < engine.workspace.known_edges:
        known = engine.workspace.known_edges
        engine.workspace.follow(np.arange(known))
    return engine


def edge_with(engine, support):
    """Number of an edge whose support has that many arms; all vertices are looked at."""
    table = explored(engine).workspace.records[1]
    sizes = np.diff(table.first_entry[: engine.workspace.known_edges + 1])
    return int(np.flatnonzero(sizes == support)[0])


def prepare(engine, n, pulls=None):
    run = engine.run
    run.n[:] = n
    run.mean[:] = run.clipped_mean[:] = 0.5
    run.integers[PULLS] = round(run.n.sum()) if pulls is None else pulls


def bisected(enough, low, high):
    """Where it begins to be enough."""
    assert not enough(low)
    assert enough(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def reached(engine, edge, statistic):
    config, table, run, _ = engine.workspace.records
    return config.functions.reached(config, table, run, edge, statistic)


def level(engine, edge):
    """The least statistic that is enough."""
    return bisected(lambda statistic: reached(engine, edge, statistic), 0.0, 1000.0)


def mixture_level(engine, edge):
    """The same for Gaussian mixtures, which read the means: push them apart."""
    _, table, run, _ = engine.workspace.records
    part = slice(table.first_entry[edge], table.first_entry[edge + 1])
    arms, v = table.arm[part], table.v[part]
    spread = float((v**2 / run.n[arms]).sum())

    def enough(gap):
        run.clipped_mean[:] = 0.0
        run.clipped_mean[arms] = gap * v / (v @ v)
        return reached(engine, edge, 0.5 * gap * gap / spread)

    return 0.5 * bisected(enough, 0.0, 100.0) ** 2 / spread


def exponential_level(x):
    """Of Kaufmann and Koolen: T(x)."""
    return float(kk21_levels(False, x, 1)[1])


def gaussian_level(x):
    """Of Kaufmann and Koolen: C_G(x)."""
    return float(kk21_levels(True, x, 1)[1])


# ------------------------------------------------------------ Kaufmann & Koolen's functions


# Of another program.
LEVELS = {  # x: T(x), C_G(x)
    0.46: (7.91415567825003, 1.9205129455643162),
    1.15: (9.393547285510165, 2.6692664145268004),
    2.3: (11.346238672916474, 3.9035172650406142),
    3.45: (13.060203606466501, 5.125125350645384),
    5: (15.191398743095773, 6.757320059549662),
    10: (21.446819418406932, 11.954646257273891),
    20: (32.91475023552745, 22.20325264255166),
    40: (54.5681255789584, 42.49045903973696),
}


@pytest.mark.parametrize("x", LEVELS)
def test_levels_of_another_program(x):
    assert exponential_level(x) == pytest.approx(LEVELS[x][0], rel=1e-9)
    assert gaussian_level(x) == pytest.approx(LEVELS[x][1], rel=1e-7)


def test_exponential_level_starts_above_zero():
    assert exponential_level(1e-9) == pytest.approx(5.994432596199676, rel=1e-9)


def test_exponential_level_is_continuous_at_the_branch():
    # h~ is 3.69946 on both sides of 1.56358.
    x = np.linspace(1e-3, 3.0, 3000)
    levels = np.array([exponential_level(float(y)) for y in x])
    steps = np.diff(levels)
    assert (steps > 0).all()
    assert steps[100:].max() < 0.01


def test_exponential_level_by_its_definition():
    # h~_z(y) = min over 1 < eta <= z of eta (y - log log eta).
    eta = 1 + 0.5 * np.linspace(1e-6, 1, 400_001)
    for x in (0.01, 0.3, 1.0, 4.0, 30.0):
        u = 1 + np.linspace(0, 8, 600_001) ** 2
        inverse = np.interp(1 + x, u - np.log(u), u)
        y = (inverse + math.log(math.pi**2 / 3)) / 2
        slow = 2 * (eta * (y - np.log(np.log(eta)))).min()
        assert exponential_level(x) == pytest.approx(slow, rel=1e-6)


def test_exponential_level_far_out():
    for x in (699.0, 700.0, 1e4):
        assert x < exponential_level(x) < x + 4 * math.log(1 + x + math.sqrt(2 * x)) + 10


def slow_level(x):
    """C_G(x) on a fine grid."""
    from scipy.special import zeta

    grid = np.linspace(0.5 + 1e-6, 1 - 1e-6, 200_001)
    cost = 2 * grid - 2 * grid * np.log(4 * grid) + np.log(zeta(2 * grid)) - np.log(1 - grid) / 2
    return float(((cost + x) / grid).min())


@pytest.mark.parametrize("x", [0.1, 0.46, 2.3, 5.0, 20.0, 100.0])
def test_gaussian_level_is_the_minimum(x):
    slow = slow_level(x)
    assert gaussian_level(x) <= slow * (1 + 1e-9)
    assert gaussian_level(x) == pytest.approx(slow, rel=1e-6)


@pytest.mark.parametrize(("arms", "delta", "n"), [(2, 0.1, 40), (7, 1e-3, 5000)])
def test_kk21_of_two_arms_as_reprinted(arms, delta, n):
    # Jang, Komiyama and Yamazaki (2024), after Jourdan and Degenne: one source more for the form.
    union = math.log((arms - 1) / delta)
    printed = 2 * slow_level(union / 2) + 4 * math.log(4 + math.log(n / 2))
    found = kk21_levels(True, union, 2)[2] + 2 * kk21_penalty(True, n / 2)
    assert found == pytest.approx(printed, rel=1e-6)


def test_gaussian_level_far_out():
    # Near l = 1 the minimum is at 1 - l = 1 / (2 x).
    rest = 2 - 2 * math.log(4) + math.log(math.pi**2 / 6)
    for x in (50.0, 500.0):
        assert gaussian_level(x) == pytest.approx(x + (1 + math.log(2 * x)) / 2 + rest, abs=0.1)


def test_kk21_is_above_mixtures_for_zeros_and_ones():
    # The price R of a Beta(1/2, 1/2) mixture is at most log(n)/2 + log 2 ...
    for n in (1, 2, 3, 10, 100, 10**4, 10**6):
        s = np.unique(np.linspace(0, n, 2001).round())
        logs = xlogy(s, s / n) + xlogy(n - s, 1 - s / n)
        price = logs - betaln(s + 0.5, n - s + 0.5) + math.log(math.pi)
        assert price.max() <= 0.5 * math.log(n) + math.log(2) + 1e-9
    # ... and kk21 pays at least that, up to 4e13 rewards.
    logs = np.linspace(0.0, math.log(4e13), 4001)
    for x in (1e-9, 0.1, 0.46, 1.15, 2.3, 5, 10, 40, 200):
        paid = np.array([kk21_penalty(False, math.exp(one)) for one in logs])
        assert (paid + exponential_level(x) >= x + 0.5 * logs + math.log(2)).all()


def test_kk21_is_above_a_gaussian_mixture():
    def slack(x, logs, r, k):
        """What kk21 asks for, less the mixture's for the cell of each count; the cells."""
        cell = np.floor(logs / math.log(r) + 1e-12)
        paid = np.array([kk21_penalty(True, math.exp(min(one, 700))) for one in logs])
        asked = (paid + gaussian_level(x)) / (1 + k)
        return asked - x - 0.5 * np.log1p(np.exp(logs - cell * math.log(r)) / k), cell

    logs = np.unique(
        np.r_[np.log(np.arange(1, 1025)), np.linspace(math.log(1024), math.log(1e15), 4001)]
    )
    for x in (0.01, 0.1, 0.46, 1.15, 2.3):
        room, cell = slack(x, logs, 16, 0.08)
        assert sum(math.exp(-room[cell == j].min()) for j in np.unique(cell)) < 0.31
    logs = np.linspace(0, 690, 6901)
    for x in (2.3, 3.45, 5, 12, 40, 80):
        room, cell = slack(x, logs, 64, 0.02 if x < 20 else 0.01)
        assert (room >= np.log((cell + 1) * (cell + 2))).all()


def test_kk21_levels_by_support():
    levels = kk21_levels(True, math.log(60), 4)
    assert levels.shape == (5,)
    assert levels[0] == 0
    for size in range(1, 5):
        assert levels[size] == pytest.approx(size * gaussian_level(math.log(60) / size))
    assert (np.diff(levels) > 0).all()


# ------------------------------------------------------------ the table at t = 1000, n = 200


@pytest.mark.parametrize(
    ("threshold", "delta", "value"),
    [
        ("paper", 0.1, 3.378),
        ("paper", 1e-4, 10.286),
        ("gk16", 0.1, 4.370),
        ("gk16", 1e-4, 11.278),
        ("kk21", 0.1, 16.19),
        ("kk21", 1e-4, 23.48),
    ],
)
def test_table_on_the_scale_of_the_statistic(threshold, delta, value):
    engine = engine_of("exp1", threshold, delta)
    prepare(engine, 200.0)
    assert level(engine, 0) == pytest.approx(value, abs=6e-3)


@pytest.mark.parametrize(
    ("name", "support", "delta", "value"),
    [
        ("exp1", 2, 0.1, 9.33),
        ("exp1", 2, 1e-4, 16.80),
        ("ptns8", 3, 0.1, 11.99),
        ("ptns8", 3, 1e-4, 19.45),
        ("gauss_app1", 4, 0.1, 13.49),
        ("gauss_app1", 4, 1e-4, 21.06),
    ],
)
def test_table_of_gaussian_mixtures(name, support, delta, value):
    engine = engine_of(name, "mixture", delta)
    edge = edge_with(engine, support)
    prepare(engine, 200.0)
    # The table was made for v of equal size on its support; ours may weigh arms unequally.
    assert mixture_level(engine, edge) == pytest.approx(value, abs=0.02)


@pytest.mark.parametrize(
    ("threshold", "delta", "value"),
    [("mixture", 0.1, 9.85), ("mixture", 1e-4, 16.75), ("kk21", 0.1, 32.93), ("kk21", 1e-4, 42.75)],
)
def test_table_for_bernoulli(threshold, delta, value):
    engine = engine_of("exp1", threshold, delta, Bernoulli())
    prepare(engine, 200.0)
    assert level(engine, 0) == pytest.approx(value, abs=0.01)


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("n", [1.0, 7.0, 200.0])
def test_bernoulli_mixture_by_quadrature(n, mean):
    # R = log of (likelihood at the mean) / (its average under Beta(1/2, 1/2)).
    from scipy.special import betaln, xlogy

    engine = engine_of("exp1", "mixture", 0.1, Bernoulli())
    prepare(engine, n)
    engine.run.mean[:] = mean
    s = n * mean
    fit = xlogy(s, mean) + xlogy(n - s, 1 - mean)
    regret = fit - betaln(s + 0.5, n - s + 0.5) + math.log(math.pi)
    assert level(engine, 0) == pytest.approx(math.log(60) + 2 * regret, rel=1e-9)
    assert regret <= 0.5 * math.log(n) + math.log(2) + 1e-12


@pytest.mark.parametrize("mean", [0.0, 0.3, 4.0])
def test_poisson_mixture_by_quadrature(mean):
    from scipy.integrate import quad

    engine = engine_of("exp1", "mixture", 0.1, Poisson())
    n = 10.0
    prepare(engine, n)
    engine.run.mean[:] = mean
    s = n * mean

    # Gamma(1/2, 1/2) on the mean, substituted m = x^2; likelihood over its maximum.
    def ratio(x):
        m = x * x
        likelihood = s * math.log(m) - n * m if m > 0 else (0.0 if s == 0 else -math.inf)
        best = s * math.log(mean) - s if mean > 0 else 0.0
        return 2 * math.exp(likelihood - best - m / 2) * math.sqrt(0.5 / math.pi)

    average, _ = quad(ratio, 0, 8, limit=500, points=[math.sqrt(mean)])
    assert level(engine, 0) == pytest.approx(math.log(60) - 2 * math.log(average), rel=1e-6)


@pytest.mark.parametrize("n", [2.0, 16.0, 1000.0])
def test_gaussian_mixture_within_a_domain_by_hand(n):
    # One mixture of 16 samples' worth of variance keeps n / (n + 16) of an arm's evidence.
    engine = engine_of("exp1", "mixture", 0.1, Gaussian(1.0, domain=(-5.0, 5.0)))
    edge = edge_with(engine, 2)
    prepare(engine, n)
    price = math.log(UNION["exp1"] / 0.1) + 2 * 0.5 * math.log1p(n / 16)
    assert level(engine, edge) == pytest.approx(price * (n + 16) / n, rel=1e-9)


def test_every_edge_must_agree(tmp_path):
    """A rule of one's own that never rules out one of the three edges of any vertex."""
    rule = tmp_path / "rule.py"
    stops = []
    for missing in (-1, 0, 1, 2):
        rule.write_text(
            f"def reached(config, table, run, edge, statistic):\n    return edge % 3 != {missing}\n"
        )
        explorer = sx.Explorer(Problem(4), "uniform", threshold=str(rule))
        while not explorer.stopped and explorer.pulls < 12:
            explorer.tell(explorer.ask(), float(explorer.ask() == "a2"))
        stops.append(explorer.pulls)
    assert stops == [4, 12, 12, 12]


def test_paper_before_e():
    engine = engine_of("exp1", "paper", 0.1)
    for pulls in (1, 2):
        prepare(engine, 1.0, pulls)
        assert level(engine, 0) == pytest.approx(math.log(10), rel=1e-12)
    prepare(engine, 1.0, 3)
    assert level(engine, 0) == pytest.approx(math.log((1 + math.log(math.log(3))) / 0.1))


def test_gk16_at_one():
    engine = engine_of("exp1", "gk16", 0.1)
    prepare(engine, 1.0, 1)
    assert level(engine, 0) == pytest.approx(math.log(10), rel=1e-12)


# ------------------------------------------------------------ union over supports


@pytest.mark.parametrize("name", UNION)
def test_union_size(name):
    engine = engine_of(name, "mixture", 0.1)
    assert engine.workspace.config.log_union == pytest.approx(
        math.log(UNION[name] / 0.1), rel=1e-12
    )
    assert len(explored(engine).workspace.table.vertices) == TRUTH[name]["vertices"]


@pytest.mark.parametrize("size", [2, 3, 6])
def test_union_size_of_the_simplex(size):
    config = engine_for(Problem(size), "uniform", 0.1, threshold="mixture").workspace.config
    assert config.log_union == pytest.approx(math.log((size - 1) / 0.1))


def test_only_proven_rules_pay_for_the_union():
    for threshold, union in (("gk16", 1), ("paper", 1), ("kk21", 6), ("mixture", 6)):
        config = engine_of("exp1", threshold, 0.1).workspace.config
        assert config.log_union == pytest.approx(math.log(union / 0.1))


# ------------------------------------------------------------ names


def test_what_is_proven():
    assert sx.THRESHOLDS is not None
    for name in ("gk16", "paper"):
        assert not any(THRESHOLDS[name].is_proven(f) for f in ("gaussian", "bernoulli", "poisson"))
        assert "heuristic" in THRESHOLDS[name].summary
    for name in ("kk21", "mixture"):
        assert all(THRESHOLDS[name].is_proven(f) for f in ("gaussian", "bernoulli", "poisson"))
        assert "proven" in THRESHOLDS[name].summary
    assert THRESHOLDS["mixture"].is_proven("bounded")
    assert THRESHOLDS["kk21"].is_proven("bounded")


def exploring(threshold):
    return sx.Explorer(Problem(2), threshold=str(threshold))


def test_unknown_names():
    with pytest.raises(SettingError, match=r"no threshold 'mixtur'.*Did you mean 'mixture'"):
        exploring("mixtur")
    with pytest.raises(SettingError, match="Known: gk16, paper, kk21, mixture, tilt, or a file"):
        exploring("zzzzzz")
    with pytest.raises(SettingError, match=r"no threshold file 'nowhere\.py'"):
        exploring("nowhere.py")


def test_own_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def other():\n    return 1\n")
    with pytest.raises(SettingError, match=r"mine\.py defines no function 'reached"):
        exploring(path)
    path.write_text("def reached(:\n")
    with pytest.raises(SettingError, match=r"mine\.py, line 1: "):
        exploring(path)
    path.write_text("def reached(config, table, run, edge, statistic):\n    return True\n")
    summary = sx.simulate(Problem(2), [1.0, 0.0], threshold=str(path), runs=1).summary()
    assert summary["threshold"] == "mine"
    assert not summary["proven"]

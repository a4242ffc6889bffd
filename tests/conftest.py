"""Files and stores for tests: SQLite always, PostgreSQL where its binaries are installed.

And how Hypothesis draws, and how much the session compiled.
"""

import gc
import math
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import postgres
from nightly import NIGHTLY
from simplexplore.exploration.compile import Stopwatch
from simplexplore.kernels.cache import cache_folder

# The same examples every time; how long one takes says nothing on a busy machine.
settings.register_profile(
    "tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

# A busy machine does not make a study long; tests of what happens behind it say how long is.
Stopwatch.ENOUGH = math.inf

gc.disable()  # while tests are collected

COMPILED = pytest.StashKey[set]()


def units():
    """Machine code that is kept on disk."""
    return set(cache_folder().glob("*/*.code"))


# What takes longest comes first, so that no core waits for the last file. The first one compiles
# everything; those that start beside it need nothing of that.
LONGEST = (
    *("test_native", "test_service_processes", "test_allocation", "test_measured_bound"),
    *("test_dashboard_study", "test_store_faults", "test_bound_plot", "test_epsilon"),
    *("test_reproduction", "test_measured_engine", "test_expected_samples", "test_student"),
    *("test_exploration", "test_dashboard_new_study", "test_processes", "test_results_plot"),
    *("test_twins", "test_costs", "test_precision", "test_dashboard_running", "test_regret"),
    *("test_sampler_contract", "test_cli", "test_client", "test_store_damage", "test_backends"),
    *("test_dashboard_list", "test_dashboard_service", "test_study_contract", "test_replay"),
    *("test_group", "test_study_cli", "test_conflicts", "test_samplers", "test_pooled"),
    *("test_store_files", "test_simulate_cli", "test_within", "test_compare", "test_moment"),
    *("test_study", "test_search", "test_tilt", "test_lists", "test_vertices", "test_corrections"),
    *("test_information", "test_unknown_sigma", "test_store", "test_store_forks", "test_bound"),
    *("test_newton_system", "test_evidence"),
)


def pytest_collection_modifyitems(config, items):
    waiting = [item for item in items if item.get_closest_marker("nightly") and not NIGHTLY]
    if waiting:
        config.hook.pytest_deselected(items=waiting)
        items[:] = [item for item in items if item not in waiting]
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONGEST)))


def pytest_sessionstart(session):
    session.config.stash[COMPILED] = units()


def pytest_collection_finish():
    # What thousands of tests are made of stays: nobody need look through it for garbage.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_terminal_summary(terminalreporter, config):
    new = units() - config.stash[COMPILED]
    terminalreporter.write_line(f"{len(new)} units of machine code compiled")


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server for the session."""
    if postgres.binaries() is None:
        reason = "no PostgreSQL binaries (initdb) on the path or in /usr/lib/postgresql"
        if os.environ.get("SIMPLEXPLORE_REQUIRE_POSTGRESQL"):
            pytest.fail(reason)
        pytest.skip(reason)
    server = postgres.Server()
    yield server
    server.close()


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'studies.db'}"


@pytest.fixture(scope="session")
def database(server):
    """The one that tests use one after the other."""
    return server.database()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request):
    """An empty store of each kind."""
    if request.param == "sqlite":
        return request.getfixturevalue("sqlite_url")
    url = request.getfixturevalue("database")
    request.getfixturevalue("server").empty(url)
    return url


class Clock:
    """A clock that goes where it is told to."""

    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def service(sqlite_url):
    """A service over an empty store, and the way to it."""
    import servers
    import simplexplore as sx

    with servers.Thread(sqlite_url) as running, sx.connect(running.url) as service:
        yield service


@pytest.fixture
def client(sqlite_url):
    """A service without tokens, as one uses it on one's own machine."""
    from service_client import serving

    with serving(sqlite_url) as client:
        yield client


@pytest.fixture
def study(client):
    """The path of a study in that service."""
    from service_client import STAR

    assert client.post("/v1/studies", json={"name": "mix", "problem": STAR}).status_code == 201
    return "/v1/studies/mix"


@pytest.fixture(scope="module")
def browser():
    """A Chromium for the tests of a file."""
    from playwright.sync_api import sync_playwright

    from browser import launch

    with sync_playwright() as playwright:
        running = launch(playwright)
        yield running
        running.close()


@pytest.fixture
def store(sqlite_url):
    """An empty store of studies."""
    from simplexplore.study.store import Store

    return Store(sqlite_url)


@pytest.fixture
def served(sqlite_url):
    """The address of a service over that store, in this process."""
    import servers

    with servers.Thread(sqlite_url) as running:
        yield running.url


@pytest.fixture(scope="module")
def tab(browser):
    """A page for the tests of a file: to open one takes longer than most of them."""
    from browser import DESKTOP, watched

    context = browser.new_context(viewport=DESKTOP)
    page, page.troubles = watched(context)
    yield page
    context.close()


@pytest.fixture
def page(tab):
    """A page that may not complain, nor fetch anything from elsewhere; empty, as if new."""
    from browser import DESKTOP

    tab.troubles.clear()
    yield tab
    troubles = list(tab.troubles)
    tab.unroute_all()
    if tab.url.startswith("http"):
        tab.evaluate("localStorage.clear(); sessionStorage.clear()")
    tab.goto("about:blank")
    tab.set_viewport_size(DESKTOP)
    tab.emulate_media(color_scheme="null")
    assert troubles == []


@pytest.fixture(scope="module")
def bounds_once():
    """Bounds of simulated problems, each computed once for the tests of a file."""
    from simplexplore.exploration import plan

    compute, known = plan.lower_bound, {}

    def lower_bound(problem, means=None, delta=None):
        key = problem, None if means is None else tuple(np.ravel(means)), delta
        if key not in known:
            known[key] = compute(problem, means, delta)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "lower_bound", lower_bound)
        yield


@pytest.fixture
def few_nodes(monkeypatch):
    """The bracket over answers of measured limits takes longest, and has a test of its own."""
    from simplexplore.bound import measured_bracket

    monkeypatch.setattr(measured_bracket, "MOST_NODES", 0)


@pytest.fixture
def problem_file(tmp_path):
    """Write a problem file, and say where."""

    def write(text):
        path = tmp_path / "problem.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write

"""Files and stores for tests: SQLite always, PostgreSQL where its binaries are installed.

And how Hypothesis draws.
"""

import gc
import os
import signal
import time

import pytest
from hypothesis import HealthCheck, settings

import postgres
from nightly import NIGHTLY

# The same examples every time; how long one takes says nothing on a busy machine.
settings.register_profile(
    "tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

# Tests press Ctrl-C. A shell that runs this in the background ignores it, and so would all programs
# that tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # while tests are collected

# What takes longest comes first, so that no core waits for the last file.
LONGEST = (
    *("test_machine_code", "test_service_processes", "test_allocation", "test_measured_bound"),
    *("test_dashboard_study", "test_store_faults", "test_bound_plot", "test_epsilon"),
    *(
        "test_reproduction",
        "test_measured_engine",
        "test_forecast",
        "test_unknown_variance",
    ),
    *("test_exploration", "test_dashboard_new_study", "test_processes", "test_results_plot"),
    *("test_twins", "test_costs", "test_precision", "test_dashboard_running", "test_regret"),
    *("test_sampler_contract", "test_cli", "test_client", "test_store_damage", "test_blocks"),
    *("test_dashboard_list", "test_dashboard_service", "test_study_contract", "test_replay"),
    *("test_service_writing", "test_study_cli", "test_conflicts", "test_samplers"),
    *("test_store_files", "test_simulate_cli", "test_within", "test_compare", "test_moment"),
    *("test_study", "test_search", "test_tilt", "test_vertices", "test_corrections"),
    *("test_information", "test_unknown_sigma", "test_store", "test_store_forks", "test_bound"),
    "test_evidence",
)


def pytest_collection_modifyitems(config, items):
    waiting = [item for item in items if item.get_closest_marker("nightly") and not NIGHTLY]
    if waiting:
        config.hook.pytest_deselected(items=waiting)
        items[:] = [item for item in items if item not in waiting]
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONGEST)))


def pytest_collection_finish():
    # What thousands of tests are made of stays: nobody need look through it for garbage.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


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
def clock(monkeypatch):
    """What the time is, for everybody in this process."""
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    return clock


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


@pytest.fixture
def problem_file(tmp_path):
    """Write a problem file, and say where."""

    def write(text):
        path = tmp_path / "problem.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write

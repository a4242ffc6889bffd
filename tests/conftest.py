"""Files and stores for tests: SQLite always, PostgreSQL where its binaries are installed.

And which tests share a process when there are several.
"""

import os
import re

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

import postgres

# Samplers that use the compiled file of another one.
SAME_FILE = {"oracle": "uniform"}


class Scheduling(LoadScopeScheduling):
    """What compiles the same kernels runs in one process: two would compile them twice."""

    def _split_scope(self, nodeid):
        sampler = re.search(r"\[.*(cge|ctns|oracle|ptns|top-two|uniform)", nodeid)
        if sampler is None:
            return nodeid.split("::")[0]
        return SAME_FILE.get(sampler[1], sampler[1])


@pytest.hookimpl(optionalhook=True)  # not there when xdist is switched off
def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)


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


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request):
    """An empty store of each kind."""
    if request.param == "sqlite":
        return request.getfixturevalue("sqlite_url")
    return request.getfixturevalue("server").database()


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


@pytest.fixture
def problem_file(tmp_path):
    """Write a problem file, and say where."""

    def write(text):
        path = tmp_path / "problem.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write

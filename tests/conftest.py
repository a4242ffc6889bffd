"""Stores for tests: SQLite always, PostgreSQL where its binaries are installed.

And which tests share a process when there are several.
"""

import os

import pytest

import postgres

# Samplers that use the compiled file of another one.
SAME_FILE = {"oracle": "uniform", "top-two": "ctns"}


def pytest_collection_modifyitems(items):
    """Tests of one sampler run in one process: compiling it in two would take twice as long."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        sampler = callspec.params.get("sampler") if callspec else None
        if isinstance(sampler, str) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(SAME_FILE.get(sampler, sampler)))


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

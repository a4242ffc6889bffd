"""Stores for tests: SQLite always, PostgreSQL where its binaries are installed."""

import os

import pytest

import postgres


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

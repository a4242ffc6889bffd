"""The machines of a Dask cluster, as an executor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from simplexplore.errors import SettingError

# Seconds to wait for a scheduler.
PATIENCE = 10.0

# How often a block is made again whose worker has died, or whose machine has.
RETRIES = 5


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler, as an executor for `simulate`.

    If a worker dies, others repeat its runs. Needs the extra ``cluster``.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://host:8786``.

    Yields
    ------
    concurrent.futures.Executor

    Examples
    --------
    >>> with sx.cluster("tcp://scheduler:8786") as executor:  # doctest: +SKIP
    ...     results = sx.simulate(problem, runs=1_000_000, executor=executor)
    """
    try:
        from distributed import Client
    except ImportError:
        raise SettingError(
            "a cluster needs Dask: pip install 'simplexplore[cluster]', here and on its workers."
        ) from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise SettingError(
            f"no Dask scheduler answers at {address!r} ({error}). 'dask scheduler' starts one, and "
            "prints its address."
        ) from None
    with client:
        yield client.get_executor(pure=False, retries=RETRIES)  # type: ignore[no-untyped-call]


@contextmanager
def executor_at(address: str | None) -> Iterator[Executor | None]:
    """The executor of a cluster; None where none is named."""
    if address is None:
        yield None
    else:
        with cluster(address) as executor:
            yield executor

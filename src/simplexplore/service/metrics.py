"""What a service counts, as Prometheus reads it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from simplexplore import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Upper ends of the time classes, in seconds.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

# Methods that are counted by name. Anybody can invent others.
_METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")

# Studies that are counted one by one; the rest only in the totals.
_MOST_STUDIES = 500


class Metrics:
    """Requests of this process: how many, how long, how many at the moment."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._started = time.time()
        self._requests: dict[tuple[str, str, int], int] = {}
        self._times: dict[str, list[float]] = {}
        self.in_progress = 0
        self.watchers = 0

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Add a request that was answered."""
        with self._mutex:
            key = (method if method in _METHODS else "other", route, status)
            self._requests[key] = self._requests.get(key, 0) + 1
            # Counts by class, then their sum and the number of requests.
            row = self._times.setdefault(route, [0.0] * (len(_BUCKETS) + 2))
            for i, end in enumerate(_BUCKETS):
                row[i] += seconds <= end
            row[-2] += seconds
            row[-1] += 1

    def text(self, studies: Sequence[Mapping[str, Any]]) -> str:
        """Everything counted, and how far studies are (as `Study.list` says it)."""
        return "\n".join([*self._service(), *_studies(studies)]) + "\n"

    def _service(self) -> Iterator[str]:
        with self._mutex:
            requests = dict(self._requests)
            times = {route: list(row) for route, row in self._times.items()}
        yield from _family(
            "info", "gauge", "The program's version.", [({"version": __version__}, 1)]
        )
        yield from _family(
            "start_time_seconds", "gauge", "When this process started.", [({}, self._started)]
        )
        yield from _family(
            "requests_in_progress", "gauge", "Requests under way.", [({}, self.in_progress)]
        )
        yield from _family("watchers", "gauge", "Open event streams.", [({}, self.watchers)])
        yield from _family(
            "requests_total",
            "counter",
            "Requests answered.",
            [
                ({"method": method, "route": route, "status": str(status)}, number)
                for (method, route, status), number in sorted(requests.items())
            ],
        )
        yield from _head("request_seconds", "histogram", "Time until a request was answered.")
        for route, row in sorted(times.items()):
            for end, number in zip(_BUCKETS, row, strict=False):
                yield _line("request_seconds_bucket", {"route": route, "le": f"{end:g}"}, number)
            yield _line("request_seconds_bucket", {"route": route, "le": "+Inf"}, row[-1])
            yield _line("request_seconds_sum", {"route": route}, row[-2])
            yield _line("request_seconds_count", {"route": route}, row[-1])


def _studies(studies: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    states = ("running", "stopped")
    yield from _family(
        "studies",
        "gauge",
        "Studies in the store.",
        [({"state": state}, sum(one["state"] == state for one in studies)) for state in states],
    )
    for name, kind, field, words in (
        ("study_asked_total", "counter", "asked", "Pulls given out."),
        ("study_rewards_total", "counter", "rewards", "Rewards taken in."),
        ("study_pending", "gauge", "pending", "Pulls without a reward."),
        ("study_progress", "gauge", "progress", "Share of the evidence needed."),
        ("study_changed_seconds", "gauge", "changed", "Time of the last change."),
    ):
        rows = [({"study": one["name"]}, one[field]) for one in studies[:_MOST_STUDIES]]
        yield from _family(name, kind, words, [row for row in rows if row[1] is not None])


def _family(
    name: str, kind: str, words: str, rows: Iterable[tuple[Mapping[str, str], float]]
) -> Iterator[str]:
    yield from _head(name, kind, words)
    for labels, value in rows:
        yield _line(name, labels, value)


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP simplexplore_{name} {words}"
    yield f"# TYPE simplexplore_{name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"simplexplore_{name}{{{inside}}} {value:.15g}".replace("{}", "")


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

"""What a service counts, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from simplexplore import __version__
from simplexplore.study.store import Totals

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Upper ends of the time classes, in seconds.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

# Methods that are counted by name. Anybody can invent others.
_METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")

# Studies that are counted one by one; the rest only in the totals.
MOST_STUDIES = 500


class Metrics:
    """Requests of this process: how many, how long, how many at the moment."""

    def __init__(self) -> None:
        to: dict[str, Any] = {"namespace": "simplexplore", "registry": CollectorRegistry()}
        self._registry = to["registry"]
        self.watchers = self.in_progress = 0
        Gauge("info", "The program's version.", ["version"], **to).labels(__version__).set(1)
        Gauge("start_time_seconds", "When this process started.", **to).set_to_current_time()
        under_way = Gauge("requests_in_progress", "Requests under way.", **to)
        under_way.set_function(lambda: self.in_progress)
        Gauge("watchers", "Open event streams.", **to).set_function(lambda: self.watchers)
        self._requests = Counter(
            "requests", "Requests answered.", ["method", "route", "status"], **to
        )
        self._seconds = Histogram(
            "request_seconds",
            "Time until a request was answered.",
            ["route"],
            buckets=_BUCKETS,
            **to,
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Add a request that was answered."""
        requests, times = self._counters(method if method in _METHODS else "other", route, status)
        requests.inc()
        times.observe(seconds)

    @cache  # noqa: B019 - looking them up takes longer than counting
    def _counters(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(method, route, status), self._seconds.labels(route)

    def text(self, totals: Totals, studies: Sequence[Mapping[str, Any]]) -> bytes:
        """Everything counted, studies by state, and how far some are (as `Study.list` says it)."""
        return generate_latest(_Scrape(self._registry, totals, studies))


@dataclass(frozen=True)
class _Scrape(Collector):
    """One reading of a registry and of studies."""

    registry: CollectorRegistry
    totals: Totals
    studies: Sequence[Mapping[str, Any]]

    def collect(self) -> Iterator[Metric]:
        for family in self.registry.collect():
            # A time of creation for every counter says nothing that is not known.
            family.samples = [
                _short(one) for one in family.samples if not one.name.endswith("_created")
            ]
            yield family
        yield from _of_studies(self.totals, self.studies)


def _short(sample: Sample) -> Sample:
    """The end of a time class as dashboards know it: 5, not 5.0."""
    if "le" not in sample.labels:
        return sample
    return sample._replace(labels=sample.labels | {"le": sample.labels["le"].removesuffix(".0")})


def _of_studies(totals: Totals, studies: Sequence[Mapping[str, Any]]) -> Iterator[Metric]:
    total = GaugeMetricFamily("simplexplore_studies", "Studies in the store.", labels=["state"])
    for state in ("running", "stopped", "paused", "archived"):
        total.add_metric([state], totals[state])
    yield total
    for kind, name, field, words in (
        (CounterMetricFamily, "asked", "asked", "Pulls given out."),
        (CounterMetricFamily, "rewards", "rewards", "Rewards taken in."),
        (GaugeMetricFamily, "pending", "pending", "Pulls without a reward."),
        (GaugeMetricFamily, "progress", "progress", "Share of the evidence needed."),
        (GaugeMetricFamily, "changed_seconds", "changed", "Time of the last change."),
    ):
        family = kind(f"simplexplore_study_{name}", words, labels=["study"])
        for one in studies:
            if one[field] is not None:
                family.add_metric([one["name"]], one[field])
        yield family

"""Counts of requests in Prometheus' format."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LABELS = ("method", "door")  # "door" is the endpoint's path; dashboards know the label by this name


class Metrics:
    """Counts requests by endpoint; unknown addresses count as one, so that nobody can fill the memory."""

    def __init__(self, running: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "citewell_requests", "Requests by endpoint and status.", (*_LABELS, "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "citewell_request_seconds",
            "Time to the last byte.",
            _LABELS,
            buckets=_BUCKETS_SECONDS,
            registry=self._registry,
        )
        gauge = Gauge("citewell_requests_running", "Requests being answered now.", registry=self._registry)
        gauge.set_function(running)

    def count(self, *, method: str, endpoint: str, status: int, seconds: float) -> None:
        method = method if method in _METHODS else "other"
        self._requests.labels(method, endpoint, str(status)).inc()
        self._seconds.labels(method, endpoint).observe(seconds)

    def as_text(self) -> bytes:
        """All counts in Prometheus' text format."""
        return generate_latest(self._registry)

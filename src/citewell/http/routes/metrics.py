"""`GET /metrics`: what a Prometheus server collects."""

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from citewell.http.auth import ADMIN, Admission, GuardedRoute, caller_of
from citewell.http.errors import DOCUMENTED

router = APIRouter(tags=["operating"], route_class=GuardedRoute, responses=DOCUMENTED)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counts requests by door; addresses that are no door count as one, so that nobody can fill the memory."""

    def __init__(self, gate: Admission) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "door")
        self._requests = Counter(
            "citewell_requests", "Requests by door and status.", (*labels, "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "citewell_request_seconds", "Time to the last byte.", labels, buckets=_BUCKETS, registry=self.registry
        )
        inside = Gauge("citewell_requests_running", "Requests being answered now.", registry=self.registry)
        inside.set_function(lambda: gate.running)

    def count(self, *, method: str, door: str, status: int, seconds: float) -> None:
        method = method if method in _METHODS else "other"
        self._requests.labels(method, door, str(status)).inc()
        self._seconds.labels(method, door).observe(seconds)


@router.get("/metrics", openapi_extra=ADMIN, response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Requests by door and status, their time, and how many run now, in Prometheus' text format."""
    caller_of(request).must_see_all()  # they count the requests of every project
    return Response(generate_latest(request.app.state.metrics.registry), media_type=CONTENT_TYPE_LATEST)

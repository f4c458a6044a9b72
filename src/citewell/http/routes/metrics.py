"""`GET /metrics`: what a Prometheus server collects."""

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from citewell.http.errors import DOCUMENTED
from citewell.http.route import ADMIN, GuardedRoute, caller_of
from citewell.http.state import state_of

router = APIRouter(tags=["operating"], route_class=GuardedRoute, responses=DOCUMENTED)


@router.get("/metrics", openapi_extra=ADMIN, response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Requests by endpoint and status, their time, and how many run now, in Prometheus' text format."""
    caller_of(request).must_see_all()  # they count the requests of every project
    return Response(state_of(request).metrics.as_text(), media_type=CONTENT_TYPE_LATEST)

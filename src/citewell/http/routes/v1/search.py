"""`POST /api/v1/search`: passages without an answer."""

from fastapi import APIRouter, Request

from citewell.answer.retrieval import retrieve
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import render_source
from citewell.http.route import ADMIN, GuardedRoute, project_of
from citewell.http.state import state_of
from citewell.models import NO_FILTERS
from citewell.schemas.v1.search import SearchRequest, SearchResponse

router = APIRouter(prefix="/api/v1", tags=["projects"], route_class=GuardedRoute, responses=DOCUMENTED)


@router.post("/search", openapi_extra=ADMIN)
async def search(body: SearchRequest, request: Request) -> SearchResponse:
    """The passages of a project that match a query, best first."""
    project = await project_of(request, body.projectId)
    retrieval = await retrieve(
        body.query,
        project=project.id,
        engines=state_of(request).answers.engines,
        limit=body.top_k,
        filters=body.filters.to_filters() if body.filters else NO_FILTERS,
    )
    results = [render_source(passage.chunk, cosine=passage.cosine) for passage in retrieval.passages]
    return SearchResponse(results=results)

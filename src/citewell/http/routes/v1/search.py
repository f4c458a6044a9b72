"""`POST /api/v1/search`: passages without an answer."""

from fastapi import APIRouter, Request

from citewell.answer.retrieval import retrieve
from citewell.http.auth import ADMIN, GuardedRoute, project_of
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import render_source
from citewell.models import NO_FILTERS, Filters
from citewell.schemas.chat import MetadataFilter
from citewell.schemas.v1.search import SearchRequest, SearchResponse

router = APIRouter(prefix="/api/v1", tags=["projects"], route_class=GuardedRoute, responses=DOCUMENTED)


@router.post("/search", openapi_extra=ADMIN)
async def search(body: SearchRequest, request: Request) -> SearchResponse:
    """Where a project's documents speak of something, best first."""
    project = await project_of(request, body.projectId)
    found = await retrieve(
        body.query,
        project=project.id,
        engines=request.app.state.reading.engines,
        limit=body.top_k,
        filters=where(body.filters),
    )
    return SearchResponse(results=[render_source(passage.chunk, score=passage.score) for passage in found.passages])


def where(filters: MetadataFilter | None) -> Filters:
    """What a search is narrowed to; raises BadFilter."""
    return Filters(source_url_prefix=filters.source_url_prefix, section=filters.section) if filters else NO_FILTERS

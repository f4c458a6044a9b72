"""`POST /api/v1/search`: passages without an answer."""

from fastapi import APIRouter, Request

from citewell.answer.retrieve import retrieve
from citewell.http.errors import DOCUMENTED
from citewell.http.gate import ADMIN, Door, project_of
from citewell.http.sources import source
from citewell.models import EVERYWHERE, Where
from citewell.wire.chat import MetadataFilter
from citewell.wire.search import SearchRequest, SearchResponse

router = APIRouter(prefix="/api/v1", tags=["projects"], route_class=Door, responses=DOCUMENTED)


@router.post("/search", openapi_extra=ADMIN)
async def search(body: SearchRequest, request: Request) -> SearchResponse:
    """Where a project's documents speak of something, best first."""
    project = await project_of(request, body.projectId)
    found = await retrieve(
        body.query,
        project=project.id,
        engines=request.app.state.reading.engines,
        limit=body.top_k,
        where=where(body.filters),
    )
    return SearchResponse(results=[source(passage.chunk, score=passage.score) for passage in found.passages])


def where(filters: MetadataFilter | None) -> Where:
    """What a search is narrowed to; raises BadFilter."""
    return Where(source_url_prefix=filters.source_url_prefix, section=filters.section) if filters else EVERYWHERE

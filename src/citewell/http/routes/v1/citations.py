"""`/api/v1/citations`: the chunk behind a citation, and whether the citation is still valid."""

from fastapi import APIRouter, Request
from starlette.routing import Match
from starlette.types import Scope

from citewell.answer.reply import citation_status, cited_ids, excerpt_after, excerpt_before
from citewell.errors import NotFound
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import render_source
from citewell.http.route import ASK, GuardedRoute, InProject, project_of
from citewell.http.state import state_of
from citewell.models import Trace
from citewell.schemas.fields import CitationId
from citewell.schemas.v1.citations import CitationDetail, Verdict, VerifyRequest, VerifyResponse

_CONTEXT_CHARACTERS = 600  # enough to read on, too few to read a whole document with a key that may only ask


class _CitationRoute(GuardedRoute):
    """Does not take `/citations/verify` for a chunk id."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return (Match.NONE, {}) if child.get("path_params", {}).get("chunk_id") == "verify" else (match, child)


router = APIRouter(prefix="/api/v1", tags=["citations"], route_class=_CitationRoute, responses=DOCUMENTED)


@router.post("/citations/verify", openapi_extra=ASK)
async def verify(body: VerifyRequest, request: Request) -> VerifyResponse:
    """The status of each chunk id, given or cited in an answer's text: valid, moved, changed, deleted or unknown."""
    project = await project_of(request, body.projectId)
    ids = list(dict.fromkeys([*body.ids, *cited_ids(body.answer or "")]))
    traces = await state_of(request).answers.library.trace(project.id, ids)
    return VerifyResponse(citations=[_verdict(chunk_id, traces.get(chunk_id, Trace())) for chunk_id in ids])


def _verdict(chunk_id: str, trace: Trace) -> Verdict:
    now = trace.current or trace.moved_to or trace.successor
    return Verdict(id=chunk_id, status=citation_status(trace), now=render_source(now) if now else None)


@router.get("/citations/{chunk_id}", openapi_extra=ASK)
async def get_citation(chunk_id: CitationId, request: Request, project_id: InProject = None) -> CitationDetail:
    """The chunk behind a citation, its place, and the text around it."""
    project = await project_of(request, project_id)
    library = state_of(request).answers.library
    trace = (await library.trace(project.id, [chunk_id])).get(chunk_id, Trace())
    status = citation_status(trace)
    if status == "unknown":
        raise NotFound("there is no such citation")
    now = trace.current or trace.moved_to or trace.successor
    surroundings = await library.surroundings(now.id, characters=_CONTEXT_CHARACTERS + 1) if now else None
    if not now or not surroundings:
        return CitationDetail(id=chunk_id, status="deleted")
    return CitationDetail(
        id=chunk_id,
        status=status,
        documentId=now.document_id,
        source=now.source,
        title=now.chapter,
        section=now.section,
        headings=list(now.headings),
        chunkIndex=now.index,
        chunkCount=surroundings.chunks,
        line=now.first_line,
        lastLine=now.last_line,
        page=now.page,
        chunkText=now.text,
        before=excerpt_before(surroundings.before, _CONTEXT_CHARACTERS),
        after=excerpt_after(surroundings.after, _CONTEXT_CHARACTERS),
        source_url=now.url,
    )

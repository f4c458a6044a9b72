"""`/api/v1/citations`: what was cited, and whether it still stands."""

import re
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.routing import Match
from starlette.types import Scope

from citewell.answer.reply import citation_status, cited_ids, excerpt_after, excerpt_before
from citewell.errors import NotFound
from citewell.http.auth import ASK, GuardedRoute, InProject, project_of
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import render_source
from citewell.models import Trace
from citewell.schemas.v1.citations import CitationDetail, Verdict, VerifyRequest, VerifyResponse

_ID = re.compile("[0-9a-f]{64}")
_AROUND = 600  # characters: enough to read on, too few to walk through a document with a key that may only ask


class _CitationDoor(GuardedRoute):
    """What is no chunk's id is nobody's address, so that `verify` is not taken for one."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        identity = child.get("path_params", {}).get("chunk_id")
        return (Match.NONE, {}) if identity is not None and not _ID.fullmatch(identity) else (match, child)


router = APIRouter(prefix="/api/v1", tags=["citations"], route_class=_CitationDoor, responses=DOCUMENTED)
ChunkId = Annotated[str, Path(json_schema_extra={"pattern": f"^{_ID.pattern}$"})]


@router.post("/citations/verify", openapi_extra=ASK)
async def verify(body: VerifyRequest, request: Request) -> VerifyResponse:
    """Of each chunk id, given or found in an answer's text: valid, moved, changed, deleted or unknown."""
    project = await project_of(request, body.projectId)
    ids = list(dict.fromkeys([*body.ids, *cited_ids(body.answer or "")]))
    traces = await request.app.state.reading.library.trace(project.id, [one for one in ids if _ID.fullmatch(one)])
    return VerifyResponse(citations=[_verdict(one, traces.get(one, Trace())) for one in ids])


def _verdict(identity: str, trace: Trace) -> Verdict:
    now = trace.current or trace.moved_to or trace.successor
    return Verdict(id=identity, status=citation_status(trace), now=render_source(now) if now else None)


@router.get("/citations/{chunk_id}", openapi_extra=ASK)
async def get_citation(chunk_id: ChunkId, request: Request, project_id: InProject = None) -> CitationDetail:
    """What stands behind a citation: the chunk, where it stands, and what stands around it."""
    project = await project_of(request, project_id)
    library = request.app.state.reading.library
    trace: Trace = (await library.trace(project.id, [chunk_id])).get(chunk_id, Trace())
    became = citation_status(trace)
    if became == "unknown":
        raise NotFound("there is no such citation")
    now = trace.current or trace.moved_to or trace.successor
    around = await library.surroundings(now.id, characters=_AROUND + 1) if now else None
    if not now or not around:
        return CitationDetail(id=chunk_id, status="deleted")
    return CitationDetail(
        id=chunk_id,
        status=became,
        documentId=now.document_id,
        source=now.source,
        title=now.chapter,
        section=now.section,
        headings=list(now.headings),
        chunkIndex=now.index,
        chunkCount=around.chunks,
        line=now.first_line,
        lastLine=now.last_line,
        page=now.page,
        chunkText=now.text,
        before=excerpt_before(around.before, _AROUND),
        after=excerpt_after(around.after, _AROUND),
        source_url=now.url,
    )

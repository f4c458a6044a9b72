"""`POST /api/query`: a question, and what the reader marked while asking it."""

from fastapi import APIRouter, Request

from citewell.answer import flow
from citewell.answer.reply import NumberedMarkers, locate
from citewell.http.auth import ASK, GuardedRoute, project_of
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import render_support
from citewell.models import Answer, Passage
from citewell.schemas.query import QueryRequest, QueryResponse, Source

router = APIRouter(tags=["query"], route_class=GuardedRoute, responses=DOCUMENTED)

_MOST_SOURCES = 5


@router.post("/api/query", openapi_extra=ASK)
async def query(body: QueryRequest, request: Request) -> QueryResponse:
    """Answer from the whole book; what was marked steers the search."""
    marks = NumberedMarkers(most=_MOST_SOURCES)
    pieces = flow.answer(
        body.query,
        project=await project_of(request),
        engines=request.app.state.reading.engines,
        top_k=_MOST_SOURCES,
        hint=(body.selected_text or "").strip(),
        buffered=True,
    )
    text, answer = await flow.collect(pieces, marks.render)
    named = marks.passages or answer.nearest or answer.retrieved
    return QueryResponse(
        answer=text,
        sources=[_source(passage, answer) for passage in named[:_MOST_SOURCES]],
        support=render_support(answer),
        notice=answer.notice or None,
    )


def _source(passage: Passage, answer: Answer) -> Source:
    chunk, place = passage.chunk, locate(answer, passage)
    return Source(
        chapter=chunk.chapter or chunk.source,
        section=chunk.section or chunk.chapter or chunk.source,
        filename=chunk.source,
        score=passage.score,
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        start=place.start,
        end=place.end,
        line=place.line,
        page=place.page,
        source_url=place.source_url,
    )

"""`POST /api/query`: a question, and what the reader marked while asking it."""

from fastapi import APIRouter, Request

from citewell.answer import flow
from citewell.answer.citations import Numbered
from citewell.answer.receipts import receipt
from citewell.http.errors import DOCUMENTED
from citewell.http.gate import ASK, Door, project_of
from citewell.http.sources import sentences
from citewell.models import Answer, Passage
from citewell.wire.query import QueryRequest, QueryResponse, Source

router = APIRouter(tags=["query"], route_class=Door, responses=DOCUMENTED)

_MOST_SOURCES = 5


@router.post("/api/query", openapi_extra=ASK)
async def query(body: QueryRequest, request: Request) -> QueryResponse:
    """Answer from the whole book; what was marked steers the search."""
    marks = Numbered(most=_MOST_SOURCES)
    pieces = flow.answer(
        body.query,
        project=await project_of(request),
        engines=request.app.state.reading.engines,
        top_k=_MOST_SOURCES,
        hint=(body.selected_text or "").strip(),
        at_once=True,
    )
    text, answer = await flow.whole(pieces, marks.render)
    named = marks.passages or answer.nearest or answer.found
    return QueryResponse(
        answer=text,
        sources=[_source(passage, answer) for passage in named[:_MOST_SOURCES]],
        support=sentences(answer),
        notice=answer.notice or None,
    )


def _source(passage: Passage, answer: Answer) -> Source:
    chunk, place = passage.chunk, receipt(answer, passage)
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

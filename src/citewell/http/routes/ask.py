"""`POST /api/ask` and `/api/ask/stream`: the web chat's door."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import APIRouter, Request

from citewell.answer import flow
from citewell.answer.reply import NumberedMarkers, locate
from citewell.http.auth import ASK, GuardedRoute, project_of
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import render_support, render_topics
from citewell.http.sse import EventStream, events_of, stream_response
from citewell.models import Answer, Passage, StageReached
from citewell.schemas.ask import AskRequest, AskResponse, Citation, StreamChunk
from citewell.schemas.errors import ErrorResponse

router = APIRouter(tags=["ask"], route_class=GuardedRoute, responses=DOCUMENTED)

_EXCERPT = 200


@router.post("/api/ask", openapi_extra=ASK)
async def ask(body: AskRequest, request: Request) -> AskResponse:
    """Answer a question from the default project, whole."""
    content: list[str] = []
    async for event in _events(body, request, at_once=True):
        content.append(event.content)
    return AskResponse(
        answer="".join(content),
        citations=event.citations or [],
        confidence=event.confidence or 0.0,
        nearest=event.nearest,
        support=event.support,
        notice=event.notice,
    )


@router.post(
    "/api/ask/stream", openapi_extra=ASK, response_class=EventStream, status_code=200, responses=events_of(StreamChunk)
)
async def ask_stream(body: AskRequest, request: Request) -> EventStream:
    """The same answer as server-sent events, piece by piece."""
    events = _events(body, request, at_once=False)
    first = await anext(events)  # what fails before the first byte is an HTTP error, not an event
    return stream_response(request, events, failed=_failed, first=first)


def _failed(problem: ErrorResponse) -> StreamChunk:
    return StreamChunk(content="", done=True, error=problem.message)


async def _events(body: AskRequest, request: Request, *, at_once: bool) -> AsyncGenerator[StreamChunk]:
    marks = NumberedMarkers()
    engines = request.app.state.reading.engines
    pieces = flow.answer(
        body.question,
        project=await project_of(request),
        engines=engines,
        top_k=body.top_k,
        buffered=at_once,
    )
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Answer):
                yield StreamChunk(
                    content="",
                    done=True,
                    citations=[citation(passage, piece) for passage in marks.passages],
                    confidence=round(piece.confidence, 4),
                    nearest=render_topics(piece),
                    support=render_support(piece),
                    notice=piece.notice or None,
                )
            elif words := marks.render(piece):
                yield StreamChunk(content=words)
            elif piece == StageReached("generating") and engines.writer:
                yield StreamChunk(content="")  # all that can be refused was; a model may take a while


def citation(passage: Passage, answer: Answer) -> Citation:
    chunk, place = passage.chunk, locate(answer, passage)
    return Citation(
        chapter=chunk.source.rsplit("/", 1)[-1].rsplit(".", 1)[0],
        chapter_title=chunk.chapter,
        source_file=chunk.source,
        excerpt=answer.excerpt(passage, length=_EXCERPT),
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        start=place.start,
        end=place.end,
        line=place.line,
        page=place.page,
        source_url=place.source_url,
    )

"""`POST /api/ask` and `/api/ask/stream`: the web chat's door."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, StringConstraints

from citewell.answer import flow
from citewell.answer.citations import Numbered
from citewell.http.errors import ErrorResponse, describe
from citewell.models import DEFAULT_PROJECT, Answer, Passage, Piece, Project, Reached

router = APIRouter(tags=["ask"])

_EXCERPT = 200
_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse},
    429: {"model": ErrorResponse},
    503: {"model": ErrorResponse},
}
# Proxies must pass each event on as it comes.
_STREAM_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


class AskRequest(BaseModel):
    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=1000)] = Field(
        examples=["Why do gyroscopes drift?"]
    )
    top_k: int = Field(5, ge=1, le=20, description="How many passages to look at.")


class Citation(BaseModel):
    chapter: str
    chapter_title: str
    source_file: str
    excerpt: str = Field(max_length=_EXCERPT)


class Topic(BaseModel):
    """What the book does cover; `url` is its live page, where it has one."""

    title: str
    url: str | None = None
    source_file: str


class AskResponse(BaseModel):
    """`[1]` in the answer is the first of the citations. Confidence 0 means the book does not say.

    Then `nearest` may name the topics it covers nearest to the question.
    """

    answer: str
    citations: list[Citation]
    confidence: float = Field(ge=0, le=1)
    nearest: list[Topic] | None = None


class StreamChunk(BaseModel):
    """One event; joined, every `content` gives the answer. Citations and confidence come with the last."""

    content: str
    done: bool = False
    citations: list[Citation] | None = None
    confidence: float | None = None
    nearest: list[Topic] | None = None
    error: str | None = None


@router.post("/api/ask", responses=_ERRORS, response_model_exclude_none=True)
async def ask(body: AskRequest, request: Request) -> AskResponse:
    """Answer a question from the default project, whole."""
    content: list[str] = []
    async for event in _events(body, request):
        content.append(event.content)
    return AskResponse(
        answer="".join(content),
        citations=event.citations or [],
        confidence=event.confidence or 0.0,
        nearest=event.nearest,
    )


@router.post("/api/ask/stream", response_class=StreamingResponse, responses=_ERRORS)
async def ask_stream(body: AskRequest, request: Request) -> StreamingResponse:
    """The same answer as server-sent events, piece by piece."""
    events = _events(body, request)
    first = await anext(events)  # what fails before the first byte is an HTTP error, not an event
    return StreamingResponse(as_sse(first, events), media_type="text/event-stream", headers=_STREAM_HEADERS)


async def _events(body: AskRequest, request: Request) -> AsyncIterator[StreamChunk]:
    marks = Numbered()
    pieces: AsyncIterator[Piece | Answer] = flow.answer(
        body.question,
        project=Project.named(DEFAULT_PROJECT),
        engines=request.app.state.reading.engines,
        top_k=body.top_k,
    )
    async for piece in pieces:
        if isinstance(piece, Answer):
            citations = [_citation(passage, piece) for passage in marks.passages]
            nearest = [_topic(passage) for passage in piece.nearest] or None
            certainty = round(piece.confidence, 4)
            yield StreamChunk(content="", done=True, citations=citations, confidence=certainty, nearest=nearest)
        elif not isinstance(piece, Reached):
            yield StreamChunk(content=marks.render(piece))


async def as_sse(first: StreamChunk, rest: AsyncIterator[StreamChunk]) -> AsyncIterator[str]:
    """The events as lines of a stream that always ends with `done`."""
    try:
        yield _line(first)
        async for event in rest:
            yield _line(event)
    except Exception as error:  # noqa: BLE001 (after the first byte, an error can only be an event)
        _, _, message = describe(error)
        yield _line(StreamChunk(content="", done=True, error=message))


def _line(event: StreamChunk) -> str:
    return f"data: {json.dumps(event.model_dump(exclude_none=True), ensure_ascii=False)}\n\n"


def _topic(passage: Passage) -> Topic:
    chunk = passage.chunk
    return Topic(title=chunk.topic, url=chunk.url, source_file=chunk.source)


def _citation(passage: Passage, answer: Answer) -> Citation:
    chunk = passage.chunk
    return Citation(
        chapter=chunk.source.rsplit("/", 1)[-1].rsplit(".", 1)[0],
        chapter_title=chunk.chapter,
        source_file=chunk.source,
        excerpt=answer.excerpt(passage, length=_EXCERPT),
    )

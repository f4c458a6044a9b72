"""`POST /chat`, `/chat/stream` and `/history/{session_id}`: a conversation that lasts.

Every exchange is kept, also when its reader leaves half-way; then what was said so far, marked incomplete.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Annotated
from uuid import UUID, uuid4

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel

from citewell.answer import flow
from citewell.answer.question import CONTEXT_EXCHANGES
from citewell.answer.reply import NumberedMarkers, citation_status, locate
from citewell.errors import BadRequest, CitewellError, WriterUnavailable
from citewell.http.auth import ASK, GuardedRoute, InProject, caller_of, project_of
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import render_support, render_topics
from citewell.http.routes.v1.search import where
from citewell.http.sse import EventStream, events_of, stream_response
from citewell.logs import request_id
from citewell.models import Answer, Exchange, Mode, Owner, Passage, Project, StageReached, StoredExchange, Trace
from citewell.ports import Sessions
from citewell.schemas.ask import Topic
from citewell.schemas.chat import (
    ChatEvent,
    ChatRequest,
    ChatResponse,
    HistoryEntry,
    HistoryResponse,
    ResponseMetadata,
    SelectedTextCitation,
    SourceCitation,
)
from citewell.schemas.errors import ErrorResponse
from citewell.schemas.fields import Uuid4
from citewell.schemas.support import SupportedSentence

_log = logging.getLogger("citewell.http")

router = APIRouter(tags=["chat"], route_class=GuardedRoute, responses=DOCUMENTED)

_SNIPPET = 200
_UNWRITTEN = "AI summarization unavailable"

Once = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="Your word for this very request: sent again, it gives what was kept, and nothing is doubled.",
    ),
]


@router.post("/chat", openapi_extra=ASK)
async def chat(body: ChatRequest, request: Request, once: Once = None, project_id: InProject = None) -> ChatResponse:
    """Answer in a session: the last five exchanges are understood as context."""
    begun = await _begun(body, request, once, await project_of(request, project_id))
    async with aclosing(_events(begun, request, at_once=True)) as events:
        async for event in events:
            if event.response:
                return event.response
    raise RuntimeError("an answer stream ends with a response")


@router.post(
    "/chat/stream", openapi_extra=ASK, response_class=EventStream, status_code=200, responses=events_of(ChatEvent)
)
async def chat_stream(
    body: ChatRequest, request: Request, once: Once = None, project_id: InProject = None
) -> EventStream:
    """The same as server-sent events: stages, pieces of text, then the whole response."""
    begun = await _begun(body, request, once, await project_of(request, project_id))
    return stream_response(request, _events(begun, request, at_once=False), failed=_failed)


@router.get("/history/{session_id}", openapi_extra=ASK)
async def history(
    session_id: Uuid4,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    project_id: InProject = None,
) -> HistoryResponse:
    """What was said in a session, oldest first; each citation says whether it still holds."""
    project = await project_of(request, project_id)
    sessions, library = request.app.state.keeping.sessions, request.app.state.reading.library
    owner = caller_of(request).owner(project)
    told, total = await sessions.history(session_id, owner, limit=limit, offset=offset)
    ids = {str(source["chunk_id"]) for one in told for source in one.sources if source.get("chunk_id")}
    traces: dict[str, Trace] = await library.trace(project.id, sorted(ids)) if ids else {}
    return HistoryResponse(session_id=session_id, entries=[_entry(one, traces) for one in told], total_entries=total)


@router.delete("/history/{session_id}", openapi_extra=ASK, status_code=204)
async def forget(session_id: Uuid4, request: Request, project_id: InProject = None) -> Response:
    """Forget a session and all that was said in it."""
    project = await project_of(request, project_id)
    await request.app.state.keeping.sessions.delete(session_id, caller_of(request).owner(project))
    return Response(status_code=204)


@dataclass(slots=True)
class _Exchange:
    """One question on its way through."""

    body: ChatRequest
    project: Project
    owner: Owner
    session: UUID
    once: str | None
    kept: StoredExchange | None
    """What an earlier try of the same request left."""
    told: list[Exchange]
    """What was said in the session before."""
    began: float = field(default_factory=perf_counter)
    said: list[str] = field(default_factory=list)
    keeping: "asyncio.Task[StoredExchange] | None" = None

    async def keep(self, sessions: Sessions, response: ChatResponse | None) -> StoredExchange:
        """Keep the exchange, once: whatever cancels the question does not cancel this."""
        if self.keeping is None:
            self.keeping = asyncio.create_task(
                sessions.record(self.recorded(response), self.owner, idempotency_key=self.once)
            )
        return await asyncio.shield(self.keeping)

    @property
    def selection(self) -> str:
        return (self.body.selected_text or "").strip() and (self.body.selected_text or "")

    def metadata(self, mode: Mode, *, found: int = 0, low_confidence: bool = False) -> ResponseMetadata:
        return ResponseMetadata(
            query_time_ms=round((perf_counter() - self.began) * 1000, 1),
            retrieval_count=found,
            mode=mode,
            low_confidence=low_confidence,
            request_id=UUID(request_id.get() or str(uuid4())),
        )

    def recorded(self, response: ChatResponse | None) -> StoredExchange:
        """As it is kept; without a response, what was said so far."""
        metadata = response.metadata if response else self.metadata("selected_text" if self.selection else "full")
        beside = response.model_dump(mode="json", include=set(_Beside.model_fields)) if response else {}
        return StoredExchange(
            session_id=self.session,
            timestamp=datetime.now(UTC),
            query=self.body.query,
            response="".join(self.said) if response is None else response.answer or response.fallback_message or "",
            sources=tuple(one.model_dump(mode="json") for one in response.sources) if response else (),
            metadata=metadata.model_dump(mode="json") | (beside or {"incomplete": True}),
            complete=response is not None,
        )


async def _begun(body: ChatRequest, request: Request, once: str | None, project: Project) -> _Exchange:
    """All that can be refused is refused here, before the first byte."""
    where(body.filters)
    owner = caller_of(request).owner(project)
    sessions = request.app.state.keeping.sessions
    kept: StoredExchange | None = await sessions.find_by_key(once, owner) if once else None
    asked = body.query.replace("\0", "\ufffd")  # as it is kept
    if kept and (kept.query != asked or body.session_id not in (None, kept.session_id)):
        raise BadRequest("this Idempotency-Key was used for another question")
    session = kept.session_id if kept else body.session_id or uuid4()
    recent = await sessions.recent(session, owner, limit=CONTEXT_EXCHANGES)
    told = [replace(one, answer="") if one.answer == _UNWRITTEN else one for one in recent]
    return _Exchange(body, project, owner, session, once, kept, told)


async def _events(one: _Exchange, request: Request, *, at_once: bool) -> AsyncGenerator[ChatEvent]:
    if one.kept and one.kept.complete:
        response = _as_told(one.kept)
        yield ChatEvent(delta=response.answer or "")
        yield ChatEvent(done=True, response=response)
        return
    sessions = request.app.state.keeping.sessions
    marks = NumberedMarkers()
    pieces = flow.answer(
        one.body.query,
        project=one.project,
        engines=request.app.state.reading.engines,
        history=one.told,
        filters=where(one.body.filters),
        selection=one.selection,
        fallback="sources",
        buffered=at_once,
    )
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, StageReached):
                    yield ChatEvent(stage=piece.stage)
                elif isinstance(piece, Answer):
                    kept = await one.keep(sessions, _response(one, piece, marks))
                    yield ChatEvent(done=True, response=_as_told(kept))
                elif words := marks.render(piece):
                    one.said.append(words)
                    yield ChatEvent(delta=words)
    except (asyncio.CancelledError, GeneratorExit, WriterUnavailable):
        try:
            await one.keep(sessions, None)  # the reader left, or the writer did
        except CitewellError as error:  # and nobody is there to be told
            _log.warning("what was said could not be kept: %s", error)
        raise


def _failed(problem: ErrorResponse) -> ChatEvent:
    return ChatEvent(done=True, error=problem)


def _response(one: _Exchange, answer: Answer, marks: NumberedMarkers) -> ChatResponse:
    sources: list[SourceCitation | SelectedTextCitation]
    unwritten = answer.mode == "retrieval_only"
    if one.selection:
        if unwritten:
            note = "What was selected; nobody was there to answer from it."
        elif answer.confidence > 0:
            note = "The answer rests on this selection."
        else:
            note = "This selection does not answer the question."
        snippet = one.selection.strip()[:_SNIPPET]
        length = len(one.selection)
        sources = [SelectedTextCitation(selection_length=length, snippet=snippet, relevance_note=note)]
    elif unwritten:
        sources = [_source(passage, answer) for passage in answer.retrieved]
    else:
        quotes = marks.quotes(answer)
        sources = [_source(passage, answer, rests) for passage, rests in zip(marks.passages, quotes, strict=True)]
    found = 0 if one.selection else len(answer.retrieved)
    return ChatResponse(
        answer=None if unwritten else "".join(one.said),
        fallback_message=_UNWRITTEN if unwritten else None,
        sources=sources,
        metadata=one.metadata(answer.mode, found=found, low_confidence=answer.low_confidence),
        session_id=one.session,
        confidence=round(answer.confidence, 4),
        nearest=render_topics(answer),
        support=render_support(answer),
        notice=answer.notice or None,
    )


def _source(passage: Passage, answer: Answer, quotes: list[str | None] | None = None) -> SourceCitation:
    chunk, place = passage.chunk, locate(answer, passage)
    return SourceCitation(
        source_url=place.source_url or f"/{chunk.source}",
        title=chunk.chapter,
        section=chunk.section or chunk.chapter,
        chunk_position=chunk.index,
        similarity_score=min(1.0, max(0.0, passage.score)),
        snippet=chunk.text[:_SNIPPET],
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        quotes=quotes,
        start=place.start,
        end=place.end,
        line=place.line,
        page=place.page,
    )


def _as_told(kept: StoredExchange) -> ChatResponse:
    """The response that a kept exchange was told as."""
    metadata = ResponseMetadata.model_validate(kept.metadata)
    unanswered = metadata.mode == "retrieval_only"
    beside = _Beside.model_validate(kept.metadata)
    return ChatResponse(
        answer=None if unanswered else kept.response,
        fallback_message=kept.response if unanswered else None,
        sources=[_as_kept(source) for source in kept.sources],
        metadata=metadata,
        session_id=kept.session_id,
        confidence=beside.confidence,
        nearest=beside.nearest,
        support=beside.support,
        notice=beside.notice,
    )


def _entry(kept: StoredExchange, traces: dict[str, Trace]) -> HistoryEntry:
    """A kept exchange as a history shows it."""
    beside = _Beside.model_validate(kept.metadata)
    return HistoryEntry(
        timestamp=kept.timestamp,
        query=kept.query,
        response=kept.response,
        sources=[_as_kept(source, traces) for source in kept.sources],
        complete=kept.complete,
        metadata=ResponseMetadata.model_validate(kept.metadata) if kept.metadata else None,
        confidence=beside.confidence,
        nearest=beside.nearest,
        support=beside.support,
        notice=beside.notice,
        feedback=kept.feedback,
    )


class _Beside(BaseModel):
    """What is kept of an answer beside its metadata, and in one object with it."""

    confidence: float | None = None
    nearest: list[Topic] | None = None
    support: list[SupportedSentence] | None = None
    notice: str | None = None


def _as_kept(
    source: dict[str, object], traces: dict[str, Trace] | None = None
) -> SourceCitation | SelectedTextCitation:
    """A source as it was given; with traces, and whether it still holds."""
    if "source_type" in source:
        return SelectedTextCitation.model_validate(source)
    cited = SourceCitation.model_validate(source)
    if traces is None:
        return cited
    return cited.model_copy(update={"status": citation_status(traces.get(cited.chunk_id or "", Trace()), cited.start)})

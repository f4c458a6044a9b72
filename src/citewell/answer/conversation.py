"""A conversation that the server stores: its context, idempotent retries, saving, history and replay.

Every exchange is stored, also when its reader leaves half-way: then the text so far, marked incomplete. Knows no HTTP
and no schema: the sources and fields that a reader is shown beside the text are JSON that the caller renders.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import TypeAlias, TypeVar, cast
from uuid import UUID, uuid4

from citewell.answer import flow
from citewell.answer.engines import AnswerEngines
from citewell.answer.question import CONTEXT_EXCHANGES
from citewell.answer.reply import ChunkIdMarkers, NumberedMarkers, citation_status
from citewell.errors import CitewellError, IdempotencyConflict, WriterUnavailable
from citewell.models import (
    NO_FILTERS,
    Answer,
    Exchange,
    Filters,
    Mode,
    Owner,
    Passage,
    Piece,
    Project,
    StageReached,
    StoredExchange,
    Trace,
    Vote,
)
from citewell.ports import Library, Sessions

_log = logging.getLogger("citewell.answer")

FALLBACK_MESSAGE = "AI summarization unavailable"
"""Stored and shown in place of an answer where only sources could be given."""

_FINGERPRINT = "request_fingerprint"
_KEY_USED = "this Idempotency-Key was used for another request; send a new key with every new request"

JsonObject: TypeAlias = dict[str, object]
Markers: TypeAlias = NumberedMarkers | ChunkIdMarkers

EndT = TypeVar("EndT")


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer with its citation markers in the text, and the passages they refer to."""

    text: str
    answer: Answer
    _markers: Markers

    @property
    def passages(self) -> list[Passage]:
        """Each passage that is cited, in order of first use."""
        return self._markers.passages

    def quotes(self) -> list[list[str | None]]:
        """For each cited passage the words that each of its markers rests on; none where markers are chunk ids."""
        return self._markers.quotes(self.answer) if isinstance(self._markers, NumberedMarkers) else []


async def mark_citations(
    pieces: AsyncGenerator[Piece | Answer, None], markers: Markers
) -> AsyncGenerator[StageReached | str | Reply, None]:
    """The flow's stream with each citation as a marker in the text, and a `Reply` at its end."""
    texts: list[str] = []
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, StageReached):
                yield piece
            elif isinstance(piece, Answer):
                yield Reply("".join(texts), piece, markers)
            elif text := markers.render(piece):
                texts.append(text)
                yield text


async def last_event(stream: AsyncGenerator[StageReached | str | EndT, None]) -> EndT:
    """What a stream ends with, for a caller that does not show it piece by piece."""
    async with aclosing(stream):
        async for event in stream:
            if not isinstance(event, StageReached | str):
                return event
    raise RuntimeError("an answer stream ends with the whole answer")


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """A question in a session, as a client sends it."""

    query: str
    request_id: UUID
    session_id: UUID | None = None
    """None begins a new session."""
    idempotency_key: str | None = None
    """The client's name for this request: sent again, it gets what was stored."""
    selection: str = ""
    """If given, the answer comes from this text alone."""
    filters: Filters = NO_FILTERS

    @property
    def fingerprint(self) -> str:
        """A hash of all that was asked: an Idempotency-Key names one request, not another with the same words."""
        session = str(self.session_id) if self.session_id else None
        filters = {name: value for name, value in asdict(self.filters).items() if value is not None}
        parts = [self.query, self.selection, session, filters]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def matches(self, stored: StoredExchange) -> bool:
        """Whether an exchange stored under this Idempotency-Key is the one that is asked for."""
        if fingerprint := stored.metadata.get(_FINGERPRINT):
            return fingerprint == self.fingerprint
        # Older versions stored no fingerprint.
        same_query = stored.query == self.query.replace("\0", "\ufffd")
        return same_query and self.session_id in (None, stored.session_id)


@dataclass(frozen=True, slots=True)
class ExchangeMetadata:
    """How an exchange was answered."""

    query_time_ms: float
    retrieval_count: int
    mode: Mode
    low_confidence: bool
    request_id: UUID


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a reader was shown beside the text, as JSON."""

    sources: tuple[JsonObject, ...] = ()
    fields: JsonObject = field(default_factory=dict)
    """Confidence, support, notice and whatever else an answer shows. Stored as it is, whatever its names."""


Render: TypeAlias = Callable[[Reply], Rendered]


@dataclass(frozen=True, slots=True)
class ExchangeRecord:
    """An exchange as it is stored, replayed and listed in a history."""

    session_id: UUID
    timestamp: datetime
    query: str
    text: str
    rendered: Rendered
    metadata: ExchangeMetadata | None
    """None where the stored exchange has none."""
    complete: bool = True
    feedback: Vote | None = None

    @property
    def has_answer(self) -> bool:
        """Whether the text is an answer; otherwise it is the message that stands in its place."""
        return self.metadata is None or self.metadata.mode != "retrieval_only"

    def to_stored(self) -> StoredExchange:
        metadata: JsonObject = (
            asdict(self.metadata) | {"request_id": str(self.metadata.request_id)} if self.metadata else {}
        )
        return StoredExchange(
            session_id=self.session_id,
            timestamp=self.timestamp,
            query=self.query,
            response=self.text,
            sources=self.rendered.sources,
            metadata=metadata | (self.rendered.fields if self.complete else {"incomplete": True}),
            complete=self.complete,
        )

    @classmethod
    def from_stored(cls, stored: StoredExchange) -> "ExchangeRecord":
        return cls(
            session_id=stored.session_id,
            timestamp=stored.timestamp,
            query=stored.query,
            text=stored.response,
            rendered=Rendered(stored.sources, stored.metadata),
            metadata=_metadata(stored.metadata),
            complete=stored.complete,
            feedback=stored.feedback,
        )


def _metadata(stored: JsonObject) -> ExchangeMetadata | None:
    """How an exchange was answered; None where another program stored it and does not say."""
    try:
        return ExchangeMetadata(
            query_time_ms=float(cast("float", stored["query_time_ms"])),
            retrieval_count=int(cast("int", stored["retrieval_count"])),
            mode=cast("Mode", stored["mode"]),
            low_confidence=bool(stored.get("low_confidence")),
            request_id=UUID(str(stored["request_id"])),
        )
    except (KeyError, TypeError, ValueError):
        return None


@dataclass(slots=True)
class PendingExchange:
    """A question that was accepted; `stream` answers and stores it."""

    question: ChatQuestion
    project: Project
    owner: Owner
    session_id: UUID
    context: Sequence[Exchange]
    """The exchanges of the session that the question may refer to."""
    replay: ExchangeRecord | None
    """What an earlier try of the same request stored, if it is complete."""
    _sessions: Sessions
    _started_at: float = field(default_factory=perf_counter)
    _texts: list[str] = field(default_factory=list)
    _saving: "asyncio.Task[StoredExchange] | None" = None

    async def stream(
        self, engines: AnswerEngines, render: Render, *, buffered: bool
    ) -> AsyncGenerator[StageReached | str | ExchangeRecord, None]:
        """Stages and text as they come, then the record that was stored."""
        if self.replay:
            yield self.replay.text if self.replay.has_answer else ""
            yield self.replay
            return
        pieces = flow.answer(
            self.question.query,
            project=self.project,
            engines=engines,
            history=self.context,
            filters=self.question.filters,
            selection=self.question.selection,
            fallback="sources",
            buffered=buffered,
        )
        try:
            async with aclosing(mark_citations(pieces, NumberedMarkers())) as events:
                async for event in events:
                    if isinstance(event, Reply):
                        yield await self._save(self._complete(event, render(event)))
                    else:
                        if isinstance(event, str):
                            self._texts.append(event)
                        yield event
        except (asyncio.CancelledError, GeneratorExit, WriterUnavailable):
            try:
                await self._save(self._incomplete())  # the reader left, or the LLM failed
            except CitewellError as error:  # the reader has gone: only the log can say it
                _log.warning("an incomplete exchange could not be stored: %s", error)
            raise

    async def _save(self, record: ExchangeRecord) -> ExchangeRecord:
        """Store the exchange, once: what cancels the question does not cancel this."""
        key = self.question.idempotency_key
        if self._saving is None:
            exchange = record.to_stored()
            if key:
                exchange = replace(exchange, metadata={**exchange.metadata, _FINGERPRINT: self.question.fingerprint})
            self._saving = asyncio.create_task(self._sessions.record(exchange, self.owner, idempotency_key=key))
        stored = await asyncio.shield(self._saving)
        if key and not self.question.matches(stored):  # another request with this key came in at the same time
            raise IdempotencyConflict(_KEY_USED)
        return ExchangeRecord.from_stored(stored)

    def _complete(self, reply: Reply, rendered: Rendered) -> ExchangeRecord:
        answer, selection = reply.answer, self.question.selection
        text = FALLBACK_MESSAGE if answer.mode == "retrieval_only" else reply.text
        metadata = self._metadata(
            answer.mode,
            retrieval_count=0 if selection else len(answer.retrieved),
            low_confidence=answer.low_confidence,
        )
        return self._record(text, rendered, metadata, complete=True)

    def _incomplete(self) -> ExchangeRecord:
        metadata = self._metadata("selected_text" if self.question.selection else "full")
        return self._record("".join(self._texts), Rendered(), metadata, complete=False)

    def _record(self, text: str, rendered: Rendered, metadata: ExchangeMetadata, *, complete: bool) -> ExchangeRecord:
        return ExchangeRecord(
            session_id=self.session_id,
            timestamp=self._timestamp(),
            query=self.question.query,
            text=text,
            rendered=rendered,
            metadata=metadata,
            complete=complete,
        )

    def _timestamp(self) -> datetime:
        """Now, or just after the exchange before, so that a clock that was set back does not reorder the history."""
        now, before = datetime.now(UTC), self.context[-1].timestamp if self.context else None
        return now if before is None else max(now, before + timedelta(microseconds=1))

    def _metadata(self, mode: Mode, *, retrieval_count: int = 0, low_confidence: bool = False) -> ExchangeMetadata:
        return ExchangeMetadata(
            query_time_ms=round((perf_counter() - self._started_at) * 1000, 1),
            retrieval_count=retrieval_count,
            mode=mode,
            low_confidence=low_confidence,
            request_id=self.question.request_id,
        )


async def begin_exchange(
    question: ChatQuestion, *, project: Project, owner: Owner, sessions: Sessions
) -> PendingExchange:
    """Accept a question; raises IdempotencyConflict or NotFound here, before anything is answered."""
    key = question.idempotency_key
    stored = await sessions.find_by_key(key, owner) if key else None
    if stored and not question.matches(stored):
        raise IdempotencyConflict(_KEY_USED)
    session_id = stored.session_id if stored else question.session_id or uuid4()
    recent = await sessions.recent(session_id, owner, limit=CONTEXT_EXCHANGES)
    context = [replace(exchange, answer="") if exchange.answer == FALLBACK_MESSAGE else exchange for exchange in recent]
    replay = ExchangeRecord.from_stored(stored) if stored and stored.complete else None
    return PendingExchange(question, project, owner, session_id, context, replay, sessions)


async def read_history(
    session_id: UUID, owner: Owner, *, sessions: Sessions, library: Library, limit: int, offset: int
) -> tuple[list[ExchangeRecord], int]:
    """The exchanges of a session, oldest first, each source with its citation status; and how many there are."""
    stored, total = await sessions.history(session_id, owner, limit=limit, offset=offset)
    chunk_ids = {str(source["chunk_id"]) for row in stored for source in row.sources if source.get("chunk_id")}
    traces = await library.trace(owner.project, sorted(chunk_ids)) if chunk_ids else {}
    return [_with_status(ExchangeRecord.from_stored(row), traces) for row in stored], total


def _with_status(record: ExchangeRecord, traces: dict[str, Trace]) -> ExchangeRecord:
    sources = tuple(
        source if "source_type" in source else source | {"status": _status(source, traces)}
        for source in record.rendered.sources
    )
    return replace(record, rendered=replace(record.rendered, sources=sources))


def _status(source: JsonObject, traces: dict[str, Trace]) -> str:
    trace = traces.get(str(source.get("chunk_id") or ""), Trace())
    start = source.get("start")
    return citation_status(trace, start if isinstance(start, int) else None)

"""`POST /chat`, `/chat/stream` and `/history/{session_id}`: conversations that the server stores."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated
from uuid import UUID, uuid4

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import ValidationError

from citewell.answer.conversation import (
    ChatQuestion,
    ExchangeRecord,
    PendingExchange,
    Rendered,
    Reply,
    begin_exchange,
    last_event,
    read_history,
)
from citewell.http.errors import CONFLICT, DOCUMENTED
from citewell.http.rendering import chat_event_renderer, fill_fields, render_answer_fields, render_chat_source
from citewell.http.route import ASK, GuardedRoute, InProject, caller_of, project_of
from citewell.http.sse import EventStream, describe_events, stream_response
from citewell.http.state import state_of
from citewell.logs import request_id
from citewell.models import NO_FILTERS, Answer
from citewell.schemas.answer import RatedAnswerFields
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
from citewell.schemas.fields import Uuid4

router = APIRouter(tags=["chat"], route_class=GuardedRoute, responses=DOCUMENTED)

_SNIPPET_CHARACTERS = 200

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="Your name for this request: sent again, it returns the stored response, and nothing is doubled.",
    ),
]


@router.post("/chat", openapi_extra=ASK, responses=CONFLICT)
async def chat(
    body: ChatRequest, request: Request, idempotency_key: IdempotencyKey = None, project_id: InProject = None
) -> ChatResponse:
    """Answer in a session: the last five exchanges are understood as context."""
    exchange = await _begin(body, request, idempotency_key, project_id)
    engines = state_of(request).answers.engines
    return _response(await last_event(exchange.stream(engines, _renderer(exchange), buffered=True)))


@router.post(
    "/chat/stream",
    openapi_extra=ASK,
    response_class=EventStream,
    status_code=200,
    responses=describe_events(ChatEvent) | CONFLICT,
)
async def chat_stream(
    body: ChatRequest, request: Request, idempotency_key: IdempotencyKey = None, project_id: InProject = None
) -> EventStream:
    """The same as server-sent events: stages, pieces of text, then the whole response."""
    exchange = await _begin(body, request, idempotency_key, project_id)
    engines = state_of(request).answers.engines
    renderer = chat_event_renderer(ChatEvent, _end)
    events = renderer.render(exchange.stream(engines, _renderer(exchange), buffered=False))
    return await stream_response(request, events, render_error=renderer.error)


@router.get("/history/{session_id}", openapi_extra=ASK)
async def history(
    session_id: Uuid4,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    project_id: InProject = None,
) -> HistoryResponse:
    """The exchanges of a session, oldest first; each citation says whether it still holds."""
    owner = caller_of(request).owner(await project_of(request, project_id))
    state = state_of(request)
    records, total = await read_history(
        session_id,
        owner,
        sessions=state.stores.sessions,
        library=state.answers.library,
        limit=limit,
        offset=offset,
    )
    return HistoryResponse(session_id=session_id, entries=[_entry(record) for record in records], total_entries=total)


@router.delete("/history/{session_id}", openapi_extra=ASK, status_code=204)
async def forget(session_id: Uuid4, request: Request, project_id: InProject = None) -> Response:
    """Delete a session and all its exchanges."""
    project = await project_of(request, project_id)
    await state_of(request).stores.sessions.delete(session_id, caller_of(request).owner(project))
    return Response(status_code=204)


async def _begin(
    body: ChatRequest, request: Request, idempotency_key: str | None, project_id: UUID | None
) -> PendingExchange:
    """Everything that can be refused is refused here, before the first byte."""
    project = await project_of(request, project_id)
    question = ChatQuestion(
        body.query,
        UUID(request_id.get() or str(uuid4())),
        session_id=body.session_id,
        idempotency_key=idempotency_key,
        selection=body.selected_text or "",
        filters=body.filters.to_filters() if body.filters else NO_FILTERS,
    )
    owner = caller_of(request).owner(project)
    return await begin_exchange(question, project=project, owner=owner, sessions=state_of(request).stores.sessions)


def _renderer(exchange: PendingExchange) -> Callable[[Reply], Rendered]:
    """Renders what is shown, and stored, beside the text of an answer."""

    def render(reply: Reply) -> Rendered:
        sources = _sources(reply, exchange.question.selection)
        return Rendered(
            sources=tuple(source.model_dump(mode="json") for source in sources),
            fields=render_answer_fields(reply.answer).model_dump(mode="json"),
        )

    return render


def _sources(reply: Reply, selection: str) -> Sequence[SourceCitation | SelectedTextCitation]:
    answer = reply.answer
    if selection:
        return [_selection_source(selection, answer)]
    if answer.mode == "retrieval_only":
        return [render_chat_source(passage, answer) for passage in answer.retrieved]
    cited = zip(reply.passages, reply.quotes(), strict=True)
    return [render_chat_source(passage, answer, quotes=quotes) for passage, quotes in cited]


def _selection_source(selection: str, answer: Answer) -> SelectedTextCitation:
    if answer.mode == "retrieval_only":
        note = "The selected text; no language model was available to answer from it."
    elif answer.confidence == 0:
        note = "This selection does not answer the question."
    elif all(segment.support.verdict == "supported" for segment in answer.segments if segment.support):
        note = "The answer rests on this selection."
    else:
        note = "The answer rests only partly on this selection."
    snippet = selection.strip()[:_SNIPPET_CHARACTERS]
    return SelectedTextCitation(selection_length=len(selection), snippet=snippet, relevance_note=note)


def _end(record: ExchangeRecord) -> ChatEvent:
    return ChatEvent(done=True, response=_response(record))


def _response(record: ExchangeRecord) -> ChatResponse:
    """The response that an exchange was answered with, also when it is replayed."""
    response = ChatResponse(
        answer=record.text if record.has_answer else None,
        fallback_message=None if record.has_answer else record.text,
        sources=_stored_sources(record),
        metadata=ResponseMetadata.model_validate(record.metadata, from_attributes=True),
        session_id=record.session_id,
    )
    return fill_fields(response, RatedAnswerFields.model_validate(record.rendered.fields))


def _entry(record: ExchangeRecord) -> HistoryEntry:
    entry = HistoryEntry(
        timestamp=record.timestamp,
        query=record.query,
        response=record.text,
        sources=_stored_sources(record),
        complete=record.complete,
        feedback=record.feedback,
    )
    # Another program may have stored the exchange: what it wrote in another shape is left out.
    with suppress(ValidationError):
        entry = fill_fields(entry, RatedAnswerFields.model_validate(record.rendered.fields))
    with suppress(ValidationError):
        if record.metadata:
            entry.metadata = ResponseMetadata.model_validate(record.metadata, from_attributes=True)
    return entry


def _stored_sources(record: ExchangeRecord) -> list[SourceCitation | SelectedTextCitation]:
    sources: list[SourceCitation | SelectedTextCitation] = []
    for source in record.rendered.sources:
        with suppress(ValidationError):  # as above
            sources.append(
                SelectedTextCitation.model_validate(source)
                if "source_type" in source
                else SourceCitation.model_validate(source)
            )
    return sources

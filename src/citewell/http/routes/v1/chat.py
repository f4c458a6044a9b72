"""`POST /api/v1/chat` and `/api/v1/chat/stream`: any project; the client keeps the conversation."""

from collections.abc import AsyncGenerator, Callable, Sequence
from time import perf_counter

from fastapi import APIRouter, Request

from citewell.answer import flow
from citewell.answer.conversation import Reply, last_event, mark_citations
from citewell.answer.reply import ChunkIdMarkers
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import chat_event_renderer, fill_fields, render_answer_fields, render_cited_source
from citewell.http.route import ASK, GuardedRoute, project_of
from citewell.http.sse import EventStream, describe_events, stream_response
from citewell.http.state import state_of
from citewell.models import Exchange, StageReached
from citewell.schemas.v1.chat import ChatEvent, ChatRequest, ChatResponse, HistoryMessage, Message

router = APIRouter(prefix="/api/v1", tags=["projects"], route_class=GuardedRoute, responses=DOCUMENTED)


@router.post("/chat", openapi_extra=ASK)
async def v1_chat(body: ChatRequest, request: Request) -> ChatResponse:
    """Answer from a project. `[<chunk id>]` in the response names an entry of `sources`."""
    render = _renderer(body)
    return render(await last_event(await _stream(body, request, buffered=True)))


@router.post(
    "/chat/stream", openapi_extra=ASK, response_class=EventStream, status_code=200, responses=describe_events(ChatEvent)
)
async def v1_chat_stream(body: ChatRequest, request: Request) -> EventStream:
    """The same as server-sent events: stages, pieces of text, then the whole response."""
    render = _renderer(body)

    def render_end(reply: Reply) -> ChatEvent:
        return ChatEvent(done=True, response=render(reply))

    renderer = chat_event_renderer(ChatEvent, render_end)
    events = renderer.render(await _stream(body, request, buffered=False))
    return await stream_response(request, events, render_error=renderer.error)


async def _stream(
    body: ChatRequest, request: Request, *, buffered: bool
) -> AsyncGenerator[StageReached | str | Reply, None]:
    pieces = flow.answer(
        body.message,
        project=await project_of(request, body.projectId),
        engines=state_of(request).answers.engines,
        history=pair_messages(body.history or []),
        buffered=buffered,
    )
    return mark_citations(pieces, ChunkIdMarkers())


def _renderer(body: ChatRequest) -> Callable[[Reply], ChatResponse]:
    """Renders the reply to a request; its duration counts from now."""
    started_at = perf_counter()

    def render(reply: Reply) -> ChatResponse:
        answer = reply.answer
        messages = [
            *(Message(role=message.role, content=message.content) for message in body.history or ()),
            Message(role="user", content=body.message),
            Message(role="assistant", content=reply.text),
        ]
        response = ChatResponse(
            response=reply.text,
            messages=messages,
            sources=[render_cited_source(passage, answer) for passage in reply.passages],
            model=answer.model,
            totalDuration=round((perf_counter() - started_at) * 1000),
            promptEvalCount=answer.usage.prompt_tokens if answer.usage else None,
            evalCount=answer.usage.answer_tokens if answer.usage else None,
        )
        return fill_fields(response, render_answer_fields(answer))

    return render


def pair_messages(messages: Sequence[HistoryMessage]) -> list[Exchange]:
    """Each question with the answer that followed it; a question without an answer has an empty one."""
    exchanges: list[Exchange] = []
    for message in messages:
        match message.role:
            case "user":
                exchanges.append(Exchange(message.content, ""))
            case "assistant" if exchanges and not exchanges[-1].answer:
                exchanges[-1] = Exchange(exchanges[-1].question, message.content)
            case _:
                pass
    return exchanges

"""`POST /api/v1/chat` and `/api/v1/chat/stream`: any project, the conversation kept by the client."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from time import perf_counter

from fastapi import APIRouter, Request

from citewell.answer import flow
from citewell.answer.reply import ChunkIdMarkers
from citewell.http.auth import ASK, GuardedRoute, project_of
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import render_cited_source, render_support
from citewell.http.sse import EventStream, events_of, stream_response
from citewell.models import Answer, Exchange, Project, StageReached
from citewell.schemas.errors import ErrorResponse
from citewell.schemas.v1.chat import ChatEvent, ChatRequest, ChatResponse, Message

router = APIRouter(prefix="/api/v1", tags=["projects"], route_class=GuardedRoute, responses=DOCUMENTED)


@router.post("/chat", openapi_extra=ASK)
async def v1_chat(body: ChatRequest, request: Request) -> ChatResponse:
    """Answer from a project. `[<chunk id>]` in the response names an entry of `sources`."""
    async with aclosing(_events(body, await project_of(request, body.projectId), request, at_once=True)) as events:
        async for event in events:
            if event.response:
                return event.response
    raise RuntimeError("an answer stream ends with a response")


@router.post(
    "/chat/stream", openapi_extra=ASK, response_class=EventStream, status_code=200, responses=events_of(ChatEvent)
)
async def v1_chat_stream(body: ChatRequest, request: Request) -> EventStream:
    """The same as server-sent events: stages, pieces of text, then the whole response."""
    events = _events(body, await project_of(request, body.projectId), request, at_once=False)
    return stream_response(request, events, failed=_failed)


def _failed(problem: ErrorResponse) -> ChatEvent:
    return ChatEvent(done=True, error=problem)


async def _events(body: ChatRequest, project: Project, request: Request, *, at_once: bool) -> AsyncGenerator[ChatEvent]:
    began = perf_counter()
    marks, said = ChunkIdMarkers(), list[str]()
    history = body.history or []
    pieces = flow.answer(
        body.message,
        project=project,
        engines=request.app.state.reading.engines,
        history=exchanges(history),
        buffered=at_once,
    )
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, StageReached):
                yield ChatEvent(stage=piece.stage)
            elif isinstance(piece, Answer):
                text = "".join(said)
                spoken = [Message(role="user", content=body.message), Message(role="assistant", content=text)]
                response = ChatResponse(
                    response=text,
                    messages=[*history, *spoken],
                    sources=[render_cited_source(passage, piece) for passage in marks.passages],
                    model=piece.model,
                    totalDuration=round((perf_counter() - began) * 1000),
                    promptEvalCount=piece.usage.prompt_tokens if piece.usage else None,
                    evalCount=piece.usage.answer_tokens if piece.usage else None,
                    support=render_support(piece),
                    notice=piece.notice or None,
                )
                yield ChatEvent(done=True, response=response)
            elif words := marks.render(piece):
                said.append(words)
                yield ChatEvent(delta=words)


def exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """Each question with the answer that followed it; a question that was left open has none."""
    told: list[Exchange] = []
    for message in messages:
        match message.role:
            case "user":
                told.append(Exchange(message.content, ""))
            case "assistant" if told and not told[-1].answer:
                told[-1] = Exchange(told[-1].question, message.content)
            case _:
                pass
    return told

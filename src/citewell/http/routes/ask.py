"""`POST /api/ask` and `/api/ask/stream`: one question, one answer, from the default project."""

from collections.abc import AsyncGenerator

from fastapi import APIRouter, Request

from citewell.answer import flow
from citewell.answer.conversation import Reply, last_event, mark_citations
from citewell.answer.reply import NumberedMarkers
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import EventRenderer, fill_fields, render_answer_fields, render_citation
from citewell.http.route import ASK, GuardedRoute, project_of
from citewell.http.sse import EventStream, describe_events, stream_response
from citewell.http.state import state_of
from citewell.models import StageReached
from citewell.schemas.ask import AskRequest, AskResponse, Citation, StreamChunk
from citewell.schemas.errors import ErrorResponse

router = APIRouter(tags=["ask"], route_class=GuardedRoute, responses=DOCUMENTED)


@router.post("/api/ask", openapi_extra=ASK)
async def ask(body: AskRequest, request: Request) -> AskResponse:
    """Answer a question from the default project, whole."""
    reply = await last_event(await _stream(body, request, buffered=True))
    response = AskResponse(answer=reply.text, citations=_citations(reply), confidence=0)
    return fill_fields(response, render_answer_fields(reply.answer))


@router.post(
    "/api/ask/stream",
    openapi_extra=ASK,
    response_class=EventStream,
    status_code=200,
    responses=describe_events(StreamChunk),
)
async def ask_stream(body: AskRequest, request: Request) -> EventStream:
    """The same answer as server-sent events, piece by piece."""
    writes = state_of(request).answers.engines.writer is not None

    def render_stage(reached: StageReached) -> StreamChunk | None:
        # Everything that can be refused was; an LLM may take a while.
        return StreamChunk(content="") if writes and reached.stage == "generating" else None

    renderer = EventRenderer(stage=render_stage, text=_render_text, end=_render_end, error=_render_error)
    events = renderer.render(await _stream(body, request, buffered=False))
    return await stream_response(request, events, render_error=renderer.error)


async def _stream(
    body: AskRequest, request: Request, *, buffered: bool
) -> AsyncGenerator[StageReached | str | Reply, None]:
    pieces = flow.answer(
        body.question,
        project=await project_of(request),
        engines=state_of(request).answers.engines,
        top_k=body.top_k,
        buffered=buffered,
    )
    return mark_citations(pieces, NumberedMarkers())


def _citations(reply: Reply) -> list[Citation]:
    return [render_citation(passage, reply.answer) for passage in reply.passages]


def _render_text(text: str) -> StreamChunk:
    return StreamChunk(content=text)


def _render_end(reply: Reply) -> StreamChunk:
    end = StreamChunk(content="", done=True, citations=_citations(reply))
    return fill_fields(end, render_answer_fields(reply.answer))


def _render_error(error: ErrorResponse) -> StreamChunk:
    return StreamChunk(content="", done=True, error=error.message)

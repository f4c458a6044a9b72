"""`POST /api/query`: a question, and what the reader selected while asking it."""

from fastapi import APIRouter, Request

from citewell.answer import flow
from citewell.answer.conversation import last_event, mark_citations
from citewell.answer.reply import NumberedMarkers
from citewell.http.errors import DOCUMENTED
from citewell.http.rendering import fill_fields, render_answer_fields, render_query_source
from citewell.http.route import ASK, GuardedRoute, project_of
from citewell.http.state import state_of
from citewell.schemas.query import QueryRequest, QueryResponse

router = APIRouter(tags=["query"], route_class=GuardedRoute, responses=DOCUMENTED)

_MAX_SOURCES = 5


@router.post("/api/query", openapi_extra=ASK)
async def query(body: QueryRequest, request: Request) -> QueryResponse:
    """Answer from the default project; the selected text steers the search."""
    pieces = flow.answer(
        body.query,
        project=await project_of(request),
        engines=state_of(request).answers.engines,
        top_k=_MAX_SOURCES,
        hint=(body.selected_text or "").strip(),
        buffered=True,
    )
    reply = await last_event(mark_citations(pieces, NumberedMarkers(most=_MAX_SOURCES)))
    answer = reply.answer
    is_answered = answer.confidence > 0
    passages = reply.passages if is_answered else answer.nearest or answer.retrieved
    sources = [render_query_source(passage, answer) for passage in passages[:_MAX_SOURCES]]
    return fill_fields(QueryResponse(answer=reply.text, sources=sources), render_answer_fields(answer))

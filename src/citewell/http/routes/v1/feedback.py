"""`POST /api/v1/feedback`: a reader says what an answer was worth."""

from fastapi import APIRouter, Request, Response

from citewell.http.auth import ASK, GuardedRoute, caller_of, project_of
from citewell.http.errors import DOCUMENTED
from citewell.ports import Sessions
from citewell.schemas.v1.feedback import FeedbackRequest

router = APIRouter(prefix="/api/v1", tags=["chat"], route_class=GuardedRoute, responses=DOCUMENTED)


@router.post("/feedback", openapi_extra=ASK, status_code=204)
async def feedback(body: FeedbackRequest, request: Request) -> Response:
    """Vote for or against an answer of a session, or take the vote back. It is in the history, and told to authors."""
    project = await project_of(request, body.project_id)
    sessions: Sessions = request.app.state.keeping.sessions
    await sessions.set_feedback(body.session_id, body.request_id, caller_of(request).owner(project), vote=body.vote)
    return Response(status_code=204)

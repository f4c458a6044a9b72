"""`POST /api/v1/feedback`: a reader's vote on an answer."""

from fastapi import APIRouter, Request, Response

from citewell.http.errors import DOCUMENTED
from citewell.http.route import ASK, GuardedRoute, caller_of, project_of
from citewell.http.state import state_of
from citewell.schemas.v1.feedback import FeedbackRequest

router = APIRouter(prefix="/api/v1", tags=["chat"], route_class=GuardedRoute, responses=DOCUMENTED)


@router.post("/feedback", openapi_extra=ASK, status_code=204)
async def feedback(body: FeedbackRequest, request: Request) -> Response:
    """Vote for or against an answer of a session, or take the vote back. Authors see the votes."""
    owner = caller_of(request).owner(await project_of(request, body.project_id))
    sessions = state_of(request).stores.sessions
    await sessions.set_feedback(body.session_id, body.request_id, owner, vote=body.vote)
    return Response(status_code=204)

"""`/api/v1/projects/{id}/gaps` and its neighbours: what authors want to know of their readers and their index."""

from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from citewell import wiring
from citewell.http.auth import ADMIN, GuardedRoute, project_of
from citewell.http.errors import DOCUMENTED
from citewell.models import IngestRun, Outcome
from citewell.ports import Evaluations, Gaps, Ingests, Sessions
from citewell.schemas.v1.feedback import Vote
from citewell.schemas.v1.insights import (
    EvaluationReport,
    FeedbackReport,
    Gap,
    GapList,
    Ingest,
    IngestList,
    Scored,
    Voted,
)

router = APIRouter(
    prefix="/api/v1/projects/{project_id}", tags=["authors"], route_class=GuardedRoute, responses=DOCUMENTED
)

_ALIVE = timedelta(seconds=30)  # a run says so every ten seconds

_SHOWN_CHARACTERS = 300

Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/gaps", openapi_extra=ADMIN)
async def list_gaps(project_id: UUID, request: Request, limit: Limit = 50) -> GapList:
    """Questions that the project's documents did not answer, newest first."""
    project = await project_of(request, project_id)
    gaps: Gaps = request.app.state.keeping.gaps
    found = await gaps.gaps(project.id, limit=limit)
    return GapList(gaps=[Gap(question=one.question, times=one.times, lastAskedAt=one.last_at) for one in found])


@router.delete("/gaps", openapi_extra=ADMIN, status_code=204)
async def forget_gaps(project_id: UUID, request: Request) -> Response:
    """Forget them: they were read, or dealt with."""
    project = await project_of(request, project_id)
    gaps: Gaps = request.app.state.keeping.gaps
    await gaps.clear(project.id)
    return Response(status_code=204)


@router.get("/feedback", openapi_extra=ADMIN)
async def list_feedback(
    project_id: UUID,
    request: Request,
    limit: Limit = 50,
    vote: Annotated[Vote | None, Query(description="Only answers that got this vote.")] = None,
) -> FeedbackReport:
    """What readers thought: how many votes there are, and the last answers that got one, newest first."""
    project = await project_of(request, project_id)
    sessions: Sessions = request.app.state.keeping.sessions
    found = await sessions.feedback(project.id, limit=limit, vote=vote)
    last = [
        Voted(question=one.query, answer=one.response[:_SHOWN_CHARACTERS], vote=one.feedback, at=one.timestamp)
        for one in found.last
        if one.feedback
    ]
    return FeedbackReport(up=found.up, down=found.down, last=last)


@router.get("/evaluation", openapi_extra=ADMIN)
async def get_evaluation(project_id: UUID, request: Request) -> EvaluationReport:
    """The scores of the last `citewell eval` of the project; none, of no moment, before the first."""
    project = await project_of(request, project_id)
    evaluations: Evaluations = request.app.state.keeping.evaluations
    found = await evaluations.last(project.id)
    if found is None:
        return EvaluationReport(at=None, questions=0, scores={})
    scores = {name: Scored.model_validate(one) for name, one in found.scores.items()}
    return EvaluationReport(at=found.at, questions=found.questions, scores=scores)


@router.get("/ingests", openapi_extra=ADMIN)
async def list_ingests(project_id: UUID, request: Request) -> IngestList:
    """How the last ingests went, newest first; of one that runs, how far it is."""
    project = await project_of(request, project_id)
    ingests: Ingests = request.app.state.keeping.ingests
    return IngestList(ingests=[_ingest(run, request) for run in await ingests.ingests(project.id)])


def _ingest(run: IngestRun, request: Request) -> Ingest:
    return Ingest(
        id=run.id,
        startedAt=run.started_at,
        updatedAt=run.updated_at,
        finishedAt=run.finished_at,
        state=_state(run, request),
        stage=run.stage,
        done=run.done,
        total=run.total,
        filesProcessed=run.files_processed,
        chunksCreated=run.chunks_created,
        errors=list(run.errors),
    )


def _state(run: IngestRun, request: Request) -> Outcome:
    """A run that gives no sign of life is dead once nobody holds the lock: entering much into SQLite takes a while."""
    silent = run.outcome == "running" and datetime.now(UTC) - run.updated_at > _ALIVE
    return "interrupted" if silent and not wiring.is_ingest_running(request.app.state.settings) else run.outcome

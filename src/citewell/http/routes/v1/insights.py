"""`/api/v1/projects/{id}/gaps`, `/feedback`, `/evaluation`, `/ingests`: reports for the authors of a project."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from citewell import wiring
from citewell.http.errors import DOCUMENTED
from citewell.http.route import ADMIN, GuardedRoute, project_of
from citewell.http.state import state_of
from citewell.models import IngestRun, Outcome
from citewell.schemas.fields import Uuid
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
from citewell.settings import Settings

router = APIRouter(
    prefix="/api/v1/projects/{project_id}", tags=["authors"], route_class=GuardedRoute, responses=DOCUMENTED
)

_HEARTBEAT_TIMEOUT = timedelta(seconds=30)  # a run updates its row every ten seconds
_EXCERPT_CHARACTERS = 300

Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/gaps", openapi_extra=ADMIN)
async def list_gaps(project_id: Uuid, request: Request, limit: Limit = 50) -> GapList:
    """Questions that the project's documents did not answer, newest first."""
    project = await project_of(request, project_id)
    gaps = await state_of(request).stores.gaps.gaps(project.id, limit=limit)
    return GapList(gaps=[Gap(question=gap.question, times=gap.times, lastAskedAt=gap.last_at) for gap in gaps])


@router.delete("/gaps", openapi_extra=ADMIN, status_code=204)
async def forget_gaps(project_id: Uuid, request: Request) -> Response:
    """Delete the list of unanswered questions."""
    project = await project_of(request, project_id)
    await state_of(request).stores.gaps.clear(project.id)
    return Response(status_code=204)


@router.get("/feedback", openapi_extra=ADMIN)
async def list_feedback(
    project_id: Uuid,
    request: Request,
    limit: Limit = 50,
    vote: Annotated[Vote | None, Query(description="Only answers that got this vote.")] = None,
) -> FeedbackReport:
    """Readers' votes: how many there are, and the last answers that got one, newest first."""
    project = await project_of(request, project_id)
    feedback = await state_of(request).stores.sessions.feedback(project.id, limit=limit, vote=vote)
    last = [
        Voted(
            question=exchange.query,
            answer=exchange.response[:_EXCERPT_CHARACTERS],
            vote=exchange.feedback,
            at=exchange.timestamp,
        )
        for exchange in feedback.last
        if exchange.feedback
    ]
    return FeedbackReport(up=feedback.up, down=feedback.down, last=last)


@router.get("/evaluation", openapi_extra=ADMIN)
async def get_evaluation(project_id: Uuid, request: Request) -> EvaluationReport:
    """The scores of the last `citewell eval` of the project; before the first there are none, and `at` is null."""
    project = await project_of(request, project_id)
    evaluation = await state_of(request).stores.evaluations.last(project.id)
    if evaluation is None:
        return EvaluationReport(at=None, questions=0, scores={})
    scores = {name: Scored.model_validate(score) for name, score in evaluation.scores.items()}
    return EvaluationReport(at=evaluation.at, questions=evaluation.questions, scores=scores)


@router.get("/ingests", openapi_extra=ADMIN)
async def list_ingests(project_id: Uuid, request: Request) -> IngestList:
    """The last ingests, newest first; of one that is running, its progress."""
    project = await project_of(request, project_id)
    state = state_of(request)
    runs = await state.stores.ingests.ingests(project.id)
    return IngestList(ingests=[_ingest(run, state.settings) for run in runs])


def _ingest(run: IngestRun, settings: Settings) -> Ingest:
    return Ingest(
        id=run.id,
        startedAt=run.started_at,
        updatedAt=run.updated_at,
        finishedAt=run.finished_at,
        state=_outcome(run, settings),
        stage=run.stage,
        done=run.done,
        total=run.total,
        filesProcessed=run.files_processed,
        chunksCreated=run.chunks_created,
        errors=list(run.errors),
    )


def _outcome(run: IngestRun, settings: Settings) -> Outcome:
    """A run without a heartbeat is dead once nobody holds the lock: large writes to SQLite take a while."""
    silent = run.outcome == "running" and datetime.now(UTC) - run.updated_at > _HEARTBEAT_TIMEOUT
    return "interrupted" if silent and not wiring.is_ingest_running(settings) else run.outcome

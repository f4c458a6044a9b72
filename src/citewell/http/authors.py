"""`/api/v1/projects/{id}/gaps` and its neighbours: what authors want to know of their readers and their index."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from citewell.http.errors import DOCUMENTED
from citewell.http.gate import ADMIN, Door, project_of
from citewell.ports import Gaps
from citewell.wire.authors import Gap, GapList

router = APIRouter(prefix="/api/v1/projects/{project_id}", tags=["authors"], route_class=Door, responses=DOCUMENTED)

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
    await gaps.forget(project.id)
    return Response(status_code=204)

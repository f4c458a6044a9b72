"""`/api/v1/projects`: create, list, get, delete."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request, Response

from citewell import models
from citewell.errors import BadRequest
from citewell.http.auth import ADMIN, GuardedRoute, caller_of, project_of
from citewell.http.background import UploadWorker
from citewell.http.errors import DOCUMENTED
from citewell.schemas.v1.projects import Project, ProjectList, ProjectRequest

router = APIRouter(prefix="/api/v1/projects", tags=["projects"], route_class=GuardedRoute, responses=DOCUMENTED)

_STAYS = models.Project.named(models.DEFAULT_PROJECT)
Deletable = Annotated[UUID, Path(json_schema_extra={"not": {"const": str(_STAYS.id)}})]


@router.post(
    "",
    openapi_extra=ADMIN,
    status_code=201,
    responses={200: {"model": Project, "description": "It was there already."}},
)
async def create_project(body: ProjectRequest, request: Request, response: Response) -> Project:
    """Make a project. The same name is the same project: made again, it is given as it is, with 200."""
    caller_of(request).must_see_all()
    project = models.Project.named(body.name)
    new = await request.app.state.keeping.projects.create(project)
    response.status_code = 201 if new else 200
    return await _shown(request, project.id)


@router.get("", openapi_extra=ADMIN)
async def list_projects(request: Request) -> ProjectList:
    """Every project that the key opens, by name."""
    key = caller_of(request).key
    there = await request.app.state.keeping.projects.projects()
    mine = [(one, made) for one, made in there if not key or key.project in (None, one.id)]
    return ProjectList(projects=[await _with_counts(request, one, made) for one, made in mine])


@router.get("/{project_id}", openapi_extra=ADMIN)
async def get_project(project_id: UUID, request: Request) -> Project:
    """One project, and how much it holds."""
    return await _shown(request, project_id)


@router.delete("/{project_id}", openapi_extra=ADMIN, status_code=204, responses={202: {"description": "Under way."}})
async def delete_project(project_id: Deletable, request: Request) -> Response:
    """Delete a project with its documents, sessions and all that was cited from it. The default project stays."""
    caller_of(request).must_see_all()
    project = await project_of(request, project_id)
    if project == _STAYS:
        raise BadRequest("the default project stays; delete its documents instead")
    worker: UploadWorker = request.app.state.worker
    done = await worker.remove(project, "")
    return Response(status_code=204 if done else 202)


async def _shown(request: Request, identity: UUID) -> Project:
    project = await project_of(request, identity)
    found = await request.app.state.keeping.projects.project(project.id)
    return await _with_counts(request, project, found[1] if found else None)


async def _with_counts(request: Request, project: models.Project, made: datetime | None) -> Project:
    held = await request.app.state.reading.library.documents(project)
    chunks = sum(one.chunks for one in held)
    return Project(id=project.id, name=project.name, createdAt=made, documents=len(held), chunks=chunks)

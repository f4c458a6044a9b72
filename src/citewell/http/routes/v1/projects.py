"""`/api/v1/projects`: create, list, get, delete."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request, Response

from citewell import models
from citewell.errors import BadRequest
from citewell.http.errors import DOCUMENTED
from citewell.http.route import ADMIN, GuardedRoute, caller_of, project_of
from citewell.http.state import state_of
from citewell.schemas.fields import Uuid
from citewell.schemas.v1.projects import Project, ProjectList, ProjectRequest

router = APIRouter(prefix="/api/v1/projects", tags=["projects"], route_class=GuardedRoute, responses=DOCUMENTED)

_DEFAULT = models.Project.named(models.DEFAULT_PROJECT)
DeletableProject = Annotated[Uuid, Path(json_schema_extra={"not": {"const": str(_DEFAULT.id)}})]


@router.post(
    "",
    openapi_extra=ADMIN,
    status_code=201,
    responses={200: {"model": Project, "description": "It existed already."}},
)
async def create_project(body: ProjectRequest, request: Request, response: Response) -> Project:
    """Create a project. The same name is the same project: created again, it is returned as it is, with 200."""
    caller_of(request).must_see_all()
    project = models.Project.named(body.name)
    created = await state_of(request).stores.projects.create(project)
    response.status_code = 201 if created else 200
    return await _load(request, project.id)


@router.get("", openapi_extra=ADMIN)
async def list_projects(request: Request) -> ProjectList:
    """Every project that the key may see, by name."""
    key = caller_of(request).key
    rows = await state_of(request).stores.projects.projects()
    visible = [(project, created_at) for project, created_at in rows if not key or key.project in (None, project.id)]
    return ProjectList(projects=[await _with_counts(request, project, created_at) for project, created_at in visible])


@router.get("/{project_id}", openapi_extra=ADMIN)
async def get_project(project_id: Uuid, request: Request) -> Project:
    """One project, and how many documents and chunks it has."""
    return await _load(request, project_id)


@router.delete("/{project_id}", openapi_extra=ADMIN, status_code=204, responses={202: {"description": "Under way."}})
async def delete_project(project_id: DeletableProject, request: Request) -> Response:
    """Delete a project with its documents, sessions and citations. The default project cannot be deleted."""
    caller_of(request).must_see_all()
    project = await project_of(request, project_id)
    if project == _DEFAULT:
        raise BadRequest("project_id: the default project stays; delete its documents instead", field="project_id")
    deleted = await state_of(request).upload_worker.remove(project, "")
    return Response(status_code=204 if deleted else 202)


async def _load(request: Request, project_id: UUID) -> Project:
    project = await project_of(request, project_id)
    row = await state_of(request).stores.projects.project(project.id)
    return await _with_counts(request, project, row[1] if row else None)


async def _with_counts(request: Request, project: models.Project, created_at: datetime | None) -> Project:
    documents = await state_of(request).answers.library.documents(project)
    chunks = sum(document.chunks for document in documents)
    return Project(id=project.id, name=project.name, createdAt=created_at, documents=len(documents), chunks=chunks)

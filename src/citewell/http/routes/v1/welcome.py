"""`GET /api/v1/welcome`: what a chat page shows before the first question."""

from fastapi import APIRouter, Request

from citewell.http.errors import DOCUMENTED
from citewell.http.route import ASK, GuardedRoute, InProject, caller_of, project_of
from citewell.http.state import state_of
from citewell.models import DEFAULT_PROJECT, Project
from citewell.schemas.v1.welcome import ProjectName, Welcome

router = APIRouter(prefix="/api/v1", tags=["projects"], route_class=GuardedRoute, responses=DOCUMENTED)


@router.get("/welcome", openapi_extra=ASK)
async def welcome(request: Request, project_id: InProject = None) -> Welcome:
    """What a chat page needs to begin: the project, others that the caller may ask, a title and starter questions.

    Without `project_id` a key for one project is welcomed to that one, anybody else to the default project.
    """
    state = state_of(request)
    key = caller_of(request).key
    project = await project_of(request, project_id or (key.project if key else None))
    document_counts = await state.answers.library.document_counts()
    nonempty = [known for known, _ in await state.stores.projects.projects() if known.id in document_counts]
    visible = {known for known in nonempty if not key or key.project in (None, known.id)} | {project}
    settings = state.settings
    questions = list(settings.starter_questions) if project.name == DEFAULT_PROJECT else []
    if project.id not in document_counts:
        questions = []
    elif not questions:
        questions = await state.suggestions.get(project, state.answers)
    return Welcome(
        project=_project_name(project),
        projects=[_project_name(known) for known in sorted(visible, key=lambda known: known.name)],
        documents=document_counts.get(project.id, 0),
        questions=questions,
        title=settings.title,
        welcome=settings.welcome,
        logo="/logo" if settings.logo else None,
    )


def _project_name(project: Project) -> ProjectName:
    return ProjectName(id=project.id, name=project.name)

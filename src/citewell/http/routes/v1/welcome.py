"""`GET /api/v1/welcome`: what a chat page shows before the first question."""

import asyncio
import logging
from dataclasses import dataclass, field
from uuid import UUID

from fastapi import APIRouter, Request

from citewell.answer.suggestions import suggest_questions
from citewell.errors import CitewellError
from citewell.http.auth import ASK, GuardedRoute, InProject, caller_of, project_of
from citewell.http.errors import DOCUMENTED
from citewell.models import Project
from citewell.schemas.v1.welcome import ProjectName, Welcome
from citewell.wiring import AnswerResources

_log = logging.getLogger("citewell.http")

router = APIRouter(prefix="/api/v1", tags=["projects"], route_class=GuardedRoute, responses=DOCUMENTED)

_PATIENCE_SECONDS = 1.0
_MOST_PROJECTS = 200


@router.get("/welcome", openapi_extra=ASK)
async def welcome(request: Request, project_id: InProject = None) -> Welcome:
    """What a chat page needs to begin: the project, others that may be asked, and a few first questions.

    Without `project_id` a key for one project is welcomed to that one, anybody else to the default project.
    """
    key = caller_of(request).key
    project = await project_of(request, project_id or (key.project if key else None))
    held: dict[UUID, int] = await request.app.state.reading.library.document_counts()
    known = [one for one, _ in await request.app.state.keeping.projects.projects() if one.id in held]
    mine = {one for one in known if not key or key.project in (None, one.id)} | {project}
    suggestions: Suggestions = request.app.state.suggestions
    return Welcome(
        project=_name(project),
        projects=[_name(one) for one in sorted(mine, key=lambda one: one.name)],
        documents=held.get(project.id, 0),
        questions=await suggestions.of(project, request.app.state.reading) if project.id in held else [],
    )


def _name(project: Project) -> ProjectName:
    return ProjectName(id=project.id, name=project.name)


@dataclass(slots=True)
class Suggestions:
    """First questions of projects, made once for each generation of the index, whoever asks and however many."""

    _made: dict[UUID, "tuple[int | None, asyncio.Task[list[str] | None]]"] = field(default_factory=dict)
    _making: "set[asyncio.Task[list[str] | None]]" = field(default_factory=set)

    async def of(self, project: Project, reading: AnswerResources) -> list[str]:
        """The questions; none, where they are not ready in time: a page should not wait for them."""
        generation = await reading.library.generation()
        before, task = self._made.get(project.id, (None, None))
        if task is None or before != generation:
            task = asyncio.create_task(_suggested(project, reading))
            self._making.add(task)
            task.add_done_callback(self._making.discard)
            self._made.pop(project.id, None)  # so that the oldest is first
            self._made[project.id] = generation, task
            for oldest in list(self._made)[:-_MOST_PROJECTS]:
                del self._made[oldest]
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                found = await asyncio.shield(task)
        except TimeoutError:
            return []
        if found is None and self._made.get(project.id) == (generation, task):
            del self._made[project.id]  # the next one may have more luck
        return found or []

    async def close(self) -> None:
        """Stop what is being made, before what it is made with is closed."""
        for task in (making := list(self._making)):
            task.cancel()
        await asyncio.gather(*making, return_exceptions=True)


async def _suggested(project: Project, reading: AnswerResources) -> list[str] | None:
    try:
        return await suggest_questions(project, engines=reading.engines, library=reading.library)
    except CitewellError as error:
        _log.warning("no questions could be suggested: %s", error)
        return None

"""Suggested first questions of each project, computed in the background and cached by index generation."""

import asyncio
import logging
from dataclasses import dataclass, field
from uuid import UUID

from citewell.answer.suggestions import suggest_questions
from citewell.errors import CitewellError
from citewell.models import Project
from citewell.wiring import AnswerResources

_log = logging.getLogger("citewell.http")

_TIMEOUT_SECONDS = 1.0
_MAX_PROJECTS = 200

_Task = asyncio.Task[list[str] | None]


@dataclass(slots=True)
class Suggestions:
    """Computes the questions of a project once for each generation of the index, however many callers ask."""

    _cache: dict[UUID, tuple[int | None, _Task]] = field(default_factory=dict)
    _running: set[_Task] = field(default_factory=set)

    async def get(self, project: Project, resources: AnswerResources) -> list[str]:
        """The questions; none where they are not ready in time: a page should not wait for them."""
        generation = await resources.library.generation(project.id)
        cached_generation, task = self._cache.get(project.id, (None, None))
        if task is None or cached_generation != generation:
            task = self._start(project, generation, resources)
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                questions = await asyncio.shield(task)
        except TimeoutError:
            return []
        if questions is None and self._cache.get(project.id) == (generation, task):
            del self._cache[project.id]  # it failed; the next caller tries again
        return questions or []

    async def close(self) -> None:
        """Cancel running tasks, before the engines they use are closed."""
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, project: Project, generation: int | None, resources: AnswerResources) -> _Task:
        task = asyncio.create_task(_suggest(project, resources))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        self._cache.pop(project.id, None)  # so that the oldest is first
        self._cache[project.id] = generation, task
        for oldest in list(self._cache)[:-_MAX_PROJECTS]:
            del self._cache[oldest]
        return task


async def _suggest(project: Project, resources: AnswerResources) -> list[str] | None:
    """The questions; None where they could not be computed."""
    try:
        return await suggest_questions(project, engines=resources.engines, library=resources.library)
    except CitewellError as error:
        _log.warning("no questions could be suggested: %s", error)
        return None

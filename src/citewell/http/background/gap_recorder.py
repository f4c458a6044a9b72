"""Records unanswered questions in the database, in the background: no answer waits for it."""

import asyncio
import logging
from contextlib import suppress
from uuid import UUID

from citewell.errors import StoreUnavailable
from citewell.ports import Gaps

_log = logging.getLogger("citewell.http")

_QUEUE_SIZE = 100
_CLOSE_SECONDS = 2.0


class GapRecorder:
    """Call it with a project and a question. While the database does not answer, some are lost."""

    def __init__(self, gaps: Gaps) -> None:
        self._gaps = gaps
        self._queue: asyncio.Queue[tuple[UUID, str]] = asyncio.Queue(maxsize=_QUEUE_SIZE)
        self._task = asyncio.create_task(self._record_all())

    def __call__(self, project: UUID, question: str) -> None:
        with suppress(asyncio.QueueFull):
            self._queue.put_nowait((project, question))

    async def close(self) -> None:
        """Record what is in the queue, if that takes no more than two seconds, and stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._queue.join()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _record_all(self) -> None:
        while True:
            project, question = await self._queue.get()
            try:
                await self._gaps.record(project, question)
            except StoreUnavailable as error:
                _log.warning("an unanswered question could not be recorded: %s", error)
            finally:
                self._queue.task_done()

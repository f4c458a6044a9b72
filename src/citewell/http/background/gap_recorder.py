"""Questions that were not covered, on their way into the database: behind the answers, which do not wait for it."""

import asyncio
import logging
from contextlib import suppress
from uuid import UUID

from citewell.errors import StoreUnavailable
from citewell.ports import Gaps

_log = logging.getLogger("citewell.http")

_MOST_WAITING = 100
_END_SECONDS = 2.0


class GapRecorder:
    """Call it with a project and a question; while the database cannot take them, some are lost."""

    def __init__(self, gaps: Gaps) -> None:
        self._gaps = gaps
        self._waiting: asyncio.Queue[tuple[UUID, str]] = asyncio.Queue(maxsize=_MOST_WAITING)
        self._working = asyncio.create_task(self._work())

    def __call__(self, project: UUID, question: str) -> None:
        with suppress(asyncio.QueueFull):
            self._waiting.put_nowait((project, question))

    async def close(self) -> None:
        """Keep what was asked last, if that is a matter of moments."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await self._waiting.join()
        self._working.cancel()
        await asyncio.gather(self._working, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            project, question = await self._waiting.get()
            try:
                await self._gaps.record(project, question)
            except StoreUnavailable as error:
                _log.warning("a question that was not covered could not be noted: %s", error)
            finally:
                self._waiting.task_done()

"""Runs the process that indexes uploads, `citewell worker`, whenever there are uploads."""

import asyncio
import logging
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

from citewell.errors import StoreUnavailable
from citewell.models import Project, Upload
from citewell.ports import Uploads
from citewell.settings import Settings

_log = logging.getLogger("citewell.http")

_REMOVE_TIMEOUT_SECONDS = 20.0
_POLL_SECONDS = 0.1
_RETRY_SECONDS = 1.0
_MAX_RETRY_SECONDS = 60.0
_LINGER_SECONDS = "10"
_TERMINATE_SECONDS = 5.0


class UploadWorker:
    """Starts `citewell worker`, and restarts it with growing pauses while it fails; none if the settings want none."""

    def __init__(self, settings: Settings, uploads: Uploads) -> None:
        self._settings = settings
        self._uploads = uploads
        self._has_work = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._task = asyncio.create_task(self._supervise())
        self._has_work.set()  # uploads that the last server left

    def wake(self) -> None:
        """Say that there is a new upload."""
        self._has_work.set()

    async def remove(self, project: Project, path: str) -> bool:
        """Remove a document, or with path "" the project; False where it still waits for another ingest."""
        upload = Upload(uuid4(), project, path, "delete", "PENDING", 0, datetime.now(UTC))
        await self._uploads.add(upload, content=b"")
        self.wake()
        for _ in range(round(_REMOVE_TIMEOUT_SECONDS / _POLL_SECONDS)):
            await asyncio.sleep(_POLL_SECONDS)
            waiting = [row for row in await self._uploads.uploads(project.id) if row.id == upload.id]
            if not waiting:
                return True
            if waiting[0].status == "FAILED":
                raise StoreUnavailable(waiting[0].error or "it could not be removed")
        return False

    async def close(self) -> None:
        """Stop the process; the next one starts its unfinished upload again."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._process and self._process.returncode is None:
            with suppress(ProcessLookupError):  # it may end by itself at any moment
                self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), _TERMINATE_SECONDS)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()

    async def _supervise(self) -> None:
        pause = _RETRY_SECONDS
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            try:
                succeeded = await self._run()
            except StoreUnavailable:
                succeeded = False
            if succeeded:
                pause = _RETRY_SECONDS
            else:
                with suppress(TimeoutError):  # or until the next upload
                    await asyncio.wait_for(self._has_work.wait(), pause)
                pause = min(2 * pause, _MAX_RETRY_SECONDS)
                self._has_work.set()

    async def _run(self) -> bool:
        """Run the worker until it ends; True where it succeeded or had nothing to do."""
        if not self._settings.worker or not await self._uploads.waiting():
            return True
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "citewell", "worker", "--linger", _LINGER_SECONDS),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            env=self._environment(),
        )
        code = await self._process.wait()
        if code:
            _log.warning("the upload worker ended with code %s; it is started again", code)
        return not code

    def _environment(self) -> dict[str, str]:
        """Environment variables that give the process the settings of this server."""
        return {**os.environ, **self._settings.as_environment()}

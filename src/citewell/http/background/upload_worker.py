"""The process that takes in what was uploaded, started when there is something to do; the server only answers."""

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

_PATIENCE_SECONDS = 20.0
_LOOK_SECONDS = 0.1
_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 60.0
_LINGER_SECONDS = "10"
_END_SECONDS = 5.0


class UploadWorker:
    """Starts `citewell worker` and starts it again should it die with work left, the less often the more it fails."""

    def __init__(self, settings: Settings, uploads: Uploads) -> None:
        self._settings = settings
        self._uploads = uploads
        self._wanted = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._minding = asyncio.create_task(self._mind())
        self._wanted.set()  # what was left when the last server went

    def wake(self) -> None:
        self._wanted.set()

    async def remove(self, project: Project, path: str) -> bool:
        """Remove a document, or with "" the project; whether it is done, or waits for another ingest."""
        upload = Upload(uuid4(), project, path, "delete", "PENDING", 0, datetime.now(UTC))
        await self._uploads.add(upload, content=b"")
        self.wake()
        for _ in range(round(_PATIENCE_SECONDS / _LOOK_SECONDS)):
            await asyncio.sleep(_LOOK_SECONDS)
            left = [one for one in await self._uploads.uploads(project.id) if one.id == upload.id]
            if not left:
                return True
            if left[0].status == "FAILED":
                raise StoreUnavailable(left[0].error or "it could not be removed")
        return False

    async def close(self) -> None:
        """End it; what it was doing is done again by the next."""
        self._minding.cancel()
        await asyncio.gather(self._minding, return_exceptions=True)
        if self._process and self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), _END_SECONDS)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    async def _mind(self) -> None:
        pause = _RETRY_SECONDS
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                done = await self._run()
            except StoreUnavailable:
                done = False
            if done:
                pause = _RETRY_SECONDS
            else:
                with suppress(TimeoutError):  # or until somebody sends more
                    await asyncio.wait_for(self._wanted.wait(), pause)
                pause = min(2 * pause, _LONGEST_RETRY_SECONDS)
                self._wanted.set()

    async def _run(self) -> bool:
        """Whether nothing is left to do, as far as the worker could do it."""
        if not any(one.status != "FAILED" for one in await self._uploads.uploads()):
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
        """The settings in force, whatever folder and variables they came from."""
        return {**os.environ, **self._settings.as_environment()}

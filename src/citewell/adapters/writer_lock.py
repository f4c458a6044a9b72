"""The lock that allows one ingest at a time in a home folder. It ends with its process, also after a crash."""

import asyncio
import fcntl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from citewell.errors import IngestRunning, StoreUnavailable

_POLL_SECONDS = 0.1


@asynccontextmanager
async def writer_lock(home: Path, *, wait: bool, on_wait: Callable[[], None]) -> AsyncIterator[None]:
    """Hold the writer's lock. While another process has it: call `on_wait` once and wait, or raise IngestRunning."""
    with _lock_file(home) as handle:
        notified = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    raise IngestRunning("ingestion already in progress; try again when it is done") from None
                if not notified:
                    on_wait()
                    notified = True
                await asyncio.sleep(_POLL_SECONDS)
            else:
                break
        yield


def _lock_file(home: Path) -> BinaryIO:
    try:
        home.mkdir(parents=True, exist_ok=True)
        return (home / "ingest.lock").open("ab")
    except OSError as error:
        raise StoreUnavailable(f"cannot write to {home}: {error.strerror}") from error


def is_held(home: Path) -> bool:
    """Whether a process holds the writer's lock. The check takes the lock for an instant, so call it rarely."""
    try:
        handle = (home / "ingest.lock").open("rb")
    except OSError:  # there was never a lock
        return False
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False

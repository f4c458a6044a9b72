"""The lock that allows one ingest at a time in a home folder. It ends with its process, also after a crash."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from citewell.errors import IngestRunning, StoreUnavailable

_POLL_SECONDS = 0.1


@asynccontextmanager
async def writer_lock(home: Path, *, wait: bool, on_wait: Callable[[], None]) -> AsyncIterator[str]:
    """Hold the writer's lock. While another process has it: call `on_wait` once and wait, or raise IngestRunning.

    Yields a name of the lock that no other has, on any machine.
    """
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
        yield _name_of(handle)


def _lock_file(home: Path) -> BinaryIO:
    try:
        home.mkdir(parents=True, exist_ok=True)
        return (home / "ingest.lock").open("ab")
    except OSError as error:
        raise StoreUnavailable(f"cannot write to {home}: {error.strerror}") from error


def _name_of(handle: BinaryIO) -> str:
    """The kernel that grants the lock, and the file in it; "" where a kernel has no name."""
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    file = os.fstat(handle.fileno())
    return f"{kernel}:{file.st_dev}:{file.st_ino}"


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

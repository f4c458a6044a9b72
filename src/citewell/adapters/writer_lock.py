"""One ingest at a time in a home folder. The lock goes with its process, however that ends."""

import asyncio
import fcntl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from citewell.errors import IngestRunning, StoreUnavailable


@asynccontextmanager
async def writer_lock(home: Path, *, wait: bool, on_wait: Callable[[], None]) -> AsyncIterator[None]:
    """Hold the writer's lock. Where another has it: wait, after `on_wait` said so, or raise IngestRunning."""
    with _lock_file(home) as handle:
        told = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    raise IngestRunning("ingestion already in progress; try again when it is done") from None
                if not told:
                    on_wait()
                    told = True
                await asyncio.sleep(0.1)
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
    """Whether anybody holds the writer's lock. To find out it is shared for an instant: do not ask without need."""
    try:
        handle = (home / "ingest.lock").open("rb")
    except OSError:  # nobody ever held it
        return False
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False

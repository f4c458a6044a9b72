"""The state of an ingest run, saved about once a second so that other processes can show it.

A failure to save it never stops the ingest.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import uuid4

from citewell.errors import CitewellError, StoreUnavailable
from citewell.models import IngestRun, Outcome, Project, Stage
from citewell.ports import Ingests

_log = logging.getLogger("citewell.ingest")

_SAVE_INTERVAL_SECONDS = 1.0
_HEARTBEAT_SECONDS = 10.0  # saved this often even if nothing has changed
_MAX_ERRORS = 20
_MAX_ERROR_CHARACTERS = 300

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is in total."""


@dataclass(slots=True)
class Run:
    """What one run has done so far."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: int = 0
    chunks: int = 0
    stage: Stage = "planning"
    done: int = 0
    total: int = 0

    def counting(self, stage: Stage, progress: Progress) -> Progress:
        """A progress callback for a stage that also updates this run."""

        def count(done: int, total: int) -> None:
            if total:
                self.stage, self.done, self.total = stage, done, total
            progress(done, total)

        return count


@asynccontextmanager
async def record_run(run: Run, project: Project, ingests: Ingests) -> AsyncIterator[None]:
    """Save the state of the run while the context lasts, and its outcome at the end."""
    now = datetime.now(UTC)
    recorder = _RunRecorder(run, IngestRun(uuid4(), project.id, started_at=now, updated_at=now), ingests)
    ended = asyncio.Event()
    await recorder.begin()
    saving = asyncio.create_task(recorder.save_until(ended))
    outcome: Outcome = "interrupted"
    try:
        yield
        outcome = "failed" if run.errors and not run.files else "done"
    except CitewellError as error:
        run.errors.insert(0, str(error))
        outcome = "failed"
        raise
    finally:
        ended.set()
        await saving  # not cancelled: it may be in the middle of a transaction
        await recorder.save(outcome)


class _RunRecorder:
    """Writes the database row of one run."""

    def __init__(self, run: Run, row: IngestRun, ingests: Ingests) -> None:
        self._run = run
        self._row = row
        self._ingests = ingests

    async def begin(self) -> None:
        with _log_if_unavailable():
            await self._ingests.begin(self._row)

    async def save_until(self, ended: asyncio.Event) -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _SAVE_INTERVAL_SECONDS)
            if not ended.is_set():
                await self.save("running")

    async def save(self, outcome: Outcome) -> None:
        run, now = self._run, datetime.now(UTC)
        row = replace(
            self._row,
            stage=run.stage,
            done=run.done,
            total=run.total,
            errors=tuple(" ".join(error.split())[:_MAX_ERROR_CHARACTERS] for error in run.errors[:_MAX_ERRORS]),
            files_processed=run.files,
            chunks_created=run.chunks,
            outcome=outcome,
        )
        if row == self._row and (now - row.updated_at).total_seconds() < _HEARTBEAT_SECONDS:
            return
        self._row = replace(row, updated_at=now, finished_at=None if outcome == "running" else now)
        with _log_if_unavailable():
            await self._ingests.update(self._row)


@contextmanager
def _log_if_unavailable() -> Iterator[None]:
    try:
        yield
    except StoreUnavailable as error:
        _log.warning("the progress of the ingest could not be saved: %s", error)

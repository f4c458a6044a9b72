"""A run and how it goes, kept about once a second for whoever looks on. What cannot be kept stops no ingest."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

from citewell.errors import CitewellError, StoreUnavailable
from citewell.models import IngestRun, Outcome, Project, Stage
from citewell.ports import Ingests

_log = logging.getLogger("citewell.ingest")

_EVERY_SECONDS = 1.0
_SIGN_OF_LIFE_SECONDS = 10.0  # also where nothing has changed
_MOST_ERRORS = 20
_LONGEST_ERROR = 300

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is to do."""


@dataclass(slots=True)
class Run:
    """What one run has done so far."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    read: set[UUID] = field(default_factory=set)
    files: int = 0
    chunks: int = 0
    embedded: int = 0
    stage: Stage = "planning"
    done: int = 0
    total: int = 0

    def counting(self, stage: Stage, told: Progress) -> Progress:
        """Progress of a stage: noted here, and told on."""

        def count(done: int, total: int) -> None:
            if total:
                self.stage, self.done, self.total = stage, done, total
            told(done, total)

        return count


@asynccontextmanager
async def record_run(run: Run, project: Project, ingests: Ingests) -> AsyncIterator[None]:
    """Keep how the run goes while the context lasts, and at its end how it went."""
    now = datetime.now(UTC)
    book = _Book(run, IngestRun(uuid4(), project.id, started_at=now, updated_at=now), ingests)
    ended = asyncio.Event()
    await book.begin()
    keeping = asyncio.create_task(book.keep_until(ended))
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
        await keeping  # not cancelled: it may be in the middle of a transaction
        await book.write(outcome)


class _Book:
    """The row of one run."""

    def __init__(self, run: Run, row: IngestRun, ingests: Ingests) -> None:
        self._run = run
        self._row = row
        self._ingests = ingests

    async def begin(self) -> None:
        with _unless_unavailable():
            await self._ingests.begin(self._row)

    async def keep_until(self, ended: asyncio.Event) -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _EVERY_SECONDS)
            if not ended.is_set():
                await self.write("running")

    async def write(self, outcome: Outcome) -> None:
        run, now = self._run, datetime.now(UTC)
        row = replace(
            self._row,
            stage=run.stage,
            done=run.done,
            total=run.total,
            errors=tuple(" ".join(error.split())[:_LONGEST_ERROR] for error in run.errors[:_MOST_ERRORS]),
            files_processed=run.files,
            chunks_created=run.chunks,
            outcome=outcome,
        )
        if row == self._row and (now - row.updated_at).total_seconds() < _SIGN_OF_LIFE_SECONDS:
            return
        self._row = replace(row, updated_at=now, finished_at=None if outcome == "running" else now)
        with _unless_unavailable():
            await self._ingests.update(self._row)


@contextmanager
def _unless_unavailable() -> Iterator[None]:
    try:
        yield
    except StoreUnavailable as error:
        _log.warning("how the ingest goes could not be kept: %s", error)

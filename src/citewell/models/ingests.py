"""Ingest runs: their progress, their result, and the preview of one."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

Stage = Literal["planning", "reading", "embedding", "publishing"]
Outcome = Literal["running", "done", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class IngestRun:
    """An ingest run and its progress. In the stage `embedding`, `done` and `total` count chunks, otherwise files."""

    id: UUID
    project: UUID
    started_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
    stage: Stage = "planning"
    done: int = 0
    total: int = 0
    errors: tuple[str, ...] = ()
    files_processed: int = 0
    chunks_created: int = 0
    outcome: Outcome = "running"


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The result of an ingest; `exit_code` is 0 if and only if `errors` is empty."""

    files_processed: int
    chunks_created: int
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    files_unchanged: int = 0
    files_removed: int = 0
    chunks_embedded: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def exit_code(self) -> int:
        return 1 if self.errors else 0


@dataclass(slots=True)
class Preview:
    """What an ingest would do: the paths of files, the numbers of chunks and embeddings."""

    added: list[str]
    changed: list[str]
    unchanged: list[str]
    removed: list[str]
    errors: list[str]
    chunks_added: int = 0
    chunks_removed: int = 0
    chunks_unchanged: int = 0
    embeddings_needed: int = 0

"""Ingest runs: their progress, their result, and the preview of one."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

Stage = Literal["planning", "reading", "embedding", "publishing"]
SkipReason = Literal[
    "not supported",
    "not documents",
    "generated",
    "hidden",
    "build output",
    "a link to a folder",
    "ignored by .gitignore",
    "ignored by .citewellignore",
    "excluded by --exclude",
    "not matched by --include",
]
"""Why an ingest passed over a file or a folder. "not documents" are the scripts and style sheets of pages."""

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
class SkippedFile:
    """A file that was not indexed, or a folder that was not walked; the path of a folder ends with a slash."""

    path: str
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The result of an ingest; `exit_code` is 0 if and only if `errors` is empty."""

    files_processed: int
    chunks_created: int
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    files_unchanged: int = 0
    files_removed: int = 0
    files_not_pruned: int = 0
    """Indexed documents whose files are gone or skipped now; a run with `--prune` would remove them."""
    chunks_embedded: int = 0
    skipped: tuple[SkippedFile, ...] = ()
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
    skipped: list[SkippedFile] = field(default_factory=list)
    not_pruned: list[str] = field(default_factory=list)
    chunks_added: int = 0
    chunks_removed: int = 0
    chunks_unchanged: int = 0
    embeddings_needed: int = 0

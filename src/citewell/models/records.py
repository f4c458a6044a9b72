"""Stored records beside the library: conversations, votes, evaluations, gaps, keys and uploads."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from citewell.models.documents import Project, document_id

Vote = Literal["up", "down"]
"""A reader's vote on an answer."""


@dataclass(frozen=True, slots=True)
class StoredExchange:
    """A stored question and answer, with the sources and metadata that the reader got."""

    session_id: UUID
    timestamp: datetime
    query: str
    response: str
    sources: tuple[dict[str, object], ...] = ()
    metadata: dict[str, object] = field(default_factory=dict)
    complete: bool = True
    """Whether the answer was complete when the reader left."""
    feedback: Vote | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """Who owns a session: its project, and the id of the API key that created it ("" if none was needed)."""

    project: UUID
    key: str = ""
    admin: bool = False
    """Whether the key may see every session of the project."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """How many votes a project's answers got, up and down, and the latest exchanges with votes."""

    up: int
    down: int
    last: tuple[StoredExchange, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of a project's answers to golden questions; `scores` is the output of `citewell eval --json`."""

    at: datetime
    questions: int
    scores: dict[str, object]


@dataclass(frozen=True, slots=True)
class Gap:
    """An unanswered question, as it was last asked, and how often."""

    question: str
    times: int
    first_at: datetime
    last_at: datetime


Scope = Literal["ask", "admin"]


@dataclass(frozen=True, slots=True)
class Key:
    """An API key and what it allows. The secret itself is not stored."""

    id: str
    name: str
    scope: Scope
    created_at: datetime
    project: UUID | None = None
    """The only project it is for; None means all projects."""
    per_minute: int | None = None
    """Its limit of requests per minute; None means the limit in the settings."""
    revoked_at: datetime | None = None


Status = Literal["PENDING", "PROCESSING", "COMPLETED", "FAILED"]


@dataclass(frozen=True, slots=True)
class Upload:
    """A queued upload or deletion of a document. A "delete" of the path "" deletes the whole project."""

    id: UUID
    project: Project
    path: str
    kind: Literal["ingest", "delete"]
    status: Status
    size: int
    created_at: datetime
    error: str | None = None
    attempts: int = 0

    @property
    def document_id(self) -> UUID:
        return document_id(self.project, self.path)

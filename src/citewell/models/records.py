"""What outlasts a connection beside the library: conversations, keys and uploads."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from citewell.models.documents import Project, document_id

Vote = Literal["up", "down"]
"""What a reader thought of an answer."""


@dataclass(frozen=True, slots=True)
class StoredExchange:
    """An exchange as it is kept: with the sources and metadata its reader was given."""

    session_id: UUID
    timestamp: datetime
    query: str
    response: str
    sources: tuple[dict[str, object], ...] = ()
    metadata: dict[str, object] = field(default_factory=dict)
    complete: bool = True
    """Whether all was said before the reader left."""
    feedback: Vote | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a session is: a project's, and of the key that opened it ("" where none was needed)."""

    project: UUID
    key: str = ""
    admin: bool = False
    """Whether every session of the project may be seen."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """How often readers of a project voted for and against an answer, and the last exchanges they voted on."""

    up: int
    down: int
    last: tuple[StoredExchange, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How good a project's answers were, by so many golden questions; `scores` as `citewell eval --json` has them."""

    at: datetime
    questions: int
    scores: dict[str, object]


@dataclass(frozen=True, slots=True)
class Gap:
    """A question that a project's documents did not answer, as it was last asked."""

    question: str
    times: int
    first_at: datetime
    last_at: datetime


Scope = Literal["ask", "admin"]


@dataclass(frozen=True, slots=True)
class Key:
    """What a key may do. The secret itself is kept nowhere."""

    id: str
    name: str
    scope: Scope
    created_at: datetime
    project: UUID | None = None
    """The only project it opens; none means every one."""
    per_minute: int | None = None
    """Requests a minute; none means what the settings say."""
    revoked_at: datetime | None = None


Status = Literal["PENDING", "PROCESSING", "COMPLETED", "FAILED"]


@dataclass(frozen=True, slots=True)
class Upload:
    """A document on its way in, or out. A "delete" of the path "" is of the project itself, with all it holds."""

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

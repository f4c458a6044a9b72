"""Stores beside the library: projects, sessions, gaps, evaluations, keys and uploads."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

from citewell.models import Evaluation, Exchange, Feedback, Gap, Key, Owner, Project, StoredExchange, Upload, Vote


class Projects(Protocol):
    """The projects. The default project always exists."""

    async def projects(self) -> list[tuple[Project, datetime]]:
        """All projects by name, each with its creation time."""
        ...

    async def project(self, project_id: UUID) -> tuple[Project, datetime] | None:
        """A project and its creation time."""
        ...

    async def create(self, project: Project) -> bool:
        """Create a project; returns whether it is new. An existing one stays as it is."""
        ...

    async def delete(self, project_id: UUID) -> None:
        """Delete a project and what is stored for it, and revoke the keys that are only for it.

        Its documents must be removed by an ingest before this.
        """
        ...


class Sessions(Protocol):
    """Stored conversations. A session is visible to its owner only.

    Every call names an `Owner`, whose project and key must be those that created the session, unless the owner is an
    admin of the project. For anybody else `history` is empty, `delete` does nothing and the others raise NotFound.
    """

    async def recent(self, session: UUID, owner: Owner, *, limit: int) -> list[Exchange]:
        """The last complete exchanges, oldest first; none for a new session."""
        ...

    async def record(
        self, exchange: StoredExchange, owner: Owner, *, idempotency_key: str | None = None
    ) -> StoredExchange:
        """Store an exchange, and create its session or update it. Returns what is stored.

        With `idempotency_key`, a client's name for this request, it is stored once, however often it is retried: a
        complete exchange replaces an incomplete one, otherwise the first one stays.
        """
        ...

    async def find_by_key(self, idempotency_key: str, owner: Owner) -> StoredExchange | None:
        """The exchange that this owner stored under an idempotency key."""
        ...

    async def history(
        self, session: UUID, owner: Owner, *, limit: int | None = None, offset: int = 0
    ) -> tuple[list[StoredExchange], int]:
        """A page of exchanges, oldest first, and how many there are in all."""
        ...

    async def set_feedback(self, session: UUID, request: UUID, owner: Owner, *, vote: Vote | None) -> None:
        """Store a reader's vote on the exchange of a request; None removes the vote."""
        ...

    async def feedback(self, project: UUID, *, limit: int, vote: Vote | None = None) -> Feedback:
        """The votes of all readers of a project, newest exchanges first; with `vote`, only exchanges with this vote."""
        ...

    async def delete(self, session: UUID, owner: Owner) -> None:
        """Delete a session and its exchanges."""
        ...


class Gaps(Protocol):
    """Unanswered questions, for the authors of the documents. At most 1,000 in a project."""

    async def record(self, project: UUID, question: str) -> None:
        """Count a question. Case, spacing and final punctuation don't matter; the oldest questions make room.

        Does nothing if there is no such project.
        """
        ...

    async def gaps(self, project: UUID, *, limit: int) -> list[Gap]:
        """The unanswered questions, most recently asked first."""
        ...

    async def clear(self, project: UUID) -> None:
        """Delete the unanswered questions of a project."""
        ...


class Evaluations(Protocol):
    """The last evaluation of each project."""

    async def save(self, project: UUID, evaluation: Evaluation) -> None:
        """Store an evaluation; it replaces the one before."""
        ...

    async def last(self, project: UUID) -> Evaluation | None:
        """The last evaluation of a project."""
        ...


class Keys(Protocol):
    """API keys by their public id. Only a digest of each secret is stored."""

    async def add(self, key: Key, *, digest: str) -> None:
        """Store a new key."""
        ...

    async def find(self, key_id: str) -> tuple[Key, str] | None:
        """The key and its digest, revoked or not."""
        ...

    async def keys(self) -> list[Key]:
        """Every key, including revoked ones, oldest first."""
        ...

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key; returns False if there is no such key or it was revoked before."""
        ...


class Uploads(Protocol):
    """The queue of uploads and deletions, one worker at a time for a project. For each path only the newest counts."""

    async def add(self, upload: Upload, *, content: bytes) -> None:
        """Add an upload to the queue; it replaces any other for the same path in the project."""
        ...

    async def waiting(self) -> list[UUID]:
        """The projects with uploads that wait or run, the longest waiting first."""
        ...

    async def claim(self, project: UUID | None = None, *, only_new: bool = False) -> tuple[Upload, bytes] | None:
        """Take the oldest PENDING upload, of one project or of all; None if there is none.

        It becomes PROCESSING, with one more attempt. With `only_new`, none if it is a deletion or was tried before.
        """
        ...

    async def release(self, upload_id: UUID) -> None:
        """Undo `claim`, for a worker that has to stop: the attempt does not count."""
        ...

    async def resume(self, project: UUID | None = None) -> None:
        """Requeue what a crashed worker had claimed. The caller may write there, so no other worker runs."""
        ...

    async def finish(self, upload_id: UUID, *, error: str | None = None) -> None:
        """Remove a finished upload, or, with an error, keep it as FAILED; its content is deleted either way."""
        ...

    async def uploads(self, project: UUID | None = None) -> list[Upload]:
        """Uploads that wait, run or failed, oldest first; of one project, or of all."""
        ...

    async def withdraw(self, project: UUID, path: str) -> bool:
        """Remove what waits or failed for a path; returns whether there was anything."""
        ...

"""What outlasts a connection beside the library."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

from citewell.models import Evaluation, Exchange, Feedback, Gap, Key, Owner, Project, StoredExchange, Upload, Vote


class Projects(Protocol):
    """Which projects there are. The default one always is."""

    async def projects(self) -> list[tuple[Project, datetime]]:
        """By name, each with when it was made."""
        ...

    async def project(self, identity: UUID) -> tuple[Project, datetime] | None: ...

    async def create(self, project: Project) -> bool:
        """Whether it is new; a project that is there stays as it is."""
        ...

    async def delete(self, identity: UUID) -> None:
        """Forget the project and all that is kept of it, and revoke the keys that open only it.

        Its documents are an ingest's to remove, before this.
        """
        ...


class Sessions(Protocol):
    """Conversations that outlast a connection. A session of somebody else gives nothing away.

    Each is asked for by an `Owner`: the project and key must be those that opened the session, unless the owner is
    an admin of its project. To anybody else `history` is empty, `forget` does nothing and the others raise NotFound.
    """

    async def recent(self, session: UUID, owner: Owner, *, limit: int) -> list[Exchange]:
        """The last complete exchanges, oldest first; none for a session that is new."""
        ...

    async def record(
        self, exchange: StoredExchange, owner: Owner, *, idempotency_key: str | None = None
    ) -> StoredExchange:
        """Keep an exchange; its session is made, or touched. Gives what is kept.

        With `idempotency_key`, a client's name for this request, it is kept once, however often and wherever it is
        retried: a complete exchange replaces an incomplete one, and otherwise the first stays.
        """
        ...

    async def find_by_key(self, idempotency_key: str, owner: Owner) -> StoredExchange | None:
        """What was kept under this word by this owner."""
        ...

    async def history(
        self, session: UUID, owner: Owner, *, limit: int | None = None, offset: int = 0
    ) -> tuple[list[StoredExchange], int]:
        """Exchanges, oldest first, and how many there are in all."""
        ...

    async def set_feedback(self, session: UUID, request: UUID, owner: Owner, *, vote: Vote | None) -> None:
        """Keep what the reader thought of the exchange that this request made; no vote takes one back."""
        ...

    async def feedback(self, project: UUID, *, limit: int, vote: Vote | None = None) -> Feedback:
        """What all readers of a project thought, the newest exchanges first; with a vote, only those that got it."""
        ...

    async def delete(self, session: UUID, owner: Owner) -> None: ...


class Gaps(Protocol):
    """Questions that a project's documents did not answer, for whoever writes them. Each project has 1,000 at most."""

    async def record(self, project: UUID, question: str) -> None:
        """Count a question; one that differs in case, spacing or its last mark is the same. The oldest make room.

        Of a project that is not there nothing is kept.
        """
        ...

    async def gaps(self, project: UUID, *, limit: int) -> list[Gap]:
        """What was asked last comes first."""
        ...

    async def clear(self, project: UUID) -> None: ...


class Evaluations(Protocol):
    """The last evaluation of each project."""

    async def save(self, project: UUID, evaluation: Evaluation) -> None:
        """In the place of the one before."""
        ...

    async def last(self, project: UUID) -> Evaluation | None: ...


class Keys(Protocol):
    """API keys by their public id. Only a digest of each secret is kept."""

    async def add(self, key: Key, *, digest: str) -> None: ...

    async def find(self, identity: str) -> tuple[Key, str] | None:
        """The key and its digest, revoked or not."""
        ...

    async def keys(self) -> list[Key]:
        """Every key there ever was, oldest first."""
        ...

    async def revoke(self, identity: str) -> bool:
        """Whether there was such a key and it was not revoked yet."""
        ...


class Uploads(Protocol):
    """What clients sent in, waiting for the one writer. The newest wish for a path is the one that counts."""

    async def add(self, upload: Upload, *, content: bytes) -> None:
        """Put it in line; whatever else is there for the same path in the project gives way."""
        ...

    async def claim(self) -> tuple[Upload, bytes] | None:
        """The oldest that is PENDING: PROCESSING now, one attempt more, and nobody else's."""
        ...

    async def release(self, identity: UUID) -> None:
        """Put back what was taken, as if it had not been: the worker must go, and it is not the document's fault."""
        ...

    async def resume(self) -> None:
        """Put back what a worker that died had taken; for whoever holds the writer's lock, so that none is alive."""
        ...

    async def finish(self, identity: UUID, *, error: str | None = None) -> None:
        """Done: it leaves the line, or, with an error, stays as FAILED; its content goes either way."""
        ...

    async def uploads(self, project: UUID | None = None) -> list[Upload]:
        """What waits, runs or failed, oldest first; in every project, if none is named."""
        ...

    async def withdraw(self, project: UUID, path: str) -> bool:
        """Take back what waits or failed for a path; whether there was anything."""
        ...

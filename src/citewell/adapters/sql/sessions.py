"""Conversations in the database. What a reader was told is kept once, whoever writes it and however often."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, case, delete, func, select, update
from sqlalchemy.sql.dml import ReturningInsert

from citewell.adapters.sql.database import Database, storable
from citewell.adapters.sql.tables import conversations, sessions
from citewell.errors import NotFound
from citewell.models import Exchange, Feedback, Owner, StoredExchange, Vote

_OLDEST_FIRST = (conversations.c.timestamp, conversations.c.id)
_NEWEST_FIRST = (conversations.c.timestamp.desc(), conversations.c.id.desc())


class SqlSessions:
    """Keeps the promises of Sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recent(self, session: UUID, owner: Owner, *, limit: int) -> list[Exchange]:
        mine = select(_owned(owner)).where(sessions.c.session_id == session)
        last = (
            select(conversations)
            .where(conversations.c.session_id == session, conversations.c.complete)
            .order_by(*_NEWEST_FIRST)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            if (await connection.scalar(mine)) is False:
                raise _not_found(session)
            rows = (await connection.execute(last)).all()
        return [Exchange(row.query, row.response) for row in reversed(rows)]

    async def record(
        self, exchange: StoredExchange, owner: Owner, *, idempotency_key: str | None = None
    ) -> StoredExchange:
        word = None if idempotency_key is None else _word(idempotency_key, owner)
        async with self._database.writing() as connection:
            touched = (await connection.execute(self._touch(exchange.session_id, owner))).first()
            if touched is None:
                raise _not_found(exchange.session_id)
            row = (await connection.execute(self._put(exchange, word))).first()
            if row is None:  # kept before under the same word
                row = (await connection.execute(_under(word))).one()
            kept = _recorded(row)
            if kept.session_id != exchange.session_id:
                await connection.rollback()  # the retry came under a session of its own, which need not be made
        return kept

    async def find_by_key(self, idempotency_key: str, owner: Owner) -> StoredExchange | None:
        async with self._database.reading() as connection:
            row = (await connection.execute(_under(_word(idempotency_key, owner)))).first()
        return None if row is None else _recorded(row)

    async def history(
        self, session: UUID, owner: Owner, *, limit: int | None = None, offset: int = 0
    ) -> tuple[list[StoredExchange], int]:
        told = conversations.join(sessions)
        mine = (conversations.c.session_id == session) & _owned(owner)
        page = select(conversations).select_from(told).where(mine).order_by(*_OLDEST_FIRST).limit(limit).offset(offset)
        async with self._database.reading() as connection:
            total = await connection.scalar(select(func.count()).select_from(told).where(mine))
            return [_recorded(row) for row in await connection.execute(page)], total or 0

    async def set_feedback(self, session: UUID, request: UUID, owner: Owner, *, vote: Vote | None) -> None:
        mine = select(sessions.c.session_id).where(sessions.c.session_id == session, _owned(owner))
        this = conversations.c.metadata["request_id"].as_string() == str(request)
        marked = update(conversations).where(conversations.c.session_id.in_(mine), this).values(feedback=vote)
        async with self._database.writing() as connection:
            if not (await connection.execute(marked)).rowcount:
                raise NotFound("there is no such answer in this session")

    async def feedback(self, project: UUID, *, limit: int, vote: Vote | None = None) -> Feedback:
        told = conversations.join(sessions)
        rated = conversations.c.feedback.in_(("up", "down")) & (sessions.c.project_id == project)
        shown = rated if vote is None else rated & (conversations.c.feedback == vote)
        counted = select(conversations.c.feedback, func.count()).select_from(told).where(rated)
        last = select(conversations).select_from(told).where(shown).order_by(*_NEWEST_FIRST).limit(limit)
        async with self._database.reading() as connection:
            counts = await connection.execute(counted.group_by(conversations.c.feedback))
            votes = {str(row[0]): int(row[1]) for row in counts}
            rows = (await connection.execute(last)).all()
        return Feedback(votes.get("up", 0), votes.get("down", 0), tuple(_recorded(row) for row in rows))

    async def delete(self, session: UUID, owner: Owner) -> None:
        async with self._database.writing() as connection:
            await connection.execute(delete(sessions).where(sessions.c.session_id == session, _owned(owner)))

    def _touch(self, session: UUID, owner: Owner) -> ReturningInsert[tuple[UUID]]:
        """Make the session or move its last_active on; gives its id unless it is somebody else's."""
        now = datetime.now(UTC)
        new = self._database.insert(sessions).values(
            session_id=session, created_at=now, last_active=now, project_id=owner.project, owner=owner.key
        )
        later = case((new.excluded.last_active > sessions.c.last_active, now), else_=sessions.c.last_active)
        return new.on_conflict_do_update(
            index_elements=["session_id"], set_={"last_active": later}, where=_owned(owner)
        ).returning(sessions.c.session_id)

    def _put(self, told: StoredExchange, word: str | None) -> ReturningInsert[Any]:
        """Keep the exchange, under its word in the place of an incomplete one; gives no row where the old one stays."""
        values = {
            "session_id": told.session_id,
            "timestamp": told.timestamp,
            "query": storable(told.query),
            "response": storable(told.response),
            "sources": _storable_json(told.sources),
            "metadata": _storable_json(told.metadata),
            "complete": told.complete,
            "feedback": told.feedback,  # a vote was for the words that stood here before
        }
        new = self._database.insert(conversations).values(**values, once=word)
        better = new.excluded.complete & ~conversations.c.complete
        return new.on_conflict_do_update(index_elements=["once"], set_=values, where=better).returning(conversations)


def _owned(owner: Owner) -> ColumnElement[bool]:
    """Whether a session is one that the owner may see."""
    ours = sessions.c.project_id == owner.project
    return ours if owner.admin else ours & (sessions.c.owner == owner.key)


def _word(once: str, owner: Owner) -> str:
    """A client's word for a request; the same word of another owner is another."""
    return hashlib.sha256(json.dumps([str(owner.project), owner.key, once]).encode()).hexdigest()


def _storable_json(value: object) -> object:
    """What JSON can say with every string made storable, names included."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(str(name)): _storable_json(one) for name, one in value.items()}
        case list() | tuple():
            return [_storable_json(one) for one in value]
        case _:
            return value


def _under(word: str | None) -> Select[Any]:
    return select(conversations).where(conversations.c.once == word)


def _recorded(row: Row[Any]) -> StoredExchange:
    return StoredExchange(
        session_id=row.session_id,
        timestamp=row.timestamp,
        query=row.query,
        response=row.response,
        sources=tuple(row.sources),
        metadata=row.metadata,
        complete=row.complete,
        feedback=row.feedback,
    )


def _not_found(session: UUID) -> NotFound:
    return NotFound(f"there is no session {session}")

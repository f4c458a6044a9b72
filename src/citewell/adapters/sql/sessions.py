"""Conversations. A retried request is stored once, even by two processes at the same time.

Other programs may write to the same tables, by the contract: most columns may be null, and JSON may be anything.
"""

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

_TIME = func.coalesce(conversations.c.timestamp, conversations.c.created_at)
_OLDEST_FIRST = (_TIME, conversations.c.id)
_NEWEST_FIRST = (_TIME.desc(), conversations.c.id.desc())


class SqlSessions:
    """One row for each session, and one for each exchange."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recent(self, session: UUID, owner: Owner, *, limit: int) -> list[Exchange]:
        owned = select(_owned_by(owner)).where(sessions.c.session_id == session)
        newest = (
            select(conversations)
            .where(conversations.c.session_id == session, conversations.c.complete)
            .order_by(*_NEWEST_FIRST)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            if (await connection.scalar(owned)) is False:
                raise _not_found(session)
            rows = (await connection.execute(newest)).all()
        return [Exchange(row.query or "", row.response or "", row.timestamp) for row in reversed(rows)]

    async def record(
        self, exchange: StoredExchange, owner: Owner, *, idempotency_key: str | None = None
    ) -> StoredExchange:
        key_hash = None if idempotency_key is None else _key_hash(idempotency_key, owner)
        async with self._database.writing() as connection:
            session_row = (await connection.execute(self._touch(exchange.session_id, owner))).first()
            if session_row is None:
                raise _not_found(exchange.session_id)
            row = (await connection.execute(self._upsert(exchange, key_hash))).first()
            if row is None:  # stored before under the same key
                row = (await connection.execute(_by_key(key_hash))).one()
            stored = _stored_exchange(row)
            if stored.session_id != exchange.session_id:
                await connection.rollback()  # the retry named a new session, which must not be created
        return stored

    async def find_by_key(self, idempotency_key: str, owner: Owner) -> StoredExchange | None:
        async with self._database.reading() as connection:
            row = (await connection.execute(_by_key(_key_hash(idempotency_key, owner)))).first()
        return None if row is None else _stored_exchange(row)

    async def history(
        self, session: UUID, owner: Owner, *, limit: int | None = None, offset: int = 0
    ) -> tuple[list[StoredExchange], int]:
        joined = conversations.join(sessions)
        owned = (conversations.c.session_id == session) & _owned_by(owner)
        page = (
            select(conversations).select_from(joined).where(owned).order_by(*_OLDEST_FIRST).limit(limit).offset(offset)
        )
        async with self._database.reading() as connection:
            total = await connection.scalar(select(func.count()).select_from(joined).where(owned))
            return [_stored_exchange(row) for row in await connection.execute(page)], total or 0

    async def set_feedback(self, session: UUID, request: UUID, owner: Owner, *, vote: Vote | None) -> None:
        owned = select(sessions.c.session_id).where(sessions.c.session_id == session, _owned_by(owner))
        of_request = conversations.c.metadata["request_id"].as_string() == str(request)
        exchange = update(conversations).where(conversations.c.session_id.in_(owned), of_request)
        async with self._database.writing() as connection:
            if not (await connection.execute(exchange.values(feedback=vote))).rowcount:
                raise NotFound("there is no such answer in this session")

    async def feedback(self, project: UUID, *, limit: int, vote: Vote | None = None) -> Feedback:
        joined = conversations.join(sessions)
        rated = conversations.c.feedback.in_(("up", "down")) & (sessions.c.project_id == project)
        selected = rated if vote is None else rated & (conversations.c.feedback == vote)
        count_query = select(conversations.c.feedback, func.count()).select_from(joined).where(rated)
        newest = select(conversations).select_from(joined).where(selected).order_by(*_NEWEST_FIRST).limit(limit)
        async with self._database.reading() as connection:
            counts = await connection.execute(count_query.group_by(conversations.c.feedback))
            votes = {str(row[0]): int(row[1]) for row in counts}
            rows = (await connection.execute(newest)).all()
        return Feedback(votes.get("up", 0), votes.get("down", 0), tuple(_stored_exchange(row) for row in rows))

    async def delete(self, session: UUID, owner: Owner) -> None:
        owned = select(sessions.c.session_id).where(sessions.c.session_id == session, _owned_by(owner))
        async with self._database.writing() as connection:
            # Its exchanges first: a table of another program need not delete them with their session.
            await connection.execute(delete(conversations).where(conversations.c.session_id.in_(owned)))
            await connection.execute(delete(sessions).where(sessions.c.session_id.in_(owned)))

    def _touch(self, session: UUID, owner: Owner) -> ReturningInsert[tuple[UUID]]:
        """Create the session or update its last_active; returns its id unless it belongs to somebody else."""
        now = datetime.now(UTC)
        new = self._database.insert(sessions).values(
            session_id=session, created_at=now, last_active=now, project_id=owner.project, owner=owner.key
        )
        later = case((new.excluded.last_active > sessions.c.last_active, now), else_=sessions.c.last_active)
        return new.on_conflict_do_update(
            index_elements=["session_id"], set_={"last_active": later}, where=_owned_by(owner)
        ).returning(sessions.c.session_id)

    def _upsert(self, exchange: StoredExchange, key_hash: str | None) -> ReturningInsert[Any]:
        """Insert the exchange, or replace an incomplete one with its key; returns no row if the old one stays."""
        values = {
            "session_id": exchange.session_id,
            "timestamp": exchange.timestamp,
            "query": storable(exchange.query),
            "response": storable(exchange.response),
            "sources": _storable_json(exchange.sources),
            "metadata": _storable_json(exchange.metadata),
            "complete": exchange.complete,
            "feedback": exchange.feedback,  # a vote was for the answer that is replaced
        }
        new = self._database.insert(conversations).values(**values, once=key_hash)
        completes = new.excluded.complete & ~conversations.c.complete
        return new.on_conflict_do_update(index_elements=["once"], set_=values, where=completes).returning(conversations)


def _owned_by(owner: Owner) -> ColumnElement[bool]:
    """Matches sessions that the owner may see."""
    in_project = sessions.c.project_id == owner.project
    return in_project if owner.admin else in_project & (sessions.c.owner == owner.key)


def _key_hash(idempotency_key: str, owner: Owner) -> str:
    """A hash of an idempotency key and its owner: the same key of another owner is another one."""
    return hashlib.sha256(json.dumps([str(owner.project), owner.key, idempotency_key]).encode()).hexdigest()


def _storable_json(value: object) -> object:
    """A JSON value with every string in it made storable, names included."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(str(name)): _storable_json(item) for name, item in value.items()}
        case list() | tuple():
            return [_storable_json(item) for item in value]
        case _:
            return value


def _by_key(key_hash: str | None) -> Select[Any]:
    return select(conversations).where(conversations.c.once == key_hash)


def _stored_exchange(row: Row[Any]) -> StoredExchange:
    sources = row.sources if isinstance(row.sources, list) else []
    return StoredExchange(
        session_id=row.session_id,
        timestamp=row.timestamp or row.created_at or datetime.fromtimestamp(0, UTC),
        query=row.query or "",
        response=row.response or "",
        sources=tuple(source for source in sources if isinstance(source, dict)),
        metadata=row.metadata if isinstance(row.metadata, dict) else {},
        complete=row.complete,
        feedback=row.feedback if row.feedback in ("up", "down") else None,
    )


def _not_found(session: UUID) -> NotFound:
    return NotFound(f"there is no session {session}")

"""API keys in the database: what each may do, and a digest to know it by."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, insert, select, update

from citewell.adapters.sql.database import Database, storable
from citewell.adapters.sql.tables import keys
from citewell.models import Key


class SqlKeys:
    """Keeps the promises of Keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: Key, *, digest: str) -> None:
        new = insert(keys).values(
            id=key.id,
            name=storable(key.name),
            digest=digest,
            scope=key.scope,
            project_id=key.project,
            per_minute=key.per_minute,
            created_at=key.created_at,
            revoked_at=key.revoked_at,
        )
        async with self._database.writing() as connection:
            await connection.execute(new)

    async def find(self, identity: str) -> tuple[Key, str] | None:
        async with self._database.reading() as connection:
            row = (await connection.execute(select(keys).where(keys.c.id == storable(identity)))).first()
        return None if row is None else (_key(row), row.digest)

    async def keys(self) -> list[Key]:
        async with self._database.reading() as connection:
            return [_key(row) for row in await connection.execute(select(keys).order_by(keys.c.created_at, keys.c.id))]

    async def revoke(self, identity: str) -> bool:
        open_yet = (keys.c.id == storable(identity)) & keys.c.revoked_at.is_(None)
        async with self._database.writing() as connection:
            done = await connection.execute(update(keys).where(open_yet).values(revoked_at=datetime.now(UTC)))
        return done.rowcount == 1


def _key(row: Row[Any]) -> Key:
    return Key(
        id=row.id,
        name=row.name,
        scope=row.scope,
        created_at=row.created_at,
        project=row.project_id,
        per_minute=row.per_minute,
        revoked_at=row.revoked_at,
    )

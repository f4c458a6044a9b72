"""API keys: what each may do, and the digest of its secret."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, insert, select, update

from citewell.adapters.sql.database import Database, storable
from citewell.adapters.sql.tables import keys
from citewell.models import Key


class SqlKeys:
    """One row for each key that was ever created."""

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

    async def find(self, key_id: str) -> tuple[Key, str] | None:
        async with self._database.reading() as connection:
            row = (await connection.execute(select(keys).where(keys.c.id == storable(key_id)))).first()
        return None if row is None else (_key(row), row.digest)

    async def keys(self) -> list[Key]:
        async with self._database.reading() as connection:
            return [_key(row) for row in await connection.execute(select(keys).order_by(keys.c.created_at, keys.c.id))]

    async def revoke(self, key_id: str) -> bool:
        not_revoked = (keys.c.id == storable(key_id)) & keys.c.revoked_at.is_(None)
        async with self._database.writing() as connection:
            result = await connection.execute(update(keys).where(not_revoked).values(revoked_at=datetime.now(UTC)))
        return result.rowcount == 1


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

"""What takes long in PostgreSQL: copying many rows, and making indexes over them. Knows the driver, asyncpg."""

import io
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from citewell.adapters.pgvector.tables import TABLES, Generation, has_table, search_indexes
from citewell.adapters.sql import Database
from citewell.errors import StoreUnavailable

_log = logging.getLogger("citewell.index")

_BUILD_SECONDS = 12 * 3600.0
_LINKS_BYTES = 800  # of an HNSW index that is built, for each vector beside the vector; 680 were measured


async def without_time_limit(connection: AsyncConnection) -> None:
    """For this transaction, also where the server limits statements."""
    await connection.execute(text("SET LOCAL statement_timeout = 0"))


async def copy_rows(connection: AsyncConnection, table: str, columns: Sequence[str], rows: bytes) -> None:
    """Copy rows in PostgreSQL's binary format, in the connection's transaction."""
    async with _driver(connection) as driver:
        await driver.copy_to_table(
            table, source=io.BytesIO(rows), columns=columns, format="binary", timeout=_BUILD_SECONDS
        )


async def create_indexes(database: Database, generation: Generation) -> None:
    """Make the indexes that searches of a generation need and that are not there yet."""
    missing: dict[str, str] = {}
    async with database.reading() as connection:
        for name, definition in search_indexes(generation).items():
            if not await has_table(connection, name):
                missing[name] = definition
    for name, definition in missing.items():
        statement = f"CREATE INDEX {name} {definition}"
        try:
            await _create_index(database, generation, statement)
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, asyncpg.DiskFullError):
                raise
            # Workers share memory in /dev/shm, of which a container has 64 MB.
            await _create_index(database, generation, statement, workers=0)
    if missing:
        async with database.writing() as connection:
            await without_time_limit(connection)
            for table in TABLES:
                await connection.execute(text(f"ANALYZE {generation.table(table)}"))


async def _create_index(
    database: Database, generation: Generation, statement: str, *, workers: int | None = None
) -> None:
    async with database.writing() as connection:
        await without_time_limit(connection)
        await connection.execute(text(_MORE_MEMORY), {"needed": _memory_for(generation)})
        # Otherwise the server goes on for minutes after whoever wanted the index has gone.
        await connection.execute(text("SET LOCAL client_connection_check_interval = '5s'"))
        if workers is not None:
            await connection.execute(text(f"SET LOCAL max_parallel_maintenance_workers = {workers}"))
        async with _driver(connection) as driver:
            await driver.execute(statement, timeout=_BUILD_SECONDS)


# An HNSW index that is larger than the memory for it is built many times slower. A server is told how much memory the
# machine has for caches: a quarter of that is not too much for a while.
_MORE_MEMORY = """
    SELECT set_config('maintenance_work_mem', greatest(
        pg_size_bytes(current_setting('maintenance_work_mem')),
        least(CAST(:needed AS bigint), pg_size_bytes(current_setting('effective_cache_size')) / 4)
    ) / 1024 || 'kB', true)
"""


def _memory_for(generation: Generation) -> int:
    vectors = (generation.windows or 0) * (2 * generation.origin.dimensions + _LINKS_BYTES)
    return max(vectors, (generation.chunks or 0) * 1000)


@asynccontextmanager
async def _driver(connection: AsyncConnection) -> AsyncIterator[Any]:
    """The connection of asyncpg in its transaction, with its errors translated."""
    raw = (await connection.get_raw_connection()).driver_connection
    try:
        yield raw
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        _log.warning("the index cannot be written: %s", error)
        raise StoreUnavailable(f"the index cannot be written: {error}") from error

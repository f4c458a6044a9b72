"""The index in PostgreSQL for benchmarks: a server of its own or DATABASE_URL, and a builder for several projects."""

import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

from sqlalchemy import text
from tests.fakes.postgres import PostgresServer

from citewell.adapters.pgvector import PgVectorBuilder, PgVectorIndex
from citewell.adapters.sql import Database
from citewell.ports import Change

_BUILD_SECONDS = 3600.0

# As on a small server of its own; what is written is on the disk, as in production.
SERVER_SETTINGS = {
    "shared_buffers": "2GB",
    "effective_cache_size": "8GB",
    "max_wal_size": "8GB",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
}


@contextmanager
def database_url() -> Iterator[str]:
    """DATABASE_URL, or an empty database on a server that lasts as long as the context."""
    if url := os.environ.get("DATABASE_URL"):
        yield url
        return
    server = PostgresServer(settings=SERVER_SETTINGS)
    try:
        yield server.create(name="scaling")
    finally:
        server.remove()


def index_in_postgres(url: str, *, model: str, dimensions: int) -> PgVectorIndex:
    return PgVectorIndex(Database(url), model=model, dimensions=dimensions)


async def build_in_postgres(
    url: str, projects: Sequence[UUID], changes: Callable[[], AsyncIterator[Change]], *, model: str, dimensions: int
) -> None:
    """Publish an index for each project from changes that have the chunks of all of them, made anew for each."""
    database = await Database.open(url, statement_seconds=_BUILD_SECONDS)

    async def of(project: UUID) -> AsyncIterator[Change]:
        async for change in changes():
            yield replace(change, entries=[entry for entry in change.entries if entry.project == project])

    for project in projects:
        builder = PgVectorBuilder(database, project, model=model, dimensions=dimensions)
        await builder.publish(await builder.stage(of(project), base=None))
    await database.close()


async def megabytes_in_postgres(url: str) -> float:
    database = await Database.open(url)
    async with database.reading() as connection:
        size = await connection.scalar(text("SELECT pg_database_size(current_database())"))
    await database.close()
    return float(size or 0) / 1e6

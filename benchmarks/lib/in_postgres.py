"""The index in PostgreSQL for benchmarks: in DATABASE_URL, or on a server that lasts as long as the benchmark.

`build_in_postgres` takes chunks of several projects in one go, as the embedded index does.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
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
def server() -> Iterator[str]:
    """The URL of a database, which is in DATABASE_URL for processes that are started meanwhile."""
    if url := os.environ.get("DATABASE_URL"):
        yield url
        return
    own = PostgresServer(settings=SERVER_SETTINGS)
    try:
        os.environ["DATABASE_URL"] = own.create(name="scaling")
        yield os.environ["DATABASE_URL"]
    finally:
        os.environ.pop("DATABASE_URL", None)
        own.remove()


def index_in_postgres(url: str, *, model: str, dimensions: int) -> PgVectorIndex:
    return PgVectorIndex(Database(url), model=model, dimensions=dimensions)


async def build_in_postgres(
    url: str, projects: Sequence[UUID], changes: AsyncIterator[Change], *, model: str, dimensions: int
) -> None:
    """Publish an index for each project from changes that have the chunks of all of them."""
    database = await Database.open(url, statement_seconds=_BUILD_SECONDS)
    queues: dict[UUID, asyncio.Queue[Change | None]] = {project: asyncio.Queue(1) for project in projects}

    async def share() -> None:
        async for change in changes:
            for project, queue in queues.items():
                entries = [entry for entry in change.entries if entry.project == project]
                await queue.put(replace(change, entries=entries))
        for queue in queues.values():
            await queue.put(None)

    async def of(project: UUID) -> AsyncIterator[Change]:
        while (change := await queues[project].get()) is not None:
            yield change

    async def build(project: UUID) -> None:
        builder = PgVectorBuilder(database, project, model=model, dimensions=dimensions)
        await builder.publish(await builder.stage(of(project), base=None))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(share())
        for project in projects:
            tasks.create_task(build(project))
    await database.close()


async def megabytes_in_postgres(url: str) -> float:
    database = await Database.open(url)
    async with database.reading() as connection:
        size = await connection.scalar(text("SELECT pg_database_size(current_database())"))
    await database.close()
    return float(size or 0) / 1e6


async def megabytes(url: str) -> float:
    """What the tables of the index take on the disk, with their indexes."""
    sizes = r"SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'index\_%'"
    database = await Database.open(url)
    try:
        async with database.reading() as connection:
            return float(await connection.scalar(text(sizes)) or 0) / 1e6
    finally:
        await database.close()

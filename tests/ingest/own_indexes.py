"""Each project with an index of its own, as on a server: the embedded engine in one folder per project.

As a program, `python -m tests.ingest.own_indexes URL HOME PROJECT PATH…` ingests files, and tells its parent at every
step what it is about to do. It goes on when it is sent a line.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from uuid import UUID

import click

from citewell.adapters.hashing import HashingEmbedder
from citewell.adapters.qdrant_edge import QdrantEdgeBuilder
from citewell.adapters.sql import Database, SqlIngests, SqlLibrary, sole_writer
from citewell.ingest.chunk import ChunkSize
from citewell.ingest.flow import IngestEngines, ingest
from citewell.ingest.read_ahead import Recipe
from citewell.models import Chunk, Document, Project
from citewell.ports import Embedder

RECIPE = Recipe(size=ChunkSize(smallest=500, largest=800, overlap=100), base_url=None)


def opener(
    database: Database, home: Path, *, embedder: Embedder | None = None, library: type[SqlLibrary] = SqlLibrary
) -> Callable[[UUID], AbstractAsyncContextManager[IngestEngines]]:
    """What gives the engines of a project, with the right to write to it, or raises IngestRunning."""
    used = embedder or HashingEmbedder()

    @asynccontextmanager
    async def open_engines(project: UUID) -> AsyncIterator[IngestEngines]:
        own = library(database, project=project)
        async with sole_writer(database, project, wait=False, on_wait=lambda: None, last_out=own.clean_up):
            builder = QdrantEdgeBuilder(home / str(project) / "index", model=used.model, dimensions=used.dimensions)
            yield IngestEngines(own, own, own, own, used, builder, SqlIngests(database))
            await builder.close()

    return open_engines


class _Telling(SqlLibrary):
    """Says before each step what it is, and waits for a line."""

    async def stage(self, project: Project, documents: Sequence[tuple[Document, Sequence[Chunk]]]) -> None:
        await _tell("stage")
        await super().stage(project, documents)

    async def commit(self, *, remove: Sequence[UUID], generation: int) -> None:  # type: ignore[override]
        await _tell("commit")
        await super().commit(remove=remove, generation=generation)


async def _tell(step: str) -> None:
    click.echo(step)
    await asyncio.to_thread(sys.stdin.readline)


async def _main(url: str, home: Path, name: str, *paths: str) -> None:
    project, database = Project.named(name), await Database.open(url)
    async with opener(database, home, library=_Telling)(project.id) as engines:
        result = await ingest(
            [Path(path) for path in paths],
            project=project,
            engines=engines,
            recipe=RECIPE,
            prune=True,
            progress=lambda *_: None,
        )
        assert not result.errors, result.errors
        await _tell("leave")
    await database.close()
    click.echo("left")


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))

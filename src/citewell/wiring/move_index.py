"""Moves the index from one engine to another, whichever of them the settings name."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

from citewell import home
from citewell.adapters.sql import Database, SqlLibrary, SqlProjects, database_exists
from citewell.adapters.writer_lock import writer_lock
from citewell.errors import MigrationError, SettingsError
from citewell.ingest import migrate
from citewell.ingest.migrate import IndexPlace, MigrationStores, MovedIndex
from citewell.ports import Embedder, IndexBuilder
from citewell.settings import IndexEngine, Settings
from citewell.wiring.indexes import make_index, make_index_builder
from citewell.wiring.resources import INGEST_STATEMENT_SECONDS, lease, open_embedder, open_library


async def move_index(
    settings: Settings,
    to: IndexEngine,
    *,
    source: IndexEngine | None,
    remove_source: bool,
    wait: bool,
    on_wait: Callable[[], None],
    progress: Callable[[int, int], None],
) -> MovedIndex:
    """Move the index to an engine, by default from the one that holds it; no ingest runs meanwhile.

    Raises MigrationError if there is no index to move, or it does not arrive as it was.
    """
    if source == to:
        raise MigrationError(f"--from and --to are both {to}; name the engine that the index is moved to with --to")
    if not await database_exists(home.database_location(settings)):
        raise MigrationError("nothing has been ingested yet, so there is no index to move")
    async with (
        open_embedder(settings) as embedder,
        writer_lock(settings.home, wait=wait, on_wait=on_wait) as place,
        home.open_database(settings, statement_seconds=INGEST_STATEMENT_SECONDS) as database,
        lease(database, None, place, wait=wait, on_wait=on_wait),
        AsyncExitStack() as opened,
    ):
        library = SqlLibrary(database)
        await library.discard()  # what an ingest that died had staged
        stores = MigrationStores(
            projects=[project for project, _ in await SqlProjects(database).projects()],
            cache=library,
            embedder=embedder,
        )
        target = await opened.enter_async_context(_open_place(settings, to, database, embedder))
        places = []
        for engine in [source] if source else _possible_sources(settings, to):
            try:
                places.append(await opened.enter_async_context(_open_place(settings, engine, database, embedder)))
            except SettingsError:
                if source:  # otherwise: a URL that is set for something else
                    raise
        origin = places[0] if source else await migrate.find_source(places, stores)
        if origin is None:
            raise MigrationError(await _nothing_to_move(target, stores))
        return await migrate.move_index(origin, target, stores, progress=progress, remove_source=remove_source)


async def _nothing_to_move(target: IndexPlace, stores: MigrationStores) -> str:
    if await migrate.find_source([target], stores):
        return f"the index is in {target.name} already, and in no other engine that is configured"
    return (
        "no engine that is configured has an index of the documents; name the engine with --from, or set "
        f"CITEWELL_INDEX={target.name} and run `citewell doctor --fix`, which builds it from the database"
    )


def _possible_sources(settings: Settings, to: IndexEngine) -> list[IndexEngine]:
    """The engines that the settings have an address for, the configured one first."""
    engines: list[IndexEngine] = [settings.index_engine, "embedded"]
    if settings.qdrant_url:
        engines.append("qdrant")
    if settings.database_url:
        engines.append("postgres")
    return [engine for engine in dict.fromkeys(engines) if engine != to]


@asynccontextmanager
async def _open_place(
    settings: Settings, engine: IndexEngine, database: Database, embedder: Embedder
) -> AsyncIterator[IndexPlace]:
    engine_settings = settings.model_copy(update={"index": engine})

    @asynccontextmanager
    async def open_builder(project: UUID | None) -> AsyncIterator[IndexBuilder]:
        builder = make_index_builder(engine_settings, embedder, project, database, lists=project)
        try:
            yield builder
        finally:
            await builder.close()

    library = open_library(engine_settings, database)
    index = make_index(engine_settings, embedder, library, database)
    try:
        yield IndexPlace(
            engine,
            index,
            engine == "embedded",
            open_builder,
            library=lambda project: open_library(engine_settings, database, project=project),
            library_writer=library,
        )
    finally:
        await index.close()

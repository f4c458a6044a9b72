"""Opens what an endpoint or a command works with, and closes it at the end."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from citewell import home
from citewell.adapters.sql import (
    Database,
    SqlEvaluations,
    SqlGaps,
    SqlIngests,
    SqlKeys,
    SqlLibrary,
    SqlProjects,
    SqlSessions,
    SqlUploads,
    check_database_url,
    database_exists,
    sole_writer,
)
from citewell.adapters.writer_lock import is_held, writer_lock
from citewell.answer.engines import AnswerEngines
from citewell.ingest.chunk import ChunkSize
from citewell.ingest.flow import IngestEngines
from citewell.ingest.read_ahead import Recipe
from citewell.ports import (
    Embedder,
    Evaluations,
    Gaps,
    Ingests,
    Keys,
    Library,
    Projects,
    Sessions,
    Uploads,
)
from citewell.settings import Settings
from citewell.wiring.engines import make_embedder, make_reader, make_reranker, make_writer
from citewell.wiring.indexes import check_index, make_index, make_index_builder

INGEST_STATEMENT_SECONDS = 600.0  # the commit of a large library is one statement, and no reader waits for it


@dataclass(frozen=True, slots=True)
class AnswerResources:
    """What an endpoint needs to answer, and to report its health."""

    engines: AnswerEngines
    library: Library


def check_settings(settings: Settings) -> None:
    """Raise SettingsError for a key, a URL or a package that is missing or invalid; makes no requests."""
    make_reranker(settings)
    make_embedder(settings)
    make_writer(settings)
    check_index(settings)
    check_database_url(home.database_location(settings))


@asynccontextmanager
async def open_for_answers(settings: Settings, *, database_may_fail: bool = False) -> AsyncIterator[AnswerResources]:
    """The engines that answer questions, open until the context ends."""
    reranker, reader, writer = make_reranker(settings), make_reader(settings), make_writer(settings)
    async with (
        open_embedder(settings) as embedder,
        home.open_database(settings, may_fail=database_may_fail) as database,
    ):
        library = open_library(settings, database)
        index = make_index(settings, embedder, library, database)
        try:
            engines = AnswerEngines(
                embedder=embedder,
                index=index,
                reranker=reranker,
                reader=reader,
                writer=writer,
                unsupported=settings.unsupported_policy,
                decline_below=settings.decline_below,
                title=settings.title or "",
            )
            yield AnswerResources(engines=engines, library=library)
        finally:
            if writer:
                await writer.close()
            if reader:
                await reader.close()
            await reranker.close()
            await index.close()


@asynccontextmanager
async def open_for_ingest(
    settings: Settings,
    *,
    wait: bool,
    on_wait: Callable[[], None],
    project: UUID | None = None,
    rebuild: bool = False,
    alone: bool = False,
) -> AsyncIterator[IngestEngines]:
    """The engines for an ingest, and the right to write: nobody else ingests what this does.

    On a server, the engines are for one project, which has to be given; the embedded index is written as a whole.
    `alone` keeps other projects from being written, too. `rebuild` begins with an empty database where the old one is
    missing or damaged.
    """
    scope = None if alone else _written_together(settings, project)
    async with (
        open_embedder(settings) as embedder,
        home_lock(settings, wait=wait, on_wait=on_wait) as place,
        home.open_database(settings, statement_seconds=INGEST_STATEMENT_SECONDS, rebuild=rebuild) as database,
        lease(database, scope, place, wait=wait, on_wait=on_wait),
        _ingest_engines(settings, database, embedder, project) as engines,
    ):
        yield engines


@dataclass(frozen=True, slots=True)
class UploadResources:
    """What a worker needs: the stores, and the engines of one project after another, over one embedder."""

    stores: "Stores"
    open_engines: Callable[[UUID], AbstractAsyncContextManager[IngestEngines]]
    """The engines to write to a project, or to the embedded index; raises IngestRunning while another process does."""


@asynccontextmanager
async def open_for_uploads(settings: Settings) -> AsyncIterator[UploadResources]:
    """What a worker needs. While its engines are open, what it writes to the stores has the same fence."""
    async with (
        open_embedder(settings) as embedder,
        home.open_database(settings) as queue,
        home.open_database(settings, statement_seconds=INGEST_STATEMENT_SECONDS) as database,
    ):

        @asynccontextmanager
        async def open_engines(project: UUID) -> AsyncIterator[IngestEngines]:
            scope = _written_together(settings, project)
            async with (
                home_lock(settings, wait=False, on_wait=_never_called) as place,
                lease(database, scope, place, wait=False, on_wait=_never_called),
                _ingest_engines(settings, database, embedder, project) as engines,
            ):
                queue.fence = database.fence
                try:
                    yield engines
                finally:
                    queue.fence = None

        yield UploadResources(_stores(settings, queue), open_engines)


def _never_called() -> None:
    raise AssertionError("nobody waits here")


def _written_together(settings: Settings, project: UUID | None) -> UUID | None:
    """What is written by one process at a time: a project, or None for everything, as in the embedded index."""
    return None if settings.index_engine == "embedded" else project


@asynccontextmanager
async def home_lock(settings: Settings, *, wait: bool, on_wait: Callable[[], None]) -> AsyncIterator[str]:
    """Lock the home folder, unless nothing in it is written; yields the name of the lock, if there is one."""
    if settings.database_url and settings.index_engine != "embedded":
        yield ""
        return
    async with writer_lock(settings.home, wait=wait, on_wait=on_wait) as place:
        home.remove_leftovers(settings)
        yield place


def lease(
    database: Database, project: UUID | None, place: str, *, wait: bool, on_wait: Callable[[], None]
) -> AbstractAsyncContextManager[None]:
    last_out = SqlLibrary(database).clean_up
    return sole_writer(database, project, place=place, wait=wait, on_wait=on_wait, last_out=last_out)


async def indexed_projects(settings: Settings) -> list[UUID | None]:
    """What has an index of its own: each project on a server; everything together, None, in the embedded index."""
    if settings.index_engine == "embedded":
        return [None]
    async with open_stores(settings) as stores:
        return [project.id for project, _ in await stores.projects.projects()]


def is_ingest_running(settings: Settings) -> bool:
    """Whether a process is ingesting into the home folder."""
    return is_held(settings.home)


@asynccontextmanager
async def open_for_preview(
    settings: Settings, *, project: UUID | None = None, rebuild: bool = False
) -> AsyncIterator[IngestEngines]:
    """The engines for a dry run: no lock, and a temporary library if there is none yet, or with `rebuild`."""
    location = home.database_location(settings)
    exists = await database_exists(location) or (isinstance(location, Path) and home.has_index(settings))
    with TemporaryDirectory() as temporary:
        empty = settings.model_copy(update={"home": Path(temporary), "database_url": None})
        async with (
            open_embedder(settings) as embedder,
            home.open_database(settings if exists and not rebuild else empty) as database,
            _ingest_engines(settings, database, embedder, project) as engines,
        ):
            yield engines


@asynccontextmanager
async def open_for_restore(
    settings: Settings, backup: Path, *, overwrite: bool, wait: bool, on_wait: Callable[[], None]
) -> AsyncIterator[tuple[home.StagedBackup, Callable[[], AbstractAsyncContextManager[IngestEngines]]]]:
    """A copy of a backup, and how to open the engines over it, under the writer's lock."""
    async with open_embedder(settings) as embedder, writer_lock(settings.home, wait=wait, on_wait=on_wait):
        with home.stage_backup(settings, backup, overwrite=overwrite, model=embedder.model) as staged:

            @asynccontextmanager
            async def open_copy() -> AsyncIterator[IngestEngines]:
                async with (
                    staged.open(statement_seconds=INGEST_STATEMENT_SECONDS) as database,
                    _ingest_engines(settings, database, embedder, None) as engines,
                ):
                    yield engines

            yield staged, open_copy


@dataclass(frozen=True, slots=True)
class Stores:
    """What is in the database: the library, and what is stored beside it."""

    library: Library
    sessions: Sessions
    keys: Keys
    uploads: Uploads
    projects: Projects
    gaps: Gaps
    ingests: Ingests
    evaluations: Evaluations


@asynccontextmanager
async def open_stores(settings: Settings, *, database_may_fail: bool = False) -> AsyncIterator[Stores]:
    """The stores only: no model, no index, no lock."""
    async with home.open_database(settings, may_fail=database_may_fail) as database:
        yield _stores(settings, database)


def _stores(settings: Settings, database: Database) -> Stores:
    return Stores(
        library=open_library(settings, database),
        sessions=SqlSessions(database),
        keys=SqlKeys(database),
        uploads=SqlUploads(database),
        projects=SqlProjects(database),
        gaps=SqlGaps(database),
        ingests=SqlIngests(database),
        evaluations=SqlEvaluations(database),
    )


def open_library(settings: Settings, database: Database, *, project: UUID | None = None) -> SqlLibrary:
    """The library with the index generations of the configured engine."""
    return SqlLibrary(database, project=project, engine="qdrant" if settings.index_engine == "qdrant" else None)


@asynccontextmanager
async def _ingest_engines(
    settings: Settings, database: Database, embedder: Embedder, project: UUID | None
) -> AsyncIterator[IngestEngines]:
    library = open_library(settings, database, project=None if settings.index_engine == "embedded" else project)
    index_builder = make_index_builder(settings, embedder, project, database)
    try:
        yield IngestEngines(
            library=library,
            library_writer=library,
            audit=library,
            cache=library,
            embedder=embedder,
            index_builder=index_builder,
            ingests=SqlIngests(database),
        )
    finally:
        await index_builder.close()


@asynccontextmanager
async def open_embedder(settings: Settings) -> AsyncIterator[Embedder]:
    """The configured embedder, open until the context ends."""
    embedder = make_embedder(settings)
    try:
        yield embedder
    finally:
        await embedder.close()


def ingest_recipe(settings: Settings, *, base_url: str | None = None, whole_documents: bool = False) -> Recipe:
    """How an ingest reads and chunks files."""
    size = ChunkSize(smallest=settings.chunk_smallest, largest=settings.chunk_largest, overlap=settings.chunk_overlap)
    return Recipe(size=size, base_url=base_url or settings.base_url, whole_documents=whole_documents)

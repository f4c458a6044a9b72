"""What runs today: one `match` per port turns settings into engines. The only room that knows both."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import assert_never

from citewell.adapters.sql import SqlKeys, SqlLibrary, SqlProjects, SqlSessions, SqlUploads
from citewell.adapters.sql.engine import Database
from citewell.adapters.writer_lock import writer_lock
from citewell.answer.rerank import LocalReranker
from citewell.answer.retrieve import Engines as AnswerEngines
from citewell.errors import SettingsError
from citewell.ingest.chunk import ChunkSize
from citewell.ingest.flow import Engines as IngestEngines
from citewell.ingest.reading import Recipe
from citewell.ports import Embedder, Index, Keys, Library, Projects, Reranker, Sessions, Shelf, Uploads
from citewell.settings import Settings


@dataclass(frozen=True, slots=True)
class Reading:
    """What a door needs to answer, and to say how it feels."""

    engines: AnswerEngines
    library: Library


def check(settings: Settings) -> None:
    """Raise SettingsError for a key or a package that `reading` will miss; nothing is opened."""
    _reranker(settings)


@asynccontextmanager
async def reading(settings: Settings) -> AsyncIterator[Reading]:
    """The engines that answer questions, open while the context lasts."""
    reranker = _reranker(settings)
    library = await SqlLibrary.open(settings.home / "citewell.db")
    embedder = _embedder(settings)
    index = _index(settings, embedder)
    try:
        yield Reading(AnswerEngines(embedder, index, reranker), library)
    finally:
        await reranker.close()
        await index.close()
        await library.close()


@asynccontextmanager
async def writing(settings: Settings, *, wait: bool, on_wait: Callable[[], None]) -> AsyncIterator[IngestEngines]:
    """The engines that ingest, under the writer's lock."""
    with writer_lock(settings.home, wait=wait, on_wait=on_wait):
        library = await SqlLibrary.open(settings.home / "citewell.db")
        embedder = _embedder(settings)
        try:
            yield IngestEngines(library, library, library, library, embedder, _shelf(settings, embedder))
        finally:
            await library.close()


@asynccontextmanager
async def planning(settings: Settings) -> AsyncIterator[IngestEngines]:
    """The same engines for a look ahead: no lock, and where there is no library yet, one that leaves no trace."""
    database = settings.home / "citewell.db"
    with TemporaryDirectory() as nowhere:
        library = await SqlLibrary.open(database if database.exists() else Path(nowhere, "citewell.db"))
        embedder = _embedder(settings)
        try:
            yield IngestEngines(library, library, library, library, embedder, _shelf(settings, embedder))
        finally:
            await library.close()


@dataclass(frozen=True, slots=True)
class Keeping:
    """What outlasts a connection beside the library."""

    sessions: Sessions
    keys: Keys
    uploads: Uploads
    projects: Projects


@asynccontextmanager
async def keeping(settings: Settings) -> AsyncIterator[Keeping]:
    """Just the database: no model, no index, no lock."""
    database = await Database.open(_database(settings))
    try:
        yield Keeping(SqlSessions(database), SqlKeys(database), SqlUploads(database), SqlProjects(database))
    finally:
        await database.close()


def _database(settings: Settings) -> Path | str:
    url = settings.database_url
    return settings.home / "citewell.db" if url is None else url.get_secret_value()


def recipe(settings: Settings, *, base_url: str | None = None) -> Recipe:
    size = ChunkSize(settings.chunk_smallest, settings.chunk_largest, settings.chunk_overlap)
    return Recipe(size=size, base_url=base_url or settings.base_url)


def _embedder(settings: Settings) -> Embedder:
    match settings.embedder:
        case "minilm":
            from citewell.adapters.minilm import MiniLmEmbedder

            return MiniLmEmbedder(threads=settings.threads)
        case "hashing":
            from citewell.adapters.hashing import HashingEmbedder

            return HashingEmbedder()
        case never:
            assert_never(never)


def _index(settings: Settings, embedder: Embedder) -> Index:
    match settings.index:
        case "qdrant-edge":
            from citewell.adapters.qdrant_edge import QdrantEdgeIndex

            return QdrantEdgeIndex(settings.home / "index", model=embedder.model, dimensions=embedder.dimensions)
        case never:
            assert_never(never)


def _shelf(settings: Settings, embedder: Embedder) -> Shelf:
    match settings.index:
        case "qdrant-edge":
            from citewell.adapters.qdrant_edge import QdrantEdgeShelf

            return QdrantEdgeShelf(settings.home / "index", model=embedder.model, dimensions=embedder.dimensions)
        case never:
            assert_never(never)


def _reranker(settings: Settings) -> Reranker:
    match settings.reranker:
        case "local":
            return LocalReranker()
        case "cohere":
            if settings.cohere_api_key is None:
                raise SettingsError("Required environment variable COHERE_API_KEY not set.")
            try:
                from citewell.adapters.cohere import CohereReranker
            except ModuleNotFoundError as error:
                raise SettingsError(
                    "CITEWELL_RERANKER=cohere needs Cohere's SDK; run `pip install 'citewell[cohere]'`"
                ) from error
            return CohereReranker(
                settings.cohere_api_key.get_secret_value(),
                model=settings.cohere_rerank_model,
                base_url=str(settings.cohere_base_url) if settings.cohere_base_url else None,
            )
        case never:
            assert_never(never)

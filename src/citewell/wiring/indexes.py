"""Creates the index and its builder, in the engine that the settings name."""

from typing import TYPE_CHECKING, assert_never
from uuid import UUID

from citewell.adapters.sql import Database
from citewell.errors import SettingsError
from citewell.ports import Embedder, Index, IndexBuilder, Library
from citewell.settings import Settings
from citewell.wiring.engines import missing_package, not_set

if TYPE_CHECKING:
    from citewell.adapters.qdrant import CollectionOptions, QdrantServer


def make_index(settings: Settings, embedder: Embedder, library: Library, database: Database) -> Index:
    match settings.index_engine:
        case "embedded":
            from citewell.adapters.qdrant_edge import QdrantEdgeIndex

            return QdrantEdgeIndex(
                settings.home / "index",
                model=embedder.model,
                dimensions=embedder.dimensions,
                expected_generation=library.generation,
            )
        case "qdrant":
            server, options = _qdrant(settings, for_readers=True)
            from citewell.adapters.qdrant import QdrantIndex

            return QdrantIndex(
                server,
                options,
                model=embedder.model,
                dimensions=embedder.dimensions,
                expected_generation=library.generation,
            )
        case "postgres":
            _require_database(settings)
            from citewell.adapters.pgvector import PgVectorIndex

            return PgVectorIndex(database, model=embedder.model, dimensions=embedder.dimensions)
        case never:
            assert_never(never)


def make_index_builder(
    settings: Settings,
    embedder: Embedder,
    project: UUID | None,
    database: Database,
    *,
    lists: UUID | None = None,
) -> IndexBuilder:
    """The builder for a project on a server, or for the whole embedded index, which may list one project alone."""
    match settings.index_engine:
        case "embedded":
            from citewell.adapters.qdrant_edge import QdrantEdgeBuilder

            return QdrantEdgeBuilder(
                settings.home / "index", model=embedder.model, dimensions=embedder.dimensions, project=lists
            )
        case "qdrant":
            server, options = _qdrant(settings, for_readers=False)
            from citewell.adapters.qdrant import QdrantBuilder

            return QdrantBuilder(
                server,
                options,
                project=_one(project),
                model=embedder.model,
                dimensions=embedder.dimensions,
            )
        case "postgres":
            _require_database(settings)
            from citewell.adapters.pgvector import PgVectorBuilder

            return PgVectorBuilder(database, _one(project), model=embedder.model, dimensions=embedder.dimensions)
        case never:
            assert_never(never)


def check_index(settings: Settings) -> None:
    """Raise SettingsError for a URL, a key or a package that is missing or invalid; makes no requests."""
    match settings.index_engine:
        case "embedded":
            pass
        case "qdrant":
            _qdrant(settings, for_readers=True)
        case "postgres":
            _require_database(settings)
        case never:
            assert_never(never)


def _qdrant(settings: Settings, *, for_readers: bool) -> tuple["QdrantServer", "CollectionOptions"]:
    if settings.qdrant_url is None:
        raise not_set("qdrant_url")
    try:
        from citewell.adapters.qdrant import READING, WRITING, CollectionOptions, QdrantServer
    except ModuleNotFoundError as error:
        raise missing_package("an index on a Qdrant server needs Qdrant's client", "qdrant") from error
    key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    server = QdrantServer.at(settings.qdrant_url, key=key, policy=READING if for_readers else WRITING)
    return server, CollectionOptions(
        alias=settings.qdrant_collection,
        shards=settings.qdrant_shards,
        replicas=settings.qdrant_replicas,
        quantization=settings.qdrant_quantization,
        on_disk=settings.qdrant_on_disk,
    )


def _require_database(settings: Settings) -> None:
    if settings.database_url is None:
        raise SettingsError(
            "CITEWELL_INDEX=postgres needs DATABASE_URL, such as postgresql://user:password@host:5432/name"
        )


def _one(project: UUID | None) -> UUID:
    """The project, which every index on a server is built for."""
    if project is None:
        raise SettingsError(
            "an index on a server is built for one project at a time; restore with CITEWELL_INDEX=embedded, then run "
            "`citewell doctor --fix` with the server's settings"
        )
    return project

"""Creates the index and its builder, in the engine that the settings name."""

from typing import assert_never
from uuid import UUID

from citewell.adapters.sql import Database
from citewell.errors import SettingsError
from citewell.ports import Embedder, Index, IndexBuilder, Library
from citewell.settings import Settings


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
            raise _not_built(settings)
        case "postgres":
            _require_database(settings)
            from citewell.adapters.pgvector import PgVectorIndex

            return PgVectorIndex(database, model=embedder.model, dimensions=embedder.dimensions)
        case never:
            assert_never(never)


def make_index_builder(
    settings: Settings, embedder: Embedder, project: UUID | None, database: Database
) -> IndexBuilder:
    match settings.index_engine:
        case "embedded":
            from citewell.adapters.qdrant_edge import QdrantEdgeBuilder

            return QdrantEdgeBuilder(settings.home / "index", model=embedder.model, dimensions=embedder.dimensions)
        case "qdrant":
            raise _not_built(settings)
        case "postgres":
            _require_database(settings)
            from citewell.adapters.pgvector import PgVectorBuilder

            if project is None:
                raise SettingsError("CITEWELL_INDEX=postgres: an index is built for one project at a time")
            return PgVectorBuilder(database, project, model=embedder.model, dimensions=embedder.dimensions)
        case never:
            assert_never(never)


def check_index(settings: Settings) -> None:
    """Raise SettingsError if the index cannot be used with these settings; opens nothing."""
    if settings.index_engine == "postgres":
        _require_database(settings)


def _require_database(settings: Settings) -> None:
    if settings.database_url is None:
        raise SettingsError(
            "CITEWELL_INDEX=postgres needs DATABASE_URL, such as postgresql://user:password@host:5432/name"
        )


def _not_built(settings: Settings) -> SettingsError:
    return SettingsError(f"CITEWELL_INDEX={settings.index_engine} cannot be used yet")

"""Creates the index and its builder, in the engine that the settings name."""

from typing import assert_never
from uuid import UUID

from citewell.errors import SettingsError
from citewell.ports import Embedder, Index, IndexBuilder, Library
from citewell.settings import Settings


def make_index(settings: Settings, embedder: Embedder, library: Library) -> Index:
    match settings.index_engine:
        case "embedded":
            from citewell.adapters.qdrant_edge import QdrantEdgeIndex

            return QdrantEdgeIndex(
                settings.home / "index",
                model=embedder.model,
                dimensions=embedder.dimensions,
                expected_generation=library.generation,
            )
        case "qdrant" | "postgres":
            raise _not_built(settings)
        case never:
            assert_never(never)


def make_index_builder(
    settings: Settings,
    embedder: Embedder,
    project: UUID | None,  # noqa: ARG001
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
        case "qdrant" | "postgres":
            raise _not_built(settings)
        case never:
            assert_never(never)


def _not_built(settings: Settings) -> SettingsError:
    return SettingsError(f"CITEWELL_INDEX={settings.index_engine} cannot be used yet")

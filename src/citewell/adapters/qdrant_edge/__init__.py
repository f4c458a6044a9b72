"""The embedded index: published generations of a Qdrant Edge shard, each in a folder of its own."""

from citewell.adapters.qdrant_edge.builder import QdrantEdgeBuilder
from citewell.adapters.qdrant_edge.index import QdrantEdgeIndex
from citewell.adapters.qdrant_edge.parts import Limits

__all__ = [
    "Limits",
    "QdrantEdgeBuilder",
    "QdrantEdgeIndex",
]

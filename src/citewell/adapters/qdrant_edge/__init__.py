"""The embedded index: published generations of a Qdrant Edge shard."""

from citewell.adapters.qdrant_edge.index import QdrantEdgeBuilder, QdrantEdgeIndex

__all__ = [
    "QdrantEdgeBuilder",
    "QdrantEdgeIndex",
]

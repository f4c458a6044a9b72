"""The index on a Qdrant server: generations of each project in one collection, switched by one write."""

from citewell.adapters.qdrant.builder import QdrantBuilder
from citewell.adapters.qdrant.collection import CollectionOptions, Quantization
from citewell.adapters.qdrant.index import QdrantIndex
from citewell.adapters.qdrant.server import READING, WRITING, QdrantServer, checked_url

__all__ = [
    "READING",
    "WRITING",
    "CollectionOptions",
    "QdrantBuilder",
    "QdrantIndex",
    "QdrantServer",
    "Quantization",
    "checked_url",
]

"""The index in PostgreSQL with pgvector: vectors, words and documents in one database, published by its commit."""

from citewell.adapters.pgvector.builder import PgVectorBuilder
from citewell.adapters.pgvector.index import PgVectorIndex

__all__ = [
    "PgVectorBuilder",
    "PgVectorIndex",
]

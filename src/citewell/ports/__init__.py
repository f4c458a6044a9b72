"""Interfaces that the flows need and adapters implement. What each promises is documented here, once."""

from citewell.ports.engines import (
    Embeddable,
    Embedder,
    Embedding,
    Entry,
    Index,
    ReadableWindow,
    Reader,
    ReportsDetails,
    Reranker,
    Search,
    WindowScores,
    Writer,
    WritingTask,
)
from citewell.ports.library import Audit, Change, IndexBuilder, Ingests, Library, LibraryWriter, VectorCache
from citewell.ports.stores import Evaluations, Gaps, Keys, Projects, Sessions, Uploads

__all__ = [
    "Audit",
    "Change",
    "Embeddable",
    "Embedder",
    "Embedding",
    "Entry",
    "Evaluations",
    "Gaps",
    "Index",
    "IndexBuilder",
    "Ingests",
    "Keys",
    "Library",
    "LibraryWriter",
    "Projects",
    "ReadableWindow",
    "Reader",
    "ReportsDetails",
    "Reranker",
    "Search",
    "Sessions",
    "Uploads",
    "VectorCache",
    "WindowScores",
    "Writer",
    "WritingTask",
]

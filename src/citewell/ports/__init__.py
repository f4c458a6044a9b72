"""What the flows ask of an engine. Each promise is written here once; adapters keep it silently."""

from citewell.ports.engines import Assignment, Embeddable, Embedder, Embedding, Entry, Index, Reranker, Search, Writer
from citewell.ports.keeping import Evaluations, Gaps, Keys, Projects, Sessions, Uploads
from citewell.ports.library import Audit, Change, Ingests, Ledger, Library, Shelf, VectorCache

__all__ = [
    "Assignment",
    "Audit",
    "Change",
    "Embeddable",
    "Embedder",
    "Embedding",
    "Entry",
    "Evaluations",
    "Gaps",
    "Index",
    "Ingests",
    "Keys",
    "Ledger",
    "Library",
    "Projects",
    "Reranker",
    "Search",
    "Sessions",
    "Shelf",
    "Uploads",
    "VectorCache",
    "Writer",
]

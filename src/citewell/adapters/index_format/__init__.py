"""What an index stores of a chunk, the same in every engine. Knows no engine."""

from citewell.adapters.index_format.origin import (
    DENSE_VECTORS,
    FORMAT,
    MENDED_BY_DOCTOR,
    SPARSE_VECTORS,
    IndexOrigin,
)
from citewell.adapters.index_format.points import (
    IndexPoint,
    SparseTerms,
    normalize_url,
    query_terms,
    term_of,
    to_entry,
    to_passages,
    to_point,
)

__all__ = [
    "DENSE_VECTORS",
    "FORMAT",
    "MENDED_BY_DOCTOR",
    "SPARSE_VECTORS",
    "IndexOrigin",
    "IndexPoint",
    "SparseTerms",
    "normalize_url",
    "query_terms",
    "term_of",
    "to_entry",
    "to_passages",
    "to_point",
]

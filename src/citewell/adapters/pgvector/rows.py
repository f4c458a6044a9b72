"""Rows of an index as PostgreSQL's binary COPY reads them: no driver can send pgvector's types, and text is slow.

Knows no connection and no table, only the columns of `CHUNK_COLUMNS` and `WINDOW_COLUMNS`.
"""

import json
import struct
from collections.abc import Iterable, Sequence
from uuid import UUID

import numpy as np

from citewell.adapters.index_format import IndexPoint, term_of
from citewell.models import Matrix

CHUNK_COLUMNS = (
    *("no", "id", "document_id", "added", "section", "chapter", "filename", "url", "url_path"),
    *("terms", "label_terms", "weights", "payload"),
)
WINDOW_COLUMNS = ("chunk", "place", "embedding")

_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_END = struct.pack(">h", -1)
# The number of a type in PostgreSQL, and an element of its arrays: size and value.
_INTEGER = 23, np.dtype([("size", ">i4"), ("value", ">i4")])
_REAL = 700, np.dtype([("size", ">i4"), ("value", ">f4")])


def chunk_rows(points: Iterable[tuple[int, IndexPoint]], *, added: int) -> bytes:
    """The rows of numbered points."""
    rows = (_chunk_fields(number, point, added) for number, point in points)
    return b"".join([_HEADER, *map(_row, rows), _END])


def window_rows(points: Iterable[tuple[int, IndexPoint]]) -> bytes:
    """The rows of their windows."""
    rows = (
        (_integer(number, 8), _integer(place, 4), _vector(vector))
        for number, point in points
        for place, vector in enumerate(point.vectors)
    )
    return b"".join([_HEADER, *map(_row, rows), _END])


def read_vectors(sent: Sequence[bytes]) -> list[list[float]]:
    """Vectors as `vector_send` gives them."""
    return [np.frombuffer(each, dtype=">f4", offset=4).tolist() for each in sent]


def vector_literal(vector: Matrix) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


def signed(term: int) -> int:
    """The term as an integer of PostgreSQL."""
    return term - 2**32 if term >= 2**31 else term


def _chunk_fields(number: int, point: IndexPoint, added: int) -> Sequence[bytes]:
    payload = point.payload
    in_text = {term_of(stem) for line in payload["words"].split("\n") for stem in line.split(" ")}
    terms = point.terms[0]
    urls = payload["matchable_urls"]
    return (
        _integer(number, 8),
        point.id.bytes,
        UUID(payload["document_id"]).bytes,
        _integer(added, 8),
        _text(payload["section"]),
        _text(payload["chapter"]),
        _text(payload["filename"]),
        _text(urls[0]),
        _text(urls[-1]),
        _array([signed(term) for term in terms], _INTEGER),
        _array([signed(term) for term in terms if term not in in_text], _INTEGER),
        _array(point.terms[1], _REAL),
        _json(payload),
    )


def _row(fields: Sequence[bytes]) -> bytes:
    parts = [struct.pack(">h", len(fields))]
    for field in fields:
        parts += (struct.pack(">i", len(field)), field)
    return b"".join(parts)


def _integer(value: int, size: int) -> bytes:
    return value.to_bytes(size, "big", signed=True)


def _text(value: str) -> bytes:
    # PostgreSQL takes neither NUL nor lone surrogates; no filter has them.
    return value.replace("\0", "\ufffd").encode("utf-8", "replace")


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()  # escapes lone surrogates


def _array(values: Sequence[float], kind: "tuple[int, np.dtype[np.void]]") -> bytes:
    type_number, element = kind
    if not values:
        return struct.pack(">iii", 0, 0, type_number)
    elements = np.empty(len(values), dtype=element)
    elements["size"], elements["value"] = 4, values
    return struct.pack(">iiiii", 1, 0, type_number, len(values), 1) + elements.tobytes()


def _vector(vector: Matrix) -> bytes:
    return struct.pack(">hh", len(vector), 0) + vector.astype(">f4").tobytes()

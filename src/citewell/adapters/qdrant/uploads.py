"""Chunks as points of a Qdrant server, in batches that it accepts."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID, uuid5

import numpy as np
from qdrant_client.models import PointStruct, SparseVector

from citewell.adapters.index_format import DENSE_VECTORS, SPARSE_VECTORS, IndexPoint, to_point
from citewell.adapters.qdrant.conditions import ADDED
from citewell.ports import Entry

# The server refuses requests of more than 32 MB.
_MAX_BYTES = 8_000_000
_MAX_POINTS = 256
_BYTES_OF_A_NUMBER = 22  # in JSON
_DECIMALS = 9  # what more a number of 32 bits had as JSON would be noise, and as long again


def to_points(entries: Sequence[Entry], *, dimensions: int) -> list[IndexPoint]:
    """A point for each chunk; raises StoreUnavailable before anything is sent."""
    return [to_point(entry, dimensions=dimensions) for entry in entries]


def batches(points: Sequence[IndexPoint]) -> Iterator[list[IndexPoint]]:
    """The points in batches that are neither too many nor too large; a point that is too large is alone in one."""
    batch: list[IndexPoint] = []
    batch_bytes = 0
    for point in points:
        size = _json_bytes(point)
        if batch and (len(batch) >= _MAX_POINTS or batch_bytes + size > _MAX_BYTES):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(point)
        batch_bytes += size
    if batch:
        yield batch


def _json_bytes(point: IndexPoint) -> int:
    """About how long a point is as JSON, rather too much than too little."""
    characters = sum(len(point.payload[name]) for name in ("text", "words"))
    return 4 * characters + _BYTES_OF_A_NUMBER * (point.vectors.size + 2 * len(point.terms[0])) + 2000


def both_ids(point: IndexPoint) -> tuple[str, str]:
    """The two ids that a chunk's point may have: a new version takes the one that the published version has not."""
    return str(point.id), str(other_id(point.id))


def other_id(point_id: UUID) -> UUID:
    return uuid5(point_id, "other")


def to_struct(point: IndexPoint, point_id: str, *, generation: int) -> PointStruct:
    """The point as the client sends it: part of a generation, and of every later one."""
    vectors: dict[str, Any] = {DENSE_VECTORS: np.round(point.vectors.astype(np.float64), _DECIMALS).tolist()}
    indices, values = point.terms
    if indices:
        vectors[SPARSE_VECTORS] = SparseVector(indices=indices, values=values)
    return PointStruct(id=point_id, vector=vectors, payload={**point.payload, ADDED: generation})

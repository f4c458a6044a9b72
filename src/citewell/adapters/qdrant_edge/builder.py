"""Builds generations of the index and publishes them; readers never see one that is under construction."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    KeywordIndexParams,
    MatchAny,
    MatchValue,
    Memory,
    Modifier,
    MultiVectorComparator,
    MultiVectorConfig,
    Point,
    ScrollRequest,
    SparseVector,
    TextIndexParams,
    TokenizerType,
    UpdateOperation,
)

from citewell.adapters.index_format import DENSE_VECTORS, FORMAT, SPARSE_VECTORS, IndexOrigin, to_entry, to_point
from citewell.adapters.qdrant_edge.generations import Generations
from citewell.adapters.qdrant_edge.manifest import Manifest, find_damage, read_manifest, seal, write_manifest
from citewell.adapters.qdrant_edge.shard import OpenGeneration, translated_errors
from citewell.adapters.qdrant_edge.sparse_files import used_bytes
from citewell.errors import StoreUnavailable
from citewell.ports import Change, Entry

_POINTS_PER_UPSERT = 256
# Points after which a shard under construction is closed and opened again: what it has written is then mapped anew
# instead of staying resident. A small gain (docs/log.md): the engine's indexes under construction are the larger part.
_POINTS_BEFORE_REOPEN = 10_000
_POINTS_PER_SCROLL = 1000
# The engine writes through memory maps, and a full disk kills the whole process at once. So there must be room for
# several times what is written, and for the files that every index has.
_SPACE_FACTOR = 4
_MIN_FREE_BYTES = 20_000_000


class QdrantEdgeBuilder:
    """Builds generations and publishes them. The caller makes sure that there is one writer at a time.

    With `project`, `contents` and `entries` are of this project alone; all else is of the whole index.
    """

    def __init__(self, folder: Path, *, model: str, dimensions: int, project: UUID | None = None) -> None:
        self._generations = Generations(folder)
        self._listed = Filter(must=[FieldCondition("project_id", match=MatchValue(str(project)))] if project else [])
        self._dimensions = dimensions
        self._configured = IndexOrigin.configured(model=model, dimensions=dimensions)
        self._manifest = Manifest(FORMAT, model, dimensions)

    async def fault_of(self, generation: int) -> str | None:
        return await asyncio.to_thread(self._fault_of, generation)

    def _fault_of(self, generation: int) -> str | None:
        folder = self._generations.path(generation)
        try:
            manifest = read_manifest(folder)
        except ValueError as error:
            return f"is damaged: {error}"
        if manifest is None:
            return "is missing"
        if fault := manifest.origin.fault(self._configured):
            return fault
        if manifest.files is None:
            return "has no checksums, because an earlier version of Citewell made it"
        damage = find_damage(folder, manifest)
        return f"is damaged: {damage}" if damage else None

    async def embedding_model_of(self, generation: int) -> str | None:
        try:
            manifest = read_manifest(self._generations.path(generation))
        except ValueError:
            return None
        return manifest.model if manifest else None

    async def current_generation(self) -> int | None:
        return self._generations.published()

    async def stage(self, changes: AsyncIterator[Change], *, base: int | None) -> int:
        self._generations.remove_leftovers()
        number, folder = self._generations.start_partial()
        shard = await asyncio.to_thread(self._create_or_copy, folder, base)
        try:
            points_since_opened = 0
            async for change in changes:
                await asyncio.to_thread(self._apply, shard, change)
                if change.scale is not None:
                    write_manifest(folder, replace(self._manifest, scale=change.scale))
                points_since_opened += len(change.entries)
                if points_since_opened >= _POINTS_BEFORE_REOPEN:
                    shard = await asyncio.to_thread(_reopen, shard, folder)
                    points_since_opened = 0
            await asyncio.to_thread(shard.flush)
        finally:
            shard.close()
        await asyncio.to_thread(_finish, folder)
        await asyncio.to_thread(self._generations.move_into_place, number, folder)
        return number

    async def publish(self, generation: int) -> None:
        self._generations.publish(generation)
        self._generations.remove_leftovers()

    async def remove(self) -> None:
        self._generations.remove()

    async def close(self) -> None:
        pass

    async def leftovers(self) -> list[str]:
        return self._generations.leftovers()

    async def remove_leftovers(self) -> None:
        self._generations.remove_leftovers()

    async def contents(self, generation: int) -> AsyncIterator[tuple[str, str]]:
        async for rows in self._pages(generation, with_vectors=False):
            for payload, _ in rows:
                yield payload["chunk_id"], payload["text"]

    async def entries(self, generation: int) -> AsyncIterator[Sequence[Entry]]:
        async for rows in self._pages(generation, with_vectors=True):
            yield [to_entry(payload, vectors) for payload, vectors in rows]

    async def _pages(self, generation: int, *, with_vectors: bool) -> AsyncIterator[list[tuple[dict[str, Any], Any]]]:
        """Payloads of a generation, and the vectors of their windows; vectors are None unless asked for."""
        opened = await asyncio.to_thread(self._open, generation)
        try:
            offset = None
            while True:
                rows, offset = await asyncio.to_thread(
                    _scroll, opened.shard, offset, listed=self._listed, with_vectors=with_vectors
                )
                yield rows
                if offset is None:
                    return
        finally:
            opened.close()

    def _open(self, generation: int) -> OpenGeneration:
        with translated_errors():
            return OpenGeneration.open(self._generations, generation, configured=self._configured)

    def _create_or_copy(self, folder: Path, base: int | None) -> EdgeShard:
        """An empty shard, or a copy of the base generation's."""
        shard_folder = folder / "shard"
        _require_space(folder.parent, 0 if base is None else used_bytes(self._generations.path(base)))
        if base is not None:
            self._generations.copy(base, folder)
            return EdgeShard.load(str(shard_folder))
        shard_folder.mkdir(parents=True)
        write_manifest(folder, self._manifest)
        windows = MultiVectorConfig(MultiVectorComparator.MaxSim)
        dense = EdgeVectorParams(
            size=self._dimensions, distance=Distance.Cosine, multivector_config=windows, memory=Memory.Cold
        )
        sparse = EdgeSparseVectorParams(modifier=Modifier.Idf, memory=Memory.Cold)
        # No write-ahead log: a generation that is not finished is thrown away, never replayed.
        shard = EdgeShard.create(
            str(shard_folder),
            EdgeConfig(vectors={DENSE_VECTORS: dense}, sparse_vectors={SPARSE_VECTORS: sparse}, wal_enabled=False),
        )
        shard.update(UpdateOperation.create_field_index("project_id", KeywordIndexParams(is_tenant=True)))
        for field in ("document_id", "section", "chapter"):
            shard.update(UpdateOperation.create_field_index(field, KeywordIndexParams()))
        for field in ("filename", "matchable_urls"):
            shard.update(UpdateOperation.create_field_index(field, KeywordIndexParams(prefix=True)))
        whole_words = TextIndexParams(tokenizer=TokenizerType.Whitespace, lowercase=False, memory=Memory.Cold)
        shard.update(UpdateOperation.create_field_index("words", whole_words))
        return shard

    def _apply(self, shard: EdgeShard, change: Change) -> None:
        new_bytes = sum(entry.embedding.vectors.nbytes + len(entry.chunk.text) for entry in change.entries)
        _require_space(self._generations.folder, _SPACE_FACTOR * new_bytes)
        if change.remove:
            document_ids = [str(document_id) for document_id in change.remove]
            removed = Filter(must=[FieldCondition("document_id", match=MatchAny(document_ids))])
            shard.update(UpdateOperation.delete_points_by_filter(removed))
        points = [self._point(entry) for entry in change.entries]
        for start in range(0, len(points), _POINTS_PER_UPSERT):
            shard.update(UpdateOperation.upsert_points(points[start : start + _POINTS_PER_UPSERT]))

    def _point(self, entry: Entry) -> Point:
        point = to_point(entry, dimensions=self._dimensions)
        vectors = cast("list[list[float]]", point.vectors)
        return Point(str(point.id), {DENSE_VECTORS: vectors, SPARSE_VECTORS: SparseVector(*point.terms)}, point.payload)


def _require_space(folder: Path, bytes_to_write: int) -> None:
    needed, free = bytes_to_write + _MIN_FREE_BYTES, shutil.disk_usage(folder).free
    if free < needed:
        raise StoreUnavailable(
            f"there is not enough free space for the index: {needed / 1e6:.0f} MB are needed, and {free / 1e6:.0f} MB "
            "are free. Free some and run it again; until then, answers come from the index as it was"
        )


def _scroll(
    shard: EdgeShard, offset: Any, *, listed: Filter, with_vectors: bool
) -> tuple[list[tuple[dict[str, Any], Any]], Any]:
    """Payload and vectors of the next chunks, and where to go on; None at the end."""
    names = [DENSE_VECTORS] if with_vectors else False
    with translated_errors():
        request = ScrollRequest(
            offset=offset, limit=_POINTS_PER_SCROLL, filter=listed, with_payload=True, with_vector=names
        )
        points, next_offset = shard.scroll(request)
    rows = [
        (cast("dict[str, Any]", point.payload), cast("Any", point.vector)[DENSE_VECTORS] if with_vectors else None)
        for point in points
    ]
    return rows, next_offset


def _reopen(shard: EdgeShard, folder: Path) -> EdgeShard:
    shard.flush()
    shard.close()
    return EdgeShard.load(str(folder / "shard"))


def _finish(folder: Path) -> None:
    """Bring the files into the form that they keep, and write their checksums down.

    Opening a shard for the first time, the engine removes its journals and rewrites its settings; from then on, opening
    and closing leave every byte as it is.
    """
    EdgeShard.load(str(folder / "shard")).close()
    seal(folder)

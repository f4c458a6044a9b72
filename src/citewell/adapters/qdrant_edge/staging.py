"""A generation under construction: applies changes to its parts, one of which is open at a time.

Parts without a change are hard links to the files of the base: the engine never writes into the files of a shard that
is only read, it replaces two of them (`tests/adapters/qdrant_edge/` checks it). A part with a change is copied first.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from qdrant_edge import (
    CountRequest,
    EdgeShard,
    FieldCondition,
    Filter,
    HasIdCondition,
    MatchAny,
    Point,
    ScrollRequest,
    SparseVector,
    UpdateOperation,
)

from citewell.adapters.index_format import DENSE_VECTORS, SPARSE_VECTORS, IndexPoint, to_point
from citewell.adapters.qdrant_edge.parts import (
    Limits,
    PartRecord,
    create_shard,
    part_folders,
    read_part,
    shard_config,
    write_part,
)
from citewell.adapters.qdrant_edge.sparse_files import copy_sparse, link_or_copy, used_bytes
from citewell.adapters.qdrant_edge.word_counts import CountChanges, read_table
from citewell.errors import StoreUnavailable
from citewell.ports import Change, Entry

_POINTS_PER_UPSERT = 256
_POINTS_PER_SCROLL = 1000
# The engine writes through memory maps, and a full disk kills the whole process at once. So there must be room for
# several times what is written, and for the files that every index has.
_SPACE_FACTOR = 4
MIN_FREE_BYTES = 20_000_000


_EMPTY = PartRecord(0, (), optimized=False)


@dataclass(slots=True)
class _Part:
    """A part as it is now.

    Once it is changed, `work` is the folder of its shard and `settled` that of its counts; `base` is its folder in the
    base generation.
    """

    name: str
    work: Path
    settled: Path
    base: Path | None = None
    record: PartRecord = _EMPTY
    chunks: int = 0
    known_documents: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    added_documents: set[int] = field(default_factory=set)
    removed_documents: set[int] = field(default_factory=set)
    counts: CountChanges = field(default_factory=CountChanges)
    changed: bool = False

    def holds(self, document: int) -> bool:
        """Whether chunks of a document may be in it."""
        return document in self.added_documents or (document not in self.removed_documents and self._is_known(document))

    def _is_known(self, document: int) -> bool:
        place = int(np.searchsorted(self.known_documents, np.uint64(document)))
        return place < len(self.known_documents) and int(self.known_documents[place]) == document

    def settle(self) -> None:
        """Write down what was counted, and forget it: only the open part takes memory."""
        known = next((folder for folder in (self.settled, self.base) if folder and folder.exists()), None)
        self.settled.mkdir(parents=True, exist_ok=True)
        self.counts.save(self.settled, base=read_table(known) if known else None)
        self.counts = CountChanges()
        removed = np.fromiter(self.removed_documents, np.uint64, len(self.removed_documents))
        added = np.fromiter(self.added_documents, np.uint64, len(self.added_documents))
        self.known_documents = np.union1d(np.setdiff1d(self.known_documents, removed), added)
        self.added_documents.clear()
        self.removed_documents.clear()


class Staging:
    """The parts of one generation, in a folder that no reader sees. `close` it whatever happens."""

    def __init__(
        self,
        folder: Path,
        base: Path | None,
        *,
        dimensions: int,
        limits: Limits,
        exclusive_access: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`exclusive_access` keeps readers from opening or closing the base meanwhile: the engine replaces files."""
        self._folder = folder
        self._dimensions = dimensions
        self._limits = limits
        self._exclusive_access = exclusive_access
        self._config = shard_config(dimensions, limits)
        self._parts: list[_Part] = []
        self._open_part: _Part | None = None
        self._shard: EdgeShard | None = None
        for name, part_folder in part_folders(base).items() if base else ():
            record, documents = read_part(part_folder)
            work, settled = self._folders(name)
            self._parts.append(_Part(name, work, settled, part_folder, record, record.chunks, documents))
        self._next_name = 1 + max((int(part.name) for part in self._parts), default=0)

    def apply(self, change: Change) -> None:
        """Remove documents, then add chunks."""
        new_bytes = sum(entry.embedding.vectors.nbytes + len(entry.chunk.text) for entry in change.entries)
        require_space(self._folder, _SPACE_FACTOR * new_bytes)
        points = [(entry, to_point(entry, dimensions=self._dimensions)) for entry in change.entries]
        for part in self._parts:
            if held := [document for document in change.remove if part.holds(_document_key(document))]:
                matches = FieldCondition("document_id", match=MatchAny([str(document) for document in held]))
                self._remove(part, Filter(must=[matches]))
                keys = {_document_key(document) for document in held}
                part.added_documents -= keys
                part.removed_documents |= keys
        while points:
            part = self._part_with_room()
            count = min(_POINTS_PER_UPSERT, self._limits.part_chunks - part.chunks)
            self._add(part, points[:count])
            points = points[count:]

    def finish(self) -> None:
        """Bring all parts into the form that they keep, and put them together."""
        if not self._parts:
            self._open(self._new_part())
        self.close()
        total = sum(part.chunks for part in self._parts)
        wants_graphs = total > self._limits.graph_chunks
        for part in self._parts:
            if part.changed or (wants_graphs and not part.record.optimized):
                self._finish_part(part, optimize=wants_graphs)
        kept = [part for part in self._parts if part.chunks] or self._parts[:1]
        for part in self._parts:
            if part not in kept:
                shutil.rmtree(part.settled, ignore_errors=True)
        segments = self._folder / "shard" / "segments"
        segments.mkdir(parents=True)
        with self._exclusive_access():
            for part in kept:
                self._put_in_place(part, segments)
        shutil.rmtree(self._folder / "work", ignore_errors=True)
        # Opened once, so that the engine writes the settings of the whole as it will keep them.
        EdgeShard.load(str(segments.parent)).close()

    def close(self) -> None:
        """Close the open part; what it has written is on disk then."""
        if self._shard is not None and self._open_part is not None:
            shard, part = self._shard, self._open_part
            self._shard, self._open_part = None, None
            shard.flush()
            shard.close()
            part.settle()

    def _part_with_room(self) -> _Part:
        """Where the next chunks go: to the open part; to one of which at least half is free; or to a new one."""
        if self._open_part and self._open_part.chunks < self._limits.part_chunks:
            return self._open_part
        smallest = min(self._parts, key=lambda part: part.chunks, default=None)
        if smallest and smallest.chunks <= self._limits.part_chunks // 2:
            return smallest
        return self._new_part()

    def _new_part(self) -> _Part:
        name = str(self._next_name)
        self._next_name += 1
        part = _Part(name, *self._folders(name))
        self._parts.append(part)
        return part

    def _folders(self, name: str) -> tuple[Path, Path]:
        return self._folder / "work" / name, self._folder / "parts" / name

    def _open(self, part: _Part) -> EdgeShard:
        """The shard of a part, for changes."""
        if self._shard is not None and self._open_part is part:
            return self._shard
        self.close()
        if part.work.exists():
            self._shard = EdgeShard.load(str(part.work), self._config)
        elif part.base is None:
            self._shard = create_shard(part.work, self._config)
        else:
            self._copy_segments(part, _shard_beside(part.base))
            self._shard = EdgeShard.load(str(part.work), self._config)
        part.changed = True
        self._open_part = part
        return self._shard

    def _copy_segments(self, part: _Part, base: Path) -> None:
        (part.work / "segments").mkdir(parents=True)
        shutil.copyfile(base / "edge_config.json", part.work / "edge_config.json")
        folders = [base / "segments" / segment for segment in part.record.segments]
        require_space(self._folder, sum(used_bytes(folder) for folder in folders))
        with self._exclusive_access():
            for folder in folders:
                copy_sparse(folder, part.work / "segments" / folder.name)

    def _remove(self, part: _Part, what: Filter) -> None:
        """Remove points from a part, and their words from its counts."""
        shard = self._open(part)
        offset: Any = None
        while True:
            request = ScrollRequest(
                offset=offset,
                limit=_POINTS_PER_SCROLL,
                filter=what,
                with_payload=["project_id", "words"],
                with_vector=[SPARSE_VECTORS],
            )
            points, offset = shard.scroll(request)
            for point in points:
                payload = cast("dict[str, Any]", point.payload)
                terms = cast("dict[str, SparseVector]", point.vector)[SPARSE_VECTORS]
                part.counts.remove(UUID(payload["project_id"]), words=payload["words"], dimensions=terms.indices)
            part.chunks -= len(points)
            if offset is None:
                break
        shard.update(UpdateOperation.delete_points_by_filter(what))

    def _add(self, part: _Part, points: Sequence[tuple[Entry, IndexPoint]]) -> None:
        for other in self._parts:  # a chunk that is there already is replaced, wherever it is
            known: list[int | UUID | str] = [
                str(point.id) for entry, point in points if other.holds(_document_key(entry.chunk.document_id))
            ]
            if known and (other is part or other.base is not None):
                there = self._open(other).retrieve(known, False, False)
                if there:
                    self._remove(other, Filter(must=[HasIdCondition({record.id for record in there})]))
        shard = self._open(part)
        shard.update(UpdateOperation.upsert_points([_engine_point(point) for _, point in points]))
        for entry, point in points:
            part.counts.add(entry.project, words=point.payload["words"], dimensions=point.terms[0])
            part.added_documents.add(_document_key(entry.chunk.document_id))
        part.chunks += len(points)

    def _finish_part(self, part: _Part, *, optimize: bool) -> None:
        """Make graphs if they pay off. Then open the shard once more.

        Opening it for the first time, the engine removes its journals and rewrites its settings; from then on, opening
        and closing leave every byte as it is.
        """
        shard = self._open(part)
        if optimize:
            require_space(self._folder, 2 * used_bytes(part.work))
            shard.optimize()
        part.chunks = shard.count(CountRequest(exact=True))
        self.close()
        EdgeShard.load(str(part.work)).close()
        names = sorted(folder.name for folder in (part.work / "segments").iterdir())
        part.record = PartRecord(part.chunks, tuple(names), optimized=optimize or part.record.optimized)

    def _put_in_place(self, part: _Part, segments: Path) -> None:
        if part.base and not part.changed:
            base = _shard_beside(part.base)
            for name in part.record.segments:
                link_or_copy(base / "segments" / name, segments / name)
            link_or_copy(part.base, part.settled)
            settings = base / "edge_config.json"
        else:
            for name in part.record.segments:
                (part.work / "segments" / name).rename(segments / name)
            write_part(part.settled, part.record, part.known_documents)
            settings = part.work / "edge_config.json"
        shutil.copyfile(settings, segments.parent / "edge_config.json")


def require_space(folder: Path, bytes_to_write: int) -> None:
    """Raise StoreUnavailable if the disk is too full."""
    needed, free = bytes_to_write + MIN_FREE_BYTES, shutil.disk_usage(folder).free
    if free < needed:
        raise StoreUnavailable(
            f"there is not enough free space for the index: {needed / 1e6:.0f} MB are needed, and {free / 1e6:.0f} MB "
            "are free. Free some and run it again; until then, answers come from the index as it was"
        )


def _shard_beside(part_folder: Path) -> Path:
    """The shard of the generation that a part's folder is in."""
    return part_folder.parent.parent / "shard"


def _document_key(document: UUID) -> int:
    """The first half of a document's id; two of a million documents collide with a chance of 1 in two million."""
    return document.int >> 64


def _engine_point(point: IndexPoint) -> Point:
    vectors = cast("list[list[float]]", point.vectors)
    return Point(str(point.id), {DENSE_VECTORS: vectors, SPARSE_VECTORS: SparseVector(*point.terms)}, point.payload)

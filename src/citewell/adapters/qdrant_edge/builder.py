"""Builds generations of the index and publishes them; readers never see one that is under construction."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from qdrant_edge import EdgeShard, FieldCondition, Filter, MatchValue, ScrollRequest

from citewell.adapters.index_format import DENSE_VECTORS, FORMAT, IndexOrigin, to_entry
from citewell.adapters.qdrant_edge.generations import Generations
from citewell.adapters.qdrant_edge.manifest import Manifest, find_damage, read_manifest, seal, write_manifest
from citewell.adapters.qdrant_edge.parts import Limits, part_folders
from citewell.adapters.qdrant_edge.shard import OpenGeneration, translated_errors
from citewell.adapters.qdrant_edge.staging import MIN_FREE_BYTES, Staging, require_space
from citewell.errors import CitewellError, StoreUnavailable
from citewell.ports import Change, Entry

P = ParamSpec("P")
T = TypeVar("T")

_POINTS_PER_SCROLL = 1000


class QdrantEdgeBuilder:
    """Builds generations and publishes them. The caller makes sure that there is one writer at a time.

    With `project`, `contents` and `entries` are of this project alone; all else is of the whole index.
    """

    def __init__(
        self,
        folder: Path,
        *,
        limits: Limits | None = None,
        project: UUID | None = None,
        model: str,
        dimensions: int,
    ) -> None:
        self._generations = Generations(folder)
        self._listed = Filter(must=[FieldCondition("project_id", match=MatchValue(str(project)))] if project else [])
        self._limits = limits or Limits()
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
        if damage := find_damage(folder, manifest):
            return f"is damaged: {damage}"
        return None if part_folders(folder) else "was made by another version of Citewell"

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
        with _disk_errors(self._generations.folder):
            number, folder = self._generations.start_partial()
        staging = await self._write(self._start, folder, base)
        try:
            async for change in changes:
                await self._write(staging.apply, change)
                if change.scale is not None:
                    await self._write(write_manifest, folder, replace(self._manifest, scale=change.scale))
            await self._write(self._finish, staging, folder, base)
        finally:
            staging.close()
        await self._write(self._generations.move_into_place, number, folder)
        return number

    def _start(self, folder: Path, base: int | None) -> Staging:
        require_space(folder.parent, 0)
        folder.mkdir(parents=True)
        base_folder = None if base is None else self._generations.path(base)
        manifest = read_manifest(base_folder) if base_folder else None
        write_manifest(folder, replace(self._manifest, scale=manifest.scale if manifest else None))
        return Staging(
            folder,
            base_folder,
            dimensions=self._dimensions,
            limits=self._limits,
            exclusive_access=self._generations.exclusive_access,
        )

    def _finish(self, staging: Staging, folder: Path, base: int | None) -> None:
        staging.finish()
        seal(folder, base=None if base is None else self._generations.path(base))

    async def publish(self, generation: int) -> None:
        with _disk_errors(self._generations.folder):
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

    async def _write(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run in a thread what writes a generation."""
        with _disk_errors(self._generations.folder):
            return await asyncio.to_thread(function, *args, **kwargs)


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


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Say that the index cannot be written, where the disk is the reason."""
    try:
        yield
    except CitewellError:
        raise
    except Exception as error:
        free = shutil.disk_usage(folder).free
        if not isinstance(error, OSError) and free >= MIN_FREE_BYTES:  # the engine's errors have no class of their own
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or f"{free / 1e6:.0f} MB are free"
        raise StoreUnavailable(
            f"the index cannot be written: {reason}. Run it again when that is mended; until then, answers come from "
            "the index as it was"
        ) from error

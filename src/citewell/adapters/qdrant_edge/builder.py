"""Builds generations of the index and publishes them; readers never see one that is under construction."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from qdrant_edge import EdgeShard, ScrollRequest

from citewell.adapters.index_origin import FORMAT, IndexOrigin
from citewell.adapters.qdrant_edge.generations import Generations
from citewell.adapters.qdrant_edge.manifest import Manifest, find_damage, read_manifest, seal, write_manifest
from citewell.adapters.qdrant_edge.parts import Limits, part_folders
from citewell.adapters.qdrant_edge.shard import OpenGeneration, translated_errors
from citewell.adapters.qdrant_edge.staging import Staging
from citewell.ports import Change

_POINTS_PER_SCROLL = 1000


class QdrantEdgeBuilder:
    """Builds generations and publishes them. The caller makes sure that there is one writer at a time."""

    def __init__(self, folder: Path, *, model: str, dimensions: int, limits: Limits | None = None) -> None:
        self._generations = Generations(folder)
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
        number, folder = self._generations.start_partial()
        staging = await asyncio.to_thread(self._start, folder, base)
        try:
            async for change in changes:
                await asyncio.to_thread(staging.apply, change)
                if change.scale is not None:
                    write_manifest(folder, replace(self._manifest, scale=change.scale))
            await asyncio.to_thread(self._finish, staging, folder, base)
        finally:
            staging.close()
        await asyncio.to_thread(self._generations.move_into_place, number, folder)
        return number

    def _start(self, folder: Path, base: int | None) -> Staging:
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
        self._generations.publish(generation)
        self._generations.remove_leftovers()

    async def close(self) -> None:
        pass

    async def leftovers(self) -> list[str]:
        return self._generations.leftovers()

    async def remove_leftovers(self) -> None:
        self._generations.remove_leftovers()

    async def contents(self, generation: int) -> AsyncIterator[tuple[str, str]]:
        opened = await asyncio.to_thread(self._open, generation)
        try:
            offset = None
            while True:
                rows, offset = await asyncio.to_thread(_scroll, opened.shard, offset)
                for row in rows:
                    yield row
                if offset is None:
                    return
        finally:
            opened.close()

    def _open(self, generation: int) -> OpenGeneration:
        with translated_errors():
            return OpenGeneration.open(self._generations, generation, configured=self._configured)


def _scroll(shard: EdgeShard, offset: Any) -> tuple[list[tuple[str, str]], Any]:
    """Id and text of the next chunks, and where to go on; None at the end."""
    with translated_errors():
        request = ScrollRequest(offset=offset, limit=_POINTS_PER_SCROLL, with_payload=True)
        points, next_offset = shard.scroll(request)
    payloads = [cast("dict[str, Any]", point.payload) for point in points]
    return [(payload["chunk_id"], payload["text"]) for payload in payloads], next_offset

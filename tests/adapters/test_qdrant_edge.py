"""The embedded index: what holds for its files, beside the contract of every index."""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from citewell.errors import IndexMismatch
from citewell.ports import Change
from tests.contracts.index_stores import EAST, OURS, SIZE, each, embedded, entry

pytestmark = pytest.mark.anyio


async def test_a_generation_is_copied_whole_while_others_open_and_close_it(tmp_path: Path) -> None:
    store = embedded(tmp_path / "index")
    generation = await store.publish(Change(entries=[entry("shared", EAST)]))
    come_and_go = (sys.executable, "-c", _COME_AND_GO, str(tmp_path / "index"))
    readers = [await asyncio.create_subprocess_exec(*come_and_go) for _ in (1, 2)]
    try:
        for number in range(20):
            assert await store.builder.stage(each([Change(entries=[entry(f"{number}", EAST)])]), base=generation)
    finally:
        for reader in readers:
            with suppress(ProcessLookupError):
                reader.terminate()
        ends = [await reader.wait() for reader in readers]
    assert max(ends) < 0, "they would still be coming and going"


_COME_AND_GO = """
import asyncio, sys
from pathlib import Path
from uuid import UUID
from citewell.adapters.qdrant_edge import QdrantEdgeIndex

async def main():
    while True:
        index = QdrantEdgeIndex(Path(sys.argv[1]), model="test", dimensions=4)
        await index.frequencies(UUID(int=1), [])
        await index.close()
        await asyncio.sleep(0.02)

asyncio.run(main())
"""


async def test_an_index_of_another_version_is_not_blamed_on_the_model(tmp_path: Path) -> None:
    store = embedded(tmp_path / "index")
    generation = await store.publish(Change(entries=[entry("text", EAST)]))
    made = tmp_path / "index" / str(generation) / "made.json"
    made.write_text(json.dumps({"format": 0, "model": "test", "dimensions": SIZE}))
    with pytest.raises(IndexMismatch, match=r"another version of Citewell; run `citewell doctor --fix`"):
        await store.index.search(OURS, vector=EAST, words="", limit=5)
    assert await store.builder.fault_of(generation)
    await store.close()

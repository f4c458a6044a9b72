"""One generation of the index, opened for reading, and the metadata file that says how it was built.

The engine holds the GIL, tolerates one owner per folder and does not roll a failed batch back. So readers open
immutable generations only, under a lock or as a private copy.
"""

import json
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from qdrant_edge import EdgeShard

from citewell.adapters.qdrant_edge.generations import Generations
from citewell.errors import CitewellError, IndexMismatch, IndexUnavailable, OtherModel
from citewell.similarity_scale import IDENTITY_SCALE, SimilarityScale

_log = logging.getLogger("citewell.index")

DENSE_VECTORS, SPARSE_VECTORS = "dense", "bm25"
FORMAT = 4
"""Version of the payload. When it is raised, the next ingest rebuilds the index from the library."""


class OpenGeneration:
    """A generation in use: its folder under our lock, or a private copy if another process holds the lock."""

    def __init__(
        self,
        number: int,
        shard: EdgeShard,
        scale: SimilarityScale,
        generations: Generations,
        *,
        lock: IO[bytes] | None,
        copy: Path | None,
    ) -> None:
        self.number = number
        self.shard = shard
        self.scale = scale
        self._generations = generations
        self._lock = lock
        self._copy = copy

    @classmethod
    def open(cls, generations: Generations, number: int, *, model: str) -> "OpenGeneration":
        """Open a generation; raises FileNotFoundError if it is gone and IndexMismatch if it cannot be used."""
        folder = generations.path(number)
        metadata = read_metadata(folder)
        if not metadata:
            raise FileNotFoundError(folder)
        if (other := metadata.get("model")) != model:
            raise OtherModel(made=str(other), configured=model)
        if metadata.get("format") != FORMAT:
            raise IndexMismatch(
                "the index was made by another version of Citewell; run `citewell doctor --fix`, or ingest again, "
                "to build it anew from the library (nothing has to be embedded again)"
            )
        copy: Path | None = None
        lock = generations.lock(number)
        if lock is None:
            copy = Path(tempfile.mkdtemp(prefix="citewell-"))
            folder = copy / "index"
        try:
            if copy is not None:
                generations.copy(number, folder)
            if not folder.is_dir():
                raise FileNotFoundError(folder)
            with generations.exclusive_access():
                shard = EdgeShard.load(str(folder / "shard"))
            scale = SimilarityScale(**metadata["scale"]) if "scale" in metadata else IDENTITY_SCALE
            return cls(number, shard, scale, generations, lock=lock, copy=copy)
        except BaseException:
            _release(lock, copy)
            raise

    def close(self) -> None:
        with self._generations.exclusive_access():
            self.shard.close()
        _release(self._lock, self._copy)


def _release(lock: IO[bytes] | None, copy: Path | None) -> None:
    if lock is not None:
        lock.close()
    if copy is not None:
        shutil.rmtree(copy, ignore_errors=True)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise an engine's failure as IndexUnavailable; its own message names folders, and goes to the log only."""
    try:
        yield
    except CitewellError:
        raise
    except Exception as error:  # the engine has no exception classes of its own, it raises this very class
        _log.error("the vector store failed: %s", error)
        raise IndexUnavailable("the vector store cannot be read; `citewell doctor` says what is wrong") from error


def write_metadata(folder: Path, metadata: dict[str, Any]) -> None:
    """Write down how a generation was built: payload format, embedding model, dimensions, similarity scale."""
    (folder / "made.json").write_text(json.dumps(metadata), encoding="utf-8")


def read_metadata(folder: Path) -> dict[str, Any]:
    """How a generation was built; empty if there is no such generation."""
    try:
        metadata: dict[str, Any] = json.loads((folder / "made.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return metadata

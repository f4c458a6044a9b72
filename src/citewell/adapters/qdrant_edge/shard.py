"""One generation of the index, opened for reading.

The engine holds the GIL, tolerates one owner per folder, does not roll a failed batch back and trusts its files. So
readers open immutable generations only, under a lock or as a private copy, and after their files were checked.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from qdrant_edge import EdgeShard

from citewell.adapters.index_format import MENDED_BY_DOCTOR, IndexOrigin
from citewell.adapters.qdrant_edge.generations import Generations
from citewell.adapters.qdrant_edge.manifest import CheckedFiles, find_damage, read_manifest
from citewell.adapters.qdrant_edge.parts import part_folders
from citewell.adapters.qdrant_edge.word_counts import WordCounts
from citewell.errors import CitewellError, IndexMismatch, IndexUnavailable
from citewell.similarity_scale import SimilarityScale

_log = logging.getLogger("citewell.index")


class OpenGeneration:
    """A generation in use: its folder under our lock, or a private copy if another process holds the lock."""

    def __init__(
        self,
        number: int,
        shard: EdgeShard,
        scale: SimilarityScale,
        counts: WordCounts,
        generations: Generations,
        *,
        lock: IO[bytes] | None,
        copy: Path | None,
    ) -> None:
        self.number = number
        self.shard = shard
        self.scale = scale
        self.counts = counts
        self._generations = generations
        self._lock = lock
        self._copy = copy

    @classmethod
    def open(
        cls, generations: Generations, number: int, *, configured: IndexOrigin, checked: CheckedFiles | None = None
    ) -> "OpenGeneration":
        """Open a generation whose files are intact; what was `checked` is not read again.

        Raises FileNotFoundError if it is gone, IndexMismatch if this version with this model cannot use it, and
        IndexUnavailable if it is damaged.
        """
        folder = generations.path(number)
        try:
            manifest = read_manifest(folder)
        except ValueError as error:
            raise _damaged(number, str(error)) from error
        if manifest is None:
            raise FileNotFoundError(folder)
        manifest.origin.require(configured)
        copy: Path | None = None
        lock = generations.lock(number)
        if lock is None:
            copy, lock = generations.private_copy(number)
            folder = copy
        try:
            if not folder.is_dir():
                raise FileNotFoundError(folder)
            if damage := find_damage(folder, manifest, checked=checked):
                raise _damaged(number, damage)
            parts = part_folders(folder)
            if not parts:
                raise IndexMismatch(f"the index was made by another version of Citewell; {MENDED_BY_DOCTOR}")
            with generations.exclusive_access(), translated_errors():
                counts = WordCounts(parts.values())
                shard = EdgeShard.load(str(folder / "shard"))
            return cls(number, shard, manifest.origin.similarity_scale, counts, generations, lock=lock, copy=copy)
        except BaseException:
            _release(generations, lock, copy)
            raise

    def close(self) -> None:
        try:
            with translated_errors(), self._generations.exclusive_access():
                self.shard.close()
        except IndexUnavailable:
            pass  # it is in the log, and nothing was to be written
        finally:
            _release(self._generations, self._lock, self._copy)


def _damaged(number: int, damage: str) -> IndexUnavailable:
    """The error for a reader of a damaged generation. Which file it is goes to the log: clients learn no path."""
    _log.error("generation %s of the index is damaged: %s", number, damage)
    return IndexUnavailable(f"the index is damaged; {MENDED_BY_DOCTOR}")


def _release(generations: Generations, lock: IO[bytes] | None, copy: Path | None) -> None:
    if copy is not None:
        generations.remove_copy(copy, lock)
    elif lock is not None:
        lock.close()


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise an engine's failure as IndexUnavailable; its own message names folders, and goes to the log only."""
    try:
        yield
    except CitewellError:
        raise
    except BaseException as error:
        # The engine has no exception classes of its own: it raises `Exception`, or panics, which is no `Exception`.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        _log.error("the vector store failed: %s", error)
        raise IndexUnavailable(f"the vector store cannot be read; {MENDED_BY_DOCTOR}") from error

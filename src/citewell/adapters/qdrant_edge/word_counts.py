"""How many chunks of a project contain a word, counted while an index is built: a few lookups instead of a search.

Each part of a generation has two files, sorted keys and their counts, which are mapped and not loaded. A key is a hash
of 64 bits of the project and what is counted; that two of a million collide has a chance of 1 in 30 million.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from math import log
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

Keys: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int64]

_KEYS, _COUNTS = "keys.npy", "counts.npy"


class WordCounts:
    """The counts of the parts of a generation, added up."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._tables = [read_table(folder) for folder in folders]

    def chunks(self, project: UUID) -> int:
        """How many chunks a project has."""
        return int(self._look_up([_chunks_key(project)])[0])

    def stems(self, project: UUID, stems: Sequence[str]) -> list[int]:
        """How many of them contain each stem in their text."""
        counts = self._look_up([_stem_key(project, stem) for stem in stems])
        return [int(count) for count in counts]

    def rarities(self, project: UUID, dimensions: Sequence[int]) -> list[float]:
        """The inverse document frequency of BM25 terms, text and headings, in a project."""
        total = self.chunks(project)
        counts = self._look_up([_term_key(project, dimension) for dimension in dimensions])
        return [log(1 + (total - count + 0.5) / (count + 0.5)) for count in counts.tolist()]

    def _look_up(self, keys: Sequence[int]) -> Counts:
        wanted = np.array(keys, np.uint64)
        sums = np.zeros(len(keys), np.int64)
        for known, counts in self._tables:
            if len(known):
                places = np.searchsorted(known, wanted).clip(max=len(known) - 1)
                sums += np.where(known[places] == wanted, counts[places], 0)
        return sums


class CountChanges:
    """Counts of chunks that are added to a part, less those of chunks that are removed."""

    def __init__(self) -> None:
        self._chunks: Counter[UUID] = Counter()
        self._stems: defaultdict[UUID, Counter[str]] = defaultdict(Counter)
        self._terms: defaultdict[UUID, Counter[int]] = defaultdict(Counter)

    def add(self, project: UUID, *, words: str, dimensions: Iterable[int]) -> None:
        """Count a chunk; `words` are the stems of its text, separated by white space."""
        self._chunks[project] += 1
        self._stems[project].update(set(words.split()))
        self._terms[project].update(dimensions)

    def remove(self, project: UUID, *, words: str, dimensions: Iterable[int]) -> None:
        self._chunks[project] -= 1
        self._stems[project].subtract(set(words.split()))
        self._terms[project].subtract(dimensions)

    def save(self, folder: Path, *, base: tuple[Keys, Counts] | None) -> None:
        """Write the table of a part: that of its base with these changes."""
        changes = {_chunks_key(project): count for project, count in self._chunks.items()}
        for project, stems in self._stems.items():
            changes |= {_stem_key(project, stem): count for stem, count in stems.items()}
        for project, terms in self._terms.items():
            changes |= {_term_key(project, dimension): count for dimension, count in terms.items()}
        keys = np.fromiter(changes.keys(), np.uint64, len(changes))
        counts = np.fromiter(changes.values(), np.int64, len(changes))
        if base is not None:
            # Copied, not mapped: the base may be the files that are written below.
            keys, counts = np.concatenate([base[0], keys]), np.concatenate([base[1], counts])
        unique, places = np.unique(keys, return_inverse=True)
        sums = np.zeros(len(unique), np.int64)
        np.add.at(sums, places, counts)
        np.save(folder / _KEYS, unique[sums > 0])
        np.save(folder / _COUNTS, sums[sums > 0].astype(np.uint32))


def read_table(folder: Path) -> tuple[Keys, Counts]:
    """Keys and counts of a part, mapped."""
    return np.load(folder / _KEYS, mmap_mode="r"), np.load(folder / _COUNTS, mmap_mode="r")


def _chunks_key(project: UUID) -> int:
    return _hash(b"c", project, b"")


def _stem_key(project: UUID, stem: str) -> int:
    return _hash(b"s", project, stem.encode("utf-8", "surrogatepass"))


def _term_key(project: UUID, dimension: int) -> int:
    return _hash(b"t", project, dimension.to_bytes(4, "little"))


def _hash(kind: bytes, project: UUID, what: bytes) -> int:
    return int.from_bytes(blake2b(kind + project.bytes + what, digest_size=8).digest(), "little")

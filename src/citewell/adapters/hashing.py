"""A cheap, deterministic embedder for tests and for measuring everything but the model.

Words are hashed into a few dimensions: texts that share words are near each other, and that is all it knows.
"""

import re
import zlib
from collections.abc import Sequence

import numpy as np

from citewell.models import Matrix, Vector
from citewell.ports import Embeddable, Embedding

_WORD = re.compile(r"\w+")
_READ = 4000  # characters of a passage that are looked at


class HashingEmbedder:
    """One window per passage."""

    model = "hashing-64"
    dimensions = 64
    fitted = True  # to nothing, but what is tested with it is not its cosines

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        return [
            Embedding(self._vector(f"{one.label} {one.text[:_READ]}")[np.newaxis], ((0, len(one.text)),))
            for one in passages
        ]

    async def embed_query(self, text: str) -> Vector:
        return self._vector(text)

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return np.array([await self.embed_query(text) for text in texts])

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def _vector(self, text: str) -> Vector:
        places = [zlib.crc32(word.encode()) % self.dimensions for word in set(_WORD.findall(text.lower()))]
        counts = np.bincount(places or [0], minlength=self.dimensions).astype(np.float32)
        unit: Vector = counts / np.linalg.norm(counts)
        return unit

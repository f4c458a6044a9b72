"""A cheap, deterministic embedder for tests and for benchmarks of everything but the model.

Words are hashed into a few dimensions: texts that share words are similar, and nothing else is.
"""

import re
import zlib
from collections.abc import Sequence

import numpy as np

from citewell.models import Matrix, Vector
from citewell.ports import Embeddable, Embedding

_WORD = re.compile(r"\w+")
_MAX_CHARACTERS = 4000  # of a passage


class HashingEmbedder:
    """One window per passage."""

    model = "hashing-64"
    dimensions = 64
    fitted = True  # tests with it do not test its cosines

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        texts = [f"{passage.label} {passage.text[:_MAX_CHARACTERS]}" for passage in passages]
        return [
            Embedding(self._vector(text)[np.newaxis], ((0, len(passage.text)),))
            for text, passage in zip(texts, passages, strict=True)
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
        dimensions = [zlib.crc32(word.encode()) % self.dimensions for word in set(_WORD.findall(text.lower()))]
        counts = np.bincount(dimensions or [0], minlength=self.dimensions).astype(np.float32)
        unit: Vector = counts / np.linalg.norm(counts)
        return unit

"""Embed chunks in batches. A chunk whose text was embedded before gets its embedding from the cache."""

import logging
from collections.abc import Iterator, Sequence
from typing import TypeAlias
from uuid import UUID

import numpy as np

from citewell.errors import ModelError
from citewell.models import Chunk
from citewell.ports import Embeddable, Embedder, Embedding, Entry, VectorCache
from citewell.similarity_scale import IDENTITY_SCALE, PAIRS, SimilarityScale, measure_scale

_log = logging.getLogger("citewell.ingest")

_BATCH_CHUNKS = 32  # embedded, cached and staged together

ProjectChunk: TypeAlias = tuple[UUID, Chunk]
"""A chunk after the id of its project."""


def take_full_batches(pending: list[ProjectChunk]) -> Iterator[list[ProjectChunk]]:
    """Remove and yield one full batch after another; what is left in `pending` fills no batch."""
    while len(pending) >= _BATCH_CHUNKS:
        batch = pending[:_BATCH_CHUNKS]
        del pending[:_BATCH_CHUNKS]
        yield batch


class ChunkEmbedder:
    """Embeds chunks with one model and counts what the cache did not have."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self.embedded_chunks = 0
        """How many chunks the model embedded; those from the cache are not counted."""
        self._embedder = embedder
        self._cache = cache

    async def embed(self, chunks: Sequence[ProjectChunk]) -> list[Entry]:
        """The chunks with their embeddings, ready for the index. New embeddings are saved in the cache."""
        texts = {chunk.embedding_key: Embeddable(chunk.label, chunk.text) for _, chunk in chunks}
        embeddings = await self._cache.load(list(texts), model=self._embedder.model)
        if missing := [key for key in texts if key not in embeddings]:
            new_embeddings = await self._embed_texts([texts[key] for key in missing])
            new = dict(zip(missing, new_embeddings, strict=True))
            await self._cache.save(new, model=self._embedder.model)
            embeddings |= new
            self.embedded_chunks += len(new)
        return [Entry(project, chunk, embeddings[chunk.embedding_key]) for project, chunk in chunks]

    async def missing_from_cache(self, chunks: Sequence[Chunk]) -> set[str]:
        """The embedding keys of chunks that this model has never embedded."""
        keys = [chunk.embedding_key for chunk in chunks]
        return set(keys) - (await self._cache.load(keys, model=self._embedder.model)).keys()

    async def measure_scale(self) -> SimilarityScale:
        """How the model's cosine similarities are to be read, measured once on questions with known answers."""
        model = self._embedder.model
        if known := await self._cache.load_scale(model=model):
            return known
        answers = await self._embedder.embed_passages([Embeddable("", answer) for _, answer in PAIRS])
        questions = await self._embedder.embed_queries([question for question, _ in PAIRS])
        scale = measure_scale(questions, np.array([answer.vectors[0] for answer in answers]))
        if scale is None:
            _log.warning("%s does not tell answers from other texts; its answers are worth little", model)
            scale = IDENTITY_SCALE
        await self._cache.save_scale(scale, model=model)
        return scale

    async def _embed_texts(self, texts: Sequence[Embeddable]) -> list[Embedding]:
        try:
            return await self._embedder.embed_passages(texts)
        except ModelError as error:
            if not self.embedded_chunks:
                raise
            raise ModelError(
                f"{error}; nothing has changed for readers, and the {self.embedded_chunks} chunks that were embedded "
                "are cached: run the same command again to continue from there"
            ) from error

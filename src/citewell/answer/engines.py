"""What an answer is made with: the ports, their timeouts, and what they mean when they do not answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from citewell.errors import CitewellError, IndexUnavailable, ModelError
from citewell.ports import Embedder, Index, Reranker, Writer
from citewell.similarity_scale import IDENTITY_SCALE, SimilarityScale


@dataclass(frozen=True, slots=True)
class AnswerEngines:
    """What an answer is made with."""

    embedder: Embedder
    index: Index
    reranker: Reranker
    writer: Writer | None = None
    """None where answers are quotations."""
    strict: bool = False
    """Whether sentences that no passage supports are dropped, not only marked."""
    on_unanswered: Callable[[UUID, str], None] | None = None
    """Told of each question that all of a project's documents do not answer; must not take long, and not fail."""
    index_timeout_seconds: float = 10.0
    embedder_timeout_seconds: float = 10.0

    @asynccontextmanager
    async def index_call(self) -> AsyncIterator[None]:
        """Time for one call to the index: it answers, or is not there."""
        try:
            async with asyncio.timeout(self.index_timeout_seconds):
                yield
        except TimeoutError as error:
            raise IndexUnavailable("the vector store does not answer; try again in a moment") from error

    async def scale(self) -> SimilarityScale:
        """What the embedder's cosines are worth; while no index says so, as if everything was fitted to it."""
        if self.embedder.fitted:
            return IDENTITY_SCALE
        try:
            async with self.index_call():
                return await self.index.scale()
        except CitewellError:
            return IDENTITY_SCALE

    @asynccontextmanager
    async def embedder_call(self) -> AsyncIterator[None]:
        """Time for one call to the embedder."""
        try:
            async with asyncio.timeout(self.embedder_timeout_seconds):
                yield
        except TimeoutError as error:
            raise ModelError(
                f"the embedding model {self.embedder.model} does not answer; try again in a moment"
            ) from error

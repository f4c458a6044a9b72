"""The engines that answers are made with: the ports, their timeouts, and the errors of calls that take too long.

Knows no question and no policy.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from uuid import UUID

from citewell.errors import CitewellError, IndexUnavailable, ModelError
from citewell.models import UnsupportedPolicy
from citewell.ports import Embedder, Index, Reader, Reranker, Writer
from citewell.similarity_scale import IDENTITY_SCALE, SimilarityScale
from citewell.tracing import span

DECLINE_BELOW = 0.3
"""The probability of being right below which an answer is not shown: docs/decisions/0006-when-to-decline.md."""


@dataclass(frozen=True, slots=True)
class AnswerEngines:
    """The ports that an answer needs, with their timeouts."""

    embedder: Embedder
    index: Index
    reranker: Reranker
    reader: Reader | None = None
    """The model that reads passages before they are quoted; None where words alone decide what is quoted."""
    writer: Writer | None = None
    """The LLM; None where answers are quotations."""
    unsupported: UnsupportedPolicy = "fold"
    """What becomes of an LLM's sentences that no passage supports."""
    decline_below: float = DECLINE_BELOW
    """Answers that are less likely to be right than this are not shown."""
    title: str = ""
    """What the documents are called, for refusals; empty where they have no title."""
    on_unanswered: Callable[[UUID, str], None] | None = None
    """Called with each question that the documents of a project do not answer; must be fast and must not raise."""
    index_timeout_seconds: float = 10.0
    embedder_timeout_seconds: float = 10.0

    async def warm(self) -> None:
        """Load the local models and check the index now rather than at the first question; calls no vendor."""
        await self.embedder.warm()
        if self.reader:
            await self.reader.warm()
        with suppress(CitewellError):  # each question will say so
            async with self.index_call():
                await self.index.scale()

    @asynccontextmanager
    async def index_call(self) -> AsyncIterator[None]:
        """Limits the time of a call to the index; raises `IndexUnavailable` on timeout."""
        try:
            with span("index"):
                async with asyncio.timeout(self.index_timeout_seconds):
                    yield
        except TimeoutError as error:
            raise IndexUnavailable("the vector store does not answer; try again in a moment") from error

    @asynccontextmanager
    async def embedder_call(self) -> AsyncIterator[None]:
        """Limits the time of a call to the embedder; raises `ModelError` on timeout."""
        try:
            with span("embed", {"gen_ai.request.model": self.embedder.model}):
                async with asyncio.timeout(self.embedder_timeout_seconds):
                    yield
        except TimeoutError as error:
            raise ModelError(
                f"the embedding model {self.embedder.model} does not answer; try again in a moment"
            ) from error

    async def scale(self) -> SimilarityScale:
        """How to read the embedder's cosine similarities; unchanged while no index can tell."""
        if self.embedder.fitted:
            return IDENTITY_SCALE
        try:
            async with self.index_call():
                return await self.index.scale()
        except CitewellError:
            return IDENTITY_SCALE

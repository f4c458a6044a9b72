"""What reads, finds, ranks and writes."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from citewell.models import NO_FILTERS, Chunk, Exchange, Filters, Matrix, Passage, TokenUsage, Vector
from citewell.similarity_scale import SimilarityScale


@dataclass(frozen=True, slots=True)
class Embeddable:
    """A chunk for the embedder: what it says, and the title and section path it says it under."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Embedding:
    """A passage embedded window by window: a row of `vectors` and a span of its text for each."""

    vectors: Matrix
    spans: tuple[tuple[int, int], ...]


class Embedder(Protocol):
    """Turns text into unit vectors. `model` names it; vectors of different models never meet.

    `fitted` says whether answers were fitted to its cosines; those of any other are measured when an index is made.
    Raises ModelError where there are no vectors to be had: passages are worth a long wait, a question a short one.
    """

    model: str
    dimensions: int
    fitted: bool

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        """One embedding per passage; every token of a passage is in some window."""
        ...

    async def embed_query(self, text: str) -> Vector: ...

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """A row for each of a few questions for which nobody waits."""
        ...

    async def warm(self) -> None:
        """Load what lies on this machine now rather than at the first question; asks no vendor."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk on its way into the index."""

    project: UUID
    chunk: Chunk
    embedding: Embedding


class Index(Protocol):
    """Finds chunks by meaning and by words. Readers see one published generation, whole."""

    async def search(
        self, project: UUID, *, vector: Vector, words: str, limit: int, filters: Filters = NO_FILTERS
    ) -> tuple[Passage, ...]:
        """The project's nearest chunks of those that `filters` allows, best first.

        Scores are cosines, read on the scale of the index and clipped to [0, 1].

        Raises EmptyKnowledgeBase before the first publish, IndexMismatch for an index that is not of this model and
        version, and IndexUnavailable filters its engine fails.
        """
        ...

    async def frequencies(
        self, project: UUID, stems: Sequence[str], *, filters: Filters = NO_FILTERS
    ) -> tuple[int, list[int]]:
        """How many chunks `filters` allows, and how many of them speak each stem; raises as `search` does."""
        ...

    async def scale(self) -> SimilarityScale:
        """What the cosines of its model are worth; raises as `search` does."""
        ...

    async def close(self) -> None: ...


class Reranker(Protocol):
    """Reads the question beside each passage that was found, and says which ones answer it. `model` names it."""

    model: str

    async def rerank(self, question: str, passages: Sequence[Passage], *, weights: Mapping[str, float]) -> list[float]:
        """A finite score for each passage, in the order they came; higher is better.

        `weights` says how much each stem of the question's subject matters in this project. Raises
        RerankerUnavailable when it cannot tell and SettingsError when its key is refused; the answer goes on without.
        """
        ...

    async def close(self) -> None: ...


class Search(Protocol):
    """What a writer may look up while it writes: the passages on a query, as JSON."""

    async def __call__(self, query: str, limit: int, score_threshold: float) -> str: ...


@dataclass(frozen=True, slots=True)
class WritingTask:
    """What a writer is to write: the rules, what was said before, and the wish."""

    instructions: str
    prompt: str
    history: Sequence[Exchange] = ()
    search: Search | None = None
    max_tokens: int = 1000
    """Tokens that it may write."""


class Writer(Protocol):
    """An LLM. `model` names it, `context_tokens` is how much it can read and write at once."""

    model: str
    context_tokens: int

    def write(self, work: WritingTask) -> AsyncGenerator[str | TokenUsage, None]:
        """The words as they come, then what they cost; close it when nobody listens any more.

        Raises WriterUnavailable, at once where it is known to be down; after the first words, where it broke off.
        """
        ...

    async def reach(self) -> None:
        """Raise WriterUnavailable unless it can be reached now."""
        ...

    async def close(self) -> None: ...

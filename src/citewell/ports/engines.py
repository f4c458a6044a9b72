"""Engines of an answer: embedder, index, reranker, reader and writer."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable
from uuid import UUID

from citewell.models import NO_FILTERS, Chunk, Exchange, Filters, Matrix, Passage, TokenUsage, Vector
from citewell.similarity_scale import SimilarityScale


@dataclass(frozen=True, slots=True)
class Embeddable:
    """A chunk for the embedder: its text, and its title and section path as `label`."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Embedding:
    """The embedding of a passage: for each window a row of `vectors` and a span of the text."""

    vectors: Matrix
    spans: tuple[tuple[int, int], ...]


class Embedder(Protocol):
    """Turns text into unit vectors. `model` names it; vectors of different models are never compared.

    `fitted` says whether ranking was fitted to its cosines; the scale of any other model is measured when an index is
    built. Every method raises ModelError if the model fails: passages after a long wait, a question after a short one.
    """

    model: str
    dimensions: int
    fitted: bool

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        """One embedding for each passage; its windows cover the whole text."""
        ...

    async def embed_query(self, text: str) -> Vector:
        """The vector of a question that a reader waits for."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """A row for each of a few questions that no reader waits for."""
        ...

    async def warm(self) -> None:
        """Load a local model now rather than at the first question; calls no vendor."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk to be indexed, with its project and its embedding."""

    project: UUID
    chunk: Chunk
    embedding: Embedding


class Index(Protocol):
    """Searches chunks by meaning and by words. Always reads one published generation, never a partial one."""

    async def search(
        self, project: UUID, *, vector: Vector, words: str, limit: int, filters: Filters = NO_FILTERS
    ) -> tuple[Passage, ...]:
        """The best passages of a project that match `filters`, best first.

        Scores are cosines, converted by the similarity scale of the index; a passage's `cosine` is not converted. Both
        are clipped to [0, 1].

        Raises EmptyKnowledgeBase before the first publish, IndexMismatch if the index has another model or version,
        and IndexUnavailable if the engine fails, or the index is damaged or missing.
        """
        ...

    async def frequencies(
        self, project: UUID, stems: Sequence[str], *, filters: Filters = NO_FILTERS
    ) -> tuple[int, list[int]]:
        """How many chunks match `filters`, and how many of them contain each stem. Raises as `search` does."""
        ...

    async def scale(self) -> SimilarityScale:
        """The similarity scale of the index's embedding model. Raises as `search` does."""
        ...

    def problem(self) -> str | None:
        """Why the generation that was published last cannot be read, as of the last call; an older one may answer."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class ReportsDetails(Protocol):
    """An index whose engine runs elsewhere, and reports on itself."""

    async def details(self) -> Mapping[str, str | int]:
        """Its version, number of points and status; names no place. Raises IndexUnavailable."""
        ...


class Reranker(Protocol):
    """Scores how well each retrieved passage answers the question. `model` names it."""

    model: str

    async def rerank(self, question: str, passages: Sequence[Passage], *, weights: Mapping[str, float]) -> list[float]:
        """A finite score for each passage, in the given order; higher is better.

        `weights` says how important each stem of the question is in this project. Raises RerankerUnavailable if it
        fails and SettingsError if its key is refused; the answer then uses the local ranking.
        """
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ReadableWindow:
    """Consecutive units of a passage (sentences, list items, table rows, code), under the heading they stand below."""

    heading: str
    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WindowScores:
    """What a reader thinks of a window, as log-odds."""

    answers: float
    """That the window answers the question."""
    supports: float
    """That the window supports a claim which takes the place of the question."""
    units: tuple[float, ...]
    """That a unit answers, for each of the first units; fewer than the window has if it was too long to read."""


class Reader(Protocol):
    """A model that reads a question beside a window of text. `model` names it."""

    model: str

    async def read(self, question: str, windows: Sequence[ReadableWindow]) -> list[WindowScores]:
        """Scores of each window, in the given order. Raises ModelError if the model fails."""
        ...

    async def warm(self) -> None:
        """Load the model now rather than at the first question."""
        ...

    async def close(self) -> None: ...


class Search(Protocol):
    """A search that a writer may call while it writes; returns passages as JSON."""

    async def __call__(self, query: str, limit: int, score_threshold: float) -> str: ...


@dataclass(frozen=True, slots=True)
class WritingTask:
    """What a writer is to do: instructions, the conversation so far, and the prompt."""

    instructions: str
    prompt: str
    history: Sequence[Exchange] = ()
    search: Search | None = None
    max_tokens: int = 1000
    """How many tokens it may write."""
    deadline: float | None = None
    """When its first words must have come, in the event loop's time. Default: in the writer's `first_words_seconds`."""


class Writer(Protocol):
    """An LLM. `model` names it; `context_tokens` is the size of its context window.

    `first_words_seconds` is the time for its first words, retries included.
    """

    model: str
    context_tokens: int
    first_words_seconds: float

    def write(self, task: WritingTask) -> AsyncGenerator[str | TokenUsage, None]:
        """Stream the text as it is written, and last the token usage. Close the stream if its reader leaves.

        There may be no text: an LLM may refuse, or write nothing. Raises WriterUnavailable: at once if the LLM is known
        to be down, after the first words if it broke off.
        """
        ...

    async def reach(self) -> None:
        """Raise WriterUnavailable unless the LLM can be reached now."""
        ...

    async def close(self) -> None: ...

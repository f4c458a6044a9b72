"""Where documents are kept and the index is built."""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from citewell.models import Chunk, Document, DocumentSummary, IngestRun, KnownDocument, Project, Surroundings, Trace
from citewell.ports.engines import Embedding, Entry
from citewell.similarity_scale import SimilarityScale


@dataclass(frozen=True, slots=True)
class Change:
    """A step from one generation to the next: documents that go, then chunks that come.

    In a generation that is built on nothing, one of them may bring the scale of its model.
    """

    remove: Sequence[UUID] = ()
    entries: Sequence[Entry] = ()
    scale: SimilarityScale | None = None


class IndexBuilder(Protocol):
    """Where generations of the index are built and put out for readers; for one writer at a time."""

    def has_generation(self, generation: int) -> bool:
        """Whether this generation is there, whole, made with the configured model and as this version makes them."""
        ...

    def embedding_model_of(self, generation: int) -> str | None:
        """The embedding model of a generation; None where there is no such generation."""
        ...

    def current_generation(self) -> int | None:
        """The generation that readers use."""
        ...

    async def stage(self, changes: AsyncIterator[Change], *, base: int | None) -> int:
        """Build a generation from the base (or from nothing). Readers see none of it yet."""
        ...

    def contents(self, generation: int) -> Iterator[tuple[str, str]]:
        """The id and text of every chunk in a generation; raises IndexUnavailable where it cannot be read."""
        ...

    def leftovers(self) -> list[str]:
        """Names of what a run that died left behind, and of generations nobody uses."""
        ...

    def remove_leftovers(self) -> None:
        """Remove them."""
        ...

    def publish(self, generation: int) -> None:
        """Make a staged generation the one that readers use; once more does no harm."""
        ...


class Library(Protocol):
    """The truth: which documents a project holds, word for word. Readers' side."""

    async def documents(self, project: Project) -> list[DocumentSummary]: ...

    async def document(self, document_id: UUID) -> Document | None: ...

    async def project_of(self, document_id: UUID) -> UUID | None:
        """The project that holds a document."""
        ...

    async def document_counts(self) -> dict[UUID, int]:
        """How many documents each project holds; those that hold none are left out."""
        ...

    def chunks(self, document_id: UUID | None = None) -> AsyncIterator[Sequence[tuple[UUID, Chunk]]]:
        """Chunks with their project, in batches: of one document, or every one there is."""
        ...

    async def generation(self) -> int | None:
        """The index generation that shows what the library holds."""
        ...

    async def trace(self, project: UUID, ids: Sequence[str]) -> dict[str, Trace]:
        """What became of each chunk; a chunk of another project is as unknown as one that never was."""
        ...

    async def surroundings(self, chunk: str, *, characters: int) -> Surroundings | None:
        """So many characters of the document's text on either side of a chunk, by its id; fewer at the ends."""
        ...


class LibraryWriter(Protocol):
    """The truth, written: staged piece by piece, then entered all at once. For one writer at a time."""

    async def known_documents(self, project: Project) -> Mapping[str, KnownDocument]:
        """What is known of every document of the project, by its path."""
        ...

    async def stage(self, project: Project, entered: Sequence[tuple[Document, Sequence[Chunk]]]) -> None:
        """Put documents aside; nobody sees them yet."""
        ...

    async def commit(self, *, remove: Collection[UUID], generation: int) -> None:
        """Replace documents by those staged, remove others, name the generation that shows it: all or nothing."""
        ...

    async def discard(self) -> None:
        """Forget what was staged."""
        ...


class Audit(Protocol):
    """Whether the truth is sound."""

    async def audit(self) -> list[str]:
        """Every orphan and dangling row, a line each kind; empty when all is well."""
        ...

    async def repair(self) -> None:
        """Remove them."""
        ...

    async def vacuum(self) -> None:
        """Leave no byte of what was deleted."""
        ...


class Ingests(Protocol):
    """How the last 20 ingests of each project went. Kept by one writer at a time, who can be looked at meanwhile."""

    async def begin(self, run: IngestRun) -> None:
        """Keep a new run. Another one that was not ended yet will not be: its process died, and it is `interrupted`."""
        ...

    async def update(self, run: IngestRun) -> None:
        """Keep how a run stands now; does nothing once it is forgotten."""
        ...

    async def ingests(self, project: UUID) -> list[IngestRun]:
        """The newest first."""
        ...


class VectorCache(Protocol):
    """Remembers embeddings by what was embedded, so that nothing is embedded twice."""

    async def load(self, keys: Sequence[str], *, model: str) -> dict[str, Embedding]: ...

    async def save(self, embeddings: Mapping[str, Embedding], *, model: str) -> None: ...

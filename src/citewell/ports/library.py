"""The library of documents, and the builder of the index."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from citewell.models import Chunk, Document, DocumentSummary, IngestRun, KnownDocument, Project, Surroundings, Trace
from citewell.ports.engines import Embedding, Entry
from citewell.similarity_scale import SimilarityScale


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the index: documents to remove, then chunks to add.

    In a generation that is built from nothing, one change may set the similarity scale of the model.
    """

    remove: Sequence[UUID] = ()
    entries: Sequence[Entry] = ()
    scale: SimilarityScale | None = None


class IndexBuilder(Protocol):
    """Builds generations of the index and publishes them to readers; for one writer at a time.

    The embedded engine has one generation for all projects. On a server each project has its own generations, and a
    builder is for one project.
    """

    async def fault_of(self, generation: int) -> str | None:
        """Why no other generation can be built on this one: "is missing", "is damaged: …"; None if nothing is wrong.

        Reads all its files. It must have been built by this version with the configured model.
        """
        ...

    async def embedding_model_of(self, generation: int) -> str | None:
        """The embedding model of a generation; None if there is no such generation, or it does not tell."""
        ...

    async def current_generation(self) -> int | None:
        """The generation that readers use; None before the first publish."""
        ...

    async def stage(self, changes: AsyncIterator[Change], *, base: int | None) -> int:
        """Build a generation from the base, or from nothing. Readers don't see it before it is published."""
        ...

    def contents(self, generation: int) -> AsyncIterator[tuple[str, str]]:
        """The id and text of every chunk in a generation; raises IndexUnavailable if it cannot be read."""
        ...

    def entries(self, generation: int) -> AsyncIterator[Sequence[Entry]]:
        """Every chunk of a generation with its embedding, in batches; raises as `contents` does."""
        ...

    async def leftovers(self) -> list[str]:
        """Names of unfinished generations that a crashed run left, and of generations that nobody uses."""
        ...

    async def remove_leftovers(self) -> None:
        """Delete the leftovers."""
        ...

    async def publish(self, generation: int) -> None:
        """Make a staged generation the one that readers use. Idempotent."""
        ...

    async def remove(self) -> None:
        """Delete the index: all its generations, the published one too. Idempotent."""
        ...

    async def close(self) -> None: ...


class Library(Protocol):
    """Reads documents: the library is the source of truth, and the index can be rebuilt from it."""

    async def documents(self, project: Project) -> list[DocumentSummary]:
        """The documents of a project, by path."""
        ...

    async def document(self, document_id: UUID) -> Document | None:
        """A document with its full text."""
        ...

    async def project_of(self, document_id: UUID) -> UUID | None:
        """The project of a document; None if there is no such document."""
        ...

    async def document_counts(self) -> dict[UUID, int]:
        """How many documents each project has; projects without documents are left out."""
        ...

    def chunks(self, document_id: UUID | None = None) -> AsyncIterator[Sequence[tuple[UUID, Chunk]]]:
        """Chunks with their project, in batches: of one document, or of all that share an index generation."""
        ...

    async def generation(self, project: UUID | None = None) -> int | None:
        """The index generation that matches the library; None before the first ingest.

        Where projects have their own, that of `project`.
        """
        ...

    async def trace(self, project: UUID, ids: Sequence[str]) -> dict[str, Trace]:
        """What became of each chunk. Chunks of other projects are unknown."""
        ...

    async def surroundings(self, chunk: str, *, characters: int) -> Surroundings | None:
        """Up to `characters` of the document's text before and after a chunk, by its id."""
        ...


class LibraryWriter(Protocol):
    """Changes the library: documents are staged in batches, then committed all at once. For one writer at a time."""

    async def known_documents(self, project: Project) -> Mapping[str, KnownDocument]:
        """Fingerprint and root folder of every document of the project, by its path."""
        ...

    async def stage(self, project: Project, documents: Sequence[tuple[Document, Sequence[Chunk]]]) -> None:
        """Store documents that readers don't see yet."""
        ...

    async def commit(self, *, remove: Collection[UUID], generation: int) -> None:
        """In one transaction: add or replace the staged documents, remove others, set the index generation."""
        ...

    async def discard(self) -> None:
        """Delete what was staged."""
        ...

    async def set_generations(self, generations: Mapping[UUID | None, int | None]) -> None:
        """Name index generations for the library as it is: of projects, or with None of all together; None for none."""
        ...


class Audit(Protocol):
    """Checks and repairs the library."""

    async def audit(self) -> list[str]:
        """A line for each kind of orphaned or dangling rows; empty if all is well."""
        ...

    async def repair(self) -> None:
        """Delete what `audit` reports."""
        ...

    async def vacuum(self) -> None:
        """Erase deleted data from the disk."""
        ...


class Ingests(Protocol):
    """The last 20 ingest runs of each project. Its writer updates a run while others may read it."""

    async def begin(self, run: IngestRun) -> None:
        """Store a new run. Others of the project that are still running become `interrupted`: their process has died.

        So do runs of other projects that have been silent for a minute.
        """
        ...

    async def update(self, run: IngestRun) -> None:
        """Store the progress of a run; does nothing if the run was deleted."""
        ...

    async def ingests(self, project: UUID) -> list[IngestRun]:
        """The runs of a project, newest first."""
        ...


class VectorCache(Protocol):
    """Caches embeddings by a hash of what was embedded, so that nothing is embedded twice."""

    async def load(self, keys: Sequence[str], *, model: str) -> dict[str, Embedding]:
        """The cached embeddings of a model; missing keys are left out."""
        ...

    async def save(self, embeddings: Mapping[str, Embedding], *, model: str) -> None:
        """Store embeddings by key; existing ones stay."""
        ...

    async def load_scale(self, *, model: str) -> SimilarityScale | None:
        """The similarity scale that was measured with a model; None if none was."""
        ...

    async def save_scale(self, scale: SimilarityScale, *, model: str) -> None:
        """Store the similarity scale of a model."""
        ...

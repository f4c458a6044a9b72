"""What the flows ask of an engine. Each promise is written here once; adapters keep it silently."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from citewell.models import (
    EVERYWHERE,
    Chunk,
    Document,
    Entered,
    Evaluation,
    Exchange,
    Feedback,
    Gap,
    IngestRun,
    Key,
    Known,
    Matrix,
    Owner,
    Passage,
    Project,
    Recorded,
    Spent,
    Surroundings,
    Trace,
    Upload,
    Vector,
    Vote,
    Where,
)
from citewell.yardstick import Scale


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
        self, project: UUID, *, vector: Vector, words: str, limit: int, where: Where = EVERYWHERE
    ) -> tuple[Passage, ...]:
        """The project's nearest chunks of those that `where` allows, best first.

        Scores are cosines, read on the scale of the index and clipped to [0, 1].

        Raises EmptyKnowledgeBase before the first publish, IndexMismatch for an index that is not of this model and
        version, and IndexUnavailable where its engine fails.
        """
        ...

    async def frequencies(
        self, project: UUID, stems: Sequence[str], *, where: Where = EVERYWHERE
    ) -> tuple[int, list[int]]:
        """How many chunks `where` allows, and how many of them speak each stem; raises as `search` does."""
        ...

    async def scale(self) -> Scale:
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
class Assignment:
    """What a writer is to write: the rules, what was said before, and the wish."""

    rules: str
    wish: str
    said: Sequence[Exchange] = ()
    search: Search | None = None
    longest: int = 1000
    """Tokens that it may write."""


class Writer(Protocol):
    """An LLM. `model` names it, `context_tokens` is how much it can read and write at once."""

    model: str
    context_tokens: int

    def write(self, work: Assignment) -> AsyncGenerator[str | Spent, None]:
        """The words as they come, then what they cost; close it when nobody listens any more.

        Raises WriterUnavailable, at once where it is known to be down; after the first words, where it broke off.
        """
        ...

    async def reach(self) -> None:
        """Raise WriterUnavailable unless it can be reached now."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Change:
    """A step from one generation to the next: documents that go, then chunks that come.

    In a generation that is built on nothing, one of them may bring the scale of its model.
    """

    remove: Sequence[UUID] = ()
    entries: Sequence[Entry] = ()
    scale: Scale | None = None


class Shelf(Protocol):
    """Where generations of the index are built and put out for readers; for one writer at a time."""

    def holds(self, generation: int) -> bool:
        """Whether this generation is there, whole, made with the configured model and as this version makes them."""
        ...

    def made_with(self, generation: int) -> str | None:
        """The embedding model of a generation; None where there is no such generation."""
        ...

    def published(self) -> int | None:
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

    def sweep(self) -> None:
        """Remove them."""
        ...

    def publish(self, generation: int) -> None:
        """Make a staged generation the one that readers use; once more does no harm."""
        ...


class Library(Protocol):
    """The truth: which documents a project holds, word for word. Readers' side."""

    async def documents(self, project: Project) -> list[Entered]: ...

    async def document(self, document_id: UUID) -> Document | None: ...

    async def project_of(self, document_id: UUID) -> UUID | None:
        """The project that holds a document."""
        ...

    async def held(self) -> dict[UUID, int]:
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

    async def around(self, chunk: str, *, characters: int) -> Surroundings | None:
        """So many characters of the document's text on either side of a chunk, by its id; fewer at the ends."""
        ...


class Ledger(Protocol):
    """The truth, written: staged piece by piece, then entered all at once. For one writer at a time."""

    async def known(self, project: Project) -> Mapping[str, Known]:
        """What is known of every document of the project, by its path."""
        ...

    async def stage(self, project: Project, entered: Sequence[tuple[Document, Sequence[Chunk]]]) -> None:
        """Put documents aside; nobody sees them yet."""
        ...

    async def enter(self, *, remove: Collection[UUID], generation: int) -> None:
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

    async def recall(self, keys: Sequence[str], *, model: str) -> dict[str, Embedding]: ...

    async def remember(self, embeddings: Mapping[str, Embedding], *, model: str) -> None: ...


class Projects(Protocol):
    """Which projects there are. The default one always is."""

    async def projects(self) -> list[tuple[Project, datetime]]:
        """By name, each with when it was made."""
        ...

    async def project(self, identity: UUID) -> tuple[Project, datetime] | None: ...

    async def create(self, project: Project) -> bool:
        """Whether it is new; a project that is there stays as it is."""
        ...

    async def drop(self, identity: UUID) -> None:
        """Forget the project and all that is kept of it, and revoke the keys that open only it.

        Its documents are an ingest's to remove, before this.
        """
        ...


class Sessions(Protocol):
    """Conversations that outlast a connection. A session of somebody else gives nothing away.

    Each is asked for by an `Owner`: the project and key must be those that opened the session, unless the owner is
    an admin of its project. To anybody else `history` is empty, `forget` does nothing and the others raise NotFound.
    """

    async def recent(self, session: UUID, owner: Owner, *, limit: int) -> list[Exchange]:
        """The last complete exchanges, oldest first; none for a session that is new."""
        ...

    async def record(self, told: Recorded, owner: Owner, *, once: str | None = None) -> Recorded:
        """Keep an exchange; its session is made, or touched. Gives what is kept.

        With `once`, a client's word for this very request, it is kept once, however often and wherever at the same
        time it is tried: a complete exchange takes the place of an incomplete one, and otherwise the first stays.
        """
        ...

    async def earlier(self, once: str, owner: Owner) -> Recorded | None:
        """What was kept under this word by this owner."""
        ...

    async def history(
        self, session: UUID, owner: Owner, *, limit: int | None = None, offset: int = 0
    ) -> tuple[list[Recorded], int]:
        """Exchanges, oldest first, and how many there are in all."""
        ...

    async def rate(self, session: UUID, request: UUID, owner: Owner, *, vote: Vote | None) -> None:
        """Keep what the reader thought of the exchange that this request made; no vote takes one back."""
        ...

    async def feedback(self, project: UUID, *, limit: int, vote: Vote | None = None) -> Feedback:
        """What all readers of a project thought, the newest exchanges first; with a vote, only those that got it."""
        ...

    async def forget(self, session: UUID, owner: Owner) -> None: ...


class Gaps(Protocol):
    """Questions that a project's documents did not answer, for whoever writes them. Each project has 1,000 at most."""

    async def note(self, project: UUID, question: str) -> None:
        """Count a question; one that differs in case, spacing or its last mark is the same. The oldest make room.

        Of a project that is not there nothing is kept.
        """
        ...

    async def gaps(self, project: UUID, *, limit: int) -> list[Gap]:
        """What was asked last comes first."""
        ...

    async def forget(self, project: UUID) -> None: ...


class Evaluations(Protocol):
    """The last evaluation of each project."""

    async def keep(self, project: UUID, evaluation: Evaluation) -> None:
        """In the place of the one before."""
        ...

    async def last(self, project: UUID) -> Evaluation | None: ...


class Keys(Protocol):
    """API keys by their public id. Only a digest of each secret is kept."""

    async def add(self, key: Key, *, digest: str) -> None: ...

    async def find(self, identity: str) -> tuple[Key, str] | None:
        """The key and its digest, revoked or not."""
        ...

    async def keys(self) -> list[Key]:
        """Every key there ever was, oldest first."""
        ...

    async def revoke(self, identity: str) -> bool:
        """Whether there was such a key and it was not revoked yet."""
        ...


class Uploads(Protocol):
    """What clients sent in, waiting for the one writer. The newest wish for a path is the one that counts."""

    async def add(self, upload: Upload, *, content: bytes) -> None:
        """Put it in line; whatever else is there for the same path in the project gives way."""
        ...

    async def take(self) -> tuple[Upload, bytes] | None:
        """The oldest that is PENDING: PROCESSING now, one attempt more, and nobody else's."""
        ...

    async def release(self, identity: UUID) -> None:
        """Put back what was taken, as if it had not been: the worker must go, and it is not the document's fault."""
        ...

    async def resume(self) -> None:
        """Put back what a worker that died had taken; for whoever holds the writer's lock, so that none is alive."""
        ...

    async def finish(self, identity: UUID, *, error: str | None = None) -> None:
        """Done: it leaves the line, or, with an error, stays as FAILED; its content goes either way."""
        ...

    async def uploads(self, project: UUID | None = None) -> list[Upload]:
        """What waits, runs or failed, oldest first; in every project, if none is named."""
        ...

    async def withdraw(self, project: UUID, path: str) -> bool:
        """Take back what waits or failed for a path; whether there was anything."""
        ...

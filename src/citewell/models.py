"""What things are: the nouns every other room speaks in. No I/O and no policy."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias
from uuid import UUID, uuid5

from citewell.errors import BadFilter

if TYPE_CHECKING:  # nothing here computes, and `citewell --help` should not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"
"""One embedding, of unit length."""

Matrix: TypeAlias = "NDArray[np.float32]"
"""Several embeddings, a row each."""

PROJECTS = UUID("6f0d5b0a-8f0e-5b52-9c3e-2f6f1b6f4c11")
"""The namespace in which a project's name becomes its id, the same on every machine."""

DEFAULT_PROJECT = "default"


@dataclass(frozen=True, slots=True)
class Project:
    """Everything lives in one; nothing is seen from another."""

    id: UUID
    name: str

    @classmethod
    def named(cls, name: str) -> "Project":
        return cls(uuid5(PROJECTS, name), name)


@dataclass(frozen=True, slots=True)
class Where:
    """What a search is narrowed to; nothing, unless said. All that is said must hold."""

    source_url_prefix: str | None = None
    """How the live page's address begins: an absolute URL, or a path from `/`, whatever the host.

    Documents that were ingested without an address answer to `/` and their own path.
    """
    section: str | None = None
    """The innermost heading, exactly."""
    chapter: str | None = None
    """The document's title, exactly."""
    path: str | None = None
    """One file, or with `/` at its end everything in a folder."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value: str | None = getattr(self, name)
            if value is not None and not value.strip():
                raise BadFilter(f"the filter {name} is empty; leave it out, or say what to narrow the search to")
            if value is not None and any("\ud800" <= mark <= "\udfff" for mark in value):
                raise BadFilter(f"the filter {name} is not readable text: {value!a}")
        if (prefix := self.source_url_prefix) and not prefix.startswith(("/", "http://", "https://")):
            raise BadFilter(f"the URL prefix {prefix!r} must begin with https://, http:// or /")

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__slots__)

    def __str__(self) -> str:
        """In a reader's words: "section “Calibration”, docs/robots/"."""
        parts = [
            f"section “{self.section}”" if self.section else "",
            f"chapter “{self.chapter}”" if self.chapter else "",
            self.path or "",
            f"pages under {self.source_url_prefix}" if self.source_url_prefix else "",
        ]
        return ", ".join(part for part in parts if part)


EVERYWHERE = Where()

BlockKind = Literal["heading", "text", "list", "table", "code", "math"]


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a document that reads as one thing: a paragraph, a list item, a table, a code block.

    `group` numbers the list or table the block is part of, so that it is kept whole where it fits.
    `level`, `title` and `anchor` are a heading's; the anchor is the id under which a browser finds it.
    """

    kind: BlockKind
    start: int
    end: int
    group: int | None = None
    level: int = 0
    title: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Manuscript:
    """A file as its reader understood it: one canonical text, and where its blocks stand in it.

    `slug` is the address a page asks for itself, `page_starts` the offsets at which its pages begin, `lines` the
    file's line for each line of the text, where a reader could not keep every line on its line.
    """

    title: str
    text: str
    blocks: tuple[Block, ...]
    slug: str = ""
    page_starts: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A citable stretch of a document. `document.text[start:end] == text`, always.

    The ids are made of what the chunk says, never of where it stands: a citation can go missing when
    the text changes, but it can never come to mean other words.
    """

    id: str
    document_id: UUID
    content_hash: str
    index: int
    source: str
    chapter: str
    section: str
    headings: tuple[str, ...]
    text: str
    start: int
    end: int
    first_line: int
    last_line: int
    page: int | None = None
    url: str | None = None
    """The live page, at the chunk's heading."""

    @property
    def label(self) -> str:
        """Title and section path, as a reader would say where this stands."""
        return " > ".join(dict.fromkeys((self.chapter, *self.headings)))

    @property
    def topic(self) -> str:
        """The label without what stands between title and section."""
        return " > ".join(dict.fromkeys((self.chapter, *self.headings[-1:])))

    @property
    def embedding_key(self) -> str:
        """Equal for chunks that are embedded alike, wherever they stand."""
        return _sha256(f"{self.label}\0{self.text}")


def content_hash(chapter: str, section: str, text: str, *, occurrence: int = 0) -> str:
    """What a chunk says, as 64 hex digits; `occurrence` tells repeated texts of a document apart."""
    parts: list[str | int] = [chapter, section, text]
    if occurrence:
        parts.append(occurrence)
    return _sha256(json.dumps(parts, ensure_ascii=False, separators=(",", ":")))


def chunk_id(document_id: UUID, content: str) -> str:
    """A chunk's citable id: the same bytes in the same document give it on any machine."""
    return _sha256(f"{document_id}:{content}")


def document_id(project: Project, path: str) -> UUID:
    """A document's id: the same path in the same project gives it every time."""
    return uuid5(project.id, path)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Document:
    """What the library keeps of one ingested file."""

    id: UUID
    path: str
    title: str
    text: str
    fingerprint: str
    """Of the file's bytes and of how we read them: equal means there is nothing to do."""
    part: str = ""
    """The part of the book it stands in, as its folders are called."""
    url: str | None = None
    """The live page."""
    root: str = ""
    """The folder on this machine that its path is relative to; "" for what was uploaded."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a document before its file is opened."""

    fingerprint: str
    root: str


@dataclass(frozen=True, slots=True)
class Entered:
    """A document as a list shows it."""

    id: UUID
    path: str
    title: str
    part: str
    url: str | None
    chunks: int
    characters: int
    ingested_at: datetime


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a chunk's text that was embedded as one, and how close it is to the question."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that was found, with the cosine of its best window in [0, 1]."""

    chunk: Chunk
    score: float
    windows: tuple[Window, ...]
    whole: float = 0.0
    """The cosine of the mean of its windows."""
    spoken: tuple[tuple[str, ...], ...] = ()
    """The stems of its sentences, as the index keeps them."""


@dataclass(frozen=True, slots=True)
class Cite:
    """In a stream of text: the words just before rest on this passage."""

    passage: Passage


@dataclass(frozen=True, slots=True)
class Reached:
    """In a stream: what is being done now. It has no words."""

    stage: Literal["retrieving", "generating"]


Piece: TypeAlias = str | Cite | Reached
"""What an answer is streamed as; a door turns each `Cite` into its own kind of mark."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question as it was asked, and the words it was answered with."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """An exchange as it is kept: with the sources and metadata its reader was given."""

    session_id: UUID
    timestamp: datetime
    query: str
    response: str
    sources: tuple[dict[str, object], ...] = ()
    metadata: dict[str, object] = field(default_factory=dict)
    complete: bool = True
    """Whether all was said before the reader left."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a session is: a project's, and of the key that opened it ("" where none was needed)."""

    project: UUID
    key: str = ""
    admin: bool = False
    """Whether every session of the project may be seen."""


Scope = Literal["ask", "admin"]


@dataclass(frozen=True, slots=True)
class Key:
    """What a key may do. The secret itself is kept nowhere."""

    id: str
    name: str
    scope: Scope
    created_at: datetime
    project: UUID | None = None
    """The only project it opens; none means every one."""
    per_minute: int | None = None
    """Requests a minute; none means what the settings say."""
    revoked_at: datetime | None = None


Status = Literal["PENDING", "PROCESSING", "COMPLETED", "FAILED"]


@dataclass(frozen=True, slots=True)
class Upload:
    """A document on its way in, or out. A "delete" of the path "" is of the project itself, with all it holds."""

    id: UUID
    project: Project
    path: str
    kind: Literal["ingest", "delete"]
    status: Status
    size: int
    created_at: datetime
    error: str | None = None
    attempts: int = 0

    @property
    def document_id(self) -> UUID:
        return document_id(self.project, self.path)


@dataclass(frozen=True, slots=True)
class Trace:
    """What became of a chunk that was cited once."""

    here: "Chunk | None" = None
    """The chunk itself, where it stands now."""
    twin: "Chunk | None" = None
    """Where it is gone: the same text in another place."""
    successor: "Chunk | None" = None
    """Where neither is left: what now stands in its place in its document."""
    known: bool = False
    """Whether there ever was such a chunk."""


Mode = Literal["full", "selected_text", "retrieval_only", "no_results"]


@dataclass(frozen=True, slots=True)
class Segment:
    """Words of an answer, the passages they rest on, and, for a quotation, where in the first one it begins."""

    text: str
    passages: tuple[Passage, ...]
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the answer flow ends with. `confidence` is 0 exactly when nothing was answered."""

    segments: tuple[Segment, ...]
    confidence: float
    mode: Mode
    model: str
    found: tuple[Passage, ...]
    """Every passage that was looked at, best first."""
    question: str = ""
    """As it was understood: a follow-up with what it follows up on."""
    nearest: tuple[Passage, ...] = ()
    """Where nothing was answered: the nearest topics there are, one passage each."""
    low_confidence: bool = False
    """Answered, but likelier wrong than right."""

    @property
    def cited(self) -> tuple[Passage, ...]:
        """The passages that the answer rests on, in order of first use."""
        by_id = {passage.chunk.id: passage for segment in self.segments for passage in segment.passages}
        return tuple(by_id.values())

    def line(self, passage: Passage) -> int:
        """The line of the document on which the first words taken from a passage stand."""
        starts = [one.start for one in self.segments if passage in one.passages and one.start is not None]
        return passage.chunk.first_line + passage.chunk.text.count("\n", 0, starts[0] if starts else 0)

    def excerpt(self, passage: Passage, *, length: int) -> str:
        """The first words that the answer took from a passage, in at most so many characters."""
        taken = next(segment.text for segment in self.segments if passage in segment.passages)
        words = " ".join(taken.split())
        return words if len(words) <= length else words[: words.rfind(" ", 0, length + 1)] or words[:length]


@dataclass(frozen=True, slots=True)
class IngestResult:
    """How an ingest ended; `exit_code` is 0 exactly when `errors` is empty."""

    files_processed: int
    chunks_created: int
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    files_unchanged: int = 0
    files_removed: int = 0
    chunks_embedded: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def exit_code(self) -> int:
        return 1 if self.errors else 0


@dataclass(slots=True)
class Preview:
    """What an ingest would do: files by path, chunks and embeddings by number."""

    added: list[str]
    changed: list[str]
    unchanged: list[str]
    removed: list[str]
    errors: list[str]
    chunks_added: int = 0
    chunks_removed: int = 0
    chunks_unchanged: int = 0
    embeddings_needed: int = 0

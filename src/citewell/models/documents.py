"""Documents and what they are made of, and ids that never change meaning."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias
from uuid import UUID, uuid5

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
class ParsedDocument:
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
class KnownDocument:
    """What is known of a document before its file is opened."""

    fingerprint: str
    root: str


@dataclass(frozen=True, slots=True)
class DocumentSummary:
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
class Surroundings:
    """What stands around a chunk in its document, and how many chunks that has."""

    before: str
    after: str
    chunks: int


@dataclass(frozen=True, slots=True)
class Trace:
    """What became of a chunk that was cited once."""

    current: "Chunk | None" = None
    """The chunk itself, where it stands now."""
    moved_to: "Chunk | None" = None
    """Where it is gone: the same text in another place."""
    successor: "Chunk | None" = None
    """Where neither is left: what now stands in its place in its document."""
    known: bool = False
    """Whether there ever was such a chunk."""

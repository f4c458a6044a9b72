"""Documents, their blocks and chunks, and stable ids."""

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
"""One vector of unit length."""

Matrix: TypeAlias = "NDArray[np.float32]"
"""Several vectors, one in each row."""

PROJECT_NAMESPACE = UUID("6f0d5b0a-8f0e-5b52-9c3e-2f6f1b6f4c11")
"""The UUID namespace for project ids: a name gives the same id on every machine."""

DEFAULT_PROJECT = "default"


@dataclass(frozen=True, slots=True)
class Project:
    """A separate set of documents. Nothing is shared between projects."""

    id: UUID
    name: str

    @classmethod
    def named(cls, name: str) -> "Project":
        """The project with this name; the id is derived from it."""
        return cls(uuid5(PROJECT_NAMESPACE, name), name)


CITATION_ID = "[0-9a-f]{64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""The pattern of what stands in brackets as a citation: a chunk's id, or the id of a document that is stored whole."""

BlockKind = Literal["heading", "text", "list", "table", "code", "math"]


@dataclass(frozen=True, slots=True)
class Block:
    """A structural unit of a document: a paragraph, a list item, a table, a code block.

    `group` is the number of the list or table that the block belongs to, which is not split if it fits.
    `level`, `title` and `anchor` are for headings; the anchor is the HTML id.
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
    """A parsed file: its text, and the offsets of its blocks.

    `slug` is the URL path that the page sets for itself, `page_starts` the offsets of its pages, and `lines` the line
    of the file for each line of the text, if they differ. `warnings` say what could not be read.
    """

    title: str
    text: str
    blocks: tuple[Block, ...]
    slug: str = ""
    page_starts: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A citable part of a document. `document.text[start:end] == text`, always.

    The id is a hash of the text, not of its position: when the text changes, a citation can become invalid, but it
    never points to other text.
    """

    id: str
    document_id: UUID
    content_hash: str
    index: int | None
    """Its place among the document's chunks, from 0; None for a document that is stored whole."""
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
    """The URL of the live page, at the chunk's heading."""

    @property
    def citation_id(self) -> str:
        """What cites it: its own id, or the document's if the document is stored whole."""
        return str(self.document_id) if self.index is None else self.id

    @property
    def public_id(self) -> str | None:
        """Its id in the API; None for a document that is stored whole, which has no chunks."""
        return None if self.index is None else self.id

    @property
    def label(self) -> str:
        """Title and section path: "Title > Chapter > Section"."""
        return " > ".join(dict.fromkeys((self.chapter, *self.headings)))

    @property
    def topic(self) -> str:
        """Title and innermost section."""
        return " > ".join(dict.fromkeys((self.chapter, *self.headings[-1:])))

    @property
    def embedding_key(self) -> str:
        """The cache key of its embedding: equal for chunks with the same label and text."""
        return _sha256(f"{self.label}\0{self.text}")


def content_hash(chapter: str, section: str, text: str, *, occurrence: int = 0) -> str:
    """A hash of a chunk's text and headings; `occurrence` distinguishes repeated texts in a document."""
    parts: list[str | int] = [chapter, section, text]
    if occurrence:
        parts.append(occurrence)
    return _sha256(json.dumps(parts, ensure_ascii=False, separators=(",", ":")))


def chunk_id(document_id: UUID, content: str) -> str:
    """A chunk's id: the same text in the same document has the same id on every machine."""
    return _sha256(f"{document_id}:{content}")


def document_id(project: Project, path: str) -> UUID:
    """A document's id: the same path in the same project always has the same id."""
    return uuid5(project.id, path)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Document:
    """What the library stores of an indexed file."""

    id: UUID
    path: str
    title: str
    text: str
    fingerprint: str
    """A hash of the file's bytes and of the parser's version: if equal, the file is unchanged."""
    part: str = ""
    """The part it belongs to, from the names of its folders."""
    url: str | None = None
    """The URL of the live page."""
    root: str = ""
    """The folder on this machine that its path is relative to; "" for what was uploaded."""


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """What the library knows of a document, to see whether its file has changed."""

    fingerprint: str
    root: str


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document as lists show it, without its text."""

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
    """The text around a chunk in its document, and how many chunks the document has."""

    before: str
    after: str
    chunks: int


@dataclass(frozen=True, slots=True)
class Trace:
    """What became of a cited chunk."""

    current: "Chunk | None" = None
    """The chunk itself, if it still exists."""
    moved_to: "Chunk | None" = None
    """Otherwise: a chunk with the same text elsewhere."""
    successor: "Chunk | None" = None
    """Otherwise: the chunk that is now in its place in the document."""
    known: bool = False
    """Whether such a chunk ever existed."""

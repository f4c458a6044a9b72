"""Parse one document with the reader for its file suffix.

What cannot be read raises UnreadableFile with the reason in one line.
"""

import hashlib
from pathlib import Path, PurePosixPath

from citewell.errors import UnreadableFile
from citewell.ingest.readers.markdown import Includes, read_markdown
from citewell.ingest.readers.plain import LANGUAGES, read_code, read_text
from citewell.ingest.site_paths import title_of
from citewell.models import ParsedDocument

READER_VERSION = 4
"""Increase it when readers or chunking change the chunks of the same bytes: every file is then read again."""

MAX_FILE_BYTES = 50_000_000

SUFFIXES = (".md", ".mdx", ".rst", ".html", ".htm", ".pdf", ".docx", ".txt", *LANGUAGES)


def read_bytes(location: Path) -> bytes:
    """The file's bytes; raises UnreadableFile if it is too large or cannot be opened."""
    try:
        if (size := location.stat().st_size) > MAX_FILE_BYTES:
            limit = MAX_FILE_BYTES // 1_000_000
            raise UnreadableFile(f"{size / 1e6:.0f} MB is more than the {limit} MB a file may have; split it")
        return location.read_bytes()
    except OSError as error:
        raise UnreadableFile(f"cannot be read ({error.strerror or error})") from error


def fingerprint(content: bytes, recipe: str) -> str:
    """Equal only if the same bytes are parsed and chunked in the same way; `recipe` describes the way."""
    return hashlib.sha256(f"{READER_VERSION}:{recipe}:".encode() + content).hexdigest()


def check_suffix(path: str) -> None:
    """Raise UnreadableFile if there is no reader for the file's suffix."""
    suffix = PurePosixPath(path).suffix
    if suffix.lower() not in SUFFIXES:
        raise UnreadableFile(f"cannot read {suffix or 'a file without a suffix'}; readable are {', '.join(SUFFIXES)}")


def parse(path: str, content: bytes, *, includes: Includes | None = None) -> ParsedDocument:
    """Parse a document's bytes; `includes` reads the files that a page includes."""
    check_suffix(path)
    if not content.strip():
        raise UnreadableFile("an empty file")
    suffix = PurePosixPath(path).suffix.lower()
    return _read_by_suffix(suffix, content, fallback_title=title_of(path), includes=includes)


def _read_by_suffix(suffix: str, content: bytes, *, fallback_title: str, includes: Includes | None) -> ParsedDocument:
    match suffix:
        case ".md" | ".mdx":
            mdx = suffix == ".mdx"
            return read_markdown(_decode(content), mdx=mdx, fallback_title=fallback_title, includes=includes)
        case ".rst":
            from citewell.ingest.readers.rst import read_rst

            return read_rst(_decode(content), fallback_title=fallback_title)
        case ".html" | ".htm":
            from citewell.ingest.readers.html import read_html

            return read_html(content, fallback_title=fallback_title)
        case ".pdf":
            from citewell.ingest.readers.pdf import read_pdf

            return read_pdf(content, fallback_title=fallback_title)
        case ".docx":
            from citewell.ingest.readers.docx import read_docx

            return read_docx(content, fallback_title=fallback_title)
        case ".txt":
            return read_text(_decode(content), fallback_title=fallback_title)
        case _:
            return read_code(_decode(content), fallback_title=fallback_title, language=LANGUAGES[suffix])


def _decode(content: bytes) -> str:
    """Decode UTF-8, or UTF-16 with a byte order mark. Line ends become "\\n", so chunk ids do not depend on them."""
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        source = content.decode(encoding)
    except UnicodeDecodeError as error:
        if b"\0" in content[:1000]:
            raise UnreadableFile("a binary file, not text") from error
        raise UnreadableFile(f"not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    if "\0" in source:
        raise UnreadableFile("a binary file, not text")
    return source.replace("\r\n", "\n").replace("\r", "\n")

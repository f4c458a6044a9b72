"""Read one file: its bytes, its text, its manuscript. A file that cannot be read says why in one line."""

import hashlib
import re
from pathlib import PurePosixPath

from citewell.errors import UnreadableFile
from citewell.ingest.chunk import ChunkSize
from citewell.ingest.readers.markdown import read_markdown
from citewell.ingest.walk import SourceFile
from citewell.models import Manuscript

READER_VERSION = 1
"""Raise it when readers or chunking give other chunks for the same bytes: every file is then read anew."""

LARGEST_FILE_BYTES = 100_000_000


def read_bytes(file: SourceFile) -> bytes:
    try:
        if (size := file.location.stat().st_size) > LARGEST_FILE_BYTES:
            raise UnreadableFile(
                f"{file.path}: {size / 1e6:.0f} MB is more than the {LARGEST_FILE_BYTES / 1e6:.0f} MB a file may have"
            )
        return file.location.read_bytes()
    except OSError as error:
        raise UnreadableFile(f"{file.path}: cannot be read ({error.strerror or error})") from error


def fingerprint(content: bytes, size: ChunkSize) -> str:
    """Equal exactly when the same bytes would be read and cut the same way."""
    recipe = f"{READER_VERSION}:{size.smallest}:{size.largest}:{size.overlap}:".encode()
    return hashlib.sha256(recipe + content).hexdigest()


def load(file: SourceFile, content: bytes) -> Manuscript:
    """The manuscript in a file's bytes."""
    try:
        source = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{file.path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    if "\0" in source:
        raise UnreadableFile(f"{file.path}: a binary file, not text")
    # The same book checked out with other line ends has the same ids.
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    manuscript = read_markdown(source, mdx=file.path.lower().endswith(".mdx"), fallback_title=_title_of(file.path))
    if not manuscript.text.strip():
        raise UnreadableFile(f"{file.path}: nothing to read in it")
    return manuscript


def _title_of(path: str) -> str:
    """`03-motion/02_whole-body.md` -> "Whole body"; an index page is called after its folder."""
    pure = PurePosixPath(path)
    name = pure.parent.name if pure.stem.lower() in ("index", "readme") and pure.parent.name else pure.stem
    words = re.sub(r"[-_\s]+", " ", re.sub(r"^\d+[-_. ]+", "", name)).strip()
    return words[:1].upper() + words[1:] if words else name

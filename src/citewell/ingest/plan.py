"""Compare the walked files with the indexed documents: which files to read, which documents to remove.

Changes nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from citewell.errors import UnreadableFile
from citewell.ingest.parse import read_bytes
from citewell.ingest.read_ahead import Recipe
from citewell.ingest.walk import SourceFile
from citewell.models import KnownDocument, SkippedFile

KEPT_VERSION = "; answers still come from the version that was indexed before"
"""Follows the error of a document that could not be replaced."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an ingest will do.

    `vanished` are paths of documents whose files are gone or skipped now, `not_pruned` those of them that stay
    indexed; `errors` name unreadable files.
    """

    added: tuple[SourceFile, ...]
    changed: tuple[SourceFile, ...]
    unchanged: tuple[SourceFile, ...]
    vanished: tuple[str, ...]
    errors: tuple[str, ...]
    not_pruned: tuple[str, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()

    @property
    def to_read(self) -> tuple[SourceFile, ...]:
        return tuple(sorted((*self.added, *self.changed), key=lambda file: file.path))


def compare(
    files: Sequence[SourceFile], known: Mapping[str, KnownDocument], recipe: Recipe, *, walked: Sequence[Path]
) -> Plan:
    """Sort the files into added, changed and unchanged, and find the documents whose file vanished.

    A file is unchanged if its bytes and the way we parse and chunk them are the same as at the last ingest.
    """
    added: list[SourceFile] = []
    changed: list[SourceFile] = []
    unchanged: list[SourceFile] = []
    errors: list[str] = []
    moved_roots = _find_moved_roots(files, known)
    for file in files:
        document = known.get(file.path)
        if document is None:
            added.append(file)
            continue
        if error := _place_error(file, document, moved_roots):
            errors.append(f"{file.path}: {error}")
            continue
        try:
            # An upload and a file can have the same path. The newer one replaces the other, even with the same text.
            same_kind = bool(document.root) == (file.root is not None)
            is_unchanged = same_kind and document.fingerprint == recipe.fingerprint(file, read_bytes(file.location))
        except UnreadableFile as unreadable:
            errors.append(f"{file.path}: {unreadable}{KEPT_VERSION}")
            continue
        (unchanged if is_unchanged else changed).append(file)
    vanished = _find_vanished(files, known, walked, moved_roots)
    return Plan(tuple(added), tuple(changed), tuple(unchanged), tuple(vanished), tuple(errors))


def _place_error(file: SourceFile, document: KnownDocument, moved_roots: Mapping[str, str]) -> str | None:
    """The error for a document's path that belongs to another file, which still exists."""
    if file.root is None or not document.root:
        return None
    indexed_file = Path(moved_roots.get(document.root, document.root), file.path)
    if indexed_file == file.root / file.path or not indexed_file.is_file():
        return None
    return f"{indexed_file} has the same path in this project; use another --project"


def _find_moved_roots(files: Sequence[SourceFile], known: Mapping[str, KnownDocument]) -> dict[str, str]:
    """Old root → new root, for folders that are the same book in another place (a second checkout).

    Two folders are the same book if more than half of the files of each are in the other.
    """
    files_per_root = Counter(str(file.root) for file in files)
    known_per_root = Counter(document.root for document in known.values())
    shared_paths = Counter(
        (known[file.path].root, str(file.root))
        for file in files
        if file.root and file.path in known and known[file.path].root
    )
    return {
        old: new
        for (old, new), shared in shared_paths.items()
        if old != new and shared * 2 > max(files_per_root[new], known_per_root[old])
    }


def _find_vanished(
    files: Sequence[SourceFile],
    known: Mapping[str, KnownDocument],
    walked: Sequence[Path],
    moved_roots: Mapping[str, str],
) -> Iterator[str]:
    """Paths of documents whose file was not found in a walked folder, or no longer exists elsewhere.

    Uploaded documents never had a file and stay.
    """
    paths = {file.path for file in files}
    folders = [path.resolve() for path in walked]
    for path, document in sorted(known.items()):
        if not document.root:
            continue
        location = Path(moved_roots.get(document.root, document.root), path)
        if path not in paths and (any(map(location.is_relative_to, folders)) or not location.is_file()):
            yield path

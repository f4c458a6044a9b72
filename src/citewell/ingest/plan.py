"""Compare what was found with what is known, and say what an ingest would do. Changes nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from citewell.errors import UnreadableFile
from citewell.ingest.parse import read_bytes
from citewell.ingest.read_ahead import Recipe
from citewell.ingest.walk import SourceFile
from citewell.models import KnownDocument


@dataclass(frozen=True, slots=True)
class Plan:
    """What an ingest will do; `errors` are files that could not even be opened."""

    added: tuple[SourceFile, ...]
    changed: tuple[SourceFile, ...]
    unchanged: tuple[SourceFile, ...]
    vanished: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def to_read(self) -> tuple[SourceFile, ...]:
        return tuple(sorted((*self.added, *self.changed), key=lambda file: file.path))


def plan(
    files: Sequence[SourceFile], known: Mapping[str, KnownDocument], recipe: Recipe, *, walked: Sequence[Path]
) -> Plan:
    """Which files to read anew: those whose bytes, or the way we read them, are not what is known."""
    added: list[SourceFile] = []
    changed: list[SourceFile] = []
    unchanged: list[SourceFile] = []
    errors: list[str] = []
    moved = _moved(files, known)
    for file in files:
        before = known.get(file.path)
        if before is None:
            added.append(file)
            continue
        try:
            _check_place(file, before, moved)
            # Of an upload and a file of the same path the newer stands; with the same words, as what it came as.
            same_kind = bool(before.root) == (file.root is not None)
            same = same_kind and before.fingerprint == recipe.fingerprint(file, read_bytes(file.location))
        except UnreadableFile as error:
            errors.append(f"{file.path}: {error}")
            continue
        (unchanged if same else changed).append(file)
    vanished = _vanished(files, known, walked, moved)
    return Plan(tuple(added), tuple(changed), tuple(unchanged), tuple(vanished), tuple(errors))


def _check_place(file: SourceFile, before: KnownDocument, moved: Mapping[str, str]) -> None:
    if file.root is None or not before.root:
        return
    other = Path(moved.get(before.root, before.root), file.path)
    if other != file.root / file.path and other.is_file():
        raise UnreadableFile(f"{other} has the same path in this project; use another --project")


def _moved(files: Sequence[SourceFile], known: Mapping[str, KnownDocument]) -> dict[str, str]:
    """Folders that are the same book in another place (a second checkout): most files of the one are in the other."""
    files_of = Counter(str(file.root) for file in files)
    known_of = Counter(one.root for one in known.values())
    pairs = Counter(
        (known[file.path].root, str(file.root))
        for file in files
        if file.root and file.path in known and known[file.path].root
    )
    return {
        old: new
        for (old, new), shared in pairs.items()
        if old != new and shared * 2 > max(files_of[new], known_of[old])
    }


def _vanished(
    files: Sequence[SourceFile], known: Mapping[str, KnownDocument], walked: Sequence[Path], moved: Mapping[str, str]
) -> Iterator[str]:
    """Paths that were walked past without finding their file, or whose file is gone with its folder.

    What was uploaded never had a file and stays.
    """
    seen = {file.path for file in files}
    folders = [path.resolve() for path in walked]
    for path, before in sorted(known.items()):
        if not before.root:
            continue
        location = Path(moved.get(before.root, before.root), path)
        if path not in seen and (any(map(location.is_relative_to, folders)) or not location.is_file()):
            yield path

"""Compare what was found with what is known, and say what an ingest would do. Changes nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from citewell.errors import UnreadableFile
from citewell.ingest.load import read_bytes
from citewell.ingest.reading import Recipe
from citewell.ingest.walk import SourceFile
from citewell.models import Known


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


def plan(files: Sequence[SourceFile], known: Mapping[str, Known], recipe: Recipe, *, walked: Sequence[Path]) -> Plan:
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
        other = Path(moved.get(before.root, before.root), file.path)
        try:
            if before.root and other != file.root / file.path and other.is_file():
                raise UnreadableFile(f"{other} has the same path in this project; use another --project")
            same = before.fingerprint == recipe.fingerprint(file, read_bytes(file.location))
        except UnreadableFile as error:
            errors.append(f"{file.path}: {error}")
            continue
        (unchanged if same else changed).append(file)
    vanished = _vanished(files, known, walked, moved)
    return Plan(tuple(added), tuple(changed), tuple(unchanged), tuple(vanished), tuple(errors))


def _moved(files: Sequence[SourceFile], known: Mapping[str, Known]) -> dict[str, str]:
    """Folders that are the same book in another place (a second checkout): most files of the one are in the other."""
    files_of = Counter(str(file.root) for file in files)
    known_of = Counter(one.root for one in known.values())
    pairs = Counter((known[file.path].root, str(file.root)) for file in files if file.path in known)
    return {
        old: new
        for (old, new), shared in pairs.items()
        if old != new and shared * 2 > max(files_of[new], known_of[old])
    }


def _vanished(
    files: Sequence[SourceFile], known: Mapping[str, Known], walked: Sequence[Path], moved: Mapping[str, str]
) -> Iterator[str]:
    """Paths that were walked past without finding their file, or whose file is gone with its folder."""
    seen = {file.path for file in files}
    folders = [path.resolve() for path in walked]
    for path, before in sorted(known.items()):
        location = Path(moved.get(before.root, before.root), path)
        if path not in seen and (any(map(location.is_relative_to, folders)) or not location.is_file()):
            yield path

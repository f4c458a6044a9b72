"""Find the files to ingest. Knows folders and file names; never looks inside a document."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gitignore_parser import parse_gitignore

from citewell.errors import UnreadableFile
from citewell.ingest.parse import SUFFIXES, check_kind

_LEFT_OUT = frozenset(
    {"node_modules", "build", "dist", "_build", "site", "__pycache__", "site-packages", "venv", "target"}
)

Ignores = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, and the path by which the project knows it: relative, with forward slashes.

    `root` is the folder that the path is relative to; none where the path came with an upload and names no file here.
    """

    location: Path
    path: str
    root: Path | None


def walk(
    paths: Sequence[Path], *, known_roots: Collection[str] = (), everything: bool = False
) -> tuple[list[SourceFile], list[str]]:
    """Every readable document under the given files and folders, in sidebar order, and what was wrong.

    A document's path is relative to the folder that was named, so that it is the same on every machine; or to
    the folder above it that was named before, so that a chapter ingested on its own stays the chapter it was.
    Hidden, built and git-ignored files are left out unless `everything` is wanted.
    """
    files: dict[str, SourceFile] = {}
    errors: list[str] = []
    for root in paths:
        try:
            found = [_placed(file, known_roots) for file in _files(root, everything=everything, errors=errors)]
        except UnreadableFile as error:
            errors.append(str(error))
            continue
        if not found:
            errors.append(f"{root}: no file here that can be read ({', '.join(SUFFIXES[:8])}, …)")
        for file in found:
            if (other := files.get(file.path)) and other.location.resolve() != file.location.resolve():
                errors.append(f"{file.location}: {other.location} has the same path; ingest the folder above both")
            else:
                files[file.path] = file
    return [files[path] for path in sorted(files)], errors


def _placed(file: SourceFile, known_roots: Collection[str]) -> SourceFile:
    location = file.location.parent.resolve() / file.location.name
    above = [root for known in known_roots if (root := Path(known)) in location.parents]
    root = min([(file.root or file.location.parent).resolve(), *above], key=lambda one: len(one.parts))
    return SourceFile(file.location, location.relative_to(root).as_posix(), root)


def _files(root: Path, *, everything: bool, errors: list[str]) -> Iterator[SourceFile]:
    if root.is_file():
        try:
            check_kind(root.name)
        except UnreadableFile as error:
            raise UnreadableFile(f"{root}: {error}") from error
        yield SourceFile(root, root.name, root.parent)
        return
    if not root.is_dir():
        raise UnreadableFile(f"{root}: no such file or folder")

    def unreadable(error: OSError) -> None:
        errors.append(f"{error.filename}: cannot be read ({error.strerror})")

    ignores: dict[str, list[Ignores]] = {}
    # Links to folders are not followed: one that points upwards would never end.
    for folder, folders, names in os.walk(root, onerror=unreadable):
        ignored = [] if everything else _ignored_in(folder, ignores.get(os.path.dirname(folder), []))  # noqa: PTH120
        ignores[folder] = ignored
        folders[:] = sorted(name for name in folders if everything or not _left_out(folder, name, ignored))
        for name in sorted(names):
            location = Path(folder, name)
            hidden = name.startswith(".") or any(matches(str(location)) for matches in ignored)
            if location.suffix.lower() in SUFFIXES and (everything or not hidden):
                yield SourceFile(location, location.relative_to(root).as_posix(), root)


def _left_out(folder: str, name: str, ignored: list[Ignores]) -> bool:
    path = os.path.join(folder, name)  # noqa: PTH118
    return name.startswith(".") or name in _LEFT_OUT or any(matches(path) for matches in ignored)


def _ignored_in(folder: str, above: list[Ignores]) -> list[Ignores]:
    """What `.gitignore` files from the root down to this folder leave out."""
    own = Path(folder, ".gitignore")
    return [*above, parse_gitignore(own, base_dir=folder)] if own.is_file() else above

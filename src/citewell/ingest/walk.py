"""Find the files to ingest. Knows folders and file names; never looks inside a file."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from citewell.errors import UnreadableFile

SUFFIXES = (".md", ".mdx")

_LEFT_OUT = frozenset({"node_modules", "build", "dist", "__pycache__", "site-packages", "venv"})


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, and the path by which the project knows it: relative, with forward slashes."""

    location: Path
    path: str


def walk(paths: Sequence[Path]) -> tuple[list[SourceFile], list[str]]:
    """Every readable document under the given files and folders, in sidebar order, and what was wrong.

    A document's path is relative to the folder that was named, so that it is the same on every machine.
    """
    files: dict[str, SourceFile] = {}
    errors: list[str] = []
    for root in paths:
        try:
            found = list(_files(root))
        except UnreadableFile as error:
            errors.append(str(error))
            continue
        if not found:
            errors.append(f"{root}: no {' or '.join(SUFFIXES)} file in this folder")
        for file in found:
            if (other := files.get(file.path)) and other.location.resolve() != file.location.resolve():
                errors.append(f"{file.location}: {other.location} has the same path; ingest the folder above both")
            else:
                files[file.path] = file
    return [files[path] for path in sorted(files)], errors


def _files(root: Path) -> Iterator[SourceFile]:
    if root.is_file():
        if root.suffix.lower() not in SUFFIXES:
            raise UnreadableFile(
                f"{root}: cannot read {root.suffix or 'a file without a suffix'}; readable are {', '.join(SUFFIXES)}"
            )
        yield SourceFile(root, root.name)
        return
    if not root.is_dir():
        raise UnreadableFile(f"{root}: no such file or folder")
    # Links to folders are not followed: one that points upwards would never end.
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LEFT_OUT)
        for name in sorted(names):
            location = Path(folder, name)
            if location.suffix.lower() in SUFFIXES and not name.startswith((".", "_")):
                yield SourceFile(location, location.relative_to(root).as_posix())

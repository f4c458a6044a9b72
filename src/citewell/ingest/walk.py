"""Find the files to ingest. Knows folders and file names; never looks inside a document."""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from citewell.errors import UnreadableFile
from citewell.ingest.parse import SUFFIXES, check_suffix

_SKIPPED_FOLDERS = frozenset(
    {"node_modules", "build", "dist", "_build", "site", "__pycache__", "site-packages", "venv", "target"}
)
_FOLDER_MARK = re.compile(r"/[ \t]*$")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, and its path in the project: relative, with forward slashes.

    `root` is the folder that the path is relative to; None for an upload, whose path names no file on this machine.
    """

    location: Path
    path: str
    root: Path | None


def walk(
    paths: Sequence[Path], *, known_roots: Collection[str] = (), everything: bool = False
) -> tuple[list[SourceFile], list[str]]:
    """Every readable document under the given files and folders, sorted by path, and the errors.

    A document's path is relative to the given folder, so it is the same on every machine. Where a folder above it
    was ingested before (one of `known_roots`), the path is relative to that folder: a chapter ingested alone keeps
    its path. Hidden, built and git-ignored files are skipped unless `everything` is set.
    """
    files: dict[str, SourceFile] = {}
    errors: list[str] = []
    for root in paths:
        try:
            files_here = [
                _relative_to_known_root(file, known_roots)
                for file in _files_under(root, everything=everything, errors=errors)
            ]
        except UnreadableFile as error:
            errors.append(str(error))
            continue
        if not files_here:
            errors.append(f"{root}: no file here that can be read ({', '.join(SUFFIXES[:8])}, …)")
        for file in files_here:
            if (other := files.get(file.path)) and other.location.resolve() != file.location.resolve():
                errors.append(f"{file.location}: {other.location} has the same path; ingest the folder above both")
            else:
                files[file.path] = file
    return [files[path] for path in sorted(files)], errors


def _relative_to_known_root(file: SourceFile, known_roots: Collection[str]) -> SourceFile:
    location = file.location.parent.resolve() / file.location.name
    known_parents = [folder for known in known_roots if (folder := Path(known)) in location.parents]
    own_root = (file.root or file.location.parent).resolve()
    root = min([own_root, *known_parents], key=lambda folder: len(folder.parts))
    return SourceFile(file.location, location.relative_to(root).as_posix(), root)


def _files_under(root: Path, *, everything: bool, errors: list[str]) -> Iterator[SourceFile]:
    if root.is_file():
        try:
            check_suffix(root.name)
        except UnreadableFile as error:
            raise UnreadableFile(f"{root}: {error}") from error
        yield SourceFile(root, root.name, root.parent)
        return
    if not root.is_dir():
        raise UnreadableFile(f"{root}: no such file or folder")

    def report_unreadable(error: OSError) -> None:
        errors.append(f"{error.filename}: cannot be read ({error.strerror})")

    ignore_files = _IgnoreFiles()
    # Links to folders are not followed: a link to a parent folder would never end.
    for folder_name, subfolders, names in os.walk(root, onerror=report_unreadable):
        folder = Path(folder_name)
        if not everything:
            ignore_files.read(folder)
        subfolders[:] = sorted(
            name for name in subfolders if everything or not _skips_folder(folder / name, ignore_files)
        )
        for name in sorted(names):
            location = folder / name
            if location.suffix.lower() not in SUFFIXES:
                continue
            if everything or not (name.startswith(".") or ignore_files.ignores(location)):
                yield SourceFile(location, location.relative_to(root).as_posix(), root)


def _skips_folder(folder: Path, ignore_files: "_IgnoreFiles") -> bool:
    name = folder.name
    return name.startswith(".") or name in _SKIPPED_FOLDERS or ignore_files.ignores(folder, is_folder=True)


@dataclass(frozen=True, slots=True)
class _IgnoreFile:
    """The patterns of one `.gitignore` file, for files and for folders."""

    folder: Path
    for_files: GitIgnoreSpec
    for_folders: GitIgnoreSpec

    @classmethod
    def parse(cls, folder: Path, text: str) -> "_IgnoreFile":
        lines = text.split("\n")
        # pathspec takes `a/` for what is inside `a`. The walk asks about the folder `a` itself, before its files.
        file_lines = [line for line in lines if not _FOLDER_MARK.search(line)]
        folder_lines = [_FOLDER_MARK.sub("", line) for line in lines]
        return cls(folder, _parse_patterns(file_lines), _parse_patterns(folder_lines))

    def ignores(self, path: Path, *, is_folder: bool) -> bool | None:
        """Whether the path is ignored; None where no pattern matches it."""
        spec = self.for_folders if is_folder else self.for_files
        return spec.check_file(path.relative_to(self.folder).as_posix()).include


class _IgnoreFiles:
    """The `.gitignore` files of the walked folders, with git's rules: the one nearest to a path decides.

    The walk never enters an ignored folder, so nothing in one can be included again, as in git.
    """

    def __init__(self) -> None:
        self._by_folder: dict[Path, tuple[_IgnoreFile, ...]] = {}
        """For each walked folder, the `.gitignore` files that apply in it, nearest first."""

    def read(self, folder: Path) -> None:
        inherited = self._by_folder.get(folder.parent, ())
        location = folder / ".gitignore"
        if location.is_file():
            text = location.read_text(encoding="utf-8-sig", errors="surrogateescape")
            self._by_folder[folder] = (_IgnoreFile.parse(folder, text), *inherited)
        else:
            self._by_folder[folder] = inherited

    def ignores(self, path: Path, *, is_folder: bool = False) -> bool:
        verdicts = (file.ignores(path, is_folder=is_folder) for file in self._by_folder[path.parent])
        return next((ignored for ignored in verdicts if ignored is not None), False)


def _parse_patterns(lines: Sequence[str]) -> GitIgnoreSpec:
    """The valid patterns; git passes over the others, and so do we."""
    return GitIgnoreSpec.from_lines([line for line in lines if _is_valid_pattern(line)])


def _is_valid_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True

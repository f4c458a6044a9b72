"""Walk files and folders, and collect the documents among them."""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from citewell.errors import UnreadableFile
from citewell.ingest.parse import SUFFIXES, check_suffix
from citewell.ingest.walk.rules import FileRules, FolderRules
from citewell.models import SkippedFile, SkipReason


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, and its path in the project: relative, with forward slashes.

    `root` is the folder that the path is relative to; None for an upload, whose path names no file on this machine.
    """

    location: Path
    path: str
    root: Path | None


@dataclass(slots=True)
class Walk:
    """The documents sorted by path, what was skipped and why, and the paths that could not be walked."""

    files: list[SourceFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def walk(paths: Sequence[Path], *, known_roots: Collection[str] = (), rules: FileRules | None = None) -> Walk:
    """Every document under the given files and folders.

    A document's path is relative to the given folder, so it is the same on every machine. Where a folder above it
    was ingested before (one of `known_roots`), the path is relative to that folder: a chapter ingested alone keeps
    its path, and the ignore files above it apply. A skipped folder is one entry and is not walked.
    """
    result = Walk()
    files: dict[str, SourceFile] = {}
    walker = _Walker(result, known_roots, rules or FileRules())
    for root in paths:
        try:
            files_here = [_relative_to_known_root(file, known_roots) for file in walker.files_under(root)]
        except UnreadableFile as error:
            result.errors.append(str(error))
            continue
        if not files_here:
            result.errors.append(f"{root}: no file here that can be read ({', '.join(SUFFIXES[:8])}, …)")
        for file in files_here:
            if (other := files.get(file.path)) and other.location.resolve() != file.location.resolve():
                result.errors.append(
                    f"{file.location}: {other.location} has the same path; ingest the folder above both"
                )
            else:
                files[file.path] = file
    result.files = [files[path] for path in sorted(files)]
    return result


def _relative_to_known_root(file: SourceFile, known_roots: Collection[str]) -> SourceFile:
    location = file.location.parent.resolve() / file.location.name
    known_parents = [folder for known in known_roots if (folder := Path(known)) in location.parents]
    own_root = (file.root or file.location.parent).resolve()
    root = min([own_root, *known_parents], key=lambda folder: len(folder.parts))
    return SourceFile(file.location, location.relative_to(root).as_posix(), root)


class _Walker:
    """Finds the documents under one path after another, and notes what it skips."""

    def __init__(self, result: Walk, known_roots: Collection[str], rules: FileRules) -> None:
        self._result = result
        self._known_roots = known_roots
        self._rules = rules

    def files_under(self, root: Path) -> Iterator[SourceFile]:
        if root.is_file():
            yield from self._named_file(root)
        elif root.is_dir():
            yield from self._files_in_folder(root)
        else:
            raise UnreadableFile(f"{root}: no such file or folder")

    def _named_file(self, file: Path) -> Iterator[SourceFile]:
        """A file that is given by name is a document unless `--exclude` names it, too."""
        try:
            check_suffix(file.name)
        except UnreadableFile as error:
            raise UnreadableFile(f"{file}: {error}") from error
        if FolderRules(file.parent, self._rules).excludes(file):
            self._skip(file, "excluded by --exclude")
        else:
            yield SourceFile(file, file.name, file.parent)

    def _files_in_folder(self, root: Path) -> Iterator[SourceFile]:
        top = root.resolve()
        rules = FolderRules(top, self._rules)
        for parent in self._known_parents(top):
            rules.enter(parent)
        # Links to folders are not followed: a link to a parent folder would never end.
        for folder_name, subfolders, names in os.walk(top, onerror=self._report_unreadable):
            folder = Path(folder_name)
            rules.enter(folder)
            reasons = {name: rules.skip_folder(folder / name) for name in subfolders}
            subfolders[:] = sorted(name for name, reason in reasons.items() if reason is None)
            for name, folder_reason in sorted(reasons.items()):
                if folder_reason:
                    self._skip(root / (folder / name).relative_to(top), folder_reason, mark="/")
            for name in sorted(names):
                path = (folder / name).relative_to(top)
                if reason := rules.skip_file(folder / name):
                    self._skip(root / path, reason)
                else:
                    yield SourceFile(root / path, path.as_posix(), root)

    def _known_parents(self, folder: Path) -> Iterator[Path]:
        """The folders above this one, from the topmost that was ingested before."""
        known = [parent for parent in folder.parents if str(parent) in self._known_roots]
        return reversed(folder.parents[: folder.parents.index(known[-1]) + 1]) if known else iter(())

    def _skip(self, location: Path, reason: SkipReason, *, mark: str = "") -> None:
        if location.name not in (".gitignore", ".citewellignore"):
            self._result.skipped.append(SkippedFile(f"{location.as_posix()}{mark}", reason))

    def _report_unreadable(self, error: OSError) -> None:
        self._result.errors.append(f"{error.filename}: cannot be read ({error.strerror})")

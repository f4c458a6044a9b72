"""Patterns in the syntax of `.gitignore`, and the ignore files of the walked folders."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

_FOLDER_MARK = re.compile(r"/[ \t]*$")


@dataclass(frozen=True, slots=True)
class Match:
    """The pattern that decides about a path, and whether it ignores the path; `!` in front includes it again."""

    pattern: str
    ignored: bool

    def names(self, folder: str) -> bool:
        """Whether the pattern contains the folder's name, as `!build/` does and `!*/` does not."""
        return folder in segments(self.pattern)


def segments(pattern: str) -> list[str]:
    """The names that a pattern is made of: "!docs/**/*.md" -> ["docs", "**", "*.md"]."""
    return pattern.strip().removeprefix("!").strip("/").split("/")


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns that are relative to a folder; the last one that matches a path decides."""

    folder: Path
    lines_for_files: Sequence[str]
    lines_for_folders: Sequence[str]
    for_files: GitIgnoreSpec
    for_folders: GitIgnoreSpec

    @classmethod
    def parse(cls, folder: Path, lines: Sequence[str]) -> "Patterns":
        valid = [line for line in lines if is_pattern(line)]  # git passes over the others, and so do we
        # pathspec takes `a/` for what is inside `a`. The walk asks about the folder `a` itself, before its files.
        for_files = [line for line in valid if not _FOLDER_MARK.search(line)]
        for_folders = [_FOLDER_MARK.sub("", line) for line in valid]
        specs = GitIgnoreSpec.from_lines(for_files), GitIgnoreSpec.from_lines(for_folders)
        return cls(folder, for_files, for_folders, *specs)

    def match(self, path: Path, *, is_folder: bool = False) -> Match | None:
        """The pattern that decides about a path; None where none matches."""
        spec = self.for_folders if is_folder else self.for_files
        lines = self.lines_for_folders if is_folder else self.lines_for_files
        result = spec.check_file(path.relative_to(self.folder).as_posix())
        return None if result.index is None else Match(lines[result.index], bool(result.include))


class IgnoreFiles:
    """The ignore files of one name, such as `.gitignore`, with git's rules: the one nearest to a path decides.

    The walk never enters an ignored folder, so nothing in one can be included again, as in git.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._by_folder: dict[Path, tuple[Patterns, ...]] = {}
        """For each walked folder, the patterns that apply in it, nearest first."""

    def read(self, folder: Path) -> None:
        inherited = self._by_folder.get(folder.parent, ())
        location = folder / self.name
        if location.is_file():
            text = location.read_text(encoding="utf-8-sig", errors="surrogateescape")
            self._by_folder[folder] = (Patterns.parse(folder, text.split("\n")), *inherited)
        else:
            self._by_folder[folder] = inherited

    def match(self, path: Path, *, is_folder: bool = False) -> Match | None:
        matches = (patterns.match(path, is_folder=is_folder) for patterns in self._by_folder.get(path.parent, ()))
        return next((match for match in matches if match is not None), None)


def is_pattern(line: str) -> bool:
    """Whether a line is a pattern that can match something: no comment, not blank, not invalid."""
    try:
        spec = GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return any(pattern.include is not None for pattern in spec.patterns)

"""Which of the files under a folder are documents, and for what reason the others are skipped."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec

from citewell.errors import SettingsError
from citewell.ingest.parse import SUFFIXES
from citewell.ingest.walk.ignore_files import IgnoreFiles, Patterns, is_pattern, segments
from citewell.models import SkipReason

_BUILT_FOLDERS = frozenset({
    "node_modules", "bower_components", "build", "dist", "_build", "_sources", "_next", "site", "target", "htmlcov",
    "__pycache__", "site-packages", "venv",
})  # fmt: skip
_PAGE_ASSETS = frozenset({".css", ".js", ".jsx", ".map"})
_GENERATED = GitIgnoreSpec.from_lines([
    "*.min.*", "*.bundle.*", "*.chunk.js", "*.generated.*", "*.d.ts", "*_pb2.py", "*_pb2_grpc.py", "*.pb.go",
    "*.lock", "*-lock.json", "*-lock.yaml", "npm-shrinkwrap.json", "go.sum", "requirements*.txt", "*.lock.txt",
    "sitemap*.xml", "robots.txt", "llms.txt", "llms-full.txt", "genindex*.html", "py-modindex.html", "searchindex.js",
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileRules:
    """What an author decides about the files of a folder: patterns in the syntax of `.gitignore`.

    `everything` also takes hidden, built, generated and git-ignored files, and the scripts and style sheets of pages.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    everything: bool = False

    def __post_init__(self) -> None:
        for pattern in (*self.include, *self.exclude):
            if not is_pattern(pattern):
                raise SettingsError(f"{pattern!r} is not a pattern such as 'drafts/' or '*.md'")


class FolderRules:
    """The rules for one walked folder, with the ignore files that are found on the way.

    The order is: `--exclude`, what is never a document, `--include`, `.citewellignore`, `.gitignore`. A default is
    overruled only by a pattern that names what it skips: `!build/` or `*.js`, but not `!*/` or `docs/**`.
    """

    def __init__(self, root: Path, rules: FileRules) -> None:
        self._root = root
        self._everything = rules.everything
        self._excluded = Patterns.parse(root, rules.exclude)
        self._include = rules.include
        self._included = GitIgnoreSpec.from_lines(rules.include)
        self._own_ignores = IgnoreFiles(".citewellignore")
        self._git_ignores = IgnoreFiles(".gitignore")

    def enter(self, folder: Path) -> None:
        """Read the ignore files of a folder; its parent must have been entered before."""
        self._own_ignores.read(folder)
        if not self._everything:
            self._git_ignores.read(folder)

    def excludes(self, file: Path) -> bool:
        """Whether `--exclude` names the file: the only rule for a file that is given by name."""
        match = self._excluded.match(file)
        return match is not None and match.ignored

    def skip_folder(self, folder: Path) -> SkipReason | None:
        """Why the folder is not walked; None if it is."""
        excluded = self._excluded.match(folder, is_folder=True)
        if excluded and excluded.ignored:
            return "excluded by --exclude"
        if folder.is_symlink():
            return "a link to a folder"
        own = self._own_ignores.match(folder, is_folder=True)
        if own and own.ignored:
            return "ignored by .citewellignore"
        if self._everything or (own and own.names(folder.name)):
            return None
        git = self._git_ignores.match(folder, is_folder=True)
        if git and git.ignored:
            return "ignored by .gitignore"
        default = _skips_folder_name(folder.name)
        named = any(folder.name in segments(pattern) for pattern in self._include)
        return None if named else default

    def skip_file(self, file: Path) -> SkipReason | None:
        """Why the file is not a document; None if it is one."""
        default = None if self._everything else _skips_file_name(file.name)
        if file.suffix.lower() not in SUFFIXES:  # first: most files of a site are pictures
            return default or "not supported"
        if self.excludes(file):
            return "excluded by --exclude"
        if self._include and not self._included.match_file(file.relative_to(self._root).as_posix()):
            return "not matched by --include"
        own = self._own_ignores.match(file)
        if own and own.ignored:
            return "ignored by .citewellignore"
        if default and not (own and _overrules(own.pattern, default)) and not self._included_by_kind(file, default):
            return default
        git = None if self._everything or own else self._git_ignores.match(file)
        return "ignored by .gitignore" if git and git.ignored else None

    def _included_by_kind(self, file: Path, default: SkipReason) -> bool:
        """Whether an `--include` pattern matches the file and names its kind, as `*.js` does."""
        path = file.relative_to(self._root).as_posix()
        kinds = [pattern for pattern in self._include if _overrules(pattern, default)]
        return any(GitIgnoreSpec.from_lines([pattern]).match_file(path) for pattern in kinds)


def _overrules(pattern: str, default: SkipReason) -> bool:
    """Whether a pattern names what a default skips: its last part, read as a name, would be skipped likewise."""
    return _skips_file_name(segments(pattern)[-1]) == default


def _skips_folder_name(name: str) -> SkipReason | None:
    if name.startswith("."):
        return "hidden"
    return "build output" if name in _BUILT_FOLDERS or name.endswith(".egg-info") else None


def _skips_file_name(name: str) -> SkipReason | None:
    if name.startswith("."):
        return "hidden"
    if _GENERATED.match_file(name):
        return "generated"
    return "not documents" if PurePosixPath(name).suffix.lower() in _PAGE_ASSETS else None

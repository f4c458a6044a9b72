"""The files that a Markdown page includes: `{* ../../docs_src/app.py ln[1:9] hl[3] *}` is a code block with that file.

A page may only include files of the folder that is ingested: no link and no `..` leads out of it.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from citewell.text import FENCE, closes_fence

_INCLUDE = re.compile(
    r"(?P<indent>[ \t>]*)\{(?:\*[ \t]*(?P<target>[^\s*{}]+)(?P<options>(?:[ \t]+\w+\[[^\]\n]*\])*)[ \t]*\*"
    r"|![> \t]*(?P<old_target>[^\s!{}]+)[ \t]*!)\}[ \t]*"
)
_LINES_OPTION = re.compile(r"\bln\[([^\]]*)\]")
_LANGUAGES = {".py": "python", ".sh": "bash", ".yml": "yaml", ".md": "markdown", ".txt": "text", ".rs": "rust"}
_SUFFIXES = frozenset({
    *(".py", ".md", ".txt", ".sh", ".js", ".jsx", ".ts", ".tsx", ".json", ".toml", ".yaml", ".yml", ".html", ".css"),
    *(".c", ".cc", ".cpp", ".h", ".hpp", ".cs", ".go", ".java", ".kt", ".php", ".rb", ".rs", ".sql", ".swift"),
})  # fmt: skip
_MAX_LINE_CHARACTERS = 500
_MAX_FILE_BYTES = 200_000
_MAX_FILES = 100


@dataclass(frozen=True, slots=True)
class Includes:
    """The files that a page at `location` may include; all are under `root`. None includes nothing: an upload."""

    location: Path
    root: Path | None

    def read(self, target: str) -> str | None:
        """The text of an included file; None if there is none under the root, or none that may be included.

        The target is relative to the page's folder or, as MkDocs resolves it, to a folder above.
        """
        if self.root is None:
            return None
        root, folder = self.root.resolve(), self.location.parent.resolve()
        folders = [folder, *(parent for parent in folder.parents if parent.is_relative_to(root))]
        return next((text for folder in folders if (text := _read_file(folder / target, root)) is not None), None)

    def digest(self, content: bytes) -> str:
        """Changes when an included file does; "" for a page that includes nothing."""
        if b"{*" not in content and b"{!" not in content:
            return ""
        lines = content.decode("utf-8", "replace").splitlines()
        targets = [found["target"] or found["old_target"] for line in lines if (found := _match(line))]
        if not targets:
            return ""
        texts = (f"{target}\0{self.read(target)}\0" for target in dict.fromkeys(targets[:_MAX_FILES]))
        return hashlib.sha256("".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Expanded:
    """A source with its included files; `lines` has the line of the page for each line, `missing` what is not there."""

    source: str
    lines: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()


def expand_includes(source: str, includes: Includes | None) -> Expanded:
    """The source with each include made a code block, or made blank where the file may not or cannot be read."""
    if "{*" not in source and "{!" not in source:
        return Expanded(source)
    lines: list[str] = []
    numbers: list[int] = []
    missing: list[str] = []
    fence = ""
    files = 0
    for number, line in enumerate(source.split("\n"), start=1):
        found = _match(line)
        if found is None:
            lines.append(line)
            numbers.append(number)
            if fence:
                fence = "" if closes_fence(line, fence) else fence
            elif opening := FENCE.match(line):
                fence = opening["fence"]
            continue
        target = found["target"] or found["old_target"]
        files += 1
        text = includes.read(target) if includes and files <= _MAX_FILES else None
        if text is None:
            missing.append(target)
            included = [""]
        else:
            chosen = _chosen_lines(text, found["options"] or "")
            included = chosen if fence else [f"{found['indent']}{line}" for line in _fenced(chosen, target)]
        lines += included
        numbers += [number] * len(included)
    return Expanded("\n".join(lines), tuple(numbers), tuple(dict.fromkeys(missing)))


def _match(line: str) -> re.Match[str] | None:
    is_candidate = len(line) <= _MAX_LINE_CHARACTERS and ("{*" in line or "{!" in line)
    return _INCLUDE.fullmatch(line) if is_candidate else None


def _read_file(location: Path, root: Path) -> str | None:
    try:
        file = location.resolve(strict=True)
        if not file.is_relative_to(root) or file.suffix.lower() not in _SUFFIXES or not file.is_file():
            return None
        if any(part.startswith(".") for part in file.relative_to(root).parts) or file.stat().st_size > _MAX_FILE_BYTES:
            return None
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, RuntimeError, ValueError):  # also a loop of links, a NUL in the name, bytes that are not UTF-8
        return None
    return None if "\0" in text else text


def _chosen_lines(text: str, options: str) -> list[str]:
    """The lines that the option `ln[2:5,9]` names; all lines without it."""
    lines = text.expandtabs(4).rstrip().split("\n")
    if not (chosen := _LINES_OPTION.search(options)):
        return lines
    spans = [span.partition(":") for span in chosen[1].split(",")]
    wanted = {number for first, _, last in spans for number in _numbers(first, last or first, len(lines))}
    return [line for number, line in enumerate(lines, start=1) if number in wanted] or lines


def _numbers(first: str, last: str, count: int) -> Iterator[int]:
    if first.strip().isdecimal() and last.strip().isdecimal():
        yield from range(int(first), min(int(last), count) + 1)


def _fenced(lines: list[str], target: str) -> list[str]:
    fence = "`" * max(3, 1 + max((len(ticks) for line in lines for ticks in re.findall("`+", line)), default=0))
    suffix = Path(target).suffix.lower()
    return [f"{fence}{_LANGUAGES.get(suffix, suffix[1:])}", *lines, fence]

"""Every path, module, command, `make` target and setting that documentation or a docstring names exists.

History files (the changelog, the log, the decisions) may name what is gone: `name` (removed), or (before: `name`).
"""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from citewell.cli import main
from citewell.settings import Settings, variable

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "citewell"
BASES = (ROOT, ROOT / "src", PACKAGE, ROOT / "widget" / "src")
TOP_FOLDERS = ("src", "tests", "benchmarks", "docs", "widget", "examples")

PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/*/*.md", "benchmarks/**/*.md", "widget/*.md")
    for page in ROOT.glob(pattern)
)
SOURCES = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "docs")
    for path in (ROOT / folder).rglob("*.py")
    if path.is_file()
)

# Examples of what a user has on disk, not files of this repository.
NOT_OURS = {
    ".citewell/",
    "03-motion/",
    "docs/guide/pumps.mdx",
    "index/",
}

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n\s*\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
_GONE = re.compile(r"`[^`]+`\s+\(removed\)|\(before:\s[^)]*\)")
_PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
_BARE_PATH = re.compile(rf"(?<![\w/.-])(?:{'|'.join(TOP_FOLDERS)})/[\w./-]*\w\.\w+")
_ANCHOR = re.compile(r"\]\(([^)#\s:]*)#([^)\s]+)\)")
_MODULE = re.compile(r"citewell(?:\.[a-z_]\w*)+")
_COMMAND = re.compile(r"(?:^|[\s/(])citewell +(?P<rest>[^\n;)]*)")
_MAKE = re.compile(r"(?:^|\s)make +([a-z]+)")
_VARIABLE = re.compile(r"\bCITEWELL_[A-Z_]*[A-Z]\b")


@cache
def file_names() -> frozenset[str]:
    folders = (PACKAGE, ROOT / "widget", ROOT / "tests", ROOT / "benchmarks", ROOT / "docs")
    return frozenset(
        path.name for folder in folders for path in folder.rglob("*.*") if "node_modules" not in path.parts
    )


@cache
def code_folders() -> frozenset[str]:
    """Names with which the path of a file of this repository may begin."""
    return frozenset(TOP_FOLDERS) | {folder.name for folder in PACKAGE.iterdir() if folder.is_dir()}


@cache
def make_targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@cache
def variables() -> frozenset[str]:
    return frozenset(variable(name) for name in Settings.model_fields)


def is_path(text: str) -> bool:
    """Whether a piece of code is meant as the path of a file or folder of this repository."""
    if not _PATH.fullmatch(text) or text in NOT_OURS:
        return False
    first, slash, _ = text.partition("/")
    return text.endswith((".py", ".ts", "/")) or bool(slash and first in code_folders())


def path_exists(text: str, beside: Path) -> bool:
    if "/" not in text:
        return text in file_names()
    return any(next(base.glob(text.rstrip("/")), None) for base in (*BASES, *beside.parents[:2]))


def module_exists(dotted: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        try:
            if find_spec(name) is None:
                continue
        except ModuleNotFoundError:
            continue
        found: object = importlib.import_module(name) if length < len(parts) else None
        for attribute in parts[length:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def command_faults(rest: str) -> Iterator[str]:
    """What follows `citewell`: commands and options that do not exist."""
    words, command, name = rest.split(), main, "citewell"
    while words and isinstance(command, click.Group) and re.fullmatch(r"[a-z|]+", words[0]):
        chosen = [command.commands.get(word) for word in words[0].split("|")]
        if None in chosen:
            yield f"{name} {words[0]}"
            return
        name, command = f"{name} {words.pop(0)}", chosen[0]  # type: ignore[assignment]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "--version", "-h"}
    for option in re.findall(r"(?<!\S)[\[(]?(--[a-z-]+)", " ".join(words)):
        if option not in known:
            yield f"{name} {option}"


def code_faults(code: str, *, beside: Path) -> Iterator[str]:
    """What a piece of code, a span or a line of a shell, names and does not exist."""
    word = code.split(maxsplit=1)[0] if code.strip() else ""
    path = re.sub(r":\d+$", "", word)
    if is_path(path) and not path_exists(path, beside):
        yield path
    if _MODULE.fullmatch(word) and not word.endswith((".db", ".git")) and not module_exists(word):
        yield word
    for match in _COMMAND.finditer(code):
        yield from command_faults(match["rest"])
    yield from (f"make {target}" for target in _MAKE.findall(code) if target not in make_targets())
    yield from (name for name in _VARIABLE.findall(code) if name not in variables())


def page_faults(text: str, *, beside: Path) -> list[str]:
    """What a page of Markdown names and does not exist."""
    text = _GONE.sub("", text)
    found: list[str] = []
    for kind, block in _BLOCK.findall(text):
        if kind in ("bash", "console"):
            for line in block.splitlines():
                found += code_faults(re.sub(r"(^|\s)#\s.*", "", line.removeprefix("$ ")), beside=beside)
    prose = _BLOCK.sub("", text)
    for _, span in _SPAN.findall(prose):
        found += code_faults(" ".join(span.split()), beside=beside)
    found += [target for target in _LINK.findall(prose) if not (beside.parent / target).exists()]
    found += [path for path in _BARE_PATH.findall(_SPAN.sub(" ", prose)) if not path_exists(path, beside)]
    return found


def docstrings(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def docstring_faults(text: str, *, beside: Path) -> list[str]:
    found = [fault for _, span in _SPAN.findall(text) for fault in code_faults(span, beside=beside)]
    return found + [path for path in _BARE_PATH.findall(text) if path not in NOT_OURS and not path_exists(path, beside)]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_headings_that_exist(page: Path) -> None:
    for target, anchor in _ANCHOR.findall(page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_only_what_exists(page: Path) -> None:
    assert page_faults(page.read_text(encoding="utf-8"), beside=page) == []


def test_docstrings_name_only_what_exists() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): faults
        for path in SOURCES
        for text in docstrings(path.read_text(encoding="utf-8"))
        if (faults := docstring_faults(text, beside=path))
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "See `answer/nowhere.py`.",
        "See `nowhere.py`.",
        "See `answer/nowhere/`.",
        "See `tests/nowhere`.",
        "See docs/nowhere.md.",
        "See [the page](nowhere.md).",
        "See `citewell.nowhere`.",
        "Run `citewell fly`.",
        "Run `citewell documents fly`.",
        "Run `citewell ask --fly`.",
        "Run `make nothing`.",
        "Set `CITEWELL_NOTHING=1`.",
        "```bash\ncitewell fly  # to the moon\n```\n",
        "```console\n$ make nothing\n```\n",
    ],
)
def test_what_does_not_exist_is_found(text: str) -> None:
    assert page_faults(text, beside=ROOT / "README.md")


@pytest.mark.parametrize(
    "text",
    [
        "See `answer/flow.py:12`, `flow.py`, `answer/`, `docs/*.md` and `tests/conftest.py`.",
        "See `citewell.client.Client` and docs/log.md.",
        "Run `citewell documents list|show|delete`, `citewell doctor [--fix]` and `CITEWELL_PORT=8001 make run`.",
        "It was `answer/nowhere.py` (removed), now another (before: `citewell.nowhere`).",
        '```bash\ncitewell ask "Why?" --json  # make nothing of it\n```\n',
    ],
)
def test_what_exists_or_is_marked_as_gone_is_not(text: str) -> None:
    assert page_faults(text, beside=ROOT / "README.md") == []

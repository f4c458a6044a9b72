"""The syntax of reStructuredText lines: headings, labels, directives, and how the page shows each. Pure.

The directives are those of docutils, Sphinx and sphinx-design. An unknown one keeps its argument and its body,
since losing text is worse than showing a stray word.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from citewell.ingest.readers.markdown import without_emphasis
from citewell.ingest.readers.rst.inline import Targets, label_key, render_inline

Treatment = Literal[
    "code", "math", "remove", "list-table", "csv", "names", "body", "title", "object", "version", "text"
]
"""How to handle a directive. The first six consume its lines. The body of the others is parsed like any text; the
argument is dropped (body), stands alone before it (title, object) or begins it (version, text)."""

ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*")
TARGET = re.compile(r"\.\. +_(?P<name>`[^`]+`|(?:[^:\\]|\\.|:(?!\s|$))+):(?:\s+(?P<url>.*))?$")
NOTE = re.compile(r"\.\. +(?P<label>\[[\w#*][\w#.:+-]*\])(?: +|$)(?P<words>.*)$")
SUBSTITUTION = re.compile(r"\.\. +\|[^|]+\| ")
DIRECTIVE = re.compile(r"\.\. +(?P<name>[A-Za-z](?:[\w.+-]|:(?!:))*) ?::(?: +(?P<argument>.*))?$")
OPTION = re.compile(r":(?P<name>[A-Za-z][\w -]{0,60}):(?: +(?P<value>.*))?$")

_LINK = re.compile(r"\[([^\[\]]{1,300})\]\([^()\s]{1,300}\)")
_MAX_TITLE_CHARACTERS = 500

_CODE = frozenset(
    {
        *("code-block", "code", "sourcecode", "parsed-literal", "testcode", "testoutput", "doctest", "prompt"),
        *("literalinclude", "jupyter-execute", "ipython", "productionlist", "mermaid", "graphviz", "digraph", "graph"),
        *("uml", "plantuml", "highlight-block", "terminal"),
    }
)
_REMOVED = frozenset(
    {
        *("meta", "toctree", "raw", "include", "contents", "currentmodule", "module", "highlight", "index", "tags"),
        *("sectionauthor", "codeauthor", "default-role", "role", "tabularcolumns", "testsetup", "testcleanup"),
        *("sectnum", "header", "footer", "default-domain", "default-literal-role", "title", "bibliography"),
    }
)
_BODY_ONLY = frozenset(
    {
        *("image", "figure", "grid", "grid-item", "tab-set", "tabs", "tab-set-code", "only", "ifconfig", "container"),
        *("card-carousel", "rst-class", "cssclass", "glossary", "hlist", "compound", "button-ref", "button-link"),
        *("video", "youtube"),
    }
)
_TITLED = frozenset(
    {
        *("admonition", "topic", "sidebar", "tab-item", "tab", "group-tab", "code-tab", "dropdown", "details", "card"),
        *("grid-item-card", "rubric", "centered", "collapse", "table"),
    }
)
_SPECIAL: Mapping[str, Treatment] = {
    "math": "math",
    "list-table": "list-table",
    "csv-table": "csv",
    "autosummary": "names",
    "click": "object",
}
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}
_PYTHON = frozenset({"testcode", "doctest", "ipython", "jupyter-execute"})


def treatment_of(name: str, options: Mapping[str, str]) -> Treatment:
    """How to handle a directive. Code with `:hide:` is only run by the tests of the docs, so it is removed."""
    if "hide" in options or name in _REMOVED:
        return "remove"
    if name in _CODE:
        return "code"
    if name in _VERSIONS:
        return "version"
    if name in _BODY_ONLY:
        return "body"
    if name in _TITLED:
        return "title"
    return _SPECIAL.get(name, "object" if name.startswith("auto") else "text")


def language_of(name: str, argument: str) -> str:
    """The language of a code block: the first word of the argument, unless that names a group of tests."""
    if name in _PYTHON:
        return "python"
    if name in ("code-block", "code", "sourcecode"):
        return re.sub(r"[^\w+#.-]", "", argument.partition(" ")[0])
    return name if name in ("mermaid", "graphviz") else ""


def with_colon(title: str) -> str:
    """A title with a colon after it, unless it ends with punctuation."""
    return f"{title}:" if title and title[-1] not in ".:;,!?…。：！？" else title


def version_text(name: str, argument: str, *, has_body: bool) -> str:
    """versionadded, "2.1 A pump." -> "Added in version 2.1: A pump." """
    version, _, words = argument.partition(" ")
    end = f": {words}".rstrip() if words or has_body else "."
    return f"{_VERSIONS[name]} {version}{end}"


@dataclass(frozen=True, slots=True)
class Heading:
    title: str
    style: tuple[str, bool]
    """The adornment character, and whether there is an overline too: each new style is a new level."""
    line: int
    end: int


def is_markup(stripped: str) -> bool:
    """Whether a stripped line begins explicit markup: a directive, target, footnote or comment."""
    return stripped == ".." or stripped.startswith(".. ")


def heading_at(lines: Sequence[str], line: int) -> Heading | None:
    """The heading that begins at this line: a title with an underline, or with an overline too. None if none does."""
    first, second, third = (
        lines[number].rstrip() if number < len(lines) else "" for number in (line, line + 1, line + 2)
    )
    if ADORNMENT.fullmatch(first):
        title = second.strip()
        if _underlines(third, title) and third[:1] == first[:1] and not ADORNMENT.fullmatch(title):
            return Heading(title, (first[0], True), line + 1, line + 3)
    elif _underlines(second, first.strip()):
        return Heading(first.strip(), (second[0], False), line, line + 2)
    return None


def _underlines(adornment: str, title: str) -> bool:
    """Whether the adornment underlines the title; four characters are enough, as in docutils."""
    return bool(title) and len(adornment) >= min(len(title), 4) and bool(ADORNMENT.fullmatch(adornment))


def targets_of(lines: Sequence[str]) -> Targets:
    """The targets of the file's labels: the title of the section right after a label, or a URL."""
    titles: dict[str, str] = {}
    links: dict[str, str] = {}
    pending: list[str] = []
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith(".. _") and (target := TARGET.match(stripped)):
            if target["url"]:
                links[label_key(target["name"])] = target["url"].strip()
            else:
                pending.append(label_key(target["name"]))
        elif pending and stripped and line[0] != " " and not is_markup(stripped):
            if heading := heading_at(lines, number):
                titles.update(dict.fromkeys(pending, plain_title(render_inline(heading.title, Targets()))))
            pending = []
    return Targets(titles, links)


def plain_title(words: str) -> str:
    """A heading without links and emphasis."""
    return without_emphasis(_LINK.sub(r"\1", words)) if len(words) <= _MAX_TITLE_CHARACTERS else words


def sphinx_id(name: str) -> str:
    """A heading's id as docutils makes it: "Map & filter" -> "map-filter"."""
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    return re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", plain))

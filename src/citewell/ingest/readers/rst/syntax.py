"""What a line of reStructuredText marks: a heading, a label, a directive, and how the page shows each. Pure.

Names of directives are those of docutils, Sphinx and sphinx-design. One that is not known here keeps its
argument and its body, since losing words is worse than showing a stray one.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from citewell.ingest.readers.markdown import without_emphasis
from citewell.ingest.readers.rst.inline import Targets, label_key, shown

Treatment = Literal["code", "math", "gone", "listed", "csv", "names", "bare", "title", "object", "version", "text"]
"""What becomes of a directive. The first six take its lines; of the others the body is read like any text,
and the argument goes (bare), stands alone before it (title, object) or begins it (version, text)."""

ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*")
TARGET = re.compile(r"\.\. +_(?P<name>`[^`]+`|(?:[^:\\]|\\.|:(?!\s|$))+):(?:\s+(?P<address>.*))?$")
NOTE = re.compile(r"\.\. +(?P<label>\[[\w#*][\w#.:+-]*\])(?: +|$)(?P<words>.*)$")
SUBSTITUTION = re.compile(r"\.\. +\|[^|]+\| ")
DIRECTIVE = re.compile(r"\.\. +(?P<name>[A-Za-z](?:[\w.+-]|:(?!:))*) ?::(?: +(?P<argument>.*))?$")
OPTION = re.compile(r":(?P<name>[A-Za-z][\w -]{0,60}):(?: +(?P<value>.*))?$")

_LINK = re.compile(r"\[([^\[\]]{1,300})\]\([^()\s]{1,300}\)")
_LONGEST_TITLE = 500

_CODE = frozenset(
    {
        *("code-block", "code", "sourcecode", "parsed-literal", "testcode", "testoutput", "doctest", "prompt"),
        *("literalinclude", "jupyter-execute", "ipython", "productionlist", "mermaid", "graphviz", "digraph", "graph"),
        *("uml", "plantuml", "highlight-block", "terminal"),
    }
)
_GONE = frozenset(
    {
        *("meta", "toctree", "raw", "include", "contents", "currentmodule", "module", "highlight", "index", "tags"),
        *("sectionauthor", "codeauthor", "default-role", "role", "tabularcolumns", "testsetup", "testcleanup"),
        *("sectnum", "header", "footer", "default-domain", "default-literal-role", "title", "bibliography"),
    }
)
_BARE = frozenset(
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
_OWN: Mapping[str, Treatment] = {
    "math": "math",
    "list-table": "listed",
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
    """How the page shows a directive; `:hide:` code is run by the tests of the docs and shown to nobody."""
    if "hide" in options or name in _GONE:
        return "gone"
    if name in _CODE:
        return "code"
    if name in _VERSIONS:
        return "version"
    if name in _BARE:
        return "bare"
    if name in _TITLED:
        return "title"
    return _OWN.get(name, "object" if name.startswith("auto") else "text")


def language_of(name: str, argument: str) -> str:
    """The language after the fence: the argument's first word, except where that names a group of tests."""
    if name in _PYTHON:
        return "python"
    if name in ("code-block", "code", "sourcecode"):
        return re.sub(r"[^\w+#.-]", "", argument.partition(" ")[0])
    return name if name in ("mermaid", "graphviz") else ""


def announcing(title: str) -> str:
    """A title that stands before its text, with a colon where it does not end with a sign of its own."""
    return f"{title}:" if title and title[-1] not in ".:;,!?…。：！？" else title


def version_words(name: str, argument: str, *, has_body: bool) -> str:
    """versionadded, "2.1 A pump." -> "Added in version 2.1: A pump." """
    version, _, words = argument.partition(" ")
    end = f": {words}".rstrip() if words or has_body else "."
    return f"{_VERSIONS[name]} {version}{end}"


@dataclass(frozen=True, slots=True)
class Heading:
    title: str
    style: tuple[str, bool]
    """Its adornment, and whether there is one above the title too: a new style is a new level."""
    line: int
    end: int


def is_markup(bare: str) -> bool:
    return bare == ".." or bare.startswith(".. ")


def heading_at(lines: Sequence[str], line: int) -> Heading | None:
    """The heading whose first line this is: a title over a row of one sign, or between two."""
    first, second, third = (lines[at].rstrip() if at < len(lines) else "" for at in (line, line + 1, line + 2))
    if ADORNMENT.fullmatch(first):
        title = second.strip()
        if _underlines(third, title) and third[:1] == first[:1] and not ADORNMENT.fullmatch(title):
            return Heading(title, (first[0], True), line + 1, line + 3)
    elif _underlines(second, first.strip()):
        return Heading(first.strip(), (second[0], False), line, line + 2)
    return None


def _underlines(adornment: str, title: str) -> bool:
    """A row shorter than its title counts from four signs on, as docutils has it."""
    return bool(title) and len(adornment) >= min(len(title), 4) and bool(ADORNMENT.fullmatch(adornment))


def targets_of(lines: Sequence[str]) -> Targets:
    """What the labels of the file name: the section right after them, or an address."""
    titles: dict[str, str] = {}
    links: dict[str, str] = {}
    waiting: list[str] = []
    for place, line in enumerate(lines):
        bare = line.strip()
        if bare.startswith(".. _") and (target := TARGET.match(bare)):
            if target["address"]:
                links[label_key(target["name"])] = target["address"].strip()
            else:
                waiting.append(label_key(target["name"]))
        elif waiting and bare and line[0] != " " and not is_markup(bare):
            if heading := heading_at(lines, place):
                titles.update(dict.fromkeys(waiting, plain_title(shown(heading.title, Targets()))))
            waiting = []
    return Targets(titles, links)


def plain_title(words: str) -> str:
    return without_emphasis(_LINK.sub(r"\1", words)) if len(words) <= _LONGEST_TITLE else words


def id_of(name: str) -> str:
    """An id as docutils makes it: "Map & filter" -> "map-filter"."""
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    return re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", plain))

"""Where the target of a Markdown link or definition ends, and what it points at. Pure."""

import html
import re
from typing import NamedTuple

from markdown_it.helpers import parseLinkDestination, parseLinkTitle

_LONGEST = 4000  # characters of a target
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_UNSEEN = re.compile(r"[\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u2060\ufeff]")
_SCRIPT = re.compile(r"(?:javascript|vbscript|data|file|blob|view-source):", re.IGNORECASE)
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n|\r[ \t]*\r")
_NOT_SPACE = re.compile(r"[^ \t\r\n]|\Z")
_DEFINITION = re.compile(r"\]:[ \t]*\r?\n?[ \t]*(<[^<>\r\n]*>|[^\s<]\S*)(?:[ \t]+[\"'(][^\r\n]*)?[ \t]*(?=[\r\n]|\Z)")


class Link(NamedTuple):
    """Where a link ends, and what it points at."""

    end: int
    target: str


def readings(target: str) -> set[str]:
    """An address as it is written and as it is read: without backslashes and with its entities resolved."""
    return {target, _ESCAPE.sub(r"\1", target), html.unescape(_ESCAPE.sub(r"\1", target))}


def runs_script(target: str) -> bool:
    """Whether to follow this address is to run it, however it is written."""
    return any(_SCRIPT.match(_UNSEEN.sub("", reading)) for reading in readings(target))


def link_target(text: str, at: int) -> Link | None:
    """The parenthesis of a link that opens at `at`, `(target "title")`; None if it is none."""
    stop, begin = min(len(text), at + _LONGEST), _past_space(text, at + 1)
    found = parseLinkDestination(text, begin, stop)
    end = found.pos if found.ok else begin
    after = _past_space(text, end)
    if after > end and (title := parseLinkTitle(text, after, stop)).ok:
        after = _past_space(text, title.pos)
    if text[after : after + 1] != ")" or _BLANK_LINE.search(text, at, after):
        return None
    return Link(after + 1, text[begin + 1 : end - 1] if text[begin] == "<" else text[begin:end])


def definition_target(text: str, at: int) -> Link | None:
    """The target of a definition whose label closes at `at`, `]: target "title"`; None if it is none."""
    found = _DEFINITION.match(text, at)
    return Link(found.end(), found[1].removeprefix("<").removesuffix(">")) if found else None


def _past_space(text: str, at: int) -> int:
    return found.start() if (found := _NOT_SPACE.search(text, at)) else at

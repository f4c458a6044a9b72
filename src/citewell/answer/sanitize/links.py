"""Parse the targets of Markdown links and link definitions. Pure.

Knows nothing of which targets are allowed.
"""

import html
import re
from typing import NamedTuple

from markdown_it.helpers import parseLinkDestination, parseLinkTitle

_MAX_TARGET_CHARACTERS = 4000
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_INVISIBLE = re.compile(r"[\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u2060\ufeff]")
_SCRIPT_SCHEME = re.compile(r"(?:javascript|vbscript|data|file|blob|view-source):", re.IGNORECASE)
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n|\r[ \t]*\r")
_NON_WHITESPACE = re.compile(r"[^ \t\r\n]|\Z")
_DEFINITION = re.compile(r"\]:[ \t]*\r?\n?[ \t]*(<[^<>\r\n]*>|[^\s<]\S*)(?:[ \t]+[\"'(][^\r\n]*)?[ \t]*(?=[\r\n]|\Z)")


class Link(NamedTuple):
    """A link target, and the position in the text after the link."""

    end: int
    target: str


def target_spellings(target: str) -> set[str]:
    """The spellings of a target that mean the same: as written, without backslash escapes, with entities decoded."""
    return {target, _ESCAPE.sub(r"\1", target), html.unescape(_ESCAPE.sub(r"\1", target))}


def runs_script(target: str) -> bool:
    """Whether following this target would run a script (or open a file), in any of its spellings."""
    return any(_SCRIPT_SCHEME.match(_INVISIBLE.sub("", spelling)) for spelling in target_spellings(target))


def parse_link_target(text: str, start: int) -> Link | None:
    """Parse `(target "title")` whose parenthesis opens at `start`; None if that is not a link target."""
    limit, target_start = min(len(text), start + _MAX_TARGET_CHARACTERS), _skip_whitespace(text, start + 1)
    destination = parseLinkDestination(text, target_start, limit)
    target_end = destination.pos if destination.ok else target_start
    position = _skip_whitespace(text, target_end)
    if position > target_end and (title := parseLinkTitle(text, position, limit)).ok:
        position = _skip_whitespace(text, title.pos)
    if text[position : position + 1] != ")" or _BLANK_LINE.search(text, start, position):
        return None
    is_in_brackets = text[target_start] == "<"
    return Link(position + 1, text[target_start + is_in_brackets : target_end - is_in_brackets])


def parse_definition_target(text: str, start: int) -> Link | None:
    """Parse `]: target "title"` whose bracket closes at `start`; None if that is not a link definition."""
    definition = _DEFINITION.match(text, start)
    return Link(definition.end(), definition[1].removeprefix("<").removesuffix(">")) if definition else None


def _skip_whitespace(text: str, start: int) -> int:
    return match.start() if (match := _NON_WHITESPACE.search(text, start)) else start

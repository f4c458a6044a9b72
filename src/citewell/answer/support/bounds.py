"""Finds the limits that a text sets to numbers: "at most 10", "5 or more", "before 1990". Pure."""

import re
from typing import Literal, NamedTuple

from citewell.answer.support.quantities import Quantity, find_quantities

_CHARACTERS_BEFORE, _CHARACTERS_AFTER = 60, 30

_GAP = r"(?: (?:an?|the|about|around|of|to|is|are|be|by|at|set|[=:~$€£])){0,3} *[\"'`(=:$€£]*$"
_NAME = r"(?: [\w`-]+){0,4}?"
_LESS, _MORE = (
    "less|fewer|lower|smaller|shorter|under|below|earlier",
    "more|greater|higher|larger|longer|over|above|later",
)
_NOT = r"\b(?:no|not|never|cannot|n['’]t)\b(?: \w+){0,2} "
_BEFORE = (
    # A negation turns a limit around, so these come first.
    ("lower", rf"{_NOT}(?:{_LESS})(?: than)?"),
    ("upper", rf"{_NOT}(?:{_MORE}|exceed\w*)(?: than)?"),
    ("upper", rf"\b(?:at (?:the )?most|up to|(?:{_LESS}) than|under|below|capped at|limited to|as much as)|[≤<]=?"),
    ("lower", rf"\b(?:at (?:the )?least|(?:{_MORE}) than|over|above|exceed(?:s|ing|ed)?|upwards of)|[≥>]=?"),
    ("lower", r"\bbetween"),
    ("upper", r"\bbetween [^.;:]{1,20}? and"),
    ("upper", rf"\b(?:maximum|max\.?|maximal|upper limit)\b{_NAME}"),
    ("lower", rf"\b(?:minimum|min\.?|minimal|lower limit)\b{_NAME}"),
    ("before", r"\b(?:before|prior to|until|till)"),
    ("after", r"\b(?:after|since)"),
)
_AFTER = (
    ("lower", rf" ?\+(?!\w)|(?: \w+)? (?:or|and) (?:{_MORE}|newer|up)\b|(?: \w+)? at (?:the )?(?:least|minimum)\b"),
    ("upper", rf"(?: \w+)? (?:or|and) (?:{_LESS}|older)\b|(?: \w+)? at (?:the )?(?:most|maximum)\b"),
)

Direction = Literal["upper", "lower", "before", "after"]
OPPOSITE: dict[Direction, Direction] = {"upper": "lower", "lower": "upper", "before": "after", "after": "before"}

_BEFORE_PATTERNS: list[tuple[Direction, re.Pattern[str]]] = [
    (direction, re.compile(rf"(?:{pattern}){_GAP}", re.IGNORECASE))  # type: ignore[misc]
    for direction, pattern in _BEFORE
]
_AFTER_PATTERNS: list[tuple[Direction, re.Pattern[str]]] = [
    (direction, re.compile(pattern, re.IGNORECASE))  # type: ignore[misc]
    for direction, pattern in _AFTER
]


class Bound(NamedTuple):
    """A number and the side on which it is a limit."""

    quantity: Quantity
    direction: Direction


def find_bounds(text: str) -> list[Bound]:
    """The limits in a text whose words are separated by single blanks.

    find_bounds("It takes at most 10 minutes.") -> [Bound(600 s, "upper")]
    """
    found = ((quantity, _direction(text, quantity)) for quantity in find_quantities(text))
    return [Bound(quantity, direction) for quantity, direction in found if direction]


def _direction(text: str, quantity: Quantity) -> Direction | None:
    before = text[max(0, quantity.start - _CHARACTERS_BEFORE) : quantity.start]
    end = quantity.start + len(text[quantity.start : quantity.end].rstrip())
    after = text[end : end + _CHARACTERS_AFTER]
    for direction, pattern in _AFTER_PATTERNS:
        if pattern.match(after):
            return direction
    return next((direction for direction, pattern in _BEFORE_PATTERNS if pattern.search(before)), None)

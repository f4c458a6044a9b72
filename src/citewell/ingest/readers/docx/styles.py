"""What a Word document's styles and lists mean: heading, code, quotation, and the number before a paragraph."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from citewell.ingest.readers.xml_tree import Element

_T = TypeVar("_T")

Role = Literal["text", "title", "code", "quote", "contents"]

# Word keeps the English name of a built-in style in every language; other programs may not.
_HEADING = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|titulo|kop|rubrik|overskrift|otsikko|nagłówek|nadpis|заголовок"
    r"|标题|見出し)\s*([1-9])",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?:.*[\s_-])?(?:source[\s_-]?code|code|code[\s_-]?(?:block|listing|example|char)|listing"
    r"|html (?:preformatted|code)|preformatted(?: text)?|verbatim(?: char)?|macro(?: text)?)",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"(?:intense )?quote|quotations?|block (?:text|quote)", re.IGNORECASE)
_CONTENTS = re.compile(r"(?:toc|contents) (?:\d|heading)|table of figures|index \d", re.IGNORECASE)
_MONOSPACED = re.compile(r"mono|courier|consol|menlo|source code|fira code|cascadia|terminal", re.IGNORECASE)
_LONGEST_CHAIN = 20  # styles based on styles; a circle ends here


@dataclass(frozen=True, slots=True)
class _Style:
    name: str
    based_on: str
    outline: int | None
    list_id: str
    list_level: int | None
    monospaced: bool | None


@dataclass(frozen=True, slots=True)
class _Level:
    style: str
    pattern: str
    start: int


@dataclass(slots=True)
class _List:
    """The levels of a list and how far it has counted; lists made from one definition count on together."""

    levels: dict[int, _Level]
    counts: dict[int, int] = field(default_factory=dict)


def child(element: Element | None, *path: str) -> Element | None:
    """The first child with the tag, and so on down the path."""
    for tag in path:
        element = next((one for one in element.elements if one.tag == tag), None) if element else None
    return element


def value(element: Element | None, *path: str) -> str:
    """`w:val` at the end of the path; "" where it does not lead."""
    found = child(element, *path)
    return found.get("w:val") if found else ""


def is_on(element: Element | None, *path: str) -> bool:
    """Whether a property is set: `<w:vanish/>` is, `<w:vanish w:val="0"/>` is not."""
    found = child(element, *path)
    return found is not None and found.get("w:val") not in ("0", "false", "off")


def is_monospaced(properties: Element | None) -> bool | None:
    """What run properties say about it; None if nothing."""
    fonts = child(properties, "w:rFonts")
    name = (fonts.get("w:ascii") or fonts.get("w:hAnsi") or fonts.get("w:cs")) if fonts else ""
    return bool(_MONOSPACED.search(name)) if name else None


class Styles:
    """The styles of a document, by id."""

    def __init__(self, part: Element) -> None:
        self._styles: dict[str, _Style] = {}
        self._default = ""
        for element in part.walk():
            if element.tag == "w:style":
                self._styles[element.get("w:styleId")] = _style(element)
                if element.get("w:type") == "paragraph" and element.get("w:default") in ("1", "true"):
                    self._default = element.get("w:styleId")

    def role(self, style: str) -> Role:
        for name in self._names(style):
            for pattern, role in _ROLES:
                if pattern.fullmatch(name):
                    return role
        return "code" if self._first(style, lambda one: one.monospaced) and style != self._default else "text"

    def heading_level(self, paragraph: Element | None, style: str) -> int:
        """1 to 6 for a heading, else 0. The outline level counts where the style's name says nothing."""
        for name in self._names(style):
            if _CONTENTS.fullmatch(name):
                return 0
            if match := _HEADING.fullmatch(name):
                return min(int(match[1]), 6)
        outline = _number(value(paragraph, "w:outlineLvl"))
        outline = self._first(style, lambda one: one.outline) if outline is None else outline
        return min(outline + 1, 6) if outline is not None and 0 <= outline < 9 else 0

    def list_of(self, paragraph: Element | None, style: str) -> tuple[str, int]:
        """The list that a paragraph counts in, and on which level; "" for none."""
        own, own_level = value(paragraph, "w:numPr", "w:numId"), _number(value(paragraph, "w:numPr", "w:ilvl"))
        list_id = own or self._first(style, lambda one: one.list_id or None) or ""
        level = own_level if own_level is not None else self._first(style, lambda one: one.list_level)
        return ("" if list_id == "0" else list_id), min(max(level or 0, 0), 8)

    def _names(self, style: str) -> Iterator[str]:
        if style and style not in self._styles:
            yield re.sub(r"(?<=[a-z])(?=[\dA-Z])", " ", style)  # no styles part: "Heading1" still says what it is
        yield from (one.name for one in self._chain(style))

    def _first(self, style: str, wanted: Callable[[_Style], _T | None]) -> _T | None:
        return next((found for one in self._chain(style) if (found := wanted(one)) is not None), None)

    def _chain(self, style: str) -> Iterator[_Style]:
        for _ in range(_LONGEST_CHAIN):
            if (found := self._styles.get(style)) is None:
                return
            yield found
            style = found.based_on


class Numbering:
    """The lists of a document; it counts as it is asked, paragraph by paragraph."""

    def __init__(self, part: Element) -> None:
        definitions = {
            element.get("w:abstractNumId"): _List(dict(_levels(element)))
            for element in part.walk()
            if element.tag == "w:abstractNum"
        }
        self._lists: dict[str, _List] = {}
        self._restarts: dict[str, dict[int, int]] = {}
        for element in part.walk():
            if element.tag == "w:num" and (definition := definitions.get(value(element, "w:abstractNumId"))):
                self._lists[element.get("w:numId")] = definition
                self._restarts[element.get("w:numId")] = dict(_restarts(element))

    def label(self, list_id: str, level: int) -> str:
        """What stands before the next paragraph of the list: "3.", "b)", "1.2"; "" for a bullet or nothing."""
        if (found := self._lists.get(list_id)) is None:
            return ""
        found.counts.update({at: start - 1 for at, start in self._restarts.pop(list_id, {}).items()})
        own = found.levels.get(level, _Level("bullet", "", 1))
        found.counts[level] = found.counts.get(level, own.start - 1) + 1
        for deeper in [at for at in found.counts if at > level]:
            del found.counts[deeper]
        if own.style in ("bullet", "none"):
            return ""
        return re.sub(r"%([1-9])", lambda match: _counted(found, int(match[1]) - 1), own.pattern).strip()


def _style(element: Element) -> _Style:
    paragraph, run = child(element, "w:pPr"), child(element, "w:rPr")
    return _Style(
        name=value(element, "w:name"),
        based_on=value(element, "w:basedOn"),
        outline=_number(value(paragraph, "w:outlineLvl")),
        list_id=value(paragraph, "w:numPr", "w:numId"),
        list_level=_number(value(paragraph, "w:numPr", "w:ilvl")),
        monospaced=is_monospaced(run),
    )


def _levels(definition: Element) -> Iterator[tuple[int, _Level]]:
    for element in definition.elements:
        if element.tag == "w:lvl" and (at := _number(element.get("w:ilvl"))) is not None:
            start = _number(value(element, "w:start"))
            style = value(element, "w:numFmt") or "decimal"
            yield at, _Level(style, value(element, "w:lvlText")[:60], 1 if start is None else start)


def _restarts(number: Element) -> Iterator[tuple[int, int]]:
    for element in number.elements:
        start = _number(value(element, "w:startOverride"))
        at = _number(element.get("w:ilvl"))
        if element.tag == "w:lvlOverride" and start is not None and at is not None:
            yield at, start


def _counted(found: _List, level: int) -> str:
    definition = found.levels.get(level, _Level("decimal", "", 1))
    number = found.counts.get(level, definition.start)
    match definition.style:
        case "lowerLetter" | "upperLetter" if number >= 1:
            letter = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 9)
            return letter if definition.style == "lowerLetter" else letter.upper()
        case "lowerRoman" if 1 <= number < 4_000:
            return roman(number)
        case "upperRoman" if 1 <= number < 4_000:
            return roman(number).upper()
        case _:
            return str(number)


def roman(number: int) -> str:
    """4 -> "iv"."""
    written = ""
    for worth, sign in _ROMAN:
        written += sign * (number // worth)
        number %= worth
    return written


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text) else None


_ROLES: tuple[tuple[re.Pattern[str], Role], ...] = (
    (_CONTENTS, "contents"),
    (re.compile("subtitle|untertitel", re.IGNORECASE), "text"),
    (re.compile("title|titel", re.IGNORECASE), "title"),
    (_CODE, "code"),
    (_QUOTE, "quote"),
)
_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)

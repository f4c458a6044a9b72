"""The styles and lists of a Word document: which paragraphs are headings, code or quotations, and list numbers."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from citewell.ingest.readers.xml_tree import Element

_T = TypeVar("_T")

Role = Literal["text", "title", "code", "quote", "table of contents"]

# Word stores the English name of a built-in style in every language; other programs may not.
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
_MAX_BASED_ON = 20  # styles based on styles; ends a cycle


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
    """The levels of a list and their counters; lists made from one definition share the counters."""

    levels: dict[int, _Level]
    counts: dict[int, int] = field(default_factory=dict)


def child(element: Element | None, *path: str) -> Element | None:
    """The first child with the first tag, its first child with the second, and so on; None if one is missing."""
    for tag in path:
        element = next((inner for inner in element.elements if inner.tag == tag), None) if element else None
    return element


def value(element: Element | None, *path: str) -> str:
    """The `w:val` attribute at the end of the path; "" if it is missing."""
    target = child(element, *path)
    return target.get("w:val") if target else ""


def is_on(element: Element | None, *path: str) -> bool:
    """Whether a property is set: `<w:vanish/>` is, `<w:vanish w:val="0"/>` is not."""
    target = child(element, *path)
    return target is not None and target.get("w:val") not in ("0", "false", "off")


def is_monospaced(properties: Element | None) -> bool | None:
    """Whether run properties set a monospaced font; None if they set no font."""
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
                self._styles[element.get("w:styleId")] = _read_style(element)
                if element.get("w:type") == "paragraph" and element.get("w:default") in ("1", "true"):
                    self._default = element.get("w:styleId")

    def role(self, style: str) -> Role:
        """What a paragraph of this style is."""
        for name in self._style_names(style):
            for pattern, role in _ROLES:
                if pattern.fullmatch(name):
                    return role
        return "code" if self._first_set(style, lambda style: style.monospaced) and style != self._default else "text"

    def heading_level(self, paragraph: Element | None, style: str) -> int:
        """1 to 6 for a heading, else 0. The outline level decides if the style's name does not."""
        for name in self._style_names(style):
            if _CONTENTS.fullmatch(name):
                return 0
            if match := _HEADING.fullmatch(name):
                return min(int(match[1]), 6)
        outline = _parse_int(value(paragraph, "w:outlineLvl"))
        outline = self._first_set(style, lambda style: style.outline) if outline is None else outline
        return min(outline + 1, 6) if outline is not None and 0 <= outline < 9 else 0

    def list_of(self, paragraph: Element | None, style: str) -> tuple[str, int]:
        """The id of the list that a paragraph belongs to ("" for none), and its level."""
        own, own_level = value(paragraph, "w:numPr", "w:numId"), _parse_int(value(paragraph, "w:numPr", "w:ilvl"))
        list_id = own or self._first_set(style, lambda style: style.list_id or None) or ""
        level = own_level if own_level is not None else self._first_set(style, lambda style: style.list_level)
        return ("" if list_id == "0" else list_id), min(max(level or 0, 0), 8)

    def _style_names(self, style: str) -> Iterator[str]:
        if style and style not in self._styles:
            yield re.sub(r"(?<=[a-z])(?=[\dA-Z])", " ", style)  # no styles part: "Heading1" still names the style
        yield from (ancestor.name for ancestor in self._with_ancestors(style))

    def _first_set(self, style: str, read: Callable[[_Style], _T | None]) -> _T | None:
        """The first value that the style, or one it is based on, sets."""
        values = (read(ancestor) for ancestor in self._with_ancestors(style))
        return next((value for value in values if value is not None), None)

    def _with_ancestors(self, style: str) -> Iterator[_Style]:
        for _ in range(_MAX_BASED_ON):
            if (definition := self._styles.get(style)) is None:
                return
            yield definition
            style = definition.based_on


class Numbering:
    """The numbered lists of a document; each call of `next_label` counts one paragraph."""

    def __init__(self, part: Element) -> None:
        definitions = {
            element.get("w:abstractNumId"): _List(dict(_read_levels(element)))
            for element in part.walk()
            if element.tag == "w:abstractNum"
        }
        self._lists: dict[str, _List] = {}
        self._restarts: dict[str, dict[int, int]] = {}
        for element in part.walk():
            if element.tag == "w:num" and (definition := definitions.get(value(element, "w:abstractNumId"))):
                self._lists[element.get("w:numId")] = definition
                self._restarts[element.get("w:numId")] = dict(_read_restarts(element))

    def next_label(self, list_id: str, level: int) -> str:
        """The label of the list's next paragraph: "3.", "b)", "1.2"; "" for a bullet or none."""
        if (numbered_list := self._lists.get(list_id)) is None:
            return ""
        numbered_list.counts.update({index: start - 1 for index, start in self._restarts.pop(list_id, {}).items()})
        own = numbered_list.levels.get(level, _Level("bullet", "", 1))
        numbered_list.counts[level] = numbered_list.counts.get(level, own.start - 1) + 1
        for deeper in [index for index in numbered_list.counts if index > level]:
            del numbered_list.counts[deeper]
        if own.style in ("bullet", "none"):
            return ""
        return re.sub(r"%([1-9])", lambda match: _format_number(numbered_list, int(match[1]) - 1), own.pattern).strip()


def _read_style(element: Element) -> _Style:
    paragraph, run = child(element, "w:pPr"), child(element, "w:rPr")
    return _Style(
        name=value(element, "w:name"),
        based_on=value(element, "w:basedOn"),
        outline=_parse_int(value(paragraph, "w:outlineLvl")),
        list_id=value(paragraph, "w:numPr", "w:numId"),
        list_level=_parse_int(value(paragraph, "w:numPr", "w:ilvl")),
        monospaced=is_monospaced(run),
    )


def _read_levels(definition: Element) -> Iterator[tuple[int, _Level]]:
    for element in definition.elements:
        if element.tag == "w:lvl" and (index := _parse_int(element.get("w:ilvl"))) is not None:
            start = _parse_int(value(element, "w:start"))
            style = value(element, "w:numFmt") or "decimal"
            yield index, _Level(style, value(element, "w:lvlText")[:60], 1 if start is None else start)


def _read_restarts(number: Element) -> Iterator[tuple[int, int]]:
    for element in number.elements:
        start = _parse_int(value(element, "w:startOverride"))
        index = _parse_int(element.get("w:ilvl"))
        if element.tag == "w:lvlOverride" and start is not None and index is not None:
            yield index, start


def _format_number(numbered_list: _List, level: int) -> str:
    definition = numbered_list.levels.get(level, _Level("decimal", "", 1))
    number = numbered_list.counts.get(level, definition.start)
    match definition.style:
        case "lowerLetter" | "upperLetter" if number >= 1:
            letter = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 9)
            return letter if definition.style == "lowerLetter" else letter.upper()
        case "lowerRoman" if 1 <= number < 4_000:
            return to_roman(number)
        case "upperRoman" if 1 <= number < 4_000:
            return to_roman(number).upper()
        case _:
            return str(number)


def to_roman(number: int) -> str:
    """4 -> "iv"."""
    numeral = ""
    for amount, letters in _ROMAN:
        numeral += letters * (number // amount)
        number %= amount
    return numeral


def _parse_int(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text) else None


_ROLES: tuple[tuple[re.Pattern[str], Role], ...] = (
    (_CONTENTS, "table of contents"),
    (re.compile("subtitle|untertitel", re.IGNORECASE), "text"),
    (re.compile("title|titel", re.IGNORECASE), "title"),
    (_CODE, "code"),
    (_QUOTE, "quote"),
)
_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)

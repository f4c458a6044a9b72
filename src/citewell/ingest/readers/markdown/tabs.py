"""Tab groups as labelled alternatives: "Windows: …", "macOS: …". Works on lines and keeps their number.

Whatever the syntax of the tabs (`<TabItem>`, `=== "Tab"`, `:::{tab-item}`), the modules that know it mark where a tab
begins and ends; `label_tabs` writes the label before each paragraph of the tab, so that a quote says which tab it is
from.
"""

import re

from citewell.text import FENCE, closes_fence

# Noncharacters: Unicode reserves them for use inside a program, and no text contains them.
_BEGIN, _SEPARATOR, _END = "\ufdd0", "\ufdd1", "\ufdd2"
_MARKS = re.compile(f"({_BEGIN}[^{_SEPARATOR}]*{_SEPARATOR}|{_END})")
_DELETE_MARKS = dict.fromkeys(map(ord, (_BEGIN, _SEPARATOR, _END)))
_MAX_LABEL_CHARACTERS = 100
_MAX_LABELS = 3  # of tabs in tabs

_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_ALONE = re.compile(r"#{1,6}(?:[ \t]|$)|[>|]|\$\$|(?:[-*_=][ \t]*){3,}$|\*\*[^*]{1,200}\*\*:?[ \t]*$|\[[^\]]{1,99}\]:")
"""The beginning of a block that keeps its own first words: a heading, quote, table, formula, rule or bold line."""

tab_end = _END
TAB_MARKS = f"{_SEPARATOR}{_END}"
"""What a line ends with on which a tab begins or ends."""


def tab_begin(label: str) -> str:
    """The mark where a tab begins."""
    bare = " ".join(label.split()).strip("*` :")[:_MAX_LABEL_CHARACTERS]
    return f"{_BEGIN}{bare}{_SEPARATOR}"


def without_tab_marks(source: str) -> str:
    """A source in which no mark stands yet."""
    return source if _DELETE_MARKS.keys().isdisjoint(map(ord, set(source))) else source.translate(_DELETE_MARKS)


def label_tabs(text: str) -> str:
    """The text with labels instead of marks; the same number of lines."""
    return "\n".join(_Labeller().label(text.split("\n"))) if _BEGIN in text or _END in text else text


class _Labeller:
    """Goes through the lines of a page; `_labels` are those of the tabs that are open."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._labels: list[str] = []
        self._unplaced: int | None = None
        """The line where a tab began that has no text yet."""
        self._in_paragraph = False
        self._item_indent: int | None = None

    def label(self, lines: list[str]) -> list[str]:
        fence = ""
        for line in lines:
            if fence:
                self._lines.append(line)
                fence = "" if closes_fence(line, fence) else fence
                continue
            self._lines.append("")
            parts = _MARKS.split(line)
            if opening := FENCE.match(_MARKS.sub("", line)):
                fence = opening["fence"]
                parts.sort(key=lambda part: not part.startswith((_BEGIN, _END)))
            for part in parts:
                self._add(part)
            if not self._lines[-1].strip():
                self._in_paragraph = False
        return self._lines

    def _add(self, part: str) -> None:
        if part.startswith(_BEGIN):
            self._labels.append(part[1:-1])
            self._unplaced = len(self._lines) - 1
            self._in_paragraph, self._item_indent = False, None
        elif part == _END:
            if self._labels:
                self._labels.pop()
            self._unplaced = None
            self._in_paragraph, self._item_indent = False, None
        elif part.strip():
            self._add_text(part)
        else:
            self._lines[-1] += part

    def _add_text(self, part: str) -> None:
        bare = part.lstrip(" \t")
        indent = len(part) - len(bare)
        is_item, is_alone = bool(_ITEM.match(bare)), bool(_ALONE.match(bare) or FENCE.match(bare))
        if self._item_indent is not None and indent <= self._item_indent and not self._in_paragraph:
            self._item_indent = None
        label = ", ".join(filter(None, self._labels[-_MAX_LABELS:]))
        is_prose = not is_item and not is_alone and self._item_indent is None
        if is_prose and bare.lstrip("*_`").lower().startswith(label.lower()):  # "Windows" before "Windows needs …"
            label, self._unplaced = "", None
        if label and is_prose and (self._unplaced is not None or not self._in_paragraph):
            part = f"{part[:indent]}{label}: {bare}"
        elif label and self._unplaced == len(self._lines) - 1:
            part = f"{label}: {bare}"
        elif label and self._unplaced is not None:
            place = self._lines[self._unplaced].rstrip()
            self._lines[self._unplaced] = f"{place} {label}:" if place else f"{part[:indent]}{label}:"
        self._unplaced = None
        self._lines[-1] += part
        self._in_paragraph = not (is_alone and not bare.startswith(("|", ">")))
        if is_item and self._item_indent is None:
            self._item_indent = indent

"""Write a canonical text block by block, and note where each block stands. It knows no file format."""

import re
from collections.abc import Sequence
from dataclasses import replace

from citewell.models import Block, BlockKind, ParsedDocument

_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_NO_BREAK = re.compile("[\u00a0\u2007\u202f]")
_LOOKS_LIKE_MARKUP = re.compile(r"#{1,6}[ \t]|`{3}|~{3}|\$\$|\|")
_POWER = re.compile(r"[-+−]?(?:\d{1,6}|[^\W\d_])")
_EXPONENT = re.compile(r"(?=.*[-+−*/])(?:[\d\s()+−*/.-]|(?<![^\W\d_])[^\W\d_](?![^\W\d_])){2,20}")
_FORMULA = re.compile(r"\$\$(.+)\$\$|\\\[(.+)\\\]", re.DOTALL)
_DEEPEST = 8  # levels of indentation shown: more says nothing, and would let a small file grow large


def clean(text: str) -> str:
    """The text without characters nobody sees; lines end with a newline, all spaces break."""
    return _NO_BREAK.sub(" ", _UNSEEN.sub("", _LINE_END.sub("\n", text)))


def code_span(text: str) -> str:
    """Inline code, in as many backticks as it takes."""
    ticks = "`" * (_longest_run(text, "`") + 1)
    gap = " " if len(ticks) > 1 else ""
    return f"{ticks}{gap}{text}{gap}{ticks}"


def link(text: str, url: str) -> str:
    """A link to the web keeps its address; any other is only its words, since its target moves."""
    url = re.sub(r"\s+", "", url)
    if not text or not re.match(r"https?://.", url, re.IGNORECASE) or url == text:
        return text
    return f"[{text}]({url.replace('(', '%28').replace(')', '%29')})"


def raised(text: str) -> str:
    """A superscript: 10⁶ is "10^6", never "106", and 2ⁿ⁻¹ is "2^(n-1)"; "1st" is what it looks like."""
    if _POWER.fullmatch(text):
        return f"^{text}"
    return f"^({text})" if _EXPONENT.fullmatch(text) else text


def _longest_run(text: str, mark: str) -> int:
    return max((len(run) for run in re.findall(f"{mark}+", text)), default=0)


class Place:
    """Where the next block stands: in which list item or quotation, and so with what before its lines.

    The marker ("- ") goes before the first line written here, the indent before all others.
    """

    def __init__(self, parent: "Place | None" = None, *, marker: str = "", kind: BlockKind = "text") -> None:
        self._parent = parent
        self._depth: int = parent._depth + 1 if parent else 0
        self._marker = marker
        self._used = False
        self.kind: BlockKind = "list" if parent and parent.kind == "list" else kind
        self.group: int | None = parent.group if parent else None
        self.lead = ""
        """Words that belong before the next paragraph: a defined term, the title of a note."""

    @property
    def nested(self) -> bool:
        return self._parent is not None

    def take_prefixes(self, *, marker: bool = True) -> tuple[str, str]:
        """What stands before the first line and before the others; the marker is given once."""
        if self._parent is None:
            return "", ""
        first, rest = self._parent.take_prefixes(marker=marker)
        indent = self._marker if self._marker.startswith(">") else " " * len(self._marker)
        indent = indent if self._depth <= _DEEPEST else ""
        fresh = marker and not self._used
        self._used = self._used or marker
        return first + (self._marker if fresh and (indent or self._marker[:1] != ">") else indent), rest + indent


class DocumentBuilder:
    """Collects blocks; `manuscript` is what came of them."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._groups = 0

    def new_group(self) -> int:
        self._groups += 1
        return self._groups

    def manuscript(self, title: str) -> ParsedDocument:
        return ParsedDocument(title=title, text="".join(self._parts), blocks=tuple(self._blocks))

    def heading(self, level: int, text: str, *, title: str, anchor: str = "") -> None:
        """A heading on one line; where there are no words, there is no heading."""
        words = " ".join(text.split())
        if words and title:
            level = min(max(level, 1), 6)
            self._add([f"{'#' * level} {words}"], Block("heading", 0, 0, level=level, title=title, anchor=anchor))

    def paragraph(self, text: str, place: Place) -> None:
        """Prose; a line that would be taken for a fence, a heading or a table gets a backslash before it."""
        lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
        if not lines and not place.lead:
            return
        if not place.lead and (formula := _FORMULA.fullmatch("\n".join(lines))):
            self.formula(formula[1] or formula[2], place)
            return
        lines = ["\\" + line if _LOOKS_LIKE_MARKUP.match(line) else line for line in lines]
        if place.lead:
            lines = [" ".join([place.lead, *lines[:1]]), *lines[1:]]
            place.lead = ""
        self._placed(place.kind, lines, place)

    def flush_lead(self, place: Place) -> None:
        """Words that wait for a paragraph stand alone where none comes."""
        if place.lead:
            self.paragraph("", place)

    def code(self, text: str, place: Place, *, language: str = "") -> None:
        """A fenced block; its fence is longer than any run of backticks inside."""
        lines = [line.rstrip() for line in text.split("\n")]
        while lines and not lines[0]:
            lines.pop(0)
        while lines and not lines[-1]:
            lines.pop()
        if lines:
            self.flush_lead(place)
            fence = "`" * max(3, _longest_run(text, "`") + 1)
            self._placed("code", [fence + language, *lines, fence], place)

    def formula(self, tex: str, place: Place) -> None:
        lines = [stripped for line in tex.replace("$$", "").split("\n") if (stripped := line.strip())]
        if lines:
            self.flush_lead(place)
            self._placed("math", ["$$", *lines, "$$"], place, marker=False)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], place: Place) -> None:
        """A pipe table; rows shorter than the header are left short, as GFM allows."""
        rows = [row for row in rows if any(row)]
        if not rows and not any(header):
            return
        self.flush_lead(place)
        width = max(map(len, [header, *rows]))
        header = [*header, *[""] * (width - len(header))]
        lines = [_row(header), _row(["---"] * width), *map(_row, rows)]
        self._placed("table", lines, place, marker=False)

    def _placed(self, kind: BlockKind, lines: list[str], place: Place, *, marker: bool = True) -> None:
        first, rest = place.take_prefixes(marker=marker)
        group = place.group
        if group is None and kind == "table":
            group = self.new_group()
        lines = [f"{rest if number else first}{line}".rstrip() for number, line in enumerate(lines)]
        before = self._blocks[-1] if self._blocks else None
        next_item = first != rest and before is not None and (before.kind, before.group) == ("list", group)
        self._add(lines, Block(kind, 0, 0, group=group), tight=kind == "list" and next_item)

    def _add(self, lines: list[str], block: Block, *, tight: bool = False) -> None:
        if self._blocks and not tight:
            self._parts.append("\n")
            self._length += 1
        text = "\n".join(lines) + "\n"
        start, self._length = self._length, self._length + len(text)
        self._parts.append(text)
        self._blocks.append(replace(block, start=start, end=self._length))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"

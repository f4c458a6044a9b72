"""Turn the deltas that an LLM writes into checked units. Pure.

    deltas → preamble: remove the LLM's thinking, the word NOT_COVERED, and tool calls that are written as text
           → units: wait for the end of a sentence, of a line of a list or table, or of a block of code
           → sanitize: replace citation markers by passages; remove recited prompt, unsafe links, URLs and HTML
           → citation check: move citations to the passages that support them, attribute claims that cite nothing, and
             add a support verdict

The units do not depend on how the text is cut into deltas. Which of them are shown, `release.py` decides.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from citewell.answer.sanitize import CITATION_PLACEHOLDER, AllowedTargets, PromptLeakFilter, Sanitizer
from citewell.answer.writing.citation_check import Citation, build_segment, find_supporting_passage, place_citations
from citewell.answer.writing.citation_markers import mark_citations
from citewell.answer.writing.markdown import HIDDEN, adds_block, ends_in_block
from citewell.answer.writing.preamble import PreambleFilter
from citewell.answer.writing.references import PassageNames
from citewell.answer.writing.tool_calls import ToolCallFilter
from citewell.answer.writing.unit_kind import AsideFilter, UnitKind, is_row, is_table_rule, unit_kind
from citewell.answer.writing.unit_stream import Unit, UnitStream
from citewell.models import Cite, Passage, Piece, Segment
from citewell.tracing import span

# To some renderers, a lone "\r" ends a line.
_CONTROL_CHARACTERS = str.maketrans({CITATION_PLACEHOLDER: "\ufffd", HIDDEN: "\ufffd", "\r": None})
_PLACEHOLDER = re.compile(rf"(\[{CITATION_PLACEHOLDER}\])")
_SENTENCE_END = re.compile(r"\s*[.!?…。！？]+\Z")
_OPENING_FENCE = re.compile(r"^(?P<fence>[ \t]*(?:`{3,}|~{3,}))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CheckedUnit:
    """A unit of an answer: what it is, and its text and citations as pieces, without the blanks after it."""

    kind: UnitKind
    segment: Segment
    pieces: tuple[Piece, ...]
    lead: str
    """The blank lines before it."""
    gap: str
    """The blanks after it."""
    is_code: bool = False


class Pipeline:
    """Turns deltas into checked units with `feed` and `end`.

    The LLM cites `passages` by number, from 1 on; more may be added while it writes. If there is a `selection`, every
    citation is of it.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        instructions: str,
        *,
        question: str = "",
        selection: Passage | None = None,
    ) -> None:
        self._passages, self._selection = passages, selection
        self._names = PassageNames(passages)
        self._preamble = PreambleFilter()
        self._tool_calls = ToolCallFilter(lambda text: any(text in source for source in self._source_texts()))
        self._leak_filter = PromptLeakFilter(instructions)
        self._asides = AsideFilter(question)
        self._units = UnitStream(lambda text: not self._leak_filter.may_continue(text))
        self._sanitizer = Sanitizer(AllowedTargets(self._source_texts))
        self._pending: list[str | Passage] = []  # unfinished code, or the first row of a table
        self._is_code = self._has_table_head = self._is_in_table = False

    def feed(self, delta: str) -> list[CheckedUnit]:
        text = self._tool_calls.feed(self._preamble.feed(delta))
        return list(self._check(self._units.feed(text.translate(_CONTROL_CHARACTERS))))

    def end(self) -> list[CheckedUnit]:
        text = self._tool_calls.feed(self._preamble.end()) + self._tool_calls.end()
        units = list(self._check(self._units.feed(text.translate(_CONTROL_CHARACTERS))))
        units += self._check(self._units.end())
        if self._pending:
            self._close_code()
            units += self._finish()
        return units

    def _source_texts(self) -> Iterator[str]:
        return (text for passage in self._passages for text in (passage.chunk.text, passage.chunk.url or ""))

    def _check(self, units: Iterable[Unit]) -> Iterator[CheckedUnit]:
        for unit in units:
            if self._has_table_head:  # a first row is the head of a table only if a rule follows
                self._has_table_head = False
                if is_table_rule(unit.text):
                    self._pending += self._sanitize(unit)
                    yield from self._finish(is_whole=True)
                    continue
                yield from self._finish()
            row = is_row(unit.text) and not unit.is_code
            self._pending += self._sanitize(unit)
            self._is_code = self._is_code or unit.is_code or not unit.is_last
            self._has_table_head = row and not self._is_in_table and not self._is_code
            self._is_in_table = row
            if unit.is_last and not self._has_table_head:
                yield from self._finish()

    def _sanitize(self, unit: Unit) -> list[str | Passage]:
        """The sanitized parts of the unit, with passages in place of citation markers."""
        before, text, numbers = self._sanitizer.tail, unit.text, list[int]()
        if not unit.is_code:
            text, numbers = mark_citations(text, self._names.resolve, before=before)
        text = self._leak_filter.remove(text, before)
        text = self._sanitizer.clean(text, is_code=unit.is_verbatim)
        if adds_block(unit.text, text):
            self._units.renderers_agree = False
        numbers_left = iter(numbers)
        parts = (part for part in re.split(f"({CITATION_PLACEHOLDER})", text) if part)
        return [self._passages[next(numbers_left) - 1] if part == CITATION_PLACEHOLDER else part for part in parts]

    def _close_code(self) -> None:
        """Close a block of code that the LLM left open, so that nothing after it becomes a part of it."""
        text = "".join(part for part in self._pending if isinstance(part, str))
        if self._is_code and (opening := _OPENING_FENCE.search(text)):
            self._pending.append(f"{'' if text.endswith(chr(10)) else chr(10)}{opening['fence']}")

    def _finish(self, *, is_whole: bool = False) -> Iterator[CheckedUnit]:
        """The pending parts as checked units: one, unless it was an open bracket that joined two sentences."""
        pending, is_code = self._pending, self._is_code
        self._pending, self._is_code = [], False
        for parts in [pending] if is_code or is_whole else split_sentences(pending):
            with span("check") as checking:
                unit = self._check_claim(parts, is_code=is_code)
                verdict = unit.segment.support.verdict if unit.segment.support else "no claim"
                checking.set({"citewell.unit": unit.kind, "citewell.verdict": verdict})
            yield unit

    def _check_claim(self, unchecked: Sequence[str | Passage], *, is_code: bool) -> CheckedUnit:
        """The parts as a checked unit; a claim without support is attributed to a passage that says it."""
        parts = place_citations(unchecked, self._passages)
        text = "".join(part for part in parts if isinstance(part, str))
        kind = unit_kind(text, is_code=is_code)
        is_cited = any(isinstance(part, Citation) for part in parts)
        if self._asides.is_aside(text, self._source_texts, is_cited=is_cited, is_code=is_code):
            kind = "aside"
        segment = build_segment(parts, is_claim=kind in ("claim", "row"))
        has_support = not segment.support or segment.support.verdict in ("supported", "weak")
        if not has_support and (passage := find_supporting_passage(text, self._passages)):
            parts = [text, Citation(passage, text)]
            segment = build_segment(parts)
        if self._selection and segment.quotes:
            quotes = ((self._selection, segment.quotes[0][1]),)
            segment = replace(segment, passages=(self._selection,), quotes=quotes)
        lead, pieces, gap = self._to_pieces(place_last_citations(parts, kind))
        return CheckedUnit(kind, segment, pieces, lead, gap, is_code)

    def _to_pieces(self, parts: Sequence[str | Citation]) -> tuple[str, tuple[Piece, ...], str]:
        """The blank lines before a unit, its pieces, and the blanks after it. A selection is cited once in a row."""
        pieces: list[Piece] = []
        for part in parts:
            piece = part if isinstance(part, str) else Cite(self._selection or part.passage)
            if piece and not (self._selection and pieces[-1:] == [piece]):
                pieces.append(piece)
        lead = gap = ""
        if pieces and isinstance(first := pieces[0], str):
            pieces[0] = text = first.lstrip("\n")
            lead = first.removesuffix(text)
        while pieces and isinstance(last := pieces[-1], str):
            text = last.rstrip()
            gap = last[len(text) :] + gap
            pieces[-1:] = [text] if text else []
            if text:
                break
        return lead, tuple(pieces), gap


def split_sentences(parts: Sequence[str | Passage]) -> Iterator[list[str | Passage]]:
    """The parts of each sentence. A unit has several if it contained an open bracket or tag before it was sanitized."""
    passages = iter(part for part in parts if not isinstance(part, str))
    marked = "".join(part if isinstance(part, str) else f"[{CITATION_PLACEHOLDER}]" for part in parts)
    units, indent = UnitStream(), marked[: len(marked) - len(marked.lstrip())]
    for number, unit in enumerate((*units.feed(marked.removeprefix(indent)), *units.end())):
        text = unit.text if number else indent + unit.text  # an indent would make it code
        texts = [part for part in _PLACEHOLDER.split(text) if part]
        yield [next(passages) if _PLACEHOLDER.fullmatch(part) else part for part in texts]


def place_last_citations(parts: Sequence[str | Citation], kind: UnitKind) -> list[str | Citation]:
    """The parts with the citations at the end where readers expect them, and where they are no part of a block.

    Before the full stop of a sentence, in the last cell of a row, and after code, formulas and lists in a paragraph of
    their own:

        ["A pump.", 1] -> ["A pump", 1, "."]
        ["| a | b |", 1] -> ["| a | b", 1, " |"]
        ["```…```", 1] -> ["```…```", "\\n\\n", 1]
    """
    parts = list(parts)
    citations: list[str | Citation] = []
    blanks = ""
    while parts and (not isinstance(last := parts[-1], str) or not last.strip()):
        parts.pop()
        if isinstance(last, str):
            blanks = last + blanks
        else:
            citations.insert(0, last)
    if not citations or not parts or not isinstance(body := parts.pop(), str):
        return [*parts, *citations, blanks]
    text = body.rstrip()
    gap = body[len(text) :] + blanks
    whole = "".join(part for part in (*parts, text) if isinstance(part, str))
    if kind == "row" and text.endswith("|") and text.strip("| \t>"):
        return [*parts, text[:-1].rstrip(), *citations, " |", gap]
    if ends_in_block(whole):
        return [*parts, text, "\n\n", *citations, gap if "\n\n" in gap else "\n\n"]
    end = _SENTENCE_END.search(text)
    position = end.start() if end and end.start() else len(text)
    return [*parts, text[:position], *citations, text[position:].lstrip(), gap]

"""Decide which units of an LLM's text are shown, in the order in which it writes them. Pure.

A reader never gets less than the quotations would have been worth: units are held until their mean support is at
least the confidence of the quotations, and later units that would lower it below are withheld. So is every claim that
no passage supports. Nothing that was shown is ever taken back.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from citewell.answer.writing.pipeline import CheckedUnit
from citewell.answer.writing.unit_kind import heading_level
from citewell.models import Piece, Segment, UnsupportedPolicy

Claims = Literal["none", "unsupported", "partly supported"]
"""What an LLM claimed: nothing; only what no passage supports; or also what has at least weak support."""

_ROUNDING = 1e-9
_ITEM = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+|>[ \t]?)")
_MAX_INDENT = 3  # one more space makes code


class _Waiting(NamedTuple):
    """A unit that was not shown yet, whether it is to be, and the blanks between it and the unit before it."""

    unit: CheckedUnit
    is_kept: bool
    gap_before: str


class Release:
    """Shows units with `add` and `end`; `segments` is the answer so far.

    - `drop` and `fold` withhold what no passage supports; `show` shows it if it cites a passage, and then holds nothing
      back as long as one claim is supported.
    - A heading, a lead-in or the head of a table is shown with the first claim after it, or not at all.
    - A claim is shown once, however often it is repeated.
    """

    def __init__(self, min_support: float, policy: UnsupportedPolicy) -> None:
        self.segments: list[Segment] = []
        self._min_support, self._policy = min_support, policy
        self._is_open = False
        self._scores: list[float] = []  # of the claims that are shown or held
        self._claims: list[Segment] = []  # shown or not
        self._texts: set[str] = set()
        self._waiting: list[_Waiting] = []
        self._labels: list[int] = []  # which of these are headings, lead-ins and heads of tables without a claim so far
        self._gap_after_last = ""
        self._writer = _PieceWriter()

    def add(self, unit: CheckedUnit) -> list[Piece]:
        """The pieces that can be shown now."""
        if unit.segment.support is None:
            return self._add(unit, is_kept=unit.kind != "aside")
        if unit.segment.text in self._texts:  # small LLMs repeat themselves
            return self._add(unit, is_kept=False)
        self._texts.add(unit.segment.text)
        self._claims.append(unit.segment)
        return self._add(unit, is_kept=self._keeps_claim(unit.segment))

    def end(self) -> list[Piece]:
        """What can be shown now that nothing follows: the best supported claims, if their support is enough."""
        if self._is_open or not self._scores:
            return []
        best = self._scores
        while best and sum(best) / len(best) < self._min_support - _ROUNDING:
            best = [score for score in best if score > min(best)]
        if not best:
            return []
        least = min(best)
        held, self._waiting, self._labels = self._waiting, [], []
        self._is_open, self._gap_after_last = True, ""
        pieces: list[Piece] = []
        for unit, was_kept, _ in held:
            support = unit.segment.support
            is_kept = was_kept and support.score >= least if support else unit.kind != "aside"
            pieces += self._add(unit, is_kept=is_kept)
        return pieces

    @property
    def claims(self) -> Claims:
        """What the LLM claimed so far, shown or not."""
        if not self._claims:
            return "none"
        return "partly supported" if self._scores else "unsupported"

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The withheld claims to give beside the answer, at its end.

        `fold` gives them only if claims that have support were not enough for an answer.
        """
        if self._policy == "drop" or (self._policy == "fold" and (self._is_open or not self._scores)):
            return ()
        shown = set(map(id, self.segments))
        withheld = [claim for claim in self._claims if id(claim) not in shown]
        return tuple(claim.text for claim in withheld if claim.support and claim.support.verdict != "supported")

    def _keeps_claim(self, segment: Segment) -> bool:
        support = segment.support
        is_supported = support is not None and support.verdict in ("supported", "weak")
        score = support.score if support else 0.0
        if self._policy == "show":
            is_kept = bool(segment.passages)
            self._is_open = self._is_open or is_supported
        elif self._is_open:
            is_kept = is_supported and self._mean_with(score) >= self._min_support - _ROUNDING
        else:
            is_kept = is_supported
            self._is_open = is_supported and self._mean_with(score) >= self._min_support - _ROUNDING
        if is_kept and is_supported:
            self._scores.append(score)
        return is_kept

    def _mean_with(self, score: float) -> float:
        return (sum(self._scores) + score) / (len(self._scores) + 1)

    def _add(self, unit: CheckedUnit, *, is_kept: bool) -> list[Piece]:
        self._drop_stale_labels(unit)
        self._waiting.append(_Waiting(unit, is_kept, self._gap_after_last + unit.lead))
        self._gap_after_last = unit.gap
        if not is_kept:
            return []
        if unit.segment.support is None:
            self._labels.append(len(self._waiting) - 1)
            return []
        self._labels = []
        if not self._is_open:
            return []
        waiting, self._waiting = self._waiting, []
        self.segments += [one.unit.segment for one in waiting if one.is_kept and one.unit.segment.text]
        return self._writer.write(waiting)

    def _drop_stale_labels(self, unit: CheckedUnit) -> None:
        """Drop headings, lead-ins and heads of tables that this unit shows to be without a claim."""
        stale = [index for index in self._labels if _is_stale(self._waiting[index].unit, unit)]
        for index in stale:
            self._waiting[index] = self._waiting[index]._replace(is_kept=False)
        self._labels = [index for index in self._labels if index not in stale]


def _is_stale(waiting: CheckedUnit, following: CheckedUnit) -> bool:
    if waiting.kind == "table-head":
        return following.kind != "row"
    if following.kind == "heading":
        level = heading_level(waiting.segment.text)
        return level == 0 or level >= heading_level(following.segment.text)
    both_lead_in = waiting.kind == following.kind == "lead-in"
    return both_lead_in and bool(_ITEM.match(waiting.segment.text)) == bool(_ITEM.match(following.segment.text))


class _Item(NamedTuple):
    """A list item: its indent as written and as shown, and where its text begins as shown."""

    depth: int
    depth_shown: int
    column: int


class _PieceWriter:
    """Joins the units that are shown: what is left out leaves no gap, and takes no mark of a list or indent with it."""

    def __init__(self) -> None:
        self._has_started = False
        self._gap = ""
        self._item_mark = ""  # of a unit that was left out and whose line goes on
        self._items: list[_Item] = []  # the list items that a unit may belong to

    def write(self, waiting: Sequence[_Waiting]) -> list[Piece]:
        pieces: list[Piece] = []
        for unit, is_kept, gap_before in waiting:
            self._gap = max(self._gap, gap_before, key=lambda gap: (gap.count("\n"), len(gap)))
            if "\n" in gap_before:
                self._item_mark = ""
            text = next((piece for piece in unit.pieces if isinstance(piece, str)), "")
            if not is_kept:
                item = None if unit.is_code else _ITEM.match(text)
                self._item_mark = item[0] if item else self._item_mark
                continue
            pieces += [self._gap] if self._gap and self._has_started else []
            pieces += self._outdent(unit, text)
            self._has_started, self._gap, self._item_mark = True, "", ""
        return pieces

    def _outdent(self, unit: CheckedUnit, text: str) -> list[Piece]:
        """The pieces with the mark of their list item, and without the indent of an item that was left out."""
        mark, pieces = self._item_mark, list(unit.pieces)
        start, item = mark or text, None if unit.is_code else _ITEM.match(mark or text)
        depth = len(start) - len(start.lstrip(" "))
        is_indented_code = unit.is_code and not text.lstrip().startswith(("```", "~~~"))
        surplus = 0 if is_indented_code else depth - self._depth_shown(depth)
        if item:
            self._items.append(_Item(depth, depth - surplus, len(item[0].expandtabs(4)) - surplus))
        elif depth == 0 and not unit.is_code:
            self._items = []
        if not (mark or surplus):
            return pieces
        blanks = " " * surplus
        outdented = [piece.replace(f"\n{blanks}", "\n") if isinstance(piece, str) else piece for piece in pieces]
        first = outdented[0]
        if mark or not isinstance(first, str):
            return [mark[surplus:], *outdented]
        return [first.removeprefix(blanks), *outdented[1:]]

    def _depth_shown(self, depth: int) -> int:
        """The indent for a unit that was written with this one, so that it belongs to an item that is shown."""
        while self._items and self._items[-1].depth > depth:
            self._items.pop()
        if self._items and self._items[-1].depth == depth:
            return self._items.pop().depth_shown
        column = self._items[-1].column if self._items else 0
        return depth if depth <= column + _MAX_INDENT else column

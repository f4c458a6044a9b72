"""Answer by quotation: of all that could be quoted, the few units that answer, set as a person would set them.

A sentence that leans on the one before brings it along, "like this:" brings what follows, items come as a list under
the sentence that introduces them, and what stands together in the text is one quote. Pure: units in, quotes out.
Nothing here can say a word that is not in the text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from citewell.answer.quoting.score import Candidate
from citewell.models import Passage
from citewell.text import Unit, announced_units, split_units, unit_text

MAX_CHARACTERS = 800
_MOST_QUOTES = 6
_WORTH_QUOTING = -3.0  # log-odds below the best unit
_ENOUGH = 0.85  # the share of the odds after which the answer has probably been said
_ENOUGH_OF_MANY = 0.9  # the same for steps, lists, comparisons and reasons, of which one sentence is only a part
_MOST_AFTER_MEANING = 3  # quotes, where the first is a definition
_MOST_BEFORE = 240  # characters of a sentence that is quoted only because the next one leans on it
_DEPTH = 2  # how many sentences back
_MANY_WORDS = 8  # fewer in common and "lasts 3 h" would be "lasts 5 h"
_SAME = 0.8  # share of its words that a sentence has in common with one already quoted

_ASKS_FOR_CODE = re.compile(
    r"\b(?:code|commands?|script|snippet|syntax|listing|implement\w*|(?:launch|config\w*|yaml|xml) (?:file|example)"
    r"|in (?:python|bash|yaml|c\+\+|javascript|rust))\b",
    re.IGNORECASE,
)
_ASKS_FOR_SEVERAL = re.compile(
    r"""\bhow\ (?:do|can|should|would|could|to)\b | \bwhy\b
      | \b(?:steps?|stages?|ways?|types?|kinds?|reasons?|list|options?)\b
      | \bwhat\ (?:\w+\ ){0,3}are\b | \bwhich\ \w+s\ (?:are|do|does|can)\b
      | ^\W*(?:is|are|was|does|do|did|can|could|should|may|must|will)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS_FOR_STEPS = re.compile(
    r"\bhow (?:do|can|should|would|could|to)\b|\b(?:steps?|procedure|instructions)\b"
    r"|\bwie\b(?! (?:viele?|oft|lange?|hoch|groß|heiß|schnell|weit|alt)\b)|\b(?:schritte?|cómo|pasos|comment|étapes)\b",
    re.IGNORECASE,
)
_ASKS_TO_COMPARE = re.compile(
    r"\b(?:differences?|differs?|compared?|comparison|versus|vs|pros|cons|better|advantages?)\b", re.IGNORECASE
)
_ASKS_FOR_MEANING = re.compile(
    r"^\W*(?:what(?:'s|\ is|\ are)|define|explain)\ (?!the\ (?:difference|best|most|least|maximum|minimum)\b)",
    re.IGNORECASE,
)
_SAYS_MEANING = r"(?:is|are|means?|refers?\ to|stands\ for|describes?|makes?|represents?|draws)\b"
_LEANS = re.compile(  # a sentence that begins in the middle of a thought
    r"""^\W*(?:this|these|those|it|they|he|she|its|their|his|her|such|both|neither|here|then|so|but|and|also|however
             |therefore|thus|hence|if\ (?:not|so)|instead|otherwise|similarly|in\ contrast|for\ example|for\ instance
             |as\ a\ result|the\ (?:former|latter|other|same|first|second|third|result)
             |where(?=\ [$`*\w]+\ (?:is|are)\b))\b
      | ^\W*that(?:'s|\ (?:is|was|means|makes|leaves|would|can|may|\w+s))\b
      | ^\W*(?:if|when|for|in|at|with|after|before|from|by|on|to|of|because\ of)\ that\ \w+""",
    re.IGNORECASE | re.VERBOSE,
)
_POINTS_BACK = re.compile(  # one that can be read alone, and better after the one before
    r"\b(?:this|these|those)\b|\bthat (?:question|case|way|reason|problem|idea|rule|number|value|amount|time)\b",
    re.IGNORECASE,
)
_PLEONASTIC = re.compile(
    r"^\W*(?:it\ is\ \w+\ (?:to|that)|so\ (?:that|far|as)|then\ there)\b", re.IGNORECASE | re.VERBOSE
)
_CAPTION = re.compile(r"^\W*(?:figure|fig\.|table|listing|image)\ \d", re.IGNORECASE | re.VERBOSE)
_ONLY_A_LINK = re.compile(r"^\W*\[[^\]]+\]\(\S+\)(?:\s*[-–—:(].*)?$")
_PROMISES = re.compile(r"\byou(?:\ will|'ll)\ (?:be\ able|learn|understand|know)\b", re.IGNORECASE | re.VERBOSE)
_BLANK = re.compile(r"[\s>]*")
_TO_ITEM = re.compile(r"[\s>]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that were chosen, and which of the passages they stand in."""

    passage: int
    start: int
    text: str
    stretch: tuple[int, int]
    """Where in the passage the words stand, from the first to the last; a row's header may stand far above."""


def select_quotes(
    question: str, found: Sequence[Candidate], passages: Sequence[Passage], *, most: int = _MOST_QUOTES
) -> list[Quote]:
    """The units worth quoting, in reading order: documents as ranked, units as they stand in them.

    No more of them than it takes: once the answer has probably been said, the rest would be padding.
    """
    if not found:
        return []
    pages = [_Page(passage, {one.unit for one in found if one.passage == at}) for at, passage in enumerate(passages)]
    odds = np.array([one.log_odds for one in found])
    shares = np.exp(odds - odds.max()) / np.exp(odds - odds.max()).sum()
    share = dict(zip(map(id, found), shares.tolist(), strict=True))
    answer = _Answer(pages, question)
    said = 0.0
    for one in _ranked(question, found, pages):
        if answer.taken and (len(answer.taken) >= min(most, answer.most) or said >= answer.enough):
            break
        if answer.take(one):
            said += share[id(one)]
    return list(answer.quotes())


def _ranked(question: str, found: Sequence[Candidate], pages: Sequence["_Page"]) -> list[Candidate]:
    """What may be quoted, likeliest first, but the listing or the definition that was asked for before all else."""
    best = max(one.log_odds for one in found)
    ranked = sorted(found, key=lambda one: -one.log_odds)
    worth = [one for one in ranked if one.log_odds >= best + _WORTH_QUOTING]
    asks_for_code = _ASKS_FOR_CODE.search(question)
    # What answers nobody is quoted only where there is nothing else.
    worth = [
        one
        for one in worth
        if not pages[one.passage].says_little(one.unit)
        and (
            asks_for_code
            or one is ranked[0]
            or one.unit.kind != "code"
            or len(pages[one.passage].said(one.unit)) <= MAX_CHARACTERS
        )
    ] or worth[:1]
    first: Candidate | None = None
    if asks_for_code:
        first = next((one for one in ranked if one.unit.kind == "code"), None)
    elif meaning := _meaning(question):
        first = next((one for one in worth if meaning.match(pages[one.passage].said(one.unit))), None)
    return [first, *(one for one in worth if one is not first)] if first else worth


def _meaning(question: str) -> re.Pattern[str] | None:
    """What a sentence that defines the thing asked about begins with; None where no meaning is asked for."""
    asked = _ASKS_FOR_MEANING.match(question)
    if not asked:
        return None
    thing = re.sub(r"^(?:an?|the)\s+|[\s?.!]+$", "", question[asked.end() :], flags=re.IGNORECASE)
    if not thing or len(thing.split()) > 4:
        return None
    name = r"\W+".join(map(re.escape, thing.split()))
    return re.compile(
        rf"\W*(?:(?:an?|the)\W+)?(?:[\w-]+\W+){{0,4}}?\W*{name}\w{{0,2}}\W*(?:\([^)]*\)\W*)?{_SAYS_MEANING}",
        re.IGNORECASE,
    )


class _Page:
    """A passage read once: what stands before, after and around each of its units."""

    def __init__(self, passage: Passage, quotable: set[Unit]) -> None:
        self.passage = passage
        self.text = passage.chunk.text
        self._quotable = quotable

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        return split_units(self.text)

    @cached_property
    def _places(self) -> dict[Unit, int]:
        return {unit: place for place, unit in enumerate(self.units)}

    def said(self, unit: Unit) -> str:
        return unit_text(self.text, unit)

    def says_little(self, unit: Unit) -> bool:
        """Whether a unit answers nothing by itself: it asks, promises, captions a picture, links elsewhere, or
        announces more than can be quoted."""
        if unit.kind not in ("sentence", "item"):
            return False
        words = self.said(unit)
        lead = self.introduction(unit)
        return bool(
            words.rstrip("*_ ").endswith("?")
            or _CAPTION.match(words)
            or _ONLY_A_LINK.match(words)
            or _PROMISES.search(self.said(lead) if lead else words)
            or sum(len(self.said(one)) for one in self.after(unit)) > MAX_CHARACTERS
        )

    def leans(self, unit: Unit) -> bool:
        """Whether a sentence speaks of something that was named before it."""
        words = self.said(unit)
        return unit.kind == "sentence" and bool(_LEANS.match(words)) and not _PLEONASTIC.match(words)

    def points_back(self, unit: Unit) -> bool:
        """Whether a sentence means something named before it, wherever in the sentence it says so."""
        return self.leans(unit) or (unit.kind == "sentence" and bool(_POINTS_BACK.search(self.said(unit))))

    def before(self, unit: Unit) -> list[Unit] | None:
        """The sentences of its paragraph that a unit cannot be understood without, if they are at hand.

        None where it begins in the middle of a thought whose beginning is too long, too far, or not in the paragraph.
        """
        needed = [unit]
        while self.points_back(needed[0]):
            at = self._places[needed[0]]
            previous = self.units[at - 1] if at else None
            if previous and previous not in self._quotable:
                break  # it was said before, to this very reader
            if (
                previous is None
                or len(needed) > _DEPTH
                or not self._continues(previous, needed[0])
                or len(self.said(previous)) > _MOST_BEFORE
            ):
                return None if self.leans(needed[0]) else needed[:-1]
            needed.insert(0, previous)
        return needed[:-1]

    def after(self, unit: Unit) -> list[Unit]:
        """What a unit announces; a list only as far as its title or next paragraph."""
        follow = announced_units(self.text, unit, self.units[self._places[unit] + 1 :])
        return self.siblings(follow[0])[: len(follow)] if follow and follow[0].kind == "item" else follow

    def steps(self, unit: Unit) -> list[Unit]:
        """The rest of a paragraph and the numbered list it leads up to; or the one that an item is part of."""
        begin = at = self._places[unit] + (unit.kind == "sentence")
        while at < len(self.units) and self._continues(self.units[at - 1], self.units[at]):
            at += 1
        first = self.units[at] if at < len(self.units) else None
        if first is None or first.kind != "item" or not self.line(first).lstrip()[:1].isdigit():
            return []
        follows = first is unit or self.adjoins(self.units[at - 1], first)
        return [*self.units[begin:at], *self.siblings(first)] if follows else []

    def siblings(self, unit: Unit) -> list[Unit]:
        """The list an item is part of; anything else is alone."""
        return self._lists[self._places[unit]]

    @cached_property
    def _lists(self) -> list[list[Unit]]:
        """For each unit the list it is part of, which all of a list share: lists may be long."""
        found: list[list[Unit]] = []
        for unit in self.units:
            together = found and self.in_one_list(found[-1][-1], unit)
            found.append(found[-1] if together else [])
            found[-1].append(unit)
        return found

    def introduction(self, unit: Unit) -> Unit | None:
        """The sentence that introduces a listing, a formula, or the list that an item is part of."""
        first = self.siblings(unit)[0]
        at = self._places[first]
        lead = self.units[at - 1] if at else None
        if lead is None or lead.kind != "sentence" or lead not in self._quotable or not self.adjoins(lead, first):
            return None
        opens = unit.kind in ("code", "math") or (unit.kind == "item" and self.said(lead).rstrip("*_ ").endswith(":"))
        return lead if opens and len(self.said(lead)) <= _MOST_BEFORE else None

    def in_one_list(self, one: Unit, other: Unit) -> bool:
        return one.kind == other.kind == "item" and self.adjoins(one, other)

    def adjoins(self, one: Unit, other: Unit) -> bool:
        """Whether nothing but space, or the mark of a list item, stands between two units."""
        begin = other.header[0] if other.header else other.start
        between = self.text[one.end : max(begin, one.end)]
        return bool((_TO_ITEM if other.kind == "item" else _BLANK).fullmatch(between))

    def _continues(self, one: Unit, other: Unit) -> bool:
        """Whether two sentences stand in one paragraph."""
        return one.kind == "sentence" and self.adjoins(one, other) and "\n\n" not in self.text[one.end : other.start]

    def line(self, item: Unit) -> str:
        """An item as it stands in its list, with its mark."""
        begin = self.text.rfind("\n", 0, item.start) + 1
        mark = self.text[begin : item.start]
        if mark.lstrip().startswith(">"):
            mark = mark.lstrip("> \t")  # a block quotation's; else an item stays as deep as it stands
        return f"{mark}{self.said(item)}"


class _Answer:
    """The units taken so far; each brings along what it needs, and all of it together stays short."""

    def __init__(self, pages: Sequence[_Page], question: str) -> None:
        self._pages = pages
        self._compares = bool(_ASKS_TO_COMPARE.search(question))
        self._steps = bool(_ASKS_FOR_STEPS.search(question))
        self._several = self._compares or bool(_ASKS_FOR_SEVERAL.search(question))
        self._meaning = _meaning(question)
        self._order: dict[object, int] = {}
        self._units: dict[tuple[int, Unit], str] = {}
        self._length = 0
        self.taken: list[Candidate] = []

    @property
    def enough(self) -> float:
        """The share of the odds at which no more is quoted."""
        return _ENOUGH_OF_MANY if self._several else _ENOUGH

    @property
    def most(self) -> int:
        """How many quotes there may be."""
        first = self.taken[0] if self.taken else None
        defined = first and self._meaning and self._meaning.match(self._pages[first.passage].said(first.unit))
        return _MOST_AFTER_MEANING if defined else _MOST_QUOTES

    def take(self, one: Candidate) -> bool:
        """Whether a unit was worth its room, and now is part of the answer."""
        if (one.passage, one.unit) in self._units:
            self.taken.append(one)
            return True
        if any(_repeats(one.words, other.words) for other in self.taken):
            return False
        page = self._pages[one.passage]
        before = page.before(one.unit)
        if before is None and self.taken:
            return False
        said = set(self._units.values())
        for bundle in self._bundles(one, before or []):
            new = {page.said(unit): (one.passage, unit) for unit in reversed(bundle)}  # once, where it comes first
            new = {words: unit for words, unit in new.items() if words not in said}
            length = sum(map(len, new))
            too_long = len(page.said(one.unit)) > MAX_CHARACTERS  # by itself, which is no reason to cut it
            if self._length + length <= MAX_CHARACTERS or (too_long and not self.taken):
                self._units |= {unit: words for words, unit in new.items()}
                self._length += length
                self.taken.append(one)
                self._order.setdefault(page.passage.chunk.document_id, len(self._order))
                return True
        return False

    def _bundles(self, one: Candidate, before: Sequence[Unit]) -> Iterator[list[Unit]]:
        """A unit with what it needs, the fullest first; bare of it only where it is the best there is."""
        page = self._pages[one.passage]
        unit = one.unit
        lead = page.introduction(unit)
        introduced = [*(page.before(lead) or []), lead] if lead else []
        if self._steps and unit.kind in ("sentence", "item") and (steps := page.steps(unit)):
            yield [*before, *introduced, *(() if unit in steps else (unit,)), *steps]
        if unit.kind == "item":
            siblings = page.siblings(unit)
            if lead and self._several and not self._compares:
                yield [*introduced, *siblings]
            whole_sentence = page.said(unit).rstrip("*_ )").endswith((".", "!", "?"))
            if whole_sentence and not any((one.passage, other) in self._units for other in siblings):
                introduced = []
        if introduced:
            yield [*introduced, unit, *page.after(unit)]
        if unit.header and self._compares:
            yield [other for other in page.units if other.header == unit.header]
        yield [*before, unit, *page.after(unit)]
        if not self.taken:
            yield [*before, unit]
            yield [unit]

    def quotes(self) -> Iterator[Quote]:
        """The quotes in reading order; what stands together is one, rows come under their header."""
        last: tuple[int, Unit] | None = None
        text, start, stretch = "", 0, (0, 0)
        for at, unit in sorted(self._units, key=self._reading_order):
            page = self._pages[at]
            joint = self._joint(page, last[1], unit) if last and last[0] == at else None
            if last and joint is None:
                yield Quote(last[0], start, text, stretch)
            if joint is None:
                stretch = unit.start, unit.end
                start = unit.header[0] if unit.header else unit.start
                text = page.line(unit) if self._listed(at, unit) else page.said(unit)
            else:
                row = unit.kind == "row" and last is not None and last[1].header == unit.header
                item = page.line(unit) if unit.kind == "item" else page.said(unit)
                stretch = stretch[0], unit.end
                text += joint + (page.text[unit.start : unit.end] if row else item)
            last = at, unit
        if last:
            yield Quote(last[0], start, text, stretch)

    def _listed(self, at: int, unit: Unit) -> bool:
        """Whether an item is quoted with others of its list."""
        if unit.kind != "item":
            return False
        return any(other != unit and (at, other) in self._units for other in self._pages[at].siblings(unit))

    @staticmethod
    def _joint(page: _Page, one: Unit, other: Unit) -> str | None:
        """What stands between two units in the answer; None where they do not belong together."""
        if one.kind == other.kind == "row" and one.header == other.header and (one.header or page.adjoins(one, other)):
            return "\n"
        if other.kind == "item" and (one == page.introduction(other) or one in page.siblings(other)):
            return "\n"
        if not page.adjoins(one, other):
            return None
        if one.kind == other.kind == "sentence":
            return " "
        return "\n" if other.kind == "item" else "\n\n"

    def _reading_order(self, one: tuple[int, Unit]) -> tuple[int, int, int]:
        at, unit = one
        chunk = self._pages[at].passage.chunk
        return self._order[chunk.document_id], chunk.start + unit.start, at


def _repeats(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two sentences say the same; overlapping chunks, and summaries, do."""
    return words == others or len(words & others) >= max(_MANY_WORDS, _SAME * min(len(words), len(others)))

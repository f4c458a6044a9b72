"""What a writer says becomes an answer: its numbers become citations, and each sentence is held against what it cites.

    words → what it thinks, and its word for "not covered", go → numbers become passages → what is unsafe goes
          → a citation that its words do not rest on moves to the passage that they do → sentences with verdicts

All of it while the words come in, and the same however they are cut into pieces. Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

from citewell.answer.handles import Handles
from citewell.answer.opening import Opening
from citewell.answer.safety import Safe
from citewell.answer.sentences import Sentences
from citewell.answer.sources import Sources
from citewell.answer.support import needs_support, support_score, verdict_for
from citewell.answer.write import Desk
from citewell.models import Cite, Passage, Piece, Segment, Support
from citewell.text import split_units, stems, unit_text

_UNCITED = Support("uncited", 0.0)

SURE = 0.65
"""Of words that are likelier supported than this, the citation stays."""
_CLEARLY = 0.2


def moves(cited: float, other: float) -> bool:
    """Whether a citation moves to a passage that supports its words so likely (docs/log.md has what that costs)."""
    return cited < SURE and verdict_for(other) == "supported" and other - cited >= _CLEARLY


class Composer:
    """Feed it what a writer says: it gives what a reader sees, and in the end the `segments` of the answer.

    Every citation is of the `selection`, if there is one. When `strict`, a sentence is held back until it has ended,
    and dropped where nothing that the writer was given supports it.
    """

    def __init__(self, desk: Desk, rules: str, *, selection: Passage | None = None, strict: bool = False) -> None:
        self._desk = desk
        self._opening = Opening()
        self._handles = Handles(lambda number: desk.at(number) is not None)
        self._safe = Safe(self._sources, instructions=rules)
        self._checked = _Checked(desk, selection, strict)

    def feed(self, words: str) -> list[Piece]:
        return self._checked.feed(self._safe.feed(self._handles.feed(self._opening.feed(words))))

    def end(self) -> list[Piece]:
        rest = self._safe.feed(self._handles.feed(self._opening.end()) + self._handles.end())
        return self._checked.feed(rest + self._safe.end()) + self._checked.end()

    def _sources(self, target: str) -> bool:
        """Whether an address or a tag stands in what the writer was given so far."""
        sources = Sources()
        for passage in self._desk.passages:
            sources.add(passage.chunk.text)
            sources.add(passage.chunk.url or "")
        return sources(target)

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._checked.segments)

    @property
    def spoke(self) -> bool:
        """Whether there was a word for the reader, be it shown or not."""
        return self._checked.spoke

    @property
    def declined(self) -> bool:
        """Whether the writer says that its passages do not answer, and rests nothing on them."""
        return self._opening.declined and not any(segment.passages for segment in self.segments)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A citation in the open sentence. One that `leads` stands before the words it is of: "[1] A pump …"."""

    place: int
    passage: Passage
    leads: bool = False
    since: int = 0
    """Where the words begin that it is of: after the marks before it."""

    def is_of(self, sentence: str) -> bool:
        return self.place < len(sentence.rstrip()) if self.leads else self.place <= len(sentence)

    def after(self, sentence: str) -> "_Mark":
        gone = len(sentence)
        return replace(self, place=max(0, self.place - gone), since=max(0, self.since - gone))

    def words_in(self, sentence: str) -> str:
        return sentence if self.leads else sentence[self.since : self.place]


@dataclass(slots=True)
class _Checked:
    """Sentences as they come in, with the passages that each cites and whether these bear it out."""

    desk: Desk
    selection: Passage | None
    strict: bool
    segments: list[Segment] = field(default_factory=list)
    _sentences: Sentences = field(default_factory=Sentences)
    _cites: list["_Mark"] = field(default_factory=list)
    """Those in the open sentence."""
    _together: list[Passage] = field(default_factory=list)
    """What the last marks cite, as long as no word has followed."""
    spoke: bool = False
    """Whether a word has come, be it shown or not."""

    def feed(self, items: Iterable[str | int]) -> list[Piece]:
        shown: list[Piece] = []
        for item in items:
            if isinstance(item, str):
                self.spoke = self.spoke or any(mark.isalnum() for mark in item)
                shown += [*(self._settled() if self.spoke else []), *self._said(item)]
            elif (passage := self.desk.at(item)) and passage not in self._together:
                self._together.append(passage)
        return shown

    def end(self) -> list[Piece]:
        shown = self._settled() if self.spoke else []  # marks alone are no answer
        return shown + [piece for text in self._sentences.end() for piece in self._ended(text)]

    def _said(self, text: str) -> list[Piece]:
        ended = [piece for sentence in self._sentences.feed(text) for piece in self._ended(sentence)]
        return ended if self.strict else [text]

    def _settled(self) -> list[Piece]:
        """The marks that stand together, each at a passage that bears out the words before it, where there is one."""
        if not self._together:
            return []
        leads = self._sentences.at_its_beginning
        before = [piece for text in self._sentences.cut() for piece in self._ended(text)] if leads else []
        since = self._cites[-1].place if self._cites else 0
        words = "" if leads else self._sentences.last(since)
        cited = self._better(words) or self._together
        self._cites += [_Mark(len(self._sentences.open), passage, leads, since) for passage in cited]
        self._together = []
        return before if self.strict else [*before, *self._marks(cited)]

    def _better(self, words: str) -> list[Passage]:
        """The passage that words rest on, where those that are cited do not clearly bear them out; else nothing."""
        if not needs_support(words) or (cited := _support(words, self._together)) >= SURE:
            return []
        others = [one for one in self.desk.passages if one not in self._together]
        scores = [_support(words, [one]) for one in others]
        best = max(range(len(others)), key=scores.__getitem__, default=None)
        return [others[best]] if best is not None and moves(cited, scores[best]) else []

    def _ended(self, sentence: str) -> list[Piece]:
        """The sentence is complete: it gets its verdict; and, when strict, it is shown, or not."""
        here = [mark for mark in self._cites if mark.is_of(sentence)]
        self._cites = [mark.after(sentence) for mark in self._cites if not mark.is_of(sentence)]
        cited = list(dict.fromkeys(mark.passage for mark in here))
        held = self._verdict(sentence, cited)
        if not sentence.strip():
            return [sentence] if self.strict else []
        if self.strict and held and not self._borne_out(sentence, held):
            return []
        self.segments.append(self._segment(sentence, here, held))
        return self._pieces(sentence, here) if self.strict else []

    def _verdict(self, sentence: str, cited: Sequence[Passage]) -> Support | None:
        if not needs_support(sentence):
            return None
        if not cited:
            return _UNCITED
        score = _support(sentence, cited)
        return Support(verdict_for(score), round(score, 4))

    def _borne_out(self, sentence: str, held: Support) -> bool:
        if held.verdict != "uncited":
            return held.verdict != "unsupported"
        return verdict_for(_support(sentence, self.desk.passages)) == "supported"

    def _segment(self, sentence: str, cites: Sequence["_Mark"], held: Support | None) -> Segment:
        quotes = [(mark.passage, _nearest_words(mark.words_in(sentence), sentence, mark.passage)) for mark in cites]
        if self.selection and quotes:
            quotes = [(self.selection, quotes[0][1])]
        cited = tuple(dict.fromkeys(passage for passage, _ in quotes))
        return Segment(sentence.strip(), cited, support=held, quotes=tuple(quotes))

    def _pieces(self, sentence: str, cites: Sequence["_Mark"]) -> list[Piece]:
        pieces: list[Piece] = []
        start = 0
        for place, marks in groupby(cites, key=attrgetter("place")):
            pieces += [sentence[start:place], *self._marks([mark.passage for mark in marks])]
            start = place
        return [piece for piece in [*pieces, sentence[start:]] if piece != ""]

    def _marks(self, passages: Sequence[Passage]) -> list[Piece]:
        return [Cite(self.selection)] if self.selection else [Cite(passage) for passage in passages]


def _support(words: str, passages: Sequence[Passage]) -> float:
    return _held(words.strip(" \n.!?"), tuple(passage.chunk.text for passage in passages))


@lru_cache(maxsize=256)
def _held(words: str, texts: tuple[str, ...]) -> float:
    """A sentence is mostly held against the same texts twice: at its mark, and at its end."""
    return support_score(words, texts)


def _nearest_words(words: str, sentence: str, passage: Passage) -> str:
    """The words of a passage that those of a sentence most likely rest on; none, where it speaks of something else."""
    text = passage.chunk.text
    said, around = set(stems(words)), set(stems(sentence))
    quotable = [one for one in split_units(text) if one.kind in ("sentence", "item")] or list(split_units(text))
    shared = [(len(said & (spoken := _stems(unit_text(text, one)))), len(around & spoken)) for one in quotable]
    best = max(range(len(quotable)), key=shared.__getitem__, default=None)
    if best is None or not any(shared[best]):
        return ""
    return text[quotable[best].start : quotable[best].end]


@lru_cache(maxsize=2048)
def _stems(words: str) -> frozenset[str]:
    return frozenset(stems(words))

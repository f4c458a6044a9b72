"""What counts as found: the right file, the right heading, the right passage. Pure.

Each thing a question wants is the set of chunks that would give it; one ranking of passages is held against all
three. So `hit@5` always means "among the first five passages a reader would be shown".
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log2

from citewell.evaluate.questions import Question, Span
from citewell.models import Chunk, Document

DEPTH = 10
"""How far down a ranking is looked at."""

Item = frozenset[str]
"""The ids of the chunks that give one wanted thing: any of them will do."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A document and its chunks, as the library holds them."""

    document: Document
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a question should find, and what it names that is not there to be found."""

    files: tuple[Item, ...]
    headings: tuple[Item, ...]
    passages: tuple[Item, ...]
    missing_files: tuple[str, ...]
    missing_headings: tuple[str, ...]
    unsaid: bool
    """Whether its files say none of its key answers word for word, so that no quotation can."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the first wanted thing stands (from 1; None: not in the first ten), and how well all of them do."""

    rank: int | None
    ndcg: float

    @property
    def reciprocal(self) -> float:
        return 1 / self.rank if self.rank else 0.0

    def within(self, first: int) -> bool:
        return self.rank is not None and self.rank <= first


def wanted(question: Question, kept: Mapping[str, Kept]) -> Wanted:
    """What the question wants of the documents that it names; `kept` holds those that are there, by path."""
    if question.unanswerable:
        return Wanted((), (), (), (), (), unsaid=False)
    files = {path: frozenset(one.id for one in _chunks(kept, path)) for path in question.files}
    headings = {
        (path, heading): frozenset(one.id for one in _chunks(kept, path) if _under(one, heading))
        for path, heading in question.sections
    }
    texts = [kept[path].document.text for path in question.files if path in kept]
    return Wanted(
        files=tuple(files.values()),
        headings=tuple(headings.values()),
        passages=tuple(_passages(question, kept)),
        missing_files=tuple(
            path for path in dict.fromkeys([*files, *(path for path, _ in headings)]) if path not in kept
        ),
        missing_headings=tuple(f"{path}#{name}" for (path, name), ids in headings.items() if path in kept and not ids),
        unsaid=bool(texts and question.answers) and not any(says(text, question.answers) for text in texts),
    )


def place(ranking: Sequence[str], items: Collection[Item]) -> Placement | None:
    """How a ranking of chunk ids serves what is wanted; None where nothing is.

    In nDCG each wanted thing counts once, where it is first given: a second passage of the same file earns nothing.
    """
    if not items:
        return None
    ranks = [_rank(ranking, item) for item in items]
    gain = sum(_discounted(rank) for rank in ranks if rank)
    best = sum(_discounted(rank) for rank in range(1, min(len(items), DEPTH) + 1))
    return Placement(min((rank for rank in ranks if rank), default=None), min(gain / best, 1.0))


def flat(text: str) -> str:
    """A text to be compared: without emphasis and code marks, in one case, with single spaces."""
    return " ".join(re.sub(r"[*_`\\]", "", text).split()).casefold()


def says(text: str, answers: Sequence[str]) -> bool:
    """Whether a text says one of the answers, whatever the spacing, case and emphasis."""
    said = flat(text)
    return any(key in said for key in map(flat, answers) if key)


def _rank(ranking: Sequence[str], item: Item) -> int | None:
    return next((rank for rank, chunk in enumerate(ranking[:DEPTH], start=1) if chunk in item), None)


def _discounted(rank: int) -> float:
    return 1 / log2(rank + 1)


def _chunks(kept: Mapping[str, Kept], path: str) -> Sequence[Chunk]:
    return kept[path].chunks if path in kept else ()


def _under(chunk: Chunk, heading: str) -> bool:
    """Whether a chunk stands under a heading, at any depth, or holds it: one without a text of its own is joined to
    the next section. No heading means the whole page."""
    name = flat(heading)
    return not name or name in (flat(one) for one in (chunk.section, *chunk.headings)) or name in _held_headings(chunk)


def _held_headings(chunk: Chunk) -> list[str]:
    lines = re.findall(r"^#{1,6}[ \t]+(.+)$", chunk.text, re.MULTILINE)
    return [flat(re.sub(r"\s*\{#[^}]*\}\s*$|\s+#+\s*$", "", line)) for line in lines]


def _passages(question: Question, kept: Mapping[str, Kept]) -> list[Item]:
    """The passages that answer: those at the spans or on the pages named, else those that say a key answer.

    Key answers are alternatives, so the passages that say them are one wanted thing. Where no passage can be
    told (the answers are paraphrases, the spans stand nowhere), nothing is wanted and nothing is scored.
    """
    documents = [kept[path] for path in question.files if path in kept]
    if question.spans:
        items = [_at(span, documents) for span in question.spans]
    elif question.pages:
        items = [_on_page(kept[path], page) for path, page in question.pages if path in kept]
    else:
        items = [frozenset(one.id for each in documents for one in each.chunks if says(one.text, question.answers))]
    return [item for item in items if item]


def _at(span: Span, documents: Sequence[Kept]) -> Item:
    """The chunks that overlap a span. Its text, where given, outweighs offsets that were counted in another copy."""
    ids: set[str] = set()
    for one in documents:
        text = one.document.text
        start = span.start if not span.text or text[span.start : span.end] == span.text else text.find(span.text)
        end = start + span.end - span.start
        if start != -1:
            ids.update(chunk.id for chunk in one.chunks if chunk.start < end and chunk.end > start)
    return frozenset(ids)


def _on_page(kept: Kept, page: int) -> Item:
    """The chunks on a page. A chunk knows only where it begins; it is taken to reach to the page on which the next
    one does, which was so for 233 of 255 chunks in six PDFs (the others end a page earlier)."""
    begins = [chunk.page or 0 for chunk in kept.chunks]
    return frozenset(
        chunk.id
        for chunk, (first, last) in zip(kept.chunks, pairwise([*begins, page]), strict=True)
        if first and first <= page <= last
    )

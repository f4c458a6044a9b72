"""Which chunks are relevant to a question, by file, by heading and by passage, and how a ranking serves them. Pure.

All three compare the same ranking of passages, so `hit@5` always means "among the first five passages".
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from citewell.evaluate.metrics import first_rank, first_rank_ndcg, reciprocal_rank
from citewell.evaluate.questions import Question, Span
from citewell.models import Chunk, Document

DEPTH = 10
"""How many passages of a ranking are scored."""

Item = frozenset[str]
"""The ids of the chunks of one relevant file, heading or passage: any of them is a hit."""


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document and its chunks, as they are in the library."""

    document: Document
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Relevant:
    """The chunks that a question should retrieve, and what it names that the project does not have."""

    files: tuple[Item, ...]
    headings: tuple[Item, ...]
    passages: tuple[Item, ...]
    missing_files: tuple[str, ...]
    missing_headings: tuple[str, ...]
    answers_not_in_files: bool
    """Whether its files contain none of its key answers word for word, so that no quotation can."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The rank of the first relevant item (from 1; None: not in the first ten), and the nDCG of all of them."""

    rank: int | None
    ndcg: float

    @property
    def reciprocal_rank(self) -> float:
        return reciprocal_rank(self.rank)

    def is_hit_at(self, depth: int) -> bool:
        return self.rank is not None and self.rank <= depth


def find_relevant(question: Question, documents: Mapping[str, IndexedDocument]) -> Relevant:
    """The chunks that are relevant to a question, in the documents that it names (by path)."""
    if question.unanswerable:
        return Relevant((), (), (), (), (), answers_not_in_files=False)
    files = {path: frozenset(chunk.id for chunk in _chunks(documents, path)) for path in question.files}
    headings = {
        (path, heading): frozenset(chunk.id for chunk in _chunks(documents, path) if _is_under(chunk, heading))
        for path, heading in question.sections
    }
    texts = [documents[path].document.text for path in question.files if path in documents]
    return Relevant(
        files=tuple(files.values()),
        headings=tuple(headings.values()),
        passages=tuple(_relevant_passages(question, documents)),
        missing_files=tuple(
            path for path in dict.fromkeys([*files, *(path for path, _ in headings)]) if path not in documents
        ),
        missing_headings=tuple(
            f"{path}#{name}" for (path, name), ids in headings.items() if path in documents and not ids
        ),
        answers_not_in_files=bool(texts and question.answers)
        and not any(contains_answer(text, question.answers) for text in texts),
    )


def place_items(ranking: Sequence[str], items: Collection[Item]) -> Placement | None:
    """Where a ranking of chunk ids has the relevant items; None if there are none.

    In nDCG each item counts once, at its first chunk: a second passage of the same file earns nothing.
    """
    if not items:
        return None
    ranks = [first_rank(ranking, item, depth=DEPTH) for item in items]
    return Placement(min((rank for rank in ranks if rank), default=None), first_rank_ndcg(ranks, depth=DEPTH))


def normalize_text(text: str) -> str:
    """A text for comparison: without emphasis and code marks, in one case, with single spaces."""
    return " ".join(re.sub(r"[*_`\\]", "", text).split()).casefold()


def contains_answer(text: str, answers: Sequence[str]) -> bool:
    """Whether a text contains one of the answers; spacing, case and emphasis do not matter."""
    normalized = normalize_text(text)
    return any(key in normalized for key in map(normalize_text, answers) if key)


def _chunks(documents: Mapping[str, IndexedDocument], path: str) -> Sequence[Chunk]:
    return documents[path].chunks if path in documents else ()


def _is_under(chunk: Chunk, heading: str) -> bool:
    """Whether a chunk is under a heading, at any depth, or contains it: a heading without text of its own is joined
    to the next section. No heading means the whole page."""
    name = normalize_text(heading)
    above = map(normalize_text, (chunk.section, *chunk.headings))
    return not name or name in above or name in _contained_headings(chunk)


def _contained_headings(chunk: Chunk) -> list[str]:
    lines = re.findall(r"^#{1,6}[ \t]+(.+)$", chunk.text, re.MULTILINE)
    return [normalize_text(re.sub(r"\s*\{#[^}]*\}\s*$|\s+#+\s*$", "", line)) for line in lines]


def _relevant_passages(question: Question, documents: Mapping[str, IndexedDocument]) -> list[Item]:
    """The passages that answer: those at the question's spans or pages, else those that contain a key answer.

    Key answers are alternatives, so the passages that contain them are one item. If no passage is known (the
    answers are paraphrases, the spans match nothing), no item is relevant and nothing is scored.
    """
    named = [documents[path] for path in question.files if path in documents]
    if question.spans:
        items = [_chunks_at(span, named) for span in question.spans]
    elif question.pages:
        items = [_chunks_on_page(documents[path], page) for path, page in question.pages if path in documents]
    else:
        chunks = [chunk for document in named for chunk in document.chunks]
        items = [frozenset(chunk.id for chunk in chunks if contains_answer(chunk.text, question.answers))]
    return [item for item in items if item]


def _chunks_at(span: Span, documents: Sequence[IndexedDocument]) -> Item:
    """The chunks that overlap a span. If the span has a text, it overrules offsets counted in another copy."""
    ids: set[str] = set()
    for indexed in documents:
        text = indexed.document.text
        start = span.start if not span.text or text[span.start : span.end] == span.text else text.find(span.text)
        end = start + span.end - span.start
        if start != -1:
            ids.update(chunk.id for chunk in indexed.chunks if chunk.start < end and chunk.end > start)
    return frozenset(ids)


def _chunks_on_page(indexed: IndexedDocument, page: int) -> Item:
    """The chunks on a page. A chunk knows only its first page; its last one is assumed to be the first page of the
    next chunk, which was so for 233 of 255 chunks in six PDFs (the others end a page earlier)."""
    first_pages = [chunk.page or 0 for chunk in indexed.chunks]
    return frozenset(
        chunk.id
        for chunk, (first, last) in zip(indexed.chunks, pairwise([*first_pages, page]), strict=True)
        if first and first <= page <= last
    )

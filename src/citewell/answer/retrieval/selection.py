"""A reader's selection, read as passages: what it says about a question, with nothing else in view. No index is asked.

Long selections are read in parts; an answer cites the selection as a whole.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np

from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval.rerank import score_passages
from citewell.answer.retrieval.search import Retrieval, weigh_words
from citewell.models import Chunk, Passage, Vector, Window, chunk_id, content_hash
from citewell.ports import Embeddable, Embedding
from citewell.similarity_scale import SimilarityScale
from citewell.text import FENCE, closes_fence, detect_language, keywords, sentence_stems

NO_DOCUMENT = UUID(int=0)
"""What a selection is part of, as far as we know."""

_PART = 2400  # characters, about as much as a chunk has
_LONGEST = 8000  # of a part that has no paragraphs
# Bytes that are embedded, which is as near as bytes come to tokens; of a longer selection, the parts that speak most of
# the question. At the model's speed on two cores that is a second or two.
_READ = 20_000
_ENDS = ("\n", ". ", "。", " ")


async def retrieve_from_selection(question: str, selection: str, *, engines: AnswerEngines, limit: int) -> Retrieval:
    """The parts of a selection that speak most about the question, and how much each of its words matters.

    Without a question, those that say best what all of it says.
    """
    parts = [_chunk(selection, start, end) for start, end in part_spans(selection)]
    spoken = [tuple(map(tuple, sentence_stems(part.text, detect_language(part.text)))) for part in parts]
    said = [frozenset(sentence) for part in spoken for sentence in part]
    counts = {stem: sum(stem in one for one in said) for stem in keywords(question)}
    bare = [Passage(part, 0.0, (), sentence_stems=words) for part, words in zip(parts, spoken, strict=True)]
    found = weigh_words(bare, total=len(said), frequencies=counts, limit=len(bare))
    read: dict[int, Embedding] = {}
    for place in _worth_reading(question, bare, found):
        async with engines.embedder_call():  # part by part, since each has to be ready in time
            (read[place],) = await engines.embedder.embed_passages([Embeddable("", parts[place].text)])
    vector = await _wanted(question, list(read.values()), engines)
    scale = await engines.scale()
    passages = [_near(one, read.get(place), vector, scale) for place, one in enumerate(bare)]
    order = score_passages(question, passages, found.weights)
    best = sorted(range(len(passages)), key=lambda place: -order[place])[:limit]
    return replace(found, passages=tuple(passages[place] for place in best), background=0.0, from_selection=True)


async def _wanted(question: str, read: Sequence[Embedding], engines: AnswerEngines) -> Vector:
    """What a part should be near to: the question, or else the middle of all that was read."""
    if question:
        async with engines.embedder_call():
            return await engines.embedder.embed_query(question)
    centre = np.concatenate([one.vectors for one in read]).sum(axis=0)
    middle: Vector = centre / max(float(np.linalg.norm(centre)), 1e-6)
    return middle


def selection_as_passage(selection: str) -> Passage:
    """The selection as the one passage that an answer from it cites."""
    return Passage(_chunk(selection, 0, len(selection)), 1.0, ())


def part_spans(text: str) -> list[tuple[int, int]]:
    """Where the parts of a text begin and end: at paragraphs, where there are any, and not inside code."""
    return [(start, end) for start, end in _spans(text) if text[start:end].strip()]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    cuts = [*_paragraphs(text), len(text)]
    start = 0
    while start < len(text):
        place = bisect_right(cuts, start + _PART)
        end = cuts[place - 1] if place else start
        if end <= start:
            end = cuts[place]  # the next there is
        if end - start > _LONGEST:
            places = (text.rfind(mark, start, start + _PART) + len(mark) for mark in _ENDS)
            end = next((place for place in places if place > start + _PART // 2), start + _PART)
        yield start, end
        start = end


def _paragraphs(text: str) -> Iterator[int]:
    """Where paragraphs begin, other than the first."""
    start, fence, blank = 0, "", False
    for line in text.split("\n"):
        if blank and line.strip() and not fence and start:
            yield start
        if fence:
            fence = "" if closes_fence(line, fence) else fence
        elif opening := FENCE.match(line):
            fence = opening["fence"]
        blank = not line.strip()
        start += len(line) + 1


def _worth_reading(question: str, parts: Sequence[Passage], found: Retrieval) -> list[int]:
    """The parts to embed: all of them, or those that speak most of the question."""
    order = score_passages(question, parts, found.weights)
    kept: list[int] = []
    length = 0
    for place in sorted(range(len(parts)), key=lambda place: -order[place]):
        length += len(parts[place].chunk.text.encode("utf-8", "surrogatepass"))
        if length <= _READ or not kept:
            kept.append(place)
    return sorted(kept)


def _near(part: Passage, read: Embedding | None, vector: Vector, scale: SimilarityScale) -> Passage:
    """The part with how close each of its windows is to the question; what was not read is not close."""
    if read is None:
        return part
    cosines = np.clip(scale.read(read.vectors @ vector), 0.0, 1.0).tolist()
    centre = read.vectors.sum(axis=0)
    near = float(centre @ vector) / max(float(np.linalg.norm(centre)), 1e-6)
    mean = float(np.clip(scale.read(near), 0.0, 1.0))
    windows = tuple(Window(start, end, score) for (start, end), score in zip(read.spans, cosines, strict=True))
    return Passage(part.chunk, max(cosines), windows, mean_score=mean, sentence_stems=part.sentence_stems)


def _chunk(selection: str, start: int, end: int) -> Chunk:
    """A stretch of the selection, of no document: its offsets and lines are the selection's own."""
    text = selection[start:end]
    content = content_hash("", "", text)
    line = 1 + selection.count("\n", 0, start)
    return Chunk(
        id=chunk_id(NO_DOCUMENT, content),
        document_id=NO_DOCUMENT,
        content_hash=content,
        index=0,
        source="",
        chapter="",
        section="",
        headings=(),
        text=text,
        start=start,
        end=end,
        first_line=line,
        last_line=line + text.count("\n"),
    )

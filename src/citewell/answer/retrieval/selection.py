"""Reads a reader's selection as passages, ranked by how well they answer. The index is never searched.

Long selections are split into parts; an answer cites the selection as a whole.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np

from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval.rerank import Retrieval, score_passages, weigh_words
from citewell.models import Chunk, Passage, Vector, Window, chunk_id, content_hash
from citewell.ports import Embeddable, Embedding
from citewell.similarity_scale import SimilarityScale
from citewell.text import FENCE, closes_fence, detect_language, keywords, sentence_stems

NO_DOCUMENT = UUID(int=0)
"""The document id of a selection: nobody knows which document it comes from."""

_PART_CHARACTERS = 2400  # about as long as a chunk
_MAX_PART_CHARACTERS = 8000  # of a part without paragraphs
# Bytes are the best estimate of tokens without a tokenizer. Of a longer selection only the parts that mention most of
# the question are embedded. This takes a second or two on two cores.
_MAX_EMBEDDED_BYTES = 20_000
_BREAKS = ("\n", ". ", "。", " ")  # where a long paragraph is split, best first


async def retrieve_from_selection(question: str, selection: str, *, engines: AnswerEngines, limit: int) -> Retrieval:
    """The parts of a selection that answer best, and how much each word of the question matters there.

    Without a question, the parts that represent the whole selection best.
    """
    chunks = [_selection_chunk(selection, start, end) for start, end in part_spans(selection)]
    stems_by_chunk = [tuple(map(tuple, sentence_stems(chunk.text, detect_language(chunk.text)))) for chunk in chunks]
    sentences = [frozenset(sentence) for chunk_sentences in stems_by_chunk for sentence in chunk_sentences]
    counts = {stem: sum(stem in sentence for sentence in sentences) for stem in keywords(question)}
    unscored = [
        Passage(chunk, 0.0, (), sentence_stems=chunk_sentences)
        for chunk, chunk_sentences in zip(chunks, stems_by_chunk, strict=True)
    ]
    retrieval = weigh_words(unscored, total=len(sentences), frequencies=counts, limit=len(unscored))
    embeddings: dict[int, Embedding] = {}
    for index in _parts_to_embed(question, unscored, retrieval):
        async with engines.embedder_call():  # part by part, since each call has a timeout
            (embeddings[index],) = await engines.embedder.embed_passages([Embeddable("", chunks[index].text)])
    target = await _target_vector(question, list(embeddings.values()), engines)
    scale = await engines.scale()
    passages = [
        _score_similarity(passage, embeddings.get(index), target, scale) for index, passage in enumerate(unscored)
    ]
    scores = score_passages(question, passages, retrieval.weights)
    best = sorted(range(len(passages)), key=lambda index: -scores[index])[:limit]
    return replace(retrieval, passages=tuple(passages[index] for index in best), background=0.0, from_selection=True)


def selection_as_passage(selection: str) -> Passage:
    """The whole selection as the one passage that an answer from it cites."""
    return Passage(_selection_chunk(selection, 0, len(selection)), 1.0, (), cosine=1.0)


def part_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each part of a text: split at paragraphs where there are any, never inside code."""
    return [(start, end) for start, end in _cut_into_parts(text) if text[start:end].strip()]


def _cut_into_parts(text: str) -> Iterator[tuple[int, int]]:
    cuts = [*_paragraph_starts(text), len(text)]
    start = 0
    while start < len(text):
        index = bisect_right(cuts, start + _PART_CHARACTERS)
        end = cuts[index - 1] if index else start
        if end <= start:
            end = cuts[index]  # the next there is
        if end - start > _MAX_PART_CHARACTERS:
            ends = (text.rfind(mark, start, start + _PART_CHARACTERS) + len(mark) for mark in _BREAKS)
            end = next((end for end in ends if end > start + _PART_CHARACTERS // 2), start + _PART_CHARACTERS)
        yield start, end
        start = end


def _paragraph_starts(text: str) -> Iterator[int]:
    """Where each paragraph but the first begins; a fenced code block is not split."""
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


def _parts_to_embed(question: str, parts: Sequence[Passage], retrieval: Retrieval) -> list[int]:
    """The places of the parts to embed: all, or as many as allowed of those that mention most of the question."""
    scores = score_passages(question, parts, retrieval.weights)
    indexes: list[int] = []
    length = 0
    for index in sorted(range(len(parts)), key=lambda index: -scores[index]):
        length += len(parts[index].chunk.text.encode("utf-8", "surrogatepass"))
        if length <= _MAX_EMBEDDED_BYTES or not indexes:
            indexes.append(index)
    return sorted(indexes)


async def _target_vector(question: str, embeddings: Sequence[Embedding], engines: AnswerEngines) -> Vector:
    """What parts are compared with: the question's vector, or without a question the centre of all parts."""
    if question:
        async with engines.embedder_call():
            return await engines.embedder.embed_query(question)
    vector_sum = np.concatenate([embedding.vectors for embedding in embeddings]).sum(axis=0)
    centre: Vector = vector_sum / max(float(np.linalg.norm(vector_sum)), 1e-6)
    return centre


def _score_similarity(part: Passage, embedding: Embedding | None, target: Vector, scale: SimilarityScale) -> Passage:
    """The part with the similarity of each of its windows to the target; 0 where it was not embedded."""
    if embedding is None:
        return part
    cosines = embedding.vectors @ target
    similarities = np.clip(scale.read(cosines), 0.0, 1.0).tolist()
    vector_sum = embedding.vectors.sum(axis=0)
    mean_cosine = float(vector_sum @ target) / max(float(np.linalg.norm(vector_sum)), 1e-6)
    mean_score = float(np.clip(scale.read(mean_cosine), 0.0, 1.0))
    windows = tuple(Window(*span, score) for span, score in zip(embedding.spans, similarities, strict=True))
    cosine = float(np.clip(cosines.max(), 0.0, 1.0))
    return replace(part, score=max(similarities), windows=windows, mean_score=mean_score, cosine=cosine)


def _selection_chunk(selection: str, start: int, end: int) -> Chunk:
    """A part of the selection as a chunk of no document: offsets and lines are those of the selection."""
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

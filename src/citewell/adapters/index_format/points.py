"""Converts between chunks and points of an index: payload, BM25 term weights, window scores. Knows no engine."""

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit
from uuid import UUID, uuid5
from zlib import crc32

import numpy as np

from citewell.errors import StoreUnavailable
from citewell.models import Chunk, Matrix, Passage, Vector, Window
from citewell.ports import Embedding, Entry
from citewell.similarity_scale import SimilarityScale
from citewell.text import bm25_weight, content_words, detect_language, keywords, sentence_stems, stems

SparseTerms: TypeAlias = tuple[list[int], list[float]]
"""Dimensions of a sparse vector, and their values."""


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """A chunk as every engine stores it: the vectors of its windows, its BM25 terms, and its payload."""

    id: UUID
    vectors: Matrix
    terms: SparseTerms
    payload: dict[str, Any]


def to_point(entry: Entry, *, dimensions: int) -> IndexPoint:
    """The point of a chunk; raises StoreUnavailable for vectors that no engine should get."""
    vectors, chunk = entry.embedding.vectors, entry.chunk
    # Engines accept NaN, and some keep half of a batch that they refuse.
    if vectors.ndim != 2 or vectors.shape[1] != dimensions or not np.isfinite(vectors).all():
        raise StoreUnavailable(f"{chunk.source}: the embedder gave vectors that cannot be stored ({vectors.shape})")
    language = detect_language(chunk.text)
    text_stems = sentence_stems(chunk.text, language)
    return IndexPoint(
        id=uuid5(entry.project, chunk.id),
        vectors=vectors,
        terms=_chunk_terms(text_stems, stems(chunk.label, language)),
        payload=_to_payload(entry, text_stems),
    )


def _matchable_urls(chunk: Chunk) -> list[str]:
    """What a URL prefix may match: the live page's URL, with and without its host; else the file's path."""
    if chunk.url is None:
        return [normalize_url(f"/{chunk.source}")]
    url = urlsplit(chunk.url)
    return [normalize_url(chunk.url), normalize_url(chunk.url.removeprefix(f"{url.scheme}://{url.netloc}"))]


def normalize_url(url: str) -> str:
    """Percent-encode a URL as browsers do, so that `/docs/über` and `/docs/%C3%BCber` are equal."""
    return quote(url, safe="/:?#[]@!$&'()*+,;=%~")


def _chunk_terms(text_stems: Sequence[Sequence[str]], label_stems: Sequence[str]) -> SparseTerms:
    """A chunk's BM25 term weights without IDF, which the engine adds; title and headings count twice."""
    counts = Counter(stem for sentence in text_stems for stem in sentence)
    for stem in label_stems:
        counts[stem] += 2
    length = counts.total()
    weights = {term_of(stem): bm25_weight(count, length) for stem, count in counts.items()}
    return list(weights), list(weights.values())


def query_terms(question: str) -> SparseTerms:
    """The stems of a question's words, each with weight 1."""
    content_stems = stems(" ".join(content_words(question)), detect_language(question))
    dimensions = sorted({term_of(stem) for stem in [*keywords(question), *content_stems]})
    return dimensions, [1.0] * len(dimensions)


def term_of(stem: str) -> int:
    """The dimension of a stem in the sparse vector; a few in a hundred thousand collide, which does no harm."""
    return crc32(stem.encode("utf-8", "surrogatepass"))


def _to_payload(entry: Entry, text_stems: Sequence[Sequence[str]]) -> dict[str, Any]:
    """What the index stores of a chunk beside its vectors; `to_passages` reads it back."""
    chunk = entry.chunk
    return {
        "project_id": str(entry.project),
        "document_id": str(chunk.document_id),
        "chunk_id": chunk.id,
        "content_hash": chunk.content_hash,
        "chunk_index": chunk.index,
        "filename": chunk.source,
        "chapter": chunk.chapter,
        "section": chunk.section,
        "headings": list(chunk.headings),
        "text": chunk.text,
        "words": "\n".join(map(" ".join, text_stems)),
        "place": [chunk.start, chunk.end, chunk.first_line, chunk.last_line],
        "page": chunk.page,
        "source_url": chunk.url,
        "matchable_urls": _matchable_urls(chunk),
        "windows": [list(span) for span in entry.embedding.spans],
    }


def to_passages(
    rows: Sequence[tuple[dict[str, Any], Sequence[Sequence[float]]]], vector: Vector, scale: SimilarityScale
) -> tuple[Passage, ...]:
    """Payloads and window vectors as passages, with the similarity of each window, and of their mean."""
    if not rows:
        return ()
    # The engine gives lists of floats. Packed row by row they become an array in a third of numpy's own time, and
    # nothing is lost: they have 32 bits.
    pack = struct.Struct(f"{len(vector)}f").pack
    packed = [[pack(*window) for window in windows] for _, windows in rows]
    ends = list(accumulate(map(len, packed), initial=0))
    vectors = np.frombuffer(b"".join(chain.from_iterable(packed)), np.float32).reshape(-1, len(vector))
    cosines = vectors @ vector
    best_cosines = np.clip(np.maximum.reduceat(cosines, ends[:-1]), 0.0, 1.0).tolist()
    similarities = np.clip(scale.read(cosines), 0.0, 1.0).tolist()
    sums = np.add.reduceat(vectors, ends[:-1], axis=0)
    mean_cosines = sums @ vector / np.maximum(np.linalg.norm(sums, axis=1), 1e-6)
    mean_scores = np.clip(scale.read(mean_cosines), 0.0, 1.0).tolist()
    return tuple(
        _to_passage(payload, similarities[first:last], mean_score=mean_score, cosine=cosine)
        for (payload, _), (first, last), mean_score, cosine in zip(
            rows, pairwise(ends), mean_scores, best_cosines, strict=True
        )
    )


def to_entry(payload: dict[str, Any], vectors: Sequence[Sequence[float]]) -> Entry:
    """The chunk of a point with its embedding: what `to_point` was given."""
    spans = tuple((start, end) for start, end in payload["windows"])
    embedding = Embedding(np.array(vectors, dtype=np.float32), spans)
    return Entry(UUID(payload["project_id"]), _to_chunk(payload), embedding)


def _to_chunk(payload: dict[str, Any]) -> Chunk:
    start, end, first_line, last_line = payload["place"]
    return Chunk(
        id=payload["chunk_id"],
        document_id=UUID(payload["document_id"]),
        content_hash=payload["content_hash"],
        index=payload["chunk_index"],
        source=payload["filename"],
        chapter=payload["chapter"],
        section=payload["section"],
        headings=tuple(payload["headings"]),
        text=payload["text"],
        start=start,
        end=end,
        first_line=first_line,
        last_line=last_line,
        page=payload["page"],
        url=payload["source_url"],
    )


def _to_passage(payload: dict[str, Any], similarities: list[float], *, mean_score: float, cosine: float) -> Passage:
    spans = payload["windows"]
    windows = tuple(Window(first, last, score) for (first, last), score in zip(spans, similarities, strict=True))
    text_stems = tuple(tuple(line.split(" ")) for line in payload["words"].split("\n"))
    best = max(similarities)
    return Passage(_to_chunk(payload), best, windows, mean_score=mean_score, cosine=cosine, sentence_stems=text_stems)

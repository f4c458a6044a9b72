"""How a chunk lies in an index and comes back: payload, words by BM25, windows. Pure, and knows no engine."""

import struct
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit
from uuid import UUID
from zlib import crc32

import numpy as np

from citewell.models import Chunk, Passage, Vector, Window
from citewell.ports import Entry
from citewell.similarity_scale import SimilarityScale
from citewell.text import bm25_weight, content_words, detect_language, keywords, stems

Sparse: TypeAlias = tuple[list[int], list[float]]
"""Dimensions and their values."""


def _addresses(chunk: Chunk) -> list[str]:
    """What a URL prefix may match: the live page's address, with and without its host; else the file's path."""
    if chunk.url is None:
        return [normalize_url(f"/{chunk.source}")]
    host = urlsplit(chunk.url)
    return [normalize_url(chunk.url), normalize_url(chunk.url.removeprefix(f"{host.scheme}://{host.netloc}"))]


def normalize_url(address: str) -> str:
    """An address as browsers send it, so that `/docs/über` and `/docs/%C3%BCber` are one."""
    return quote(address, safe="/:?#[]@!$&'()*+,;=%~")


def weighted_words(spoken: Sequence[Sequence[str]], named: Sequence[str]) -> Sparse:
    """A chunk's words by BM25, without the rarity that the engine adds; its title and headings count twice."""
    counts = Counter(stem for sentence in spoken for stem in sentence)
    for stem in named:
        counts[stem] += 2
    length = counts.total()
    by_key = {_key(stem): bm25_weight(count, length) for stem, count in counts.items()}
    return list(by_key), list(by_key.values())


def query_words(question: str) -> Sparse:
    """The question's own words, each once."""
    parts = stems(" ".join(content_words(question)), detect_language(question))
    keys = sorted({_key(stem) for stem in [*keywords(question), *parts]})
    return keys, [1.0] * len(keys)


def _key(stem: str) -> int:
    """The dimension of a stem; two of a hundred thousand may share one, which costs nothing."""
    return crc32(stem.encode("utf-8", "surrogatepass"))


def payload(entry: Entry, spoken: Sequence[Sequence[str]]) -> dict[str, Any]:
    chunk = entry.chunk
    return {
        "project": str(entry.project),
        "document": str(chunk.document_id),
        "id": chunk.id,
        "content_hash": chunk.content_hash,
        "index": chunk.index,
        "source": chunk.source,
        "chapter": chunk.chapter,
        "section": chunk.section,
        "headings": list(chunk.headings),
        "text": chunk.text,
        "words": "\n".join(map(" ".join, spoken)),
        "place": [chunk.start, chunk.end, chunk.first_line, chunk.last_line],
        "page": chunk.page,
        "url": chunk.url,
        "addresses": _addresses(chunk),
        "windows": [list(span) for span in entry.embedding.spans],
    }


def passages(
    found: Sequence[tuple[dict[str, Any], Sequence[Sequence[float]]]], vector: Vector, scale: SimilarityScale
) -> tuple[Passage, ...]:
    """Payloads and windows as passages, with how close each window, and the mean of them, is to the question."""
    if not found:
        return ()
    # The engine gives lists of floats. Packed row by row they become an array in a third of numpy's own time, and
    # nothing is lost: they have 32 bits.
    pack = struct.Struct(f"{len(vector)}f").pack
    packed = [[pack(*row) for row in rows] for _, rows in found]
    ends = list(accumulate(map(len, packed), initial=0))
    vectors = np.frombuffer(b"".join(chain.from_iterable(packed)), np.float32).reshape(-1, len(vector))
    cosines = np.clip(scale.read(vectors @ vector), 0.0, 1.0).tolist()
    centres = np.add.reduceat(vectors, ends[:-1], axis=0)
    near = centres @ vector / np.maximum(np.linalg.norm(centres, axis=1), 1e-6)
    wholes = np.clip(scale.read(near), 0.0, 1.0).tolist()
    return tuple(
        _passage(stored, cosines[first:last], whole)
        for (stored, _), (first, last), whole in zip(found, pairwise(ends), wholes, strict=True)
    )


def _passage(stored: dict[str, Any], cosines: list[float], whole: float) -> Passage:
    start, end, first_line, last_line = stored["place"]
    windows = tuple(Window(first, last, score) for (first, last), score in zip(stored["windows"], cosines, strict=True))
    chunk = Chunk(
        id=stored["id"],
        document_id=UUID(stored["document"]),
        content_hash=stored["content_hash"],
        index=stored["index"],
        source=stored["source"],
        chapter=stored["chapter"],
        section=stored["section"],
        headings=tuple(stored["headings"]),
        text=stored["text"],
        start=start,
        end=end,
        first_line=first_line,
        last_line=last_line,
        page=stored["page"],
        url=stored["url"],
    )
    spoken = tuple(tuple(line.split(" ")) for line in stored["words"].split("\n"))
    return Passage(chunk, max(cosines), windows, mean_score=whole, sentence_stems=spoken)

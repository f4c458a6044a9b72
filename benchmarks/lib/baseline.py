"""The baseline that Citewell is compared with: a plain RAG pipeline of dense search, BM25 and rank fusion.

Raw texts are split at paragraphs into pieces of 1,000 characters with an overlap of 200 (short passages stay whole).
Each piece has one vector, of as much text as the model reads, and its stemmed words are weighted by BM25. The first 50
of both rankings are fused by reciprocal rank. The baseline knows nothing of headings, code or windows.
"""

import hashlib
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np
import Stemmer
from numpy.typing import NDArray

from benchmarks.lib.sets import QuestionSet, RawText
from citewell.models import Matrix
from citewell.ports import Embedder

SYSTEMS = ("dense", "BM25", "RRF")
DEPTH = 50  # pieces from each half

_PIECE_CHARACTERS, _OVERLAP_CHARACTERS = 1000, 200
_MAX_WHOLE_CHARACTERS = 3000  # passages of a passage set up to this length stay whole
_K1, _B, _RRF_K = 1.5, 0.75, 60

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_STOP_WORDS = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these they this
    to was will with""".split()  # noqa: SIM905 (a list of words reads best as words)
)
_STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "es": "spanish",
    "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali",
    "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a raw text."""

    source: RawText
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def indexed_text(self) -> str:
        """The text that is embedded and indexed: the first piece begins with the title."""
        return f"{self.source.title}\n{self.text}" if self.source.title and not self.start else self.text


def split_texts(question_set: QuestionSet) -> list[Piece]:
    """Split all texts of the set into pieces. Where questions name exact spans, no passage stays whole."""
    max_whole = (
        _MAX_WHOLE_CHARACTERS
        if question_set.source.kind == "retrieval" and not any(question.spans for question in question_set.questions)
        else _PIECE_CHARACTERS
    )
    return [Piece(text, *span) for text in question_set.texts for span in _spans(text.text, max_whole=max_whole)]


def _spans(text: str, *, max_whole: int) -> Iterator[tuple[int, int]]:
    """The pieces of a text: as many paragraphs, lines or words as fit, with an overlap."""
    if len(text) <= max_whole:
        yield 0, len(text)
        return
    parts: deque[tuple[int, int]] = deque()
    for start, end in _split(text, 0, len(text), ("\n\n", "\n", " ")):
        if parts and end - parts[0][0] > _PIECE_CHARACTERS:
            yield parts[0][0], parts[-1][1]
            while parts and (start - parts[0][0] > _OVERLAP_CHARACTERS or end - parts[0][0] > _PIECE_CHARACTERS):
                parts.popleft()
        parts.append((start, end))
    yield parts[0][0], parts[-1][1]


def _split(text: str, start: int, end: int, separators: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Split a text at the coarsest separator that makes parts no longer than a piece."""
    if end - start <= _PIECE_CHARACTERS:
        yield start, end
    elif not separators:
        yield from ((at, min(at + _PIECE_CHARACTERS, end)) for at in range(start, end, _PIECE_CHARACTERS))
    else:
        while start < end:
            found_at = text.find(separators[0], start, end)
            stop = end if found_at == -1 else found_at + len(separators[0])
            yield from _split(text, start, stop, separators[1:])
            start = stop


def stem_words(text: str, language: str = "") -> list[str]:
    """The stems of a text in its language (default: English); pairs of characters in scripts without spaces."""
    text = text.lower()
    code = language.split("-", maxsplit=1)[0]
    stemmer = Stemmer.Stemmer(_STEMMERS.get(code, "english"))
    words = [word for word in _WORD.findall(_UNSPACED.sub(" ", text)) if word not in _STOP_WORDS]
    pairs = [run[at : at + 2] for run in _UNSPACED.findall(text) for at in range(max(1, len(run) - 1))]
    return [*stemmer.stemWords(words), *pairs]


class Bm25:
    """An inverted index with Okapi BM25 weights."""

    def __init__(self, texts: Sequence[list[str]]) -> None:
        self._number = len(texts)
        lengths = np.array([len(words) for words in texts], dtype=float)
        norms = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1e-9)) if len(texts) else lengths
        by_word: dict[str, list[int]] = defaultdict(list)
        counts: dict[str, list[int]] = defaultdict(list)
        for position, words in enumerate(texts):
            for word, count in Counter(words).items():
                by_word[word].append(position)
                counts[word].append(count)
        self._rarity: dict[str, float] = {}
        self._weights: dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        for word, positions in by_word.items():
            texts_with_word, frequency = np.array(positions), np.array(counts[word], dtype=float)
            self._rarity[word] = log(1 + (self._number - len(texts_with_word) + 0.5) / (len(texts_with_word) + 0.5))
            self._weights[word] = (
                texts_with_word,
                self._rarity[word] * frequency * (_K1 + 1) / (frequency + norms[texts_with_word]),
            )

    def rarity(self, word: str) -> float:
        return self._rarity.get(word, 0.0)

    def rank(self, words: Sequence[str]) -> list[int]:
        """The positions of the best texts that contain any of the words."""
        scores = np.zeros(self._number)
        for word in words:
            if word in self._weights:
                texts_with_word, weights = self._weights[word]
                scores[texts_with_word] += weights
        order = np.argsort(-scores, kind="stable")[:DEPTH]
        return [int(position) for position in order if scores[position] > 0]


class Baseline:
    """The pipeline over one question set."""

    def __init__(self, question_set: QuestionSet, *, embedder: Embedder) -> None:
        self.pieces = split_texts(question_set)
        self._home = question_set.home
        self._embedder = embedder
        self._bm25 = Bm25([stem_words(piece.indexed_text, piece.source.language) for piece in self.pieces])

    async def rank(self, questions: Sequence[tuple[str, str]]) -> dict[str, list[list[Piece]]]:
        """By system: the pieces for each question, best first. A question is its text and language."""
        pieces = await self._embed([piece.indexed_text for piece in self.pieces])
        question_vectors = await self._embed([text for text, _ in questions])
        dense = [
            [int(position) for position in np.argsort(-(pieces @ vector), kind="stable")[:DEPTH]]
            for vector in question_vectors
        ]
        lexical = [self._bm25.rank(stem_words(text, language)) for text, language in questions]
        fused = [fuse_rankings(first, second) for first, second in zip(dense, lexical, strict=True)]
        return {
            system: [[self.pieces[position] for position in positions] for positions in rankings]
            for system, rankings in zip(SYSTEMS, (dense, lexical, fused), strict=True)
        }

    def rarity(self, word: str) -> float:
        """The inverse document frequency of a stem; 0 if no piece contains it."""
        return self._bm25.rarity(word)

    async def _embed(self, texts: Sequence[str]) -> Matrix:
        """A vector for each text, cached on disk."""
        key = hashlib.sha256("\0".join([self._embedder.model, *texts]).encode("utf-8", "replace")).hexdigest()
        path = self._home / f"vectors-{key[:16]}.npy"
        if path.is_file():
            cached: Matrix = np.load(path)
            return cached
        vectors = np.array([await self._embedder.embed_query(text) for text in texts], dtype=np.float32)
        _save(path, vectors)
        return vectors


def fuse_rankings(*rankings: Sequence[int]) -> list[int]:
    """Reciprocal rank fusion; the first ranking decides ties."""
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, place in enumerate(ranking, start=1):
            scores[place] += 1 / (_RRF_K + rank)
    return sorted(scores, key=lambda place: -scores[place])


def _save(path: Path, vectors: Matrix) -> None:
    """Write the file atomically: an interrupted run leaves no partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part.npy")
    np.save(half, vectors)
    half.replace(path)

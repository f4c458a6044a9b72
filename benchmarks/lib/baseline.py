"""The pipeline one writes in an afternoon, to be measured beside: fixed cuts, one vector each, BM25, rank fusion.

Raw texts are cut at paragraphs into pieces of 1,000 characters that share 200 (passages that are short already stay
whole), each piece is embedded once as far as the model reads, its stemmed words are weighed by BM25, and the first 50
of both are fused by reciprocal rank. It knows nothing of headings, code, windows or the rest of Citewell.
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

from benchmarks.lib.sets import Set, Text
from citewell.models import Matrix
from citewell.ports import Embedder

SYSTEMS = ("dense", "BM25", "RRF")
DEPTH = 50  # pieces from each half

_PIECE, _SHARED = 1000, 200  # characters
_SHORT = 3000  # characters up to which a passage of a passage set stays whole
_K1, _B, _RRF_K = 1.5, 0.75, 60

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_STOP = frozenset(
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
    """A stretch of a raw text."""

    source: Text
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def read(self) -> str:
        """What is embedded and weighed: a text begins with its title."""
        return f"{self.source.title}\n{self.text}" if self.source.title and not self.start else self.text


def cut(one: Set) -> list[Piece]:
    """Every text of the set in pieces. Where questions name exact spans, no passage is short."""
    whole = _SHORT if one.source.kind == "retrieval" and not any(asked.spans for asked in one.questions) else _PIECE
    return [Piece(text, *span) for text in one.texts for span in _spans(text.text, whole=whole)]


def _spans(text: str, *, whole: int) -> Iterator[tuple[int, int]]:
    """As many paragraphs, else lines, else words as fit; each begins with the last of those before."""
    if len(text) <= whole:
        yield 0, len(text)
        return
    parts: deque[tuple[int, int]] = deque()
    for start, end in _parts(text, 0, len(text), ("\n\n", "\n", " ")):
        if parts and end - parts[0][0] > _PIECE:
            yield parts[0][0], parts[-1][1]
            while parts and (start - parts[0][0] > _SHARED or end - parts[0][0] > _PIECE):
                parts.popleft()
        parts.append((start, end))
    yield parts[0][0], parts[-1][1]


def _parts(text: str, start: int, end: int, marks: Sequence[str]) -> Iterator[tuple[int, int]]:
    """What is never cut: stretches no longer than a piece, ended by the coarsest mark that makes them so."""
    if end - start <= _PIECE:
        yield start, end
    elif not marks:
        yield from ((at, min(at + _PIECE, end)) for at in range(start, end, _PIECE))
    else:
        while start < end:
            place = text.find(marks[0], start, end)
            stop = end if place == -1 else place + len(marks[0])
            yield from _parts(text, start, stop, marks[1:])
            start = stop


def spoken(text: str, language: str = "") -> list[str]:
    """The stems of a text in its language (English where it is not known); pairs of characters without spaces."""
    text = text.lower()
    code = language.split("-", maxsplit=1)[0]
    stemmer = Stemmer.Stemmer(_STEMMERS.get(code, "english"))
    words = [word for word in _WORD.findall(_UNSPACED.sub(" ", text)) if word not in _STOP]
    pairs = [run[at : at + 2] for run in _UNSPACED.findall(text) for at in range(max(1, len(run) - 1))]
    return [*stemmer.stemWords(words), *pairs]


class Bm25:
    """Okapi weights, kept word by word."""

    def __init__(self, texts: Sequence[list[str]]) -> None:
        self._number = len(texts)
        lengths = np.array([len(words) for words in texts], dtype=float)
        norms = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1e-9)) if len(texts) else lengths
        places: dict[str, list[int]] = defaultdict(list)
        counts: dict[str, list[int]] = defaultdict(list)
        for place, words in enumerate(texts):
            for word, count in Counter(words).items():
                places[word].append(place)
                counts[word].append(count)
        self._rarity: dict[str, float] = {}
        self._weights: dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        for word, found in places.items():
            at, often = np.array(found), np.array(counts[word], dtype=float)
            self._rarity[word] = log(1 + (self._number - len(at) + 0.5) / (len(at) + 0.5))
            self._weights[word] = at, self._rarity[word] * often * (_K1 + 1) / (often + norms[at])

    def rarity(self, word: str) -> float:
        return self._rarity.get(word, 0.0)

    def ranked(self, words: Sequence[str]) -> list[int]:
        """The first texts that say any of the words."""
        scores = np.zeros(self._number)
        for word in words:
            if word in self._weights:
                at, weights = self._weights[word]
                scores[at] += weights
        order = np.argsort(-scores, kind="stable")[:DEPTH]
        return [int(place) for place in order if scores[place] > 0]


class Afternoon:
    """The pipeline over one set; `ranked` gives the pieces each of its parts would give."""

    def __init__(self, one: Set, *, embedder: Embedder) -> None:
        self.pieces = cut(one)
        self._home = one.home
        self._embedder = embedder
        self._bm25 = Bm25([spoken(piece.read, piece.source.language) for piece in self.pieces])

    async def ranked(self, questions: Sequence[tuple[str, str]]) -> dict[str, list[list[Piece]]]:
        """For each part, the pieces found for each question, best first. A question is its text and language."""
        pieces = await self._vectors([piece.read for piece in self.pieces])
        asked = await self._vectors([text for text, _ in questions])
        near = [[int(at) for at in np.argsort(-(pieces @ vector), kind="stable")[:DEPTH]] for vector in asked]
        said = [self._bm25.ranked(spoken(text, language)) for text, language in questions]
        both = [fused(first, second) for first, second in zip(near, said, strict=True)]
        return {
            system: [[self.pieces[at] for at in places] for places in found]
            for system, found in zip(SYSTEMS, (near, said, both), strict=True)
        }

    def rarity(self, word: str) -> float:
        """How much a stem tells pieces apart; nothing where no piece says it."""
        return self._bm25.rarity(word)

    async def _vectors(self, texts: Sequence[str]) -> Matrix:
        """One vector a text, cut where the model stops reading; remembered on disk."""
        key = hashlib.sha256("\0".join([self._embedder.model, *texts]).encode("utf-8", "replace")).hexdigest()
        path = self._home / f"vectors-{key[:16]}.npy"
        if path.is_file():
            kept: Matrix = np.load(path)
            return kept
        made = np.array([await self._embedder.embed_query(text) for text in texts], dtype=np.float32)
        _save(path, made)
        return made


def fused(*rankings: Sequence[int]) -> list[int]:
    """Reciprocal rank fusion; the first ranking settles ties."""
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, place in enumerate(ranking, start=1):
            scores[place] += 1 / (_RRF_K + rank)
    return sorted(scores, key=lambda place: -scores[place])


def _save(path: Path, vectors: Matrix) -> None:
    """Whole or not at all: a run that is stopped leaves no half file to be trusted later."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part.npy")
    np.save(half, vectors)
    half.replace(path)

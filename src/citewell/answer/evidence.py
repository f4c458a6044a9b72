"""A cited text taken apart once, so that any number of sentences can be held against it. Pure.

Knows words, their order and places, numbers, negations and opposites; not what makes a sentence supported.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from math import log
from typing import NamedTuple

from sentencex import get_sentence_boundaries

from citewell.answer.quantities import Quantity, quantities
from citewell.terms import function_words, language, mostly_other_letters, stem, words

Opposite = tuple[int, int]
"""A side of a pair: "more" is (0, 0), "less" is (0, 1)."""

_NO_WORDS = re.compile(r"https?://\S+")
_YES = re.compile(
    r"^(?:(?:no|sure|well|okay|ok|of course|certainly)\s*[,!.:]|(?:yes|yeah)\b[,!.:\s]*)\s*", re.IGNORECASE
)
_MARKS = re.compile(r"[`*_#>|]+|\[\^?\d{1,3}(?:[,–-]\s?\d{1,3})*\]|【\d{1,3}】")
_BREAK = re.compile(r"\n+|(?<=\s)#+\s")
_GRAM = 4
_NO_IN_CHINESE = re.compile("[不没沒無无未]")
_FIRST_WORD = 1996  # where BERT's vocabulary turns from signs to words, most frequent first
_UNKNOWN, _NUMBER = 1.0, 0.9


class Word(NamedTuple):  # made a thousand times per chunk, and much sooner than a frozen dataclass
    """A word as written, and its stem."""

    written: str
    stem: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a text says, by sentence and by word."""

    tongue: str
    other_letters: bool
    sentences: tuple[tuple[Word, ...], ...]
    places: dict[str, list[int]]
    """Where each stem stands, counted in words."""
    spoken_in: dict[str, list[int]]
    """The sentences that say each stem."""
    pairs: frozenset[tuple[str, str]]
    triples: frozenset[tuple[str, str, str]]
    letters: frozenset[str]
    """Runs of letters inside its words."""
    letters_by_sentence: tuple[frozenset[str], ...]
    quantities: tuple[tuple[Quantity, ...], ...]
    negations: tuple[int, ...]
    opposites: tuple[frozenset[Opposite], ...]
    content: tuple[int, ...]
    """How many words of each sentence say something."""


@lru_cache(maxsize=512)
def read(text: str) -> Evidence:
    """The text as evidence."""
    text = _NO_WORDS.sub(" ", text)
    tongue = language(text)
    little = function_words(tongue)
    spoken = [
        block[boundary["start_index"] : boundary["end_index"]]
        for block in _BREAK.split(text)
        for boundary in get_sentence_boundaries("en", block)
    ]
    taken = [(said, found) for said in spoken if (found := take_words(said, tongue))]
    places: dict[str, list[int]] = {}
    spoken_in: dict[str, list[int]] = {}
    order: list[str] = []
    for number, (_, found) in enumerate(taken):
        for word in found:
            places.setdefault(word.stem, []).append(len(order))
            order.append(word.stem)
            into = spoken_in.setdefault(word.stem, [])
            if not into or into[-1] != number:
                into.append(number)
    letters = tuple(frozenset().union(*(runs(word.stem) for word in found)) for _, found in taken)
    return Evidence(
        tongue,
        not text.isascii() and mostly_other_letters(text[:2000]),
        tuple(found for _, found in taken),
        places,
        spoken_in,
        frozenset(pairwise(order)),
        frozenset(zip(order, order[1:], order[2:], strict=False)),
        frozenset().union(*letters),
        letters,
        tuple(tuple(quantities(said)) for said, _ in taken),
        tuple(negations(said, found, tongue) for said, found in taken),
        tuple(opposites(found) for _, found in taken),
        tuple(sum(word.written.casefold() not in little for word in found) for _, found in taken),
    )


def bare(sentence: str) -> str:
    """What a sentence claims: without the "Yes," before it, citations and Markdown."""
    return _YES.sub("", without_marks(sentence).strip(), count=1)


def without_marks(sentence: str) -> str:
    return _MARKS.sub(" ", sentence)


def take_words(text: str, tongue: str) -> tuple[Word, ...]:
    return tuple(Word(word, stem(word, tongue)) for word in words(text))


@lru_cache(maxsize=100_000)
def runs(word: str) -> frozenset[str]:
    """The runs of four letters in a word with its edges: words of one family share most of them."""
    edged = f" {word} "
    return frozenset(edged[at : at + _GRAM] for at in range(max(1, len(edged) - _GRAM + 1)))


def negations(text: str, found: tuple[Word, ...], tongue: str) -> int:
    """How often a sentence says no."""
    denying = _negations().get(tongue, frozenset()) | _negations()["any"]
    low = [word.written.casefold().replace("’", "'") for word in found]
    said = sum(word in denying and low[at + 1 : at + 2] != ["only"] for at, word in enumerate(low))
    return said + (0 if text.isascii() else len(_NO_IN_CHINESE.findall(text)))


def opposites(found: tuple[Word, ...]) -> frozenset[Opposite]:
    """The sides that a sentence's words take."""
    sides = _opposites()
    return frozenset(side for word in found for side in sides.get(word.stem, ()))


@lru_cache(maxsize=100_000)
def rarity(stemmed: str) -> float:
    """How much a word narrows down what is said, from 0.05 for "the" to 1 for one outside BERT's vocabulary."""
    if stemmed.isdigit():
        return _NUMBER
    rank = _ranks().get(stemmed)
    if rank is None:
        return _UNKNOWN
    last = len(_vocabulary()) - _FIRST_WORD
    return max(0.05, log(max(0, rank - _FIRST_WORD) / 10 + 1) / log(last / 10 + 1))


@cache
def _vocabulary() -> list[str]:
    return files("citewell").joinpath("data", "bert-uncased-vocabulary.txt").read_text(encoding="utf-8").split("\n")


@cache
def _ranks() -> dict[str, int]:
    found: dict[str, int] = {}
    for rank, entry in enumerate(_vocabulary()):
        if entry.isalpha():
            found.setdefault(stem(entry), rank)
    return found


@cache
def _negations() -> dict[str, frozenset[str]]:
    lines = files("citewell").joinpath("data", "negations.txt").read_text(encoding="utf-8").splitlines()
    return {name: frozenset(said.split()) for name, said in (line.split(":") for line in lines)}


@cache
def _opposites() -> dict[str, list[Opposite]]:
    lines = files("citewell").joinpath("data", "opposites.txt").read_text(encoding="utf-8").splitlines()
    found: dict[str, list[Opposite]] = {}
    for pair, line in enumerate(lines):
        for side, said in enumerate(line.split("|")):
            for stemmed in {stem(word) for word in said.split()}:
                found.setdefault(stemmed, []).append((pair, side))
    return found

"""A cited text taken apart once, so that any number of sentences can be held against it. Pure.

Knows words, their order and places, numbers, negations and opposites; not what makes a sentence supported.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from math import log
from typing import NamedTuple

from citewell.answer.support.quantities import Quantity, find_quantities
from citewell.text import (
    bert_vocabulary,
    detect_language,
    function_words,
    mostly_non_latin,
    sentence_spans,
    split_words,
    stem,
    word_pairs,
    words_by_label,
)

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
class PassageFacts:
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
def read_facts(text: str) -> PassageFacts:
    """The text as evidence."""
    text = _NO_WORDS.sub(" ", text)
    tongue = detect_language(text)
    little = function_words(tongue)
    spoken = [block[start:end] for block in _BREAK.split(text) for start, end in sentence_spans(block)]
    taken = [(said, found) for said in spoken if (found := words_with_stems(said, tongue))]
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
    letters = tuple(frozenset().union(*(letter_ngrams(word.stem) for word in found)) for _, found in taken)
    return PassageFacts(
        tongue,
        not text.isascii() and mostly_non_latin(text[:2000]),
        tuple(found for _, found in taken),
        places,
        spoken_in,
        frozenset(pairwise(order)),
        frozenset(zip(order, order[1:], order[2:], strict=False)),
        frozenset().union(*letters),
        letters,
        tuple(tuple(find_quantities(said)) for said, _ in taken),
        tuple(count_negations(said, found, tongue) for said, found in taken),
        tuple(opposite_sides(found) for _, found in taken),
        tuple(sum(word.written.casefold() not in little for word in found) for _, found in taken),
    )


def claim_text(sentence: str) -> str:
    """What a sentence claims: without the "Yes," before it, citations and Markdown."""
    return _YES.sub("", strip_markers(sentence).strip(), count=1)


def strip_markers(sentence: str) -> str:
    return _MARKS.sub(" ", sentence)


def words_with_stems(text: str, tongue: str) -> tuple[Word, ...]:
    return tuple(Word(word, stem(word, tongue)) for word in split_words(text))


@lru_cache(maxsize=100_000)
def letter_ngrams(word: str) -> frozenset[str]:
    """The runs of four letters in a word with its edges: words of one family share most of them."""
    edged = f" {word} "
    return frozenset(edged[at : at + _GRAM] for at in range(max(1, len(edged) - _GRAM + 1)))


def count_negations(text: str, found: tuple[Word, ...], tongue: str) -> int:
    """How often a sentence says no."""
    denying = words_by_label("negations.txt").get(tongue, frozenset()) | words_by_label("negations.txt")["any"]
    low = [word.written.casefold().replace("’", "'") for word in found]
    said = sum(word in denying and low[at + 1 : at + 2] != ["only"] for at, word in enumerate(low))
    return said + (0 if text.isascii() else len(_NO_IN_CHINESE.findall(text)))


def opposite_sides(found: tuple[Word, ...]) -> frozenset[Opposite]:
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
    last = len(bert_vocabulary()) - _FIRST_WORD
    return max(0.05, log(max(0, rank - _FIRST_WORD) / 10 + 1) / log(last / 10 + 1))


@cache
def _ranks() -> dict[str, int]:
    found: dict[str, int] = {}
    for rank, entry in enumerate(bert_vocabulary()):
        if entry.isalpha():
            found.setdefault(stem(entry), rank)
    return found


@cache
def _opposites() -> dict[str, list[Opposite]]:
    found: dict[str, list[Opposite]] = {}
    for pair, sides in enumerate(word_pairs("opposites.txt")):
        for side, words in enumerate(sides):
            for stemmed in {stem(word) for word in words}:
                found.setdefault(stemmed, []).append((pair, side))
    return found

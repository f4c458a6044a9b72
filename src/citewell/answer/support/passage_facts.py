"""Facts about a text, extracted once so that many sentences can be checked against it. Pure.

Extracts words, their order and positions, numbers, negations and opposites; does not judge what a sentence needs.
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
"""One side of a pair of opposites: "more" is (0, 0), "less" is (0, 1)."""

_URL = re.compile(r"https?://\S+")
_LEADING_YES_OR_NO = re.compile(
    r"^(?:answer\s*:|(?:no|sure|well|okay|ok|of course|certainly)\s*[,!.:]|(?:yes|yeah)\b[,!.:\s]*)\s*", re.IGNORECASE
)
_ITEM_MARK = re.compile(r"^[ \t>]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_CITATION = r"\[\^?\d{1,3}(?:[,–-]\s?\d{1,3})*\]|【\d{1,3}】"
_MARKDOWN_OR_CITATION = re.compile(rf"[`*_#>|]+|{_CITATION}")
_CITATION_MARKER = re.compile(_CITATION)
_COMPARATIVES = frozenset({"more", "less", "fewer", "later", "earlier", "longer", "greater", "higher", "lower"})
_BLOCK_BREAK = re.compile(r"\n+|(?<=\s)#+\s")
_NGRAM_LETTERS = 4
_CHINESE_NEGATION = re.compile("[不没沒無无未]")
_FIRST_WORD = 1996  # where BERT's vocabulary turns from symbols to words, most frequent first
_UNKNOWN_WORD_RARITY, _NUMBER_RARITY = 1.0, 0.9
_SCRIPT_SAMPLE_CHARACTERS = 2000


class Word(NamedTuple):  # a thousand per chunk: a named tuple is made much faster than a frozen dataclass
    """A word as written, and its stem."""

    written: str
    stem: str


@dataclass(frozen=True, slots=True)
class PassageFacts:
    """What a text says, by sentence and by word."""

    language: str
    non_latin: bool
    sentences: tuple[tuple[Word, ...], ...]
    positions: dict[str, list[int]]
    """Where each stem occurs, counted in words."""
    sentences_by_stem: dict[str, list[int]]
    """The numbers of the sentences that contain each stem."""
    bigrams: frozenset[tuple[str, str]]
    trigrams: frozenset[tuple[str, str, str]]
    ngrams: frozenset[str]
    """Runs of letters inside its words."""
    ngrams_by_sentence: tuple[frozenset[str], ...]
    quantities: tuple[tuple[Quantity, ...], ...]
    """The numbers of each sentence."""
    negations: tuple[int, ...]
    """How many negations each sentence has."""
    opposites: tuple[frozenset[Opposite], ...]
    """The sides of opposites that the words of each sentence are on."""
    content_counts: tuple[int, ...]
    """How many content words each sentence has."""


@lru_cache(maxsize=512)
def read_facts(text: str) -> PassageFacts:
    """The facts of a text."""
    text = _URL.sub(" ", text)
    language = detect_language(text)
    without_content = function_words(language)
    spans = [block[start:end] for block in _BLOCK_BREAK.split(text) for start, end in sentence_spans(block)]
    sentences = [(sentence, words) for sentence in spans if (words := words_with_stems(sentence, language))]
    positions: dict[str, list[int]] = {}
    sentences_by_stem: dict[str, list[int]] = {}
    order: list[str] = []
    for number, (_, words) in enumerate(sentences):
        for word in words:
            positions.setdefault(word.stem, []).append(len(order))
            order.append(word.stem)
            numbers = sentences_by_stem.setdefault(word.stem, [])
            if not numbers or numbers[-1] != number:
                numbers.append(number)
    ngrams = tuple(frozenset().union(*(letter_ngrams(word.stem) for word in words)) for _, words in sentences)
    return PassageFacts(
        language=language,
        non_latin=not text.isascii() and mostly_non_latin(text[:_SCRIPT_SAMPLE_CHARACTERS]),
        sentences=tuple(words for _, words in sentences),
        positions=positions,
        sentences_by_stem=sentences_by_stem,
        bigrams=frozenset(pairwise(order)),
        trigrams=frozenset(zip(order, order[1:], order[2:], strict=False)),
        ngrams=frozenset().union(*ngrams),
        ngrams_by_sentence=ngrams,
        quantities=tuple(tuple(find_quantities(sentence)) for sentence, _ in sentences),
        negations=tuple(count_negations(sentence, words, language) for sentence, words in sentences),
        opposites=tuple(opposite_sides(words) for _, words in sentences),
        content_counts=tuple(
            sum(word.written.casefold() not in without_content for word in words) for _, words in sentences
        ),
    )


def claim_text(sentence: str) -> str:
    """What a sentence claims: without the mark of a list item, a leading "Yes,", citation markers and Markdown."""
    return _LEADING_YES_OR_NO.sub("", strip_markers(_ITEM_MARK.sub("", sentence, count=1)).strip(), count=1)


def strip_citations(sentence: str) -> str:
    """The sentence without citation markers."""
    return _CITATION_MARKER.sub(" ", sentence)


def strip_markers(sentence: str) -> str:
    """The sentence without citation markers and Markdown."""
    return _MARKDOWN_OR_CITATION.sub(" ", sentence)


def words_with_stems(text: str, language: str) -> tuple[Word, ...]:
    """The words of a text, each with its stem."""
    return tuple(Word(word, stem(word, language)) for word in split_words(text))


@lru_cache(maxsize=100_000)
def letter_ngrams(word: str) -> frozenset[str]:
    """The runs of four letters in a word with its edges: related words share most of them."""
    edged = f" {word} "
    starts = range(max(1, len(edged) - _NGRAM_LETTERS + 1))
    return frozenset(edged[start : start + _NGRAM_LETTERS] for start in starts)


def count_negations(text: str, words: tuple[Word, ...], language: str) -> int:
    """How many negations a sentence has; "not only" and "no more than", which sets a limit, are none."""
    negations = words_by_label("negations.txt").get(language, frozenset()) | words_by_label("negations.txt")["any"]
    folded = [word.written.casefold().replace("’", "'") for word in words]
    count = 0
    for index, word in enumerate(folded):
        if word in negations:
            following = folded[index + 1 : index + 3]
            is_limit = following[1:] == ["than"] and following[0] in _COMPARATIVES
            count += following[:1] != ["only"] and not is_limit
    return count + (0 if text.isascii() else len(_CHINESE_NEGATION.findall(text)))


def opposite_sides(words: tuple[Word, ...]) -> frozenset[Opposite]:
    """The sides of opposites that words are on: "increase" on one, "decrease" on the other."""
    sides_by_stem = _sides_by_stem()
    return frozenset(side for word in words for side in sides_by_stem.get(word.stem, ()))


@lru_cache(maxsize=100_000)
def rarity(stemmed: str) -> float:
    """How rare a stem is in English, from 0.05 for "the" to 1 for a word outside BERT's vocabulary."""
    if stemmed.isdigit():
        return _NUMBER_RARITY
    rank = _frequency_ranks().get(stemmed)
    if rank is None:
        return _UNKNOWN_WORD_RARITY
    last = len(bert_vocabulary()) - _FIRST_WORD
    return max(0.05, log(max(0, rank - _FIRST_WORD) / 10 + 1) / log(last / 10 + 1))


@cache
def _frequency_ranks() -> dict[str, int]:
    """The rank of each stem in BERT's vocabulary, most frequent first."""
    ranks: dict[str, int] = {}
    for rank, entry in enumerate(bert_vocabulary()):
        if entry.isalpha():
            ranks.setdefault(stem(entry), rank)
    return ranks


@cache
def _sides_by_stem() -> dict[str, list[Opposite]]:
    """The sides of opposites that each stem is on."""
    sides_by_stem: dict[str, list[Opposite]] = {}
    for pair, sides in enumerate(word_pairs("opposites.txt")):
        for side, words in enumerate(sides):
            for stemmed in {stem(word) for word in words}:
                sides_by_stem.setdefault(stemmed, []).append((pair, side))
    return sides_by_stem

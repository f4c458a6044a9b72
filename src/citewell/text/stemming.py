"""Stems words by the language of their text, or by their script. Pure; index and answers use the same stems."""

import re
import unicodedata
from functools import cache, lru_cache

import Stemmer

from citewell.text.language import ENGLISH, detect_language
from citewell.text.words import UNSPACED, split_words

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_BM25_K, _BM25_B, _AVERAGE_WORDS = 1.5, 0.75, 200


@lru_cache(maxsize=200_000)
def stem(word: str, language: str = ENGLISH) -> str:
    """A word's stem, without case and accents: "Calibrations" -> "calibr"."""
    folded = unicodedata.normalize("NFC", word.casefold())
    if language == "vietnamese" or UNSPACED.match(folded):
        return folded  # accents distinguish words there, and words are not inflected
    name = next((name for first, last, name in _SCRIPTS if first <= folded[0] <= last), language)
    stemmed: str = stemmer(name).stemWord(folded.removesuffix("'s").removesuffix("’s"))
    if stemmed.isascii():
        return stemmed
    return "".join(mark for mark in unicodedata.normalize("NFKD", stemmed) if not unicodedata.combining(mark))


@cache
def stemmer(name: str) -> Stemmer.Stemmer:
    """The Snowball stemmer of a language."""
    return Stemmer.Stemmer(name, 0)  # without a cache of its own, which costs more than a stem


def stems(text: str, language: str | None = None) -> list[str]:
    """The stems of a text; an identifier gives its own and its parts': "mapBatches" -> "mapbatch", "map", "batch"."""
    language = language or detect_language(text)
    result = []
    for word in split_words(text):
        result.append(stem(word, language))
        if not (word.islower() or word.istitle() or word.isupper() or word.isdigit()):
            parts = _CAMEL.split(word)
            result.extend(stem(part, language) for part in parts if len(parts) > 1)
    return result


def bm25_weight(count: int, length: int) -> float:
    """The BM25 weight of `count` mentions in a text of `length` words: grows with each, stays below 1."""
    return count / (count + _BM25_K * (1 - _BM25_B + _BM25_B * length / _AVERAGE_WORDS))

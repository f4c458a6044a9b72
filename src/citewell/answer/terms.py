"""The words that carry meaning: what of a question a passage has to speak about. Pure."""

import re
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files

import Stemmer

_WORD = re.compile(r"[^\W_]+(?:[.'’][^\W_]+)*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_stem = Stemmer.Stemmer("english")

# What people wrap a question in. Rare in prose, so rarity alone would take these for its subject.
_WRAPPING = frozenset(files("citewell").joinpath("data", "wrapping-words.txt").read_text(encoding="utf-8").split())


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """A word's stem, without case and accents: "Calibrations" -> "calibr"."""
    folded = unicodedata.normalize("NFKD", word.casefold())
    plain = "".join(mark for mark in folded if not unicodedata.combining(mark))
    stemmed: str = _stem.stemWord(plain.removesuffix("'s").removesuffix("’s"))
    return stemmed


def words(text: str) -> list[str]:
    """The words of a text as written."""
    return _WORD.findall(text)


def stems(text: str) -> list[str]:
    """The stems of a text; an identifier gives its own and its parts': "mapBatches" -> "mapbatch", "map", "batch"."""
    found = []
    for word in _WORD.findall(text):
        found.append(stem(word))
        if not (word.islower() or word.istitle() or word.isupper() or word.isdigit()):
            parts = _CAMEL.split(word)
            found.extend(stem(part) for part in parts if len(parts) > 1)
    return found


def substance(text: str) -> list[str]:
    """The words of a text that say what it is about; none where all of it is wrapping."""
    return [word for word in words(text) if word.casefold().replace("’", "'") not in _WRAPPING]


def subject(question: str) -> dict[str, str]:
    """The question's own words by their stems: what it is about, in order of appearance.

    subject("How do I calibrate the camera?") -> {"calibr": "calibrate", "camera": "camera"}
    """
    return {stem(word): word for word in substance(question) or words(question)}


def specific(question: str) -> frozenset[str]:
    """Stems of what only this question would say: names, codes, words that are not general English.

    specific("Does nitinol beat a Dynamixel MX64?") -> stems of nitinol, Dynamixel and MX64
    """
    spoken = words(question)
    found = {
        stem(word)
        for position, word in enumerate(spoken)
        if any(mark.isdigit() for mark in word)
        or (position > 0 and word[0].isupper())
        or (len(word) > 3 and stem(word) not in _general())
    }
    return frozenset(found & subject(question).keys())


@cache
def _general() -> frozenset[str]:
    """Stems of the words that are frequent enough in English to be whole entries of BERT's vocabulary."""
    entries = files("citewell").joinpath("data", "bert-uncased-vocabulary.txt").read_text(encoding="utf-8").split("\n")
    return frozenset(stem(entry) for entry in entries if entry.isalpha())

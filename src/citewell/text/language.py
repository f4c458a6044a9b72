"""Detects the language and the alphabet of a text. Pure."""

import re
from functools import cache, lru_cache
from operator import itemgetter

from citewell.text.wordlists import words_by_label
from citewell.text.words import WORD

ENGLISH = "english"

_VIETNAMESE = re.compile("[ăđơưĂĐƠƯ\u1ea0-\u1ef9]")
_SAMPLE_WORDS = 300  # read to detect the language
_SAMPLE_CHARACTERS = 4000


def function_words(language: str) -> frozenset[str]:
    """The words of a language that carry no content by themselves, such as "the" and "of"."""
    return words_by_label("function-words.txt").get(language, frozenset())


@cache
def _languages_by_word() -> dict[str, list[str]]:
    """The languages that each function word belongs to."""
    languages: dict[str, list[str]] = {}
    for name, words in words_by_label("function-words.txt").items():
        for word in words:
            languages.setdefault(word, []).append(name)
    return languages


@lru_cache(maxsize=4096)
def detect_language(text: str) -> str:
    """The language whose function words a text uses; English where nothing speaks against it.

    detect_language("Wie hoch ist der Turm?") -> "german"
    """
    words = [word.casefold() for word in WORD.findall(text[:_SAMPLE_CHARACTERS])[:_SAMPLE_WORDS]]
    if len(_VIETNAMESE.findall(text[:_SAMPLE_CHARACTERS])) > max(1, len(words) // 5):
        return "vietnamese"
    languages, counts = _languages_by_word(), dict.fromkeys(words_by_label("function-words.txt"), 0)
    for word in words:
        for name in languages.get(word, ()):
            counts[name] += 1
    name, most = max(counts.items(), key=itemgetter(1))
    # Names and code have few function words: another language needs half as many again as English has.
    least = (2 if len(words) > 20 else 1) + len(words) // 20
    return name if most > 1.5 * counts[ENGLISH] and most >= least else ENGLISH


def mostly_non_latin(text: str) -> bool:
    """Whether most letters of a text are outside the alphabet that English uses."""
    letters = [letter for letter in text if letter.isalpha()]
    return sum(letter.isascii() for letter in letters) < len(letters) / 2

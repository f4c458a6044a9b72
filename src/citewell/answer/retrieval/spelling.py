"""Corrects typing errors in a question against the vocabulary of the documents. Pure; the caller counts the words.

A word is a typing error if no document has it, if it is not general English, and if the documents have a word that is
one or two edits away. The index counts stems and lists no words, so `suggest` proposes words to count: those of the
passages that were found, general English ones, and every other spelling that is one edit away. Names in capitals and
parts of code are never changed: an unknown name is a reason to decline, not a typing error.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import ascii_lowercase

from citewell.text import (
    ENGLISH,
    bert_vocabulary,
    detect_language,
    is_general_english,
    keywords,
    split_words,
    stem,
    word_set,
)

_MIN_LETTERS = 4
_MAX_LETTERS = 32  # a longer word is none; of 2,000 letters, 100,000 spellings would be one edit away
_MIN_LETTERS_TO_SUBSTITUTE = 7  # of shorter words, another letter makes another word: login, logic
_MIN_LETTERS_FOR_TWO_EDITS = 10
_MIN_LETTERS_OF_ROOT = 5
_MAX_MISSPELT_WORDS = 4  # a text with more is pasted code or another language, and each word costs hundreds of counts


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A word that may have been meant."""

    word: str
    edits: int
    mentions: int
    """How often the passages that were found mention it."""
    general: bool
    """Whether it is a general English word."""


def misspelt_words(question: str, unknown: frozenset[str]) -> list[str]:
    """The words of an English question that may be typing errors; `unknown` are its stems that no document has."""
    if not unknown or detect_language(question) != ENGLISH:
        return []
    words = [word for stem, word in keywords(question).items() if stem in unknown and _may_be_misspelt(word, question)]
    return words if len(words) <= _MAX_MISSPELT_WORDS else []


def suggest(words: Sequence[str], texts: Iterable[str]) -> dict[str, list[Suggestion]]:
    """For each misspelt word, the words that may have been meant: of the texts, of English, or just one edit away."""
    mentions = Counter(word.casefold() for text in texts for word in split_words(text))
    mentioned = _by_first_letter(word for word in mentions if _is_plain(word))
    suggestions = {}
    for word in words:
        wrong = word.casefold()
        near = {
            other: edits
            for other in {*mentioned[wrong[0]], *_general_words()[wrong[0]]}
            if _may_be_near(wrong, other) and (edits := edit_distance(wrong, other)) <= _max_edits(wrong, other)
        }
        if len(wrong) > _MIN_LETTERS and not mentions.keys() & near.keys():
            near = dict.fromkeys(_one_edit_away(wrong), 1) | near
        suggestions[word] = [
            Suggestion(other, edits, mentions[other], general=other in _general_words()[wrong[0]])
            for other, edits in near.items()
            if len(other) >= _MIN_LETTERS and _is_likely_slip(wrong, other)
        ]
    return suggestions


def correct_spelling(question: str, suggestions: Mapping[str, Sequence[Suggestion]], counts: Mapping[str, int]) -> str:
    """The question with each misspelt word replaced by the likeliest suggestion that the documents have.

    `counts` says how many chunks have each stem. With "stream" suggested for "strem" and counted:

    correct_spelling("strem a response", …) -> "stream a response"
    """
    for word, suggested in suggestions.items():
        if counts.get(stem(word)):
            continue  # a document outside the filters has it
        known = [suggestion for suggestion in suggested if counts.get(stem(suggestion.word))]
        known += [suggestion for suggestion in suggested if suggestion.word in word_set("question-phrases.txt")]
        if known:
            best = min(known, key=lambda suggestion: _rank(suggestion, counts))
            question = re.sub(rf"\b{re.escape(word)}\b", best.word, question)
    return question


def _rank(suggestion: Suggestion, counts: Mapping[str, int]) -> tuple[object, ...]:
    """Sorts the likeliest suggestion first: fewest edits, then whole words, then the most frequent."""
    is_word = suggestion.general or suggestion.mentions > 0
    count = counts.get(stem(suggestion.word), 0)
    return suggestion.edits, not is_word, -suggestion.mentions, -count, suggestion.word


_AFTER_CODE = re.compile(r"[\w@/\\`_=<$#]$|\w\.$|(?:^|\W)-$")
_BEFORE_CODE = re.compile(r"^(?:[@/\\`_=>(]|\.\w)")


def _may_be_misspelt(word: str, question: str) -> bool:
    """Whether a word that no document has may be a typing error, not a name, English or a part of code."""
    if not _MIN_LETTERS <= len(word) <= _MAX_LETTERS or not _is_plain(word.casefold()) or _is_english(word):
        return False
    start = question.index(word)
    is_name = not word.islower() and not (start == 0 and word[1:].islower())
    in_code = _AFTER_CODE.search(question[:start]) or _BEFORE_CODE.match(question[start + len(word) :])
    return not is_name and not in_code


_PREFIX = re.compile(r"^(?:re|un|pre|non|over|under|sub|multi|dis|mis|de|auto|inter|co|out|up)(?=\w)")
_SUFFIX = re.compile(r"(?:able|ible|ers?|ness|less|ful|ish|ly|like|wise|ability|i[sz](?:e|es|ed|ing|ation))$")


def _is_english(word: str) -> bool:
    """Whether a word is general English or formed from such a word: "reworded", "reachable"."""
    forms = {word.casefold()}
    forms |= {_PREFIX.sub("", form) for form in forms}
    forms |= {_SUFFIX.sub("", form) for form in forms}
    return any(
        is_general_english(form) for form in forms if form == word.casefold() or len(form) >= _MIN_LETTERS_OF_ROOT
    )


_DOUBLED_LETTER = re.compile(r"(.)\1")


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isalpha()


def _max_edits(word: str, other: str) -> int:
    """How many edits a word may be away: two for a long one, or if only letters are doubled: reccomend, recommend."""
    return 2 if len(word) >= _MIN_LETTERS_FOR_TWO_EDITS or _undoubled(word) == _undoubled(other) else 1


def _undoubled(word: str) -> str:
    return _DOUBLED_LETTER.sub(r"\1", word)


def _may_be_near(word: str, other: str) -> bool:
    """Whether the edit distance can be small enough; spares most words the computation of it."""
    most = _max_edits(word, other)
    return abs(len(other) - len(word)) <= most and len(set(word) ^ set(other)) <= 2 * most


def _is_likely_slip(word: str, other: str) -> bool:
    """Whether the other word can be meant: in a short word, another letter instead of one makes another word."""
    return len(word) >= _MIN_LETTERS_TO_SUBSTITUTE or len(other) != len(word) or sorted(other) == sorted(word)


def _by_first_letter(words: Iterable[str]) -> dict[str, set[str]]:
    """Words by the letter they begin with, which is rarely mistyped."""
    grouped: dict[str, set[str]] = defaultdict(set)
    for word in words:
        grouped[word[0]].add(word)
    return grouped


@cache
def _general_words() -> dict[str, set[str]]:
    """The general English words by their first letter."""
    return _by_first_letter(word for word in bert_vocabulary() if _is_plain(word))


def _one_edit_away(word: str) -> set[str]:
    """Every spelling that is one edit away and begins with the same letter."""
    cuts = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]
    spellings = {head + tail[1:] for head, tail in cuts}
    spellings |= {head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1}
    spellings |= {head + letter + tail for head, tail in cuts for letter in ascii_lowercase}
    if len(word) >= _MIN_LETTERS_TO_SUBSTITUTE:
        spellings |= {head + letter + tail[1:] for head, tail in cuts if tail for letter in ascii_lowercase}
    return spellings - {word}


def edit_distance(first: str, second: str) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other.

    edit_distance("nubmer", "number") -> 1
    """
    before: list[int] = []
    row = list(range(len(second) + 1))
    for place, letter in enumerate(first, start=1):
        before, last, row = row, before, [place]
        for at, other in enumerate(second, start=1):
            cost = min(before[at] + 1, row[at - 1] + 1, before[at - 1] + (letter != other))
            if place > 1 and at > 1 and letter == second[at - 2] and first[place - 2] == other:
                cost = min(cost, last[at - 2] + 1)
            row.append(cost)
    return row[-1]

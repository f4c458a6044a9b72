"""Corrects typing errors in a question against the words of the passages it found. Pure.

A word is a typing error if no document has it, if it is not general English, and if the passages hold a word that is
one or two edits away. Names in capitals are never changed: an unknown name is a reason to decline, not a typing error.
"""

from collections import Counter
from collections.abc import Iterable

from citewell.text import ENGLISH, detect_language, is_general_english, keywords, split_words, word_set

_MIN_LETTERS = 4
_MIN_LETTERS_TO_SUBSTITUTE = 7  # of shorter words, another letter makes another word: login, logic
_MIN_LETTERS_FOR_TWO_EDITS = 10


def correct_spelling(question: str, unknown: frozenset[str], texts: Iterable[str]) -> str:
    """The question with each misspelt word replaced by the likeliest word of the texts.

    correct_spelling("strem a respons", frozenset({"strem"}), ["Stream the response."]) -> "stream a respons"
    """
    words = [word for stem, word in keywords(question).items() if stem in unknown and _may_be_misspelt(word, question)]
    if not words or detect_language(question) != ENGLISH:
        return question
    vocabulary = Counter(word.casefold() for text in texts for word in split_words(text))
    for word in words:
        if right := _nearest(word.casefold(), vocabulary):
            question = question.replace(word, right)
    return question


def _may_be_misspelt(word: str, question: str) -> bool:
    capital = word[0].isupper() and not question.startswith(word)
    return (
        len(word) >= _MIN_LETTERS and word.isascii() and word.isalpha() and not capital and not is_general_english(word)
    )


def _nearest(word: str, vocabulary: Counter[str]) -> str | None:
    """The word at the smallest edit distance; of several, the most frequent."""
    most = 2 if len(word) >= _MIN_LETTERS_FOR_TWO_EDITS else 1
    ignored = word_set("question-phrases.txt")
    near = [
        (edits, -count, other)
        for other, count in vocabulary.items()
        if abs(len(other) - len(word)) <= most
        and len(other) >= _MIN_LETTERS
        and other[0] == word[0]
        and other.isalpha()
        and other not in ignored
        and (len(word) >= _MIN_LETTERS_TO_SUBSTITUTE or len(other) != len(word) or sorted(other) == sorted(word))
        and (edits := edit_distance(word, other)) <= most
    ]
    return min(near)[2] if near else None


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

"""Detects a quotation with one thing changed: a number, unit or name, a negation, an opposite. Pure.

Claims that people judged contain next to none of these, so a model fitted on them does not notice one wrong digit among
twenty right words (docs/log.md). This is a rule instead; it applies only where nearly every word is from the text.
"""

from collections.abc import Sequence
from itertools import pairwise

from citewell.answer.support.passage_facts import (
    PassageFacts,
    Word,
    count_negations,
    opposite_sides,
    rarity,
    words_with_stems,
)
from citewell.answer.support.quantities import Quantity, contains_quantity, find_quantities

ALTERED_QUOTE_FACTOR = 0.2
"""The probability of a sentence that is an altered quote is multiplied by this."""

_MIN_WORDS, _MAX_WORDS = 3, 100
_MAX_NEW_WORDS = 3
_MAX_NEW_SHARE = 1 / 3  # of the sentence
_MAX_LENGTH_RATIO = 1.5  # of the shared part of the text's sentence to the sentence
_MIN_NAME_RARITY = 0.6  # below, a capital letter may be just the start of a sentence
_MIN_ORDERED_SHARE = 0.75  # of the bigrams without new words that the text has as well


def is_altered_quote(sentence: str, facts: PassageFacts) -> bool:
    """Whether a sentence repeats a sentence of the text nearly word for word, but contradicts it in one place.

    is_altered_quote("The tower is 330 m high.", read_facts("The tower is 300 m high.")) -> True
    """
    words = words_with_stems(sentence, facts.language)
    if not _MIN_WORDS <= len(words) <= _MAX_WORDS:
        return False
    nearest = _most_similar_sentence(words, facts)
    original = _shared_part(facts.sentences[nearest], words)
    new_words = _words_not_in(words, original)
    replaced_words = _words_not_in(facts.sentences[nearest], words)
    if len(new_words) > min(_MAX_NEW_WORDS, len(words) * _MAX_NEW_SHARE):
        return False
    if len(original) > _MAX_LENGTH_RATIO * len(words) + 1 or not _is_in_order(words, new_words, facts):
        return False
    nearby_quantities = [quantity for quantities in facts.quantities[nearest : nearest + 2] for quantity in quantities]
    replaced_sides = opposite_sides(replaced_words)
    return (
        _negation_differs(_shared_part(words, original), original, facts.language)
        or _number_differs(find_quantities(sentence), nearby_quantities)
        or any((pair, 1 - side) in replaced_sides for pair, side in opposite_sides(new_words))
        or _name_differs(new_words, replaced_words, (words[0], facts.sentences[nearest][0]), facts)
    )


def _most_similar_sentence(words: Sequence[Word], facts: PassageFacts) -> int:
    """The number of the sentence that has most of these words; the shortest of several."""
    shared = [0] * len(facts.sentences)
    for stem in {word.stem for word in words}:
        for number in facts.sentences_by_stem.get(stem, ()):
            shared[number] += 1
    return max(range(len(shared)), key=lambda number: (shared[number], -len(facts.sentences[number])))


def _shared_part(words: tuple[Word, ...], others: Sequence[Word]) -> tuple[Word, ...]:
    """The words from the first to the last one that the others have as well."""
    other_stems = {word.stem for word in others}
    indexes = [index for index, word in enumerate(words) if word.stem in other_stems]
    return words[indexes[0] : indexes[-1] + 1] if indexes else ()


def _words_not_in(words: Sequence[Word], others: Sequence[Word]) -> tuple[Word, ...]:
    other_stems = {word.stem for word in others}
    return tuple(word for word in words if word.stem not in other_stems)


def _is_in_order(words: Sequence[Word], new_words: Sequence[Word], facts: PassageFacts) -> bool:
    """Whether the words that are not new stand side by side as in the text; the change may separate one pair."""
    new_stems = {word.stem for word in new_words}
    bigrams = [
        (first.stem, second.stem)
        for first, second in pairwise(words)
        if first.stem not in new_stems and second.stem not in new_stems
    ]
    separated = sum(bigram not in facts.bigrams for bigram in bigrams)
    return separated <= max(1, (1 - _MIN_ORDERED_SHARE) * len(bigrams))


def _negation_differs(words: tuple[Word, ...], original: tuple[Word, ...], language: str) -> bool:
    return (count_negations("", words, language) - count_negations("", original, language)) % 2 == 1


def _number_differs(quantities: Sequence[Quantity], originals: Sequence[Quantity]) -> bool:
    """Whether a number, or its unit, is not one of the text's numbers."""
    return bool(originals) and any(
        not contains_quantity(originals, quantity, same_unit=bool(quantity.measures)) for quantity in quantities
    )


def _name_differs(
    new_words: Sequence[Word], replaced_words: Sequence[Word], first_words: Sequence[Word], facts: PassageFacts
) -> bool:
    """Whether a name that is not in the text replaces another. A pronoun instead of a name is no contradiction."""
    unknown_words = [word for word in new_words if word.stem not in facts.positions]
    has_new_name = any(_is_name(word, first_words) for word in unknown_words)
    return has_new_name and any(_is_name(word, first_words) for word in replaced_words)


def _is_name(word: Word, first_words: Sequence[Word]) -> bool:
    """Whether a capital letter shows a name; at the start of a sentence only for a rare word."""
    if not (word.written[0].isupper() and word.written.isalpha()):
        return False
    return rarity(word.stem) >= _MIN_NAME_RARITY or all(word is not first for first in first_words)

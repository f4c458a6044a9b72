"""Tell a quotation with one thing changed: another number, unit or name, a "not" more or less, an opposite. Pure.

Claims that people judged hold next to none of these, so nothing fitted on them minds one wrong digit among twenty
right words (docs/log.md). This is a rule instead, and speaks only where nearly every word is the text's own.
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
"""What is left of the probability of a sentence that quotes with one thing changed."""

_READ = 100  # words; what is longer is no sentence
_NEW = 3  # words at most, and of the sentence at most a third
_LONGER = 1.5  # times the sentence, at most, for the part of theirs that speaks of the same
_RARE = 0.6  # so that a capital letter is more than the start of a sentence
_IN_ORDER = 0.75  # of the other words, pairs that stand side by side in the text as well


def is_altered_quote(sentence: str, evidence: PassageFacts) -> bool:
    """Whether a sentence says nearly word for word what a sentence of the text does, but something else in one place.

    misquotes("The tower is 330 m high.", read("The tower is 300 m high.")) -> True
    """
    spoken = words_with_stems(sentence, evidence.tongue)
    if not 3 <= len(spoken) <= _READ:
        return False
    nearest = _nearest(spoken, evidence)
    theirs = _shared_part(evidence.sentences[nearest], spoken)
    new, old = _without(spoken, theirs), _without(evidence.sentences[nearest], spoken)
    if len(new) > min(_NEW, len(spoken) / 3) or len(theirs) > _LONGER * len(spoken) + 1:
        return False
    if not _in_order(spoken, new, evidence):
        return False
    numbers = find_quantities(sentence)
    known = [one for said in evidence.quantities[nearest : nearest + 2] for one in said]
    sides = opposite_sides(old)
    return (
        _negated(_shared_part(spoken, theirs), theirs, evidence.tongue)
        or _other_number(numbers, known)
        or any((pair, 1 - side) in sides for pair, side in opposite_sides(new))
        or _other_name(new, old, (spoken[0], evidence.sentences[nearest][0]), evidence)
    )


def _nearest(spoken: Sequence[Word], evidence: PassageFacts) -> int:
    """The sentence that says most of these words; of several, the one that says least else."""
    said = [0] * len(evidence.sentences)
    for stem in {word.stem for word in spoken}:
        for number in evidence.spoken_in.get(stem, ()):
            said[number] += 1
    return max(range(len(said)), key=lambda number: (said[number], -len(evidence.sentences[number])))


def _shared_part(words: tuple[Word, ...], others: Sequence[Word]) -> tuple[Word, ...]:
    """From the first word to the last that the others hold as well."""
    known = {word.stem for word in others}
    shared = [at for at, word in enumerate(words) if word.stem in known]
    return words[shared[0] : shared[-1] + 1] if shared else ()


def _without(words: Sequence[Word], others: Sequence[Word]) -> tuple[Word, ...]:
    known = {word.stem for word in others}
    return tuple(word for word in words if word.stem not in known)


def _in_order(spoken: Sequence[Word], new: Sequence[Word], evidence: PassageFacts) -> bool:
    """Whether the words that are not new stand side by side as in the text; one pair may be torn by the change."""
    other = {word.stem for word in new}
    kept = [(one.stem, two.stem) for one, two in pairwise(spoken) if one.stem not in other and two.stem not in other]
    torn = sum(pair not in evidence.pairs for pair in kept)
    return torn <= max(1, (1 - _IN_ORDER) * len(kept))


def _negated(ours: tuple[Word, ...], theirs: tuple[Word, ...], tongue: str) -> bool:
    return (count_negations("", ours, tongue) - count_negations("", theirs, tongue)) % 2 == 1


def _other_number(ours: Sequence[Quantity], theirs: Sequence[Quantity]) -> bool:
    """Whether a number, or what it counts, is another."""
    return bool(theirs) and any(not contains_quantity(theirs, one, unit=bool(one.measures)) for one in ours)


def _other_name(new: Sequence[Word], old: Sequence[Word], starts: Sequence[Word], evidence: PassageFacts) -> bool:
    """Whether a name that the text does not know stands where it has another. A pronoun replaced is no lie."""
    strange = [word for word in new if word.stem not in evidence.places]
    return any(_is_name(word, starts) for word in strange) and any(_is_name(word, starts) for word in old)


def _is_name(word: Word, starts: Sequence[Word]) -> bool:
    """A capital letter says so, but at the start of a sentence only of a word that is not common."""
    if not (word.written[0].isupper() and word.written.isalpha()):
        return False
    return rarity(word.stem) >= _RARE or all(word is not start for start in starts)

"""The features of a sentence and a text that speak for or against support. Pure; weighs nothing.

"Here" in a name means the two neighbouring sentences of the text that cover most of the claim.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log1p

import numpy as np
from numpy.typing import NDArray

from citewell.answer.support.passage_facts import (
    PassageFacts,
    Word,
    count_negations,
    letter_ngrams,
    opposite_sides,
    rarity,
    words_with_stems,
)
from citewell.answer.support.quantities import Quantity, contains_quantity, find_quantities
from citewell.text import function_words, split_words, words_by_label

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

SUPPORT_FEATURES: Mapping[str, int] = {
    # Coverage: the share of the claim's words that the text has, in all of it or in its best one to three sentences.
    "coverage": +1, "coverage_by_sentence": +1, "coverage_by_two": +1, "coverage_by_three": +1, "word_coverage": +1,
    "word_coverage_by_sentence": +1, "word_coverage_by_two": +1, "coverage_by_second_best": +1,
    "coverage_by_best_three": +1, "first_half_coverage": +1, "last_half_coverage": +1, "first_half_coverage_here": +1,
    "last_half_coverage_here": +1, "function_word_coverage": +1, "ngram_coverage": +1,
    "ngram_coverage_by_sentence": +1,
    # The words in the same order, and near each other.
    "bigram_coverage": +1, "trigram_coverage": +1, "longest_bigram_run": +1, "proximity": +1,
    # What is new in the claim.
    "missing_weight": -1, "missing_weight_here": -1, "rarest_missing": -1, "longest_gap": -1, "longest_gap_here": -1,
    "weakest_third_coverage": +1, "weakest_third_coverage_here": +1, "names_missing": -1, "names_missing_share": -1,
    "names_missing_here": -1, "numbers_missing": -1, "numbers_missing_here": -1, "units_wrong": -1,
    "first_or_second_person": -1, "absolute_words": -1,
    # What says the opposite.
    "negation_added": -1, "negation_differs": -1, "opposite_words": -1, "same_side_words": +1,
    # What kind of sentence it is, and how much of the text's best sentences it covers.
    "names": 0, "numbers": 0, "hedge_words": 0, "exclamations": 0, "length": 0, "content_words": 0, "mean_rarity": 0,
    "density": +1, "density_of_two": +1,
}  # fmt: skip
"""Each feature, and the direction in which it may move the probability: +1 up, -1 down, 0 either."""

_MAX_WORDS = 400  # of a claim; the rest is not read
_MAX_NUMBERS = 40  # of a claim, each of which is compared with all numbers of the text
_NEAR_WORDS, _NEARBY_WORDS = 4, 12  # distances that count fully and by half
_CLAIM_WORDS = words_by_label("claim-words.txt")


def support_features(claim: str, facts: PassageFacts) -> dict[str, float]:
    """Every feature of a claim; claim and text must have words."""
    words = words_with_stems(_drop_converted_numbers(claim, facts), facts.language)[:_MAX_WORDS]
    content = _content_words(words, facts.language)
    weights = np.array([rarity(stem) for stem in content])
    # One row for each content word of the claim, one column for each sentence of the text.
    contains = np.zeros((len(content), len(facts.sentences)), dtype=bool)
    for row, stem in enumerate(content):
        contains[row, facts.sentences_by_stem.get(stem, [])] = True
    contains_two = _with_following(contains, 1)
    shares = weights / weights.sum()
    best, best_two = int((shares @ contains).argmax()), int((shares @ contains_two).argmax())
    here: Booleans = contains_two[:, best_two]
    anywhere: Booleans = np.asarray(contains.any(axis=1))
    values = {
        "function_word_coverage": _mean([word.stem in facts.positions for word in words if word.stem not in content]),
        "length": log1p(len(words)),
        "content_words": len(content),
        "mean_rarity": weights.mean(),
        "density": contains[:, best].sum() / max(1, facts.content_counts[best]),
        "density_of_two": here.sum() / max(1, sum(facts.content_counts[best_two : best_two + 2])),
        **_coverage_features(shares, contains, contains_two, anywhere),
        **_half_features(anywhere, here),
        **_missing_word_features(weights, anywhere, here),
        **_order_features([word.stem for word in words], list(content), facts),
        **_ngram_features(content, shares, anywhere, facts),
        **_name_features(words, content, anywhere, here),
        **_number_features(claim, facts, best_two),
        **_opposite_features(claim, words, facts, best, best_two),
        **_style_features(claim, words, facts),
    }
    return {name: float(values[name]) for name in SUPPORT_FEATURES}


def _drop_converted_numbers(claim: str, facts: PassageFacts) -> str:
    """The claim without the numbers that the text has in another unit or spelling: they are not new words."""
    known = _all_quantities(facts.quantities)
    text, end = "", 0
    for quantity in find_quantities(claim)[:_MAX_NUMBERS] if known else ():
        written = claim[quantity.start : quantity.end]
        if (
            quantity.start >= end
            and contains_quantity(known, quantity, same_unit=True)
            and words_with_stems(written, facts.language)[0].stem not in facts.positions
        ):
            text, end = text + claim[end : quantity.start], quantity.end
    return text + claim[end:] if end and split_words(text + claim[end:]) else claim


def _content_words(words: Sequence[Word], language: str) -> dict[str, Word]:
    """The content words by their stems; all words where there are none, as in "It is not so."."""
    without_content = function_words(language)
    content: dict[str, Word] = {}
    for word in words:
        if word.written.casefold() not in without_content:
            content.setdefault(word.stem, word)
    return content or {word.stem: word for word in words}


def _with_following(contains: Booleans, count: int) -> Booleans:
    """Which words each sentence contains together with the `count` sentences after it."""
    together = contains.copy()
    for ahead in range(1, count + 1):
        together[:, :-ahead] |= contains[:, ahead:]
    return together


def _coverage_features(
    shares: Floats, contains: Booleans, contains_two: Booleans, anywhere: Booleans
) -> dict[str, float]:
    """How much of the claim the text, or its best sentences, contain: by weight, and by number of words."""
    descending = np.sort(shares @ contains)[::-1]
    return {
        "coverage": shares @ anywhere,
        "coverage_by_sentence": descending[0],
        "coverage_by_two": (shares @ contains_two).max(),
        "coverage_by_three": (shares @ _with_following(contains, 2)).max(),
        "coverage_by_second_best": descending[1] if len(descending) > 1 else 0.0,
        "coverage_by_best_three": descending[:3].mean(),
        "word_coverage": anywhere.mean(),
        "word_coverage_by_sentence": contains.mean(axis=0).max(),
        "word_coverage_by_two": contains_two.mean(axis=0).max(),
    }


def _half_features(anywhere: Booleans, here: Booleans) -> dict[str, float]:
    """The share of words of each half of the claim that the text contains."""
    half = max(1, len(anywhere) // 2)
    has_two_halves = len(anywhere) > half
    return {
        "first_half_coverage": anywhere[:half].mean(),
        "last_half_coverage": anywhere[half:].mean() if has_two_halves else anywhere.mean(),
        "first_half_coverage_here": here[:half].mean(),
        "last_half_coverage_here": here[half:].mean() if has_two_halves else here.mean(),
    }


def _missing_word_features(weights: Floats, anywhere: Booleans, here: Booleans) -> dict[str, float]:
    """How much of the claim the text does not contain."""
    return {
        "missing_weight": float(weights @ ~anywhere),
        "missing_weight_here": float(weights @ ~here),
        "rarest_missing": float((weights * ~anywhere).max()),
        "longest_gap": _longest_gap(weights, anywhere),
        "longest_gap_here": _longest_gap(weights, here),
        "weakest_third_coverage": _weakest_third(anywhere),
        "weakest_third_coverage_here": _weakest_third(here),
    }


def _longest_gap(weights: Floats, covered: Booleans) -> float:
    """The weight of the heaviest run of words that are not covered: a clause that the claim adds."""
    longest = run = 0.0
    for weight, is_covered in zip(weights.tolist(), covered.tolist(), strict=True):
        run = 0.0 if is_covered else run + weight
        longest = max(longest, run)
    return longest


def _weakest_third(covered: Booleans) -> float:
    """The lowest coverage of the claim's first, middle and last third."""
    return min(float(part.mean()) for part in np.array_split(covered, 3) if len(part))


def _order_features(stems: list[str], content: list[str], facts: PassageFacts) -> dict[str, float]:
    """Whether the words of the claim stand in the same order, and near each other, in the text."""
    known_bigrams = [bigram in facts.bigrams for bigram in pairwise(stems)]
    known_trigrams = [trigram in facts.trigrams for trigram in zip(stems, stems[1:], stems[2:], strict=False)]
    longest = run = 0
    for is_known in known_bigrams:
        run = run + 1 if is_known else 0
        longest = max(longest, run)
    pairs = [(rarity(first) + rarity(second), _proximity(first, second, facts)) for first, second in pairwise(content)]
    weight_sum = sum(weight for weight, _ in pairs)
    return {
        "bigram_coverage": _mean(known_bigrams),
        "trigram_coverage": _mean(known_trigrams),
        "longest_bigram_run": longest / len(stems),
        "proximity": sum(weight * proximity for weight, proximity in pairs) / weight_sum
        if weight_sum
        else float(content[0] in facts.positions),
    }


def _proximity(first: str, second: str, facts: PassageFacts) -> float:
    """How near two stems stand to each other in the text: 1, a half or 0."""
    first_positions, second_positions = facts.positions.get(first), facts.positions.get(second)
    if not first_positions or not second_positions:
        return 0.0
    here, there = np.array(first_positions), np.array(second_positions)
    after = np.searchsorted(there, here)
    distance = np.minimum(
        np.abs(there[np.minimum(after, len(there) - 1)] - here), np.abs(there[np.maximum(after - 1, 0)] - here)
    ).min()
    return 1.0 if distance <= _NEAR_WORDS else 0.5 if distance <= _NEARBY_WORDS else 0.0


def _ngram_features(
    content: Mapping[str, Word], shares: Floats, anywhere: Booleans, facts: PassageFacts
) -> dict[str, float]:
    """How much of each word the text has letters for, as for "diagnostic" where it says "diagnosis"."""
    ngrams_by_word = [letter_ngrams(stem) for stem in content]
    coverage_by_word = [
        1.0 if is_covered else len(ngrams & facts.ngrams) / len(ngrams)
        for ngrams, is_covered in zip(ngrams_by_word, anywhere, strict=True)
    ]
    all_ngrams = frozenset().union(*ngrams_by_word)
    most_shared = max(len(all_ngrams & ngrams) for ngrams in facts.ngrams_by_sentence)
    return {
        "ngram_coverage": float(shares @ coverage_by_word),
        "ngram_coverage_by_sentence": most_shared / max(1, len(all_ngrams)),
    }


def _name_features(
    words: Sequence[Word], content: Mapping[str, Word], anywhere: Booleans, here: Booleans
) -> dict[str, float]:
    """How many names the claim has, and how many of them the text does not have."""
    names = {word.stem for word in words[1:] if word.written[0].isupper() and word.written.isalpha()}
    rows = [row for row, stem in enumerate(content) if stem in names]
    missing = len(rows) - int(anywhere[rows].sum())
    return {
        "names": len(rows),
        "names_missing": missing,
        "names_missing_share": missing / max(1, len(rows)),
        "names_missing_here": len(rows) - int(here[rows].sum()),
    }


def _number_features(claim: str, facts: PassageFacts, best_two: int) -> dict[str, float]:
    """How many numbers the claim has, and how many of them the text does not have, or has with another unit."""
    quantities = find_quantities(claim)[:_MAX_NUMBERS]
    everywhere = _all_quantities(facts.quantities) if quantities else []
    here = _all_quantities(facts.quantities[best_two : best_two + 2])
    return {
        "numbers": len(quantities),
        "numbers_missing": sum(not contains_quantity(everywhere, quantity) for quantity in quantities),
        "numbers_missing_here": sum(not contains_quantity(here, quantity) for quantity in quantities),
        "units_wrong": sum(
            contains_quantity(everywhere, quantity) and not contains_quantity(everywhere, quantity, same_unit=True)
            for quantity in quantities
        ),
    }


def _all_quantities(by_sentence: Sequence[Sequence[Quantity]]) -> list[Quantity]:
    return [quantity for quantities in by_sentence for quantity in quantities]


def _opposite_features(
    claim: str, words: tuple[Word, ...], facts: PassageFacts, best: int, best_two: int
) -> dict[str, float]:
    """Whether the claim negates the text, or has the opposite of its words."""
    is_negated = count_negations(claim, words, facts.language) > 0
    claim_sides = opposite_sides(words)
    text_sides = frozenset().union(*facts.opposites[best_two : best_two + 2])
    return {
        "negation_added": float(is_negated and not any(facts.negations[best_two : best_two + 2])),
        "negation_differs": float(is_negated != (facts.negations[best] > 0)),
        "opposite_words": sum(
            (pair, 1 - side) in text_sides and (pair, side) not in text_sides for pair, side in claim_sides
        ),
        "same_side_words": len(claim_sides & text_sides),
    }


def _style_features(claim: str, words: tuple[Word, ...], facts: PassageFacts) -> dict[str, float]:
    """How the claim speaks: of "I" and "you", in absolutes, with hedges, with exclamation marks."""
    folded = [word.written.casefold() for word in words]
    new = [text for text, word in zip(folded, words, strict=True) if word.stem not in facts.positions]
    return {
        "first_or_second_person": sum(word in _CLAIM_WORDS["speaker"] for word in new),
        "absolute_words": sum(word in _CLAIM_WORDS["absolute"] for word in new),
        "hedge_words": sum(word in _CLAIM_WORDS["hedge"] for word in folded) / len(folded),
        "exclamations": claim.count("?") + claim.count("!"),
    }


def _mean(values: Sequence[bool]) -> float:
    """The share of true values; 1 where there are none."""
    return sum(values) / len(values) if values else 1.0

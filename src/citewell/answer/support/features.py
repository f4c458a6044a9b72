"""What speaks for and against a text supporting a sentence, as numbers. Pure; weighs nothing."""

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
from citewell.answer.support.quantities import contains_quantity, find_quantities
from citewell.text import function_words, split_words, words_by_label

Array = NDArray[np.float64]

SUPPORT_FEATURES: Mapping[str, int] = {
    # What share of the sentence's words the text says: all of it, its best stretch of one to three sentences.
    "said": +1, "said_by_one": +1, "said_by_two": +1, "said_by_three": +1, "words_said": +1, "words_said_by_one": +1,
    "words_said_by_two": +1, "second_best": +1, "best_three": +1, "first_half": +1, "last_half": +1,
    "first_half_here": +1, "last_half_here": +1, "little_words": +1, "letters": +1, "letters_here": +1,
    # In the order and the neighbourhood in which the sentence says them.
    "pairs": +1, "triples": +1, "longest_run": +1, "near": +1,
    # What is new in the sentence.
    "missing": -1, "missing_here": -1, "rarest_missing": -1, "new_clause": -1, "new_clause_here": -1,
    "weakest_third": +1, "weakest_third_here": +1, "names_missing": -1, "names_missing_share": -1,
    "names_missing_here": -1, "numbers_missing": -1, "numbers_missing_here": -1, "units_wrong": -1, "speaker": -1,
    "absolutes": -1,
    # What is turned around.
    "negation_added": -1, "negation_differs": -1, "opposite": -1, "same_side": +1,
    # What kind of sentence it is, and how much else the stretch says.
    "names": 0, "numbers": 0, "hedges": 0, "marks": 0, "length": 0, "content": 0, "rareness": 0, "density": +1,
    "density_of_two": +1,
}  # fmt: skip
"""Each sign, and the one way in which it may move a verdict: +1 for, -1 against, 0 either."""

_READ = 400  # words of a sentence; whatever is longer is none
_NUMBERS = 40  # of a sentence, each of which is looked for among all of the text
_NEAR, _NEARBY = 4, 12  # words apart
_KINDS = words_by_label("claim-words.txt")


def support_features(sentence: str, evidence: PassageFacts) -> dict[str, float]:
    """Every sign but that of the embeddings, for a sentence with words and a text with words."""
    little = function_words(evidence.tongue)
    spoken = words_with_stems(_without_converted(sentence, evidence), evidence.tongue)[:_READ]
    content: dict[str, Word] = {}
    for word in spoken:
        if word.written.casefold() not in little:
            content.setdefault(word.stem, word)
    if not content:  # "It is not so."
        content = {word.stem: word for word in spoken}
    weights = np.array([rarity(stem) for stem in content])
    says = np.zeros((len(content), len(evidence.sentences)), dtype=bool)
    for row, stem in enumerate(content):
        says[row, evidence.spoken_in.get(stem, [])] = True
    share = weights / weights.sum()
    by_one = share @ says
    two, three = _wider(says, 1), _wider(says, 2)
    by_two = share @ two
    best_one, best_two = int(by_one.argmax()), int(by_two.argmax())
    here = two[:, best_two]
    whole: NDArray[np.bool_] = np.asarray(says.any(axis=1))
    descending = np.sort(by_one)[::-1]
    half = max(1, len(content) // 2)
    found = {
        "said": share @ whole,
        "said_by_one": descending[0],
        "said_by_two": by_two[best_two],
        "said_by_three": (share @ three).max(),
        "words_said": whole.mean(),
        "words_said_by_one": says.mean(axis=0).max(),
        "words_said_by_two": two.mean(axis=0).max(),
        "second_best": descending[1] if len(descending) > 1 else 0.0,
        "best_three": descending[:3].mean(),
        "first_half": whole[:half].mean(),
        "last_half": whole[half:].mean() if len(content) > half else whole.mean(),
        "first_half_here": here[:half].mean(),
        "last_half_here": here[half:].mean() if len(content) > half else here.mean(),
        "little_words": _mean([word.stem in evidence.places for word in spoken if word.stem not in content]),
        "missing": float(weights @ ~whole),
        "missing_here": float(weights @ ~here),
        "rarest_missing": float((weights * ~whole).max()),
        "new_clause": _longest_gap(weights, whole),
        "new_clause_here": _longest_gap(weights, here),
        "weakest_third": _weakest_third(whole),
        "weakest_third_here": _weakest_third(here),
        "length": log1p(len(spoken)),
        "content": len(content),
        "rareness": weights.mean(),
        "density": says[:, best_one].sum() / max(1, evidence.content[best_one]),
        "density_of_two": here.sum() / max(1, sum(evidence.content[best_two : best_two + 2])),
        **_order([word.stem for word in spoken], list(content), evidence),
        **_letters(content, share, whole, evidence),
        **_names(spoken, content, whole, here),
        **_numbers(sentence, evidence, best_two),
        **_turned(sentence, spoken, evidence, best_one, best_two),
        **_manner(sentence, spoken, evidence),
    }
    return {name: float(found[name]) for name in SUPPORT_FEATURES}


def _manner(sentence: str, spoken: tuple[Word, ...], evidence: PassageFacts) -> dict[str, float]:
    """How it speaks: in whose name, how surely, and how loudly."""
    low = [word.written.casefold() for word in spoken]
    new = [one for one, word in zip(low, spoken, strict=True) if word.stem not in evidence.places]
    return {
        "speaker": sum(one in _KINDS["speaker"] for one in new),
        "absolutes": sum(one in _KINDS["absolute"] for one in new),
        "hedges": sum(one in _KINDS["hedge"] for one in low) / len(low),
        "marks": sentence.count("?") + sentence.count("!"),
    }


def _without_converted(sentence: str, evidence: PassageFacts) -> str:
    """The sentence without the numbers that the text gives in another unit or spelling: they are not new words."""
    known = [one for some in evidence.quantities for one in some]
    kept, end = "", 0
    for one in find_quantities(sentence)[:_NUMBERS] if known else ():
        written = sentence[one.at : one.end]
        if (
            one.at >= end
            and contains_quantity(known, one, unit=True)
            and words_with_stems(written, evidence.tongue)[0].stem not in evidence.places
        ):
            kept, end = kept + sentence[end : one.at], one.end
    return kept + sentence[end:] if end and split_words(kept + sentence[end:]) else sentence


def _wider(says: NDArray[np.bool_], more: int) -> NDArray[np.bool_]:
    """Which words each sentence says with those that follow it."""
    wide = says.copy()
    for ahead in range(1, more + 1):
        wide[:, :-ahead] |= says[:, ahead:]
    return wide


def _longest_gap(weights: Array, said: NDArray[np.bool_]) -> float:
    """The heaviest run of words that are not said: a clause that the sentence adds."""
    longest = run = 0.0
    for weight, known in zip(weights.tolist(), said.tolist(), strict=True):
        run = 0.0 if known else run + weight
        longest = max(longest, run)
    return longest


def _weakest_third(said: NDArray[np.bool_]) -> float:
    return min(float(part.mean()) for part in np.array_split(said, 3) if len(part))


def _order(spoken: list[str], content: list[str], evidence: PassageFacts) -> dict[str, float]:
    known = [pair in evidence.pairs for pair in pairwise(spoken)]
    triples = [triple in evidence.triples for triple in zip(spoken, spoken[1:], spoken[2:], strict=False)]
    longest = run = 0
    for one in known:
        run = run + 1 if one else 0
        longest = max(longest, run)
    near = [(rarity(one) + rarity(other), _nearness(one, other, evidence)) for one, other in pairwise(content)]
    weight = sum(one for one, _ in near)
    return {
        "pairs": _mean(known),
        "triples": _mean(triples),
        "longest_run": longest / len(spoken),
        "near": sum(one * close for one, close in near) / weight if weight else float(content[0] in evidence.places),
    }


def _nearness(one: str, other: str, evidence: PassageFacts) -> float:
    """Whether two words of the sentence stand close together in the text as well."""
    here, there = evidence.places.get(one), evidence.places.get(other)
    if not here or not there:
        return 0.0
    at, among = np.array(here), np.array(there)
    after = np.searchsorted(among, at)
    gap = np.minimum(
        np.abs(among[np.minimum(after, len(among) - 1)] - at), np.abs(among[np.maximum(after - 1, 0)] - at)
    ).min()
    return 1.0 if gap <= _NEAR else 0.5 if gap <= _NEARBY else 0.0


def _letters(
    content: Mapping[str, Word], share: Array, whole: NDArray[np.bool_], evidence: PassageFacts
) -> dict[str, float]:
    """As much of each word as the text has letters for: "diagnostic" where it says "diagnosis"."""
    taken = [letter_ngrams(stem) for stem in content]
    alike = [1.0 if said else len(one & evidence.letters) / len(one) for one, said in zip(taken, whole, strict=True)]
    size = np.array([len(one) for one in taken])
    everything = frozenset().union(*taken)
    best = max(len(everything & letters) for letters in evidence.letters_by_sentence)
    return {"letters": float(share @ alike), "letters_here": best / max(1, min(len(everything), int(size.sum())))}


def _names(
    spoken: Sequence[Word], content: Mapping[str, Word], whole: NDArray[np.bool_], here: NDArray[np.bool_]
) -> dict[str, float]:
    named = {word.stem for word in spoken[1:] if word.written[0].isupper() and word.written.isalpha()}
    rows = [row for row, stem in enumerate(content) if stem in named]
    missing = len(rows) - int(whole[rows].sum())
    return {
        "names": len(rows),
        "names_missing": missing,
        "names_missing_share": missing / max(1, len(rows)),
        "names_missing_here": len(rows) - int(here[rows].sum()),
    }


def _numbers(sentence: str, evidence: PassageFacts, first: int) -> dict[str, float]:
    wanted = find_quantities(sentence)[:_NUMBERS]
    everywhere = [one for some in evidence.quantities for one in some] if wanted else []
    here = [one for some in evidence.quantities[first : first + 2] for one in some]
    return {
        "numbers": len(wanted),
        "numbers_missing": sum(not contains_quantity(everywhere, one) for one in wanted),
        "numbers_missing_here": sum(not contains_quantity(here, one) for one in wanted),
        "units_wrong": sum(
            contains_quantity(everywhere, one) and not contains_quantity(everywhere, one, unit=True) for one in wanted
        ),
    }


def _turned(
    sentence: str, spoken: tuple[Word, ...], evidence: PassageFacts, best_one: int, best_two: int
) -> dict[str, float]:
    denied = count_negations(sentence, spoken, evidence.tongue)
    sides = opposite_sides(spoken)
    taken = frozenset().union(*evidence.opposites[best_two : best_two + 2])
    return {
        "negation_added": float(denied > 0 and not any(evidence.negations[best_two : best_two + 2])),
        "negation_differs": float((denied > 0) != (evidence.negations[best_one] > 0)),
        "opposite": sum((pair, 1 - side) in taken and (pair, side) not in taken for pair, side in sides),
        "same_side": len(sides & taken),
    }


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 1.0

"""Scores how likely texts support a sentence: word by word, number by number. Pure.

The model was fitted by `benchmarks/fit/support.py` on claims that people checked against passages. It compares words,
numbers with units, names, negations and opposites; it does not know who cited what.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from citewell.answer.support.altered_quote import ALTERED_QUOTE_FACTOR, is_altered_quote
from citewell.answer.support.features import SUPPORT_FEATURES, support_features
from citewell.answer.support.passage_facts import PassageFacts, claim_text, read_facts, strip_markers
from citewell.answer.support.value_check import highest_verdict
from citewell.models import Verdict
from citewell.text import ENGLISH, data_file, detect_language, function_words, mostly_non_latin, split_words


class BoostedTrees:
    """A fitted gradient boosting model, read from JSON; gives the probability of a row of features.

    All trees are walked at once. The children of a leaf are the leaf itself, so all walks can have the same length.
    """

    def __init__(self, fitted: Mapping[str, Any], features: Sequence[str]) -> None:
        if fitted["features"] != list(features):
            raise ValueError("the trees were fitted on other features; run benchmarks/fit/support.py DATA --write")
        self._roots = np.array(fitted["roots"])
        self._feature = np.array(fitted["feature"])
        self._threshold = np.array(fitted["threshold"])
        self._left = np.array(fitted["left"])
        self._right = np.array(fitted["right"])
        self._value = np.array(fitted["value"])
        self._depth = int(fitted["depth"])

    def probability(self, row: NDArray[np.float64]) -> float:
        node = self._roots
        for _ in range(self._depth):
            below = row[self._feature[node]] <= self._threshold[node]
            node = np.where(below, self._left[node], self._right[node])
        return float(1 / (1 + np.exp(-self._value[node].sum())))


_FITTED = json.loads(data_file("support.json").read_text(encoding="utf-8"))
_MODEL = BoostedTrees(_FITTED["words"], tuple(SUPPORT_FEATURES))

VERDICT_BANDS: dict[str, float] = _FITTED["bands"]
"""The lowest probability of a sentence that is called supported, and of one that is called weak."""

# What a score may be at most, by the highest verdict that the values of a sentence allow.
_HIGHEST_SCORES: dict[Verdict, float] = {
    "supported": 1.0,
    "weak": (VERDICT_BANDS["weak"] + VERDICT_BANDS["supported"]) / 2,
    "unsupported": VERDICT_BANDS["weak"] / 2,
}
_MIN_CHARACTERS_TO_DETECT_ENGLISH = 40
_SMALL_TALK = re.compile(
    r"""(?:sure|certainly|of\ course|yes|no|okay|ok|great(?:\ question)?|hello|hi|thanks|thank\ you|sorry)[\s,!.]*$
      | (?:(?:sure|certainly|of\ course|yes)[,!.]?\s+)?
        (?:here\ (?:is|are)|here['’]s|let\ me|i\ (?:hope|will|can)|i['’](?:ll|m\ (?:happy|glad))|hope|feel\ free
           |(?:in\ (?:summary|short|conclusion)|to\ summari[sz]e)\s*[:,]?$)
        (?:\b[^.:;\d]{0,80})?[:.!?]?$""",
    re.IGNORECASE | re.VERBOSE,
)
_INTRODUCES_LIST = re.compile(r"[^.;\d]{0,80}:$")  # whose items are claims of their own
_HEADING_OR_RULE = re.compile(r"^\s*(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|(?:[-*_=]\s*){3,})\s*$")


def support_score(sentence: str, texts: Sequence[str]) -> float:
    """The probability that these texts, together or one of them alone, support the sentence.

    Another text never lowers it. A sentence in another language than the text is weak: nobody can tell.
    """
    together = ["\n\n".join(texts)] if len(texts) > 1 else []
    return max((_score_against(sentence, text) for text in (*texts, *together)), default=0.0)


def verdict_for(probability: float) -> Verdict:
    """The verdict that stands for a probability of support."""
    if probability >= VERDICT_BANDS["supported"]:
        return "supported"
    return "weak" if probability >= VERDICT_BANDS["weak"] else "unsupported"


def needs_support(sentence: str) -> bool:
    """Whether a sentence claims anything: headings, greetings, questions and "Here are the steps:" do not."""
    words = " ".join(strip_markers(sentence).split())
    if _HEADING_OR_RULE.match(sentence.strip()) or _SMALL_TALK.match(words) or _INTRODUCES_LIST.match(words):
        return False
    return not words.endswith("?") and any(character.isalnum() for character in words)


def _score_against(sentence: str, text: str) -> float:
    """The probability that one text supports the sentence."""
    claim, facts = claim_text(sentence), read_facts(text)
    content = {word.casefold() for word in split_words(claim)} - function_words(detect_language(claim))
    if not facts.sentences or not content:  # "And" is in any text
        return 0.0
    highest = _HIGHEST_SCORES[highest_verdict(sentence, text)]
    if _in_different_languages(claim, facts):
        return min(VERDICT_BANDS["weak"], highest)
    features = list(support_features(claim, facts).values())
    probability = _MODEL.probability(np.array(features))
    return min(probability * ALTERED_QUOTE_FACTOR if is_altered_quote(claim, facts) else probability, highest)


def _in_different_languages(claim: str, facts: PassageFacts) -> bool:
    """Whether claim and text are in different languages, so that their words cannot be compared."""
    language = detect_language(claim)
    is_certain = ENGLISH not in (language, facts.language) or len(claim) > _MIN_CHARACTERS_TO_DETECT_ENGLISH
    return mostly_non_latin(claim) != facts.non_latin or (language != facts.language and is_certain)

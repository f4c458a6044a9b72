"""How likely a text supports a sentence: word by word, number by number. Pure.

Fitted by `benchmarks/fit/support.py` on claims that people held against passages. It reads words, numbers with their
units, names, negations and opposites; it knows nothing of who cited what.
"""

import json
import re
from collections.abc import Sequence

import numpy as np

from citewell.answer.support.altered_quote import ALTERED_QUOTE_FACTOR, is_altered_quote
from citewell.answer.support.features import SUPPORT_FEATURES, support_features
from citewell.answer.support.passage_facts import PassageFacts, claim_text, read_facts, strip_markers
from citewell.answer.support.trees import Trees
from citewell.models import Verdict
from citewell.text import ENGLISH, data_file, detect_language, mostly_non_latin, split_words

_DATA = data_file("support.json")
_FITTED = json.loads(_DATA.read_text(encoding="utf-8"))
_WORDS = Trees(_FITTED["words"], tuple(SUPPORT_FEATURES))

VERDICT_BANDS: dict[str, float] = _FITTED["bands"]
"""The least probability of a sentence that is called supported, and of one that is called weak."""

_ENOUGH = 40  # characters that betray whether a sentence is English
_TALK = re.compile(
    r"""(?:sure|certainly|of\ course|yes|no|okay|ok|great(?:\ question)?|hello|hi|thanks|thank\ you|sorry)[\s,!.]*$
      | (?:(?:sure|certainly|of\ course|yes)[,!.]?\s+)?
        (?:here\ (?:is|are)|here['’]s|let\ me|i\ (?:hope|will|can)|i['’](?:ll|m\ (?:happy|glad))|hope|feel\ free
           |(?:in\ (?:summary|short|conclusion)|to\ summari[sz]e)\s*[:,]?$)
        (?:\b[^.:;\d]{0,80})?[:.!?]?$""",
    re.IGNORECASE | re.VERBOSE,
)
_ANNOUNCES = re.compile(r"[^.;\d]{0,80}:$")  # a list that follows, whose items are claims of their own
_HEADING = re.compile(r"^\s*(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|(?:[-*_=]\s*){3,})\s*$")


def support_score(sentence: str, texts: Sequence[str]) -> float:
    """How likely these texts, together or one of them alone, support the sentence: 0 to 1.

    Another text never takes support away. A sentence in another language than the text is weak: who could tell.
    """
    together = ["\n\n".join(texts)] if len(texts) > 1 else []
    return max((_support(sentence, read_facts(text)) for text in (*texts, *together)), default=0.0)


def verdict_for(probability: float) -> Verdict:
    """What such a probability is called."""
    if probability >= VERDICT_BANDS["supported"]:
        return "supported"
    return "weak" if probability >= VERDICT_BANDS["weak"] else "unsupported"


def needs_support(sentence: str) -> bool:
    """Whether a sentence claims anything: headings, greetings and "Here are the steps:" do not."""
    said = " ".join(strip_markers(sentence).split())
    if _HEADING.match(sentence.strip()) or _TALK.match(said) or _ANNOUNCES.match(said) or said.endswith("?"):
        return False
    return any(mark.isalnum() for mark in said)


def _support(sentence: str, evidence: PassageFacts) -> float:
    claim = claim_text(sentence)
    if not evidence.sentences or not split_words(claim):
        return 0.0
    if _in_other_words(claim, evidence):
        return VERDICT_BANDS["weak"]
    row = list(support_features(claim, evidence).values())
    probability = _WORDS.probability(np.array(row))
    return probability * ALTERED_QUOTE_FACTOR if is_altered_quote(claim, evidence) else probability


def _in_other_words(claim: str, evidence: PassageFacts) -> bool:
    """Whether two languages have no words in common to compare: a translation is neither right nor wrong to us."""
    tongue = detect_language(claim)
    foreign = ENGLISH not in (tongue, evidence.tongue) or len(claim) > _ENOUGH
    return mostly_non_latin(claim) != evidence.other_letters or (tongue != evidence.tongue and foreign)

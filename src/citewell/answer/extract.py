"""Score what could be quoted: every unit of the found passages, by how likely it answers the question.

Each is described by how much of the question it speaks about and whether it looks like an answer to this kind of
question; the weights were fitted by `benchmarks/fit.py`. Pure. Which of them are quoted is up to `choose.py`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from citewell.answer.units import Unit, quote, units
from citewell.answer.weights import fitted
from citewell.models import Passage
from citewell.terms import stems, subject, words

# What kind of answer is wanted, and what looks like one.
_QUANTITY = re.compile(
    r"""\bhow\ (?:many|much|long|far|fast|often|heavy|large|big|old|high|tall|deep|hot|wide|late|early|strong)\b
      | \b(?:what|which)\ (?:\w+\ )?(?:number|percentage|value|version|year|date|size|distance|rate|speed|force|age
                                   |temperature|price|cost|limit|range)\b
      | \bwhen\b | \b(?:minimum|maximum)\ number\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WHO = re.compile(r"\b(?:who|whom|whose|which (?:person|team|company|country|city))\b", re.IGNORECASE)
_WHY = re.compile(r"\bwhy\b|\breason\b|\bcauses?\b", re.IGNORECASE)
_BECAUSE = re.compile(
    r"\b(?:because|since|due to|so that|therefore|thus|reason|causes?|caused|leads? to|otherwise|in order to)\b",
    re.IGNORECASE,
)
_HOW_TO = re.compile(
    r"\bhow (?:do|can|should|would|could|to)\b|\bwhat (?:can|should|do) I\b|\b(?:helps?|fix|prevent|avoid)\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"""^\W*(?:use|set|add|run|check|start|put|keep|give|install|create|make|avoid|do\ not|don't|never|always|first|to
             |if|lower|raise|limit|cut|call|wrap|enable|disable|replace|remove|write|choose|place|move|wait)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WHAT_IS = re.compile(r"^\W*(?:what(?:'s| is| are| does)|define|meaning of|explain)\b", re.IGNORECASE)
_DEFINES = re.compile(
    r"\b(?:is|are|means?|refers? to|is called|are called|known as|defined as|stands for)\b", re.IGNORECASE
)
_DANGLING = re.compile(
    r"^\W*(?:this|that|these|those|it|they|he|she|its|their|such|both|here|then|so|but|and|also|however)\b",
    re.IGNORECASE,
)
_WANTS_CODE = re.compile(
    r"\b(?:code|commands?|script|snippet|syntax|python|bash|shell|yaml|json|xml|config\w*|install|run|call|write|function|api"
    r"|example|how (?:do|can|would) (?:i|we|you)|how to)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]+")
_DIGIT = re.compile(r"\d")

FEATURES = (
    "covered", "covered_nearby", "covered_by_label", "covered_by_passage", "pairs", "best_rank", "similarity",
    "window_similarity",
    "quantity", "names_someone", "gives_reason", "instructs", "defines", "dangling", "asks", "very_short",
    "length", "item", "row", "code", "math", "first", "adds_nothing",
)  # fmt: skip


_WEIGHTS = fitted("extract", FEATURES)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit of one of the passages, with what the weights say of it."""

    passage: int
    unit: Unit
    features: NDArray[np.float64]
    words: frozenset[str]

    @property
    def log_odds(self) -> float:
        return float(self.features @ _WEIGHTS)


def candidates(question: str, passages: Sequence[Passage], weights: Mapping[str, float]) -> list[Candidate]:
    """Every quotable unit of the passages, described by how it relates to the question.

    `weights` says how much each stem of the question's subject matters; they add up to 1.
    """
    asked = _Asked(question, weights)
    wants_code = bool(_WANTS_CODE.search(question))
    found: list[Candidate] = []
    for rank, passage in enumerate(passages):
        text = passage.chunk.text
        # Code speaks of many things it does not explain; it answers only who asks for it.
        parts = [unit for unit in units(text) if wants_code or unit.kind != "code"]
        spoken = [frozenset(stems(quote(text, unit))) for unit in parts]
        label = frozenset(stems(passage.chunk.label))
        whole = asked.coverage(frozenset().union(*spoken, label))
        for place, unit in enumerate(parts):
            nearby = frozenset().union(*spoken[max(0, place - 1) : place + 2])
            features = asked.features(quote(text, unit), unit, spoken[place], nearby, label)
            features |= {
                "covered_by_passage": whole,
                "best_rank": 1 / (1 + rank),
                "similarity": passage.score,
                "window_similarity": _nearest_window(passage, unit),
                "first": float(place == 0),
            }
            found.append(Candidate(rank, unit, np.array([features[name] for name in FEATURES]), spoken[place]))
    return found


def _nearest_window(passage: Passage, unit: Unit) -> float:
    """How close the embedded stretch that holds this unit is to the question."""
    return max((one.score for one in passage.windows if one.start < unit.end and one.end > unit.start), default=0.0)


class _Asked:
    """A question taken apart once, to be held against many units."""

    def __init__(self, question: str, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._stems = frozenset(stems(question))
        spoken = list(subject(question))
        self._pairs = set(pairwise(spoken))
        self._quantity = bool(_QUANTITY.search(question))
        self._who = bool(_WHO.search(question))
        self._why = bool(_WHY.search(question))
        self._how_to = bool(_HOW_TO.search(question))
        self._what_is = bool(_WHAT_IS.search(question))

    def coverage(self, spoken: frozenset[str]) -> float:
        return sum(weight for stem, weight in self._weights.items() if stem in spoken)

    def features(
        self, text: str, unit: Unit, spoken: frozenset[str], nearby: frozenset[str], label: frozenset[str]
    ) -> dict[str, float]:
        covered = self.coverage(spoken)
        count = len(words(text))
        new = len(spoken - self._stems)
        return {
            "covered": covered,
            "covered_nearby": self.coverage(nearby) - covered,
            "covered_by_label": self.coverage(label - spoken),
            "pairs": self._pairs_in(text) if covered else 0.0,
            "quantity": float(self._quantity and bool(_DIGIT.search(text))),
            "names_someone": float(self._who and bool(_NAME.search(text))),
            "gives_reason": float(self._why and bool(_BECAUSE.search(text))),
            "instructs": float(self._how_to and bool(_IMPERATIVE.match(text))),
            "defines": float(self._what_is and bool(_DEFINES.search(text))),
            "dangling": float(bool(_DANGLING.match(text))),
            "asks": float(text.rstrip().endswith("?")),
            "very_short": float(count < 5),
            "length": min(count, 60) / 60,
            "item": float(unit.kind == "item"),
            "row": float(unit.kind == "row"),
            "code": float(unit.kind == "code"),
            "math": float(unit.kind == "math"),
            "adds_nothing": float(new < 2),
        }

    def _pairs_in(self, text: str) -> float:
        """How many of the question's neighbouring subject words are neighbours here too."""
        if not self._pairs:
            return 0.0
        spoken = [one for one in stems(text) if one in self._weights]
        return len(self._pairs & set(pairwise(spoken))) / len(self._pairs)

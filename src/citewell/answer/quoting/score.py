"""Score what could be quoted: every unit of the found passages, by how likely it answers the question.

Each is described by how much of the question it speaks about and whether it looks like an answer to this kind of
question; the weights were fitted by `benchmarks/fit/ranking.py`. Pure. Which of them are quoted is up to `select.py`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from citewell.answer.retrieval import fitted_weights, score_passages
from citewell.models import Passage
from citewell.text import Unit, detect_language, split_units, split_words, stems, unit_text

# What kind of answer is wanted, and what looks like one.
_WHEN = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century|decade|time)\b|\bhow (?:old|long ago)\b", re.IGNORECASE
)
_TIME = re.compile(
    r"""\b(?:1\d{3}|20\d{2})s?\b | \bcentury\b
      | \b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b""",
    re.VERBOSE,
)
_WHO = re.compile(
    r"""\b(?:who|whom|whose)\b
      | \b(?:what|which)\ (?:\w+\ )?(?:person|man|woman|king|queen|president|scientist|author|company|team|group)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WHERE = re.compile(
    r"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:city|country|place|location|region|state|river|building|continent)\b",
    re.IGNORECASE,
)
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
_DRAWING = re.compile(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*(?:mermaid|dot|graphviz|plantuml)\b")  # fenced, but no code
_NAME = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][\w’'-]+")

QUOTE_FEATURES = (
    "covered", "most_covered", "covered_nearby", "covered_by_label", "relevance", "window_similarity",
    "says_when", "names_someone", "names_a_place", "gives_reason", "instructs", "defines",
    "dangling", "asks", "very_short", "length", "item", "row", "code", "first", "adds_nothing",
)  # fmt: skip


_WEIGHTS = fitted_weights("extract", QUOTE_FEATURES)
_COVERED, _MOST_COVERED = QUOTE_FEATURES.index("covered"), QUOTE_FEATURES.index("most_covered")


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


def score_candidates(
    question: str,
    passages: Sequence[Passage],
    weights: Mapping[str, float],
    *,
    favour: Mapping[str, float] | None = None,
) -> list[Candidate]:
    """Every quotable unit of the passages, described by how it relates to the question.

    `weights` says how much each stem of the question's subject matters; they add up to 1. `favour` has log-odds to add
    for the passages of some chunks.
    """
    asked = _Asked(question, weights)
    wants_code = bool(_WANTS_CODE.search(question))
    relevance = score_passages(question, passages, weights)
    if favour:
        relevance = [odds + favour.get(one.chunk.id, 0.0) for odds, one in zip(relevance, passages, strict=True)]
    found: list[Candidate] = []
    for rank, passage in enumerate(passages):
        text = passage.chunk.text
        # Code speaks of many things it does not explain; it answers who asks for it. A diagram's source answers nobody.
        parts = [
            part
            for part in _quotable(text)
            if part[0].kind != "code" or (wants_code and not _DRAWING.match(text, part[0].start, part[0].end))
        ]
        spoken = [words for _, _, words in parts]
        label = frozenset(stems(passage.chunk.label, detect_language(text)))
        for place, (unit, quoted, _) in enumerate(parts):
            nearby = frozenset().union(*spoken[max(0, place - 1) : place + 2])
            features = asked.features(quoted, unit, spoken[place], nearby, label)
            features |= {
                "relevance": relevance[rank] - max(relevance),
                "window_similarity": _nearest_window(passage, unit),
                "first": float(place == 0),
            }
            found.append(Candidate(rank, unit, np.array([features[name] for name in QUOTE_FEATURES]), spoken[place]))
    mark_most_covered(found)
    return found


@lru_cache(maxsize=512)  # readers of a book ask about the same passages; a passage costs some 20 kB here
def _quotable(text: str) -> tuple[tuple[Unit, str, frozenset[str]], ...]:
    """Each unit of a passage with its own words and their stems."""
    tongue = detect_language(text)
    quoted = [(unit, unit_text(text, unit)) for unit in split_units(text)]
    return tuple((unit, words, frozenset(stems(words, tongue))) for unit, words in quoted)


def mark_most_covered(found: Sequence[Candidate]) -> None:
    """Tell the units that speak most of the question from all others."""
    most = max((one.features[_COVERED] for one in found), default=0.0)
    for one in found:
        one.features[_MOST_COVERED] = float(one.features[_COVERED] >= most - 1e-9)


def _nearest_window(passage: Passage, unit: Unit) -> float:
    """How close the embedded stretch that holds this unit is to the question."""
    return max((one.score for one in passage.windows if one.start < unit.end and one.end > unit.start), default=0.0)


class _Asked:
    """A question taken apart once, to be held against many units."""

    def __init__(self, question: str, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._stems = frozenset(stems(question))
        self._written = frozenset(split_words(question))
        self._times = frozenset(_TIME.findall(question))
        self._when = bool(_WHEN.search(question))
        self._who = bool(_WHO.search(question))
        self._where = bool(_WHERE.search(question))
        self._why = bool(_WHY.search(question))
        self._how_to = bool(_HOW_TO.search(question))
        self._what_is = bool(_WHAT_IS.search(question))

    def coverage(self, spoken: frozenset[str]) -> float:
        return sum(weight for stem, weight in self._weights.items() if stem in spoken)

    def features(
        self, text: str, unit: Unit, spoken: frozenset[str], nearby: frozenset[str], label: frozenset[str]
    ) -> dict[str, float]:
        covered = self.coverage(spoken)
        count = len(split_words(text))
        new = len(spoken - self._stems)
        return {
            "covered": covered,
            "most_covered": 0.0,  # known when all are
            "covered_nearby": self.coverage(nearby) - covered,
            "covered_by_label": self.coverage(label - spoken),
            # What was asked for has to be news: a year or a name that the question itself says is no answer.
            "says_when": float(self._when and bool(frozenset(_TIME.findall(text)) - self._times)),
            "names_someone": float(self._who and self._names(text)),
            "names_a_place": float(self._where and self._names(text)),
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
            "adds_nothing": float(new < 2),
        }

    def _names(self, text: str) -> bool:
        return any(name not in self._written for name in _NAME.findall(text))

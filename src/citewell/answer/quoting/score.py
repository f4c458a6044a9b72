"""Scores every unit of the passages by how likely it answers the question. Pure.

The features of a unit say how much of the question it mentions, and whether it looks like an answer to this kind of
question; their weights were fitted by `benchmarks/fit/ranking.py`. Which units are quoted is decided in `select.py`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from citewell.answer.quoting.question_kind import may_want_code
from citewell.answer.retrieval import fitted_weights, score_passages
from citewell.models import Passage
from citewell.text import Unit, detect_language, split_units, split_words, stems, unit_text

# Patterns in pairs: what a question asks for, and what an answer to it looks like.
_ASKS_WHEN = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century|decade|time)\b|\bhow (?:old|long ago)\b", re.IGNORECASE
)
_DATE = re.compile(
    r"""\b(?:1\d{3}|20\d{2})s?\b | \bcentury\b
      | \b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b""",
    re.VERBOSE,
)
_ASKS_WHO = re.compile(
    r"""\b(?:who|whom|whose)\b
      | \b(?:what|which)\ (?:\w+\ )?(?:person|man|woman|king|queen|president|scientist|author|company|team|group)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS_WHERE = re.compile(
    r"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:city|country|place|location|region|state|river|building|continent)\b",
    re.IGNORECASE,
)
_ASKS_WHY = re.compile(r"\bwhy\b|\breason\b|\bcauses?\b", re.IGNORECASE)
_GIVES_REASON = re.compile(
    r"\b(?:because|since|due to|so that|therefore|thus|reason|causes?|caused|leads? to|otherwise|in order to)\b",
    re.IGNORECASE,
)
_ASKS_HOW_TO = re.compile(
    r"\bhow (?:do|can|should|would|could|to)\b|\bwhat (?:can|should|do) I\b|\b(?:helps?|fix|prevent|avoid)\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"""^\W*(?:use|set|add|run|check|start|put|keep|give|install|create|make|avoid|do\ not|don't|never|always|first|to
             |if|lower|raise|limit|cut|call|wrap|enable|disable|replace|remove|write|choose|place|move|wait)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS_WHAT_IS = re.compile(r"^\W*(?:what(?:'s| is| are| does)|define|meaning of|explain)\b", re.IGNORECASE)
_DEFINES = re.compile(
    r"\b(?:is|are|means?|refers? to|is called|are called|known as|defined as|stands for)\b", re.IGNORECASE
)
_STARTS_WITH_REFERENCE = re.compile(
    r"^\W*(?:this|that|these|those|it|they|he|she|its|their|such|both|here|then|so|but|and|also|however)\b",
    re.IGNORECASE,
)
_DIAGRAM_SOURCE = re.compile(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*(?:mermaid|dot|graphviz|plantuml)\b")  # fenced, but no code
_CAPITALIZED_WORD = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][\w’'-]+")

QUOTE_FEATURES = (
    "covered", "most_covered", "covered_nearby", "covered_by_label", "relevance", "window_similarity",
    "says_when", "names_someone", "names_a_place", "gives_reason", "instructs", "defines",
    "dangling", "asks", "very_short", "length", "item", "row", "code", "first", "adds_nothing",
)  # fmt: skip


_WEIGHTS = fitted_weights("extract", QUOTE_FEATURES)
_READ_WEIGHTS = fitted_weights("read", ("words", "unit", "window"))
_COVERED, _MOST_COVERED = QUOTE_FEATURES.index("covered"), QUOTE_FEATURES.index("most_covered")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit of one of the passages that could be quoted, with its features."""

    passage: int
    """The index of its passage among the passages."""
    unit: Unit
    features: NDArray[np.float64]
    words: frozenset[str]
    """The stems of its words."""
    read: tuple[float, float] | None = None
    """What the reader thinks, as log-odds: that the unit answers, and that its window does. None if it was not read."""

    @property
    def log_odds_by_words(self) -> float:
        """How likely it answers the question by its features alone, up to a constant."""
        return float(self.features @ _WEIGHTS)

    @property
    def log_odds(self) -> float:
        """How likely it answers the question, up to a constant."""
        if self.read is None:
            return self.log_odds_by_words
        words, unit, window = _READ_WEIGHTS.tolist()
        return float(words * self.log_odds_by_words + unit * self.read[0] + window * self.read[1])


def score_candidates(
    question: str,
    passages: Sequence[Passage],
    weights: Mapping[str, float],
    *,
    favour: Mapping[str, float] | None = None,
    with_code: bool = False,
) -> list[Candidate]:
    """Every quotable unit of the passages with its features.

    `weights` has the share of each stem of the question; they add up to 1. `favour` has log-odds to add to passages, by
    chunk id. Code is a candidate only `with_code`, or where the question may ask for it.
    """
    question_features = _QuestionFeatures(question, weights)
    code_is_quotable = with_code or may_want_code(question)
    relevance = score_passages(question, passages, weights)
    if favour:
        relevance = [
            log_odds + favour.get(passage.chunk.id, 0.0) for log_odds, passage in zip(relevance, passages, strict=True)
        ]
    candidates: list[Candidate] = []
    for rank, passage in enumerate(passages):
        text = passage.chunk.text
        # Code mentions many things that it does not explain: by its words alone it is quoted only where the question
        # may ask for code. The source of a diagram is never quoted.
        parts = [
            part
            for part in _units_with_stems(text)
            if part[0].kind != "code"
            or (code_is_quotable and not _DIAGRAM_SOURCE.match(text, part[0].start, part[0].end))
        ]
        stems_by_unit = [unit_stems for _, _, unit_stems in parts]
        label_stems = frozenset(stems(passage.chunk.label, detect_language(text)))
        for index, (unit, words, unit_stems) in enumerate(parts):
            nearby_stems = frozenset().union(*stems_by_unit[max(0, index - 1) : index + 2])
            features = question_features.unit_features(words, unit, unit_stems, nearby_stems, label_stems)
            features |= {
                "relevance": relevance[rank] - max(relevance),
                "window_similarity": _window_similarity(passage, unit),
                "first": float(index == 0),
            }
            candidates.append(Candidate(rank, unit, np.array([features[name] for name in QUOTE_FEATURES]), unit_stems))
    mark_most_covered(candidates)
    return candidates


@lru_cache(maxsize=512)  # readers of a book ask about the same passages; a passage costs some 20 kB here
def _units_with_stems(text: str) -> tuple[tuple[Unit, str, frozenset[str]], ...]:
    """Each unit of a passage with its text and the stems of its words."""
    language = detect_language(text)
    units = [(unit, unit_text(text, unit)) for unit in split_units(text)]
    return tuple((unit, words, frozenset(stems(words, language))) for unit, words in units)


def mark_most_covered(candidates: Sequence[Candidate]) -> None:
    """Sets the feature of the candidates that mention most of the question, and clears it in all others."""
    most = max((candidate.features[_COVERED] for candidate in candidates), default=0.0)
    for candidate in candidates:
        candidate.features[_MOST_COVERED] = float(candidate.features[_COVERED] >= most - 1e-9)


def _window_similarity(passage: Passage, unit: Unit) -> float:
    """The similarity of the question to the most similar embedding window that contains a part of the unit."""
    overlapping = (window for window in passage.windows if window.start < unit.end and window.end > unit.start)
    return max((window.score for window in overlapping), default=0.0)


class _QuestionFeatures:
    """A question parsed once, to compute the features of many units."""

    def __init__(self, question: str, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._stems = frozenset(stems(question))
        self._words = frozenset(split_words(question))
        self._dates = frozenset(_DATE.findall(question))
        self._asks_when = bool(_ASKS_WHEN.search(question))
        self._asks_who = bool(_ASKS_WHO.search(question))
        self._asks_where = bool(_ASKS_WHERE.search(question))
        self._asks_why = bool(_ASKS_WHY.search(question))
        self._asks_how_to = bool(_ASKS_HOW_TO.search(question))
        self._asks_what_is = bool(_ASKS_WHAT_IS.search(question))

    def _coverage(self, text_stems: frozenset[str]) -> float:
        """The share of the question that these stems are."""
        return sum(weight for stem, weight in self._weights.items() if stem in text_stems)

    def unit_features(
        self,
        text: str,
        unit: Unit,
        unit_stems: frozenset[str],
        nearby_stems: frozenset[str],
        label_stems: frozenset[str],
    ) -> dict[str, float]:
        """The features of a unit that do not depend on its passage's rank."""
        covered = self._coverage(unit_stems)
        word_count = len(split_words(text))
        new_stems = len(unit_stems - self._stems)
        return {
            "covered": covered,
            "most_covered": 0.0,  # set when all candidates are known
            "covered_nearby": self._coverage(nearby_stems) - covered,
            "covered_by_label": self._coverage(label_stems - unit_stems),
            # An answer must be new: a year or a name that the question itself contains is none.
            "says_when": float(self._asks_when and bool(frozenset(_DATE.findall(text)) - self._dates)),
            "names_someone": float(self._asks_who and self._has_new_name(text)),
            "names_a_place": float(self._asks_where and self._has_new_name(text)),
            "gives_reason": float(self._asks_why and bool(_GIVES_REASON.search(text))),
            "instructs": float(self._asks_how_to and bool(_IMPERATIVE.match(text))),
            "defines": float(self._asks_what_is and bool(_DEFINES.search(text))),
            "dangling": float(bool(_STARTS_WITH_REFERENCE.match(text))),
            "asks": float(text.rstrip().endswith("?")),
            "very_short": float(word_count < 5),
            "length": min(word_count, 60) / 60,
            "item": float(unit.kind == "item"),
            "row": float(unit.kind == "row"),
            "code": float(unit.kind == "code"),
            "adds_nothing": float(new_stems < 2),
        }

    def _has_new_name(self, text: str) -> bool:
        """Whether the text has a capitalized word that the question does not have."""
        return any(name not in self._words for name in _CAPITALIZED_WORD.findall(text))

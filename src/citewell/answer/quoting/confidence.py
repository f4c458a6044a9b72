"""Estimates how likely an answer is right, as a calibrated probability: by its passages, then by its quotes. Pure.

A passage may be about the very topic and still not say what was asked for. So the second estimate reads the quotes:
whether they contain the question's words and names, whether there is a number where one is asked for, and how far the
best passage stands before the next. `benchmarks/fit/ranking.py` fits the first one, on covered and uncovered questions,
and `benchmarks/fit/answer_confidence.py` the second one, on answers that were right or wrong.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from citewell.answer.quoting.score import Candidate
from citewell.answer.retrieval import Retrieval, fitted_weights, score_passages
from citewell.text import ENGLISH, content_words, detect_language, mostly_non_latin, specific_terms, stems

CONFIDENCE_FEATURES = (
    "bias", "similarity", "similarity_of_three", "above_background", "passage_coverage",
    "unknown", "unknown_specific", "specific_missing",
)  # fmt: skip

_WEIGHTS = fitted_weights("confidence", CONFIDENCE_FEATURES)

_BANDS = ("refuse", "weak")
CONFIDENCE_BANDS = dict(zip(_BANDS, fitted_weights("bands", _BANDS).tolist(), strict=True))
"""Below "refuse" the passages are about something else, below "weak" an answer is doubtful."""

ANSWER_FEATURES = (
    "bias", "topic", "above_background", "lead", "best_candidate", "quote_coverage", "word_pairs",
    "specific_missing", "unknown_specific", "asks_how_to", "asks_for_number", "number_missing", "length",
)  # fmt: skip

READ_FEATURES = (*ANSWER_FEATURES, "window", "unit", "best_window", "stands_out")

_ANSWER_WEIGHTS = fitted_weights("answer", ANSWER_FEATURES)
_READ_ANSWER_WEIGHTS = fitted_weights("answer_read", READ_FEATURES)
_MAX_LENGTH = 3000  # characters; longer quotes are one unit that is never cut
_HOW_TO = re.compile(r"\bhow (?:do|can|should|would|could|to)\b", re.IGNORECASE)
_ASKS_FOR_NUMBER = re.compile(
    r"\bhow (?:many|much|often|long|large|big|fast|far|old)\b"
    r"|\b(?:cost|price|charge|percentage|maximum|minimum|limit)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NUMBER_WORD = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|once|twice|daily|weekly|monthly|annual(?:ly)?"
    r"|yearly|week|month|year|unlimited)\b",
    re.IGNORECASE,
)

SELECTION_FEATURES = (
    "bias", "similarity", "similarity_foreign", "foreign", "other_letters", "says_other_letters", "sentence_says",
    "selection_says", "names_missing", "length",
)  # fmt: skip

_SELECTION_WEIGHTS = fitted_weights("selection", SELECTION_FEATURES)
_CONFIDENCE_WITHOUT_QUESTION = 0.5
# "Should I commit it?" has one word of its own to compare with a selection, and an answer seldom repeats it. Chosen on
# 8 such questions: of 24 selections written to answer them, 22 are answered instead of none, 8 of these without doubt;
# of 320 random sentences 17 % instead of 1 %, and 1 % without doubt.
_LOG_ODDS_OF_YES_OR_NO = 2.5
_MAX_CHARACTERS_OF_YES_OR_NO = 300  # of the selection
_ASKS_YES_OR_NO = re.compile(
    r"(?:is|are|was|were|do|does|did|can|could|should|must|may|will|would|has|have)\b", re.IGNORECASE
)


class QuotedText(Protocol):
    """What the confidence reads of a quote."""

    @property
    def passage(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def stretch(self) -> tuple[int, int]: ...


def estimate_confidence(
    question: str, retrieval: Retrieval, candidates: Sequence[Candidate], *, refers_to_selection: bool = False
) -> float:
    """The probability that the passages answer the question; a half where there is no question.

    `refers_to_selection` says that "it" in the question is the text that the reader selected.
    """
    if not retrieval.from_selection:
        return confidence_of(confidence_features(question, retrieval, candidates))
    if not question:
        return _CONFIDENCE_WITHOUT_QUESTION
    prior = _LOG_ODDS_OF_YES_OR_NO if refers_to_selection and _asks_yes_or_no(question, retrieval) else 0.0
    return _logistic(selection_features(question, retrieval, candidates), _SELECTION_WEIGHTS, prior)


def confidence_features(question: str, retrieval: Retrieval, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """What separates a question that the passages answer from one that only sounds like it."""
    scores = sorted((passage.score for passage in retrieval.passages), reverse=True) or [0.0]
    specific = specific_terms(question)
    passage_stems = [frozenset(stems(passage.chunk.label)) for passage in retrieval.passages]
    for candidate in candidates:
        passage_stems[candidate.passage] |= candidate.words
    all_stems = frozenset().union(*passage_stems)
    values = {
        "bias": 1.0,
        "similarity": scores[0],
        "similarity_of_three": float(np.mean(scores[:3])),
        "above_background": scores[0] - retrieval.background,
        "passage_coverage": max((_weight_of(retrieval, mentioned) for mentioned in passage_stems), default=0.0),
        "unknown": _weight_of(retrieval, retrieval.unknown - specific),
        "unknown_specific": _weight_of(retrieval, retrieval.unknown & specific),
        "specific_missing": _weight_of(retrieval, specific - all_stems - retrieval.unknown),
    }
    return np.array([values[name] for name in CONFIDENCE_FEATURES])


def can_judge_answers_to(question: str) -> bool:
    """Whether `estimate_answer_confidence` was fitted on questions in this language: English."""
    return not mostly_non_latin(question) and detect_language(question) == ENGLISH


def estimate_answer_confidence(
    question: str, retrieval: Retrieval, candidates: Sequence[Candidate], quotes: Sequence[QuotedText]
) -> float:
    """The probability that the quotes answer the question."""
    features = answer_features(question, retrieval, candidates, quotes)
    if any(candidate.read is None for candidate in candidates):
        return _logistic(features, _ANSWER_WEIGHTS)
    return _logistic(np.concatenate([features, reading_features(candidates, quotes)]), _READ_ANSWER_WEIGHTS)


def answer_features(
    question: str, retrieval: Retrieval, candidates: Sequence[Candidate], quotes: Sequence[QuotedText]
) -> NDArray[np.float64]:
    """What separates quotes that answer from quotes that are only about the topic."""
    specific = specific_terms(question)
    text = "\n".join(quote.text for quote in quotes)
    quote_stems = [
        frozenset(stems(quote.text)) | frozenset(stems(retrieval.passages[quote.passage].chunk.label))
        for quote in quotes
    ]
    all_stems = frozenset().union(*quote_stems)
    ranking = sorted(score_passages(question, retrieval.passages, retrieval.weights), reverse=True)
    asks_for_number = bool(_ASKS_FOR_NUMBER.search(question))
    values = {
        "bias": 1.0,
        "topic": float(confidence_features(question, retrieval, candidates) @ _WEIGHTS),
        "above_background": max((passage.score for passage in retrieval.passages), default=0.0) - retrieval.background,
        "lead": ranking[0] - ranking[1] if len(ranking) > 1 else 0.0,
        "best_candidate": max((candidate.log_odds for candidate in candidates), default=0.0),
        "quote_coverage": max((_weight_of(retrieval, mentioned) for mentioned in quote_stems), default=0.0),
        "word_pairs": _shared_pairs(question, quotes),
        "specific_missing": _weight_of(retrieval, specific - all_stems),
        "unknown_specific": _weight_of(retrieval, retrieval.unknown & specific),
        "asks_how_to": float(bool(_HOW_TO.search(question))),
        "asks_for_number": float(asks_for_number),
        "number_missing": float(asks_for_number and not _has_new_number(question, text)),
        "length": min(len(text), _MAX_LENGTH) / 1000,
    }
    return np.array([values[name] for name in ANSWER_FEATURES])


def reading_features(candidates: Sequence[Candidate], quotes: Sequence[QuotedText]) -> NDArray[np.float64]:
    """What the reader thought: of the quotes' best window and unit, of the best window, and how far it stands out."""
    read = [(candidate, candidate.read) for candidate in candidates if candidate.read]
    quoted = [
        scores
        for candidate, scores in read
        if any(
            quote.passage == candidate.passage
            and quote.stretch[0] <= candidate.unit.start
            and candidate.unit.end <= quote.stretch[1]
            for quote in quotes
        )
    ]
    scores_of_quotes = quoted or [scores for _, scores in read]
    best = max(window for _, (_, window) in read)
    return np.array(
        [
            max(window for _, window in scores_of_quotes),
            max(unit for unit, _ in scores_of_quotes),
            best,
            best - float(np.median([window for _, (_, window) in read])),
        ]
    )


def selection_features(question: str, retrieval: Retrieval, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """What shows that a selection answers a question. All words weigh the same: a few sentences cannot show rarity."""
    question_stems = frozenset(retrieval.weights)
    latin = not mostly_non_latin(question)
    english = latin and detect_language(question) == ENGLISH
    best = max((passage.score for passage in retrieval.passages), default=0.0)
    weight = 1 / max(1, len(question_stems))
    coverage = weight * max((len(question_stems & candidate.words) for candidate in candidates), default=0)
    values = {
        "bias": 1.0,
        "similarity": best * english,
        "similarity_foreign": best * (latin and not english),  # in other alphabets the similarity says nothing
        "foreign": float(latin and not english),
        "other_letters": float(not latin),
        "says_other_letters": coverage * (not latin),
        "sentence_says": coverage,
        "selection_says": weight * len(question_stems - retrieval.unknown),
        "names_missing": weight * len(specific_terms(question) & retrieval.unknown),
        "length": float(np.log1p(sum(len(passage.chunk.text) for passage in retrieval.passages))) / 10,
    }
    return np.array([values[name] for name in SELECTION_FEATURES])


def confidence_of(features: NDArray[np.float64]) -> float:
    """The probability that a row of `CONFIDENCE_FEATURES` stands for."""
    return _logistic(features, _WEIGHTS)


def _logistic(features: NDArray[np.float64], weights: NDArray[np.float64], prior: float = 0.0) -> float:
    """The probability that a logistic model gives to a row of features; `prior` is added to its log-odds."""
    return float(1 / (1 + np.exp(-(features @ weights + prior))))


def _asks_yes_or_no(question: str, retrieval: Retrieval) -> bool:
    """Whether a question with one word of its own asks a short selection for a yes or no."""
    characters = sum(len(passage.chunk.text) for passage in retrieval.passages)
    return (
        bool(_ASKS_YES_OR_NO.match(question))
        and len(content_words(question)) == 1
        and characters <= _MAX_CHARACTERS_OF_YES_OR_NO
    )


def _weight_of(retrieval: Retrieval, mentioned: frozenset[str]) -> float:
    """The share of the question that these stems are."""
    return sum(weight for stem, weight in retrieval.weights.items() if stem in mentioned)


def _shared_pairs(question: str, quotes: Sequence[QuotedText]) -> float:
    """The share of the question's pairs of neighbouring words that a quote has, too."""
    pairs = frozenset(pairwise(stems(question)))
    shared = {pair for quote in quotes for pair in pairwise(stems(quote.text)) if pair in pairs}
    return len(shared) / max(1, len(pairs))


def _has_new_number(question: str, text: str) -> bool:
    """Whether a text has a number that the question does not have."""
    return bool(set(_NUMBER.findall(text)) - set(_NUMBER.findall(question)) or _NUMBER_WORD.search(text))

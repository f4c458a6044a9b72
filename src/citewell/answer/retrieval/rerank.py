"""Ranks passages by how likely they answer a question. Falls back to the local ranking where a vendor fails.

The local reranker combines embedding similarity and word overlap: how close the passage is, how much of the question
it mentions, and whether one sentence mentions it together. Rank fusion would lose how sure each of them is. The
weights were fitted by `benchmarks/fit/ranking.py`.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import log

import numpy as np
from numpy.typing import NDArray

from citewell.answer.retrieval.weights import fitted_weights
from citewell.errors import RerankerUnavailable, SettingsError
from citewell.models import Passage
from citewell.ports import Reranker
from citewell.text import ENGLISH, bm25_weight, detect_language, mostly_non_latin, stems
from citewell.tracing import span

_log = logging.getLogger("citewell.answer")

PASSAGE_FEATURES = (
    "similarity", "similarity_of_whole", "similarity_foreign", "words", "words_foreign", "sentence", "pairs", "missing",
)  # fmt: skip

_WEIGHTS = fitted_weights("rerank", PASSAGE_FEATURES)
_TOP_RANKS = 5  # the passages ranked below these are the background
_LABEL_MENTIONS = 2  # how many mentions a word in the title or headings is worth


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The passages of a search, best first, and how much each word of the question matters in this project."""

    passages: tuple[Passage, ...]
    background: float
    """The mean similarity of passages ranked lower: a question that the documents answer stands out from it."""
    weights: Mapping[str, float]
    """The share of each stem of the question: rare ones weigh more. They add up to 1."""
    unknown: frozenset[str]
    """Stems of the question that no chunk of the project contains."""
    further: tuple[Passage, ...] = ()
    """The passages ranked after these; a model that reads them may move them up. None where a vendor ranked them."""
    nearest: tuple[Passage, ...] = ()
    """If no passage can answer: those that come nearest, to name what the documents cover."""
    hinted: frozenset[str] = frozenset()
    """Ids of the chunks that contain the text the reader looks at."""
    question: str = ""
    """What was searched for: the question with its typing errors corrected. Empty for a selection."""
    from_selection: bool = False
    """Whether all passages are parts of a reader's selection, and the words were counted there."""


class LocalReranker:
    """Ranks by a weighted sum of a few features; needs no model and takes a few milliseconds."""

    model = "local"

    async def rerank(self, question: str, passages: Sequence[Passage], *, weights: Mapping[str, float]) -> list[float]:
        return score_passages(question, passages, weights)

    async def close(self) -> None:
        pass


def weigh_words(candidates: Sequence[Passage], *, total: int, frequencies: Mapping[str, int], limit: int) -> Retrieval:
    """A `Retrieval` from ranked passages and the number of texts, of `total`, that contain each stem. Pure."""
    rarity = {stem: log(1 + (total - count + 0.5) / (count + 0.5)) for stem, count in frequencies.items()}
    rarity_sum = sum(rarity.values()) or 1.0
    lower_scores = [passage.score for passage in candidates[_TOP_RANKS:]]
    return Retrieval(
        passages=tuple(candidates[:limit]),
        background=sum(lower_scores) / len(lower_scores) if lower_scores else 0.0,
        weights={stem: value / rarity_sum for stem, value in rarity.items()},
        unknown=frozenset(stem for stem, count in frequencies.items() if not count),
    )


def score_passages(question: str, passages: Sequence[Passage], weights: Mapping[str, float]) -> list[float]:
    """The log-odds that each passage answers, up to a constant."""
    log_odds: list[float] = (passage_features(question, passages, weights) @ _WEIGHTS).tolist()
    return log_odds


def passage_features(question: str, passages: Sequence[Passage], weights: Mapping[str, float]) -> NDArray[np.float64]:
    """The feature matrix: a row for each passage, a column for each of `PASSAGE_FEATURES`."""
    question_stems = frozenset(weights)
    question_pairs = frozenset(pairwise(stems(question)))
    # The local embedding model reads English; its similarity for other languages has a weight of its own.
    foreign = float(detect_language(question) != ENGLISH or mostly_non_latin(question))
    rows = np.zeros((len(passages), len(PASSAGE_FEATURES)))
    for row, passage in zip(rows, passages, strict=True):
        label = question_stems & frozenset(stems(passage.chunk.label))
        # Forty passages of some twenty sentences each: what stays in C here is half of what ranking costs.
        counts = Counter(filter(question_stems.__contains__, chain.from_iterable(passage.sentence_stems)))
        length = sum(map(len, passage.sentence_stems))
        stems_by_sentence = set(map(question_stems.intersection, passage.sentence_stems))
        bm25 = _bm25_share(counts, label, length, weights)
        row[:] = (
            passage.score * (1 - foreign),
            passage.mean_score * (1 - foreign),
            passage.score * foreign,
            bm25,
            bm25 * foreign,
            max((sum(weights[stem] for stem in sentence | label) for sentence in stems_by_sentence), default=0.0),
            max(
                (len(question_pairs.intersection(pairwise(sentence))) for sentence in passage.sentence_stems), default=0
            )
            / max(1, len(question_pairs)),
            max((weights[stem] for stem in question_stems - label - counts.keys()), default=0.0),
        )
    return rows


def _bm25_share(counts: Mapping[str, int], label: frozenset[str], length: int, weights: Mapping[str, float]) -> float:
    """The BM25 score of a passage as a share of the highest possible."""
    mentions = {stem: counts.get(stem, 0) + _LABEL_MENTIONS * (stem in label) for stem in weights}
    return sum(weights[stem] * bm25_weight(count, length) for stem, count in mentions.items() if count)


async def rerank_passages(
    question: str, passages: Sequence[Passage], *, reranker: Reranker, weights: Mapping[str, float]
) -> tuple[Passage, ...]:
    """The passages, best first. Logs a warning and ranks locally where the reranker fails."""
    try:
        with span("rerank", {"citewell.reranker": reranker.model, "citewell.passages": len(passages)}):
            scores = await reranker.rerank(question, passages, weights=weights)
    except (RerankerUnavailable, SettingsError) as error:
        level = logging.WARNING if isinstance(error, RerankerUnavailable) else logging.ERROR
        _log.log(level, "answering in the local order: %s", error, extra={"reranker": reranker.model})
        scores = score_passages(question, passages, weights)
    best_first = sorted(range(len(passages)), key=lambda index: -scores[index])
    return tuple(passages[index] for index in best_first)

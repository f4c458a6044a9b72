"""Put the passages that were found in the order in which they answer. A vendor that fails costs its opinion only.

The local reranker weighs meaning against words: how close the passage is, how much of the question it speaks, and
whether one sentence of it speaks it together. Fusion by rank forgets how sure each half was; this does not. The weights
were fitted by `benchmarks/fit/ranking.py`.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from citewell.answer.retrieval.weights import fitted_weights
from citewell.errors import RerankerUnavailable, SettingsError
from citewell.models import Passage
from citewell.ports import Reranker
from citewell.text import ENGLISH, bm25_weight, detect_language, mostly_non_latin, stems

_log = logging.getLogger("citewell.answer")

PASSAGE_FEATURES = (
    "similarity", "similarity_of_whole", "similarity_foreign", "words", "words_foreign", "sentence", "pairs", "missing",
)  # fmt: skip

_WEIGHTS = fitted_weights("rerank", PASSAGE_FEATURES)


class LocalReranker:
    """Ranks by a weighted sum of a few features; knows no model and costs a few milliseconds."""

    model = "local"

    async def rerank(self, question: str, passages: Sequence[Passage], *, weights: Mapping[str, float]) -> list[float]:
        return score_passages(question, passages, weights)

    async def close(self) -> None:
        pass


def score_passages(question: str, passages: Sequence[Passage], weights: Mapping[str, float]) -> list[float]:
    """The log-odds of each passage, up to a constant."""
    odds: list[float] = (passage_features(question, passages, weights) @ _WEIGHTS).tolist()
    return odds


def passage_features(question: str, passages: Sequence[Passage], weights: Mapping[str, float]) -> NDArray[np.float64]:
    """A row for each passage: what speaks for it."""
    asked = frozenset(weights)
    pairs = frozenset(pairwise(stems(question)))
    # The local embedding model reads English; what it thinks of other languages has a weight of its own.
    foreign = float(detect_language(question) != ENGLISH or mostly_non_latin(question))
    rows = np.zeros((len(passages), len(PASSAGE_FEATURES)))
    for row, passage in zip(rows, passages, strict=True):
        label = asked & frozenset(stems(passage.chunk.label))
        # Forty passages of some twenty sentences each: what stays in C here is half of what ranking costs.
        counts = Counter(filter(asked.__contains__, chain.from_iterable(passage.sentence_stems)))
        length = sum(map(len, passage.sentence_stems))
        told = set(map(asked.intersection, passage.sentence_stems))
        words = _bm25(counts, label, length, weights)
        row[:] = (
            passage.score * (1 - foreign),
            passage.mean_score * (1 - foreign),
            passage.score * foreign,
            words,
            words * foreign,
            max((sum(weights[stem] for stem in one | label) for one in told), default=0.0),
            max((len(pairs.intersection(pairwise(one))) for one in passage.sentence_stems), default=0)
            / max(1, len(pairs)),
            max((weights[stem] for stem in asked - label - counts.keys()), default=0.0),
        )
    return rows


def _bm25(counts: Mapping[str, int], label: frozenset[str], length: int, weights: Mapping[str, float]) -> float:
    """BM25 as a share of the most it could be; a word in the title or headings counts as two more."""
    said = {stem: counts.get(stem, 0) + 2 * (stem in label) for stem in weights}
    return sum(weights[stem] * bm25_weight(count, length) for stem, count in said.items() if count)


async def rerank_passages(
    question: str, passages: Sequence[Passage], *, reranker: Reranker, weights: Mapping[str, float]
) -> tuple[Passage, ...]:
    """The passages, best first; in the local order, with a line in the log, where the reranker fails."""
    try:
        order = await reranker.rerank(question, passages, weights=weights)
    except (RerankerUnavailable, SettingsError) as error:
        level = logging.WARNING if isinstance(error, RerankerUnavailable) else logging.ERROR
        _log.log(level, "answering in the local order: %s", error, extra={"reranker": reranker.model})
        order = score_passages(question, passages, weights)
    best_first = sorted(range(len(passages)), key=lambda place: -order[place])
    return tuple(passages[place] for place in best_first)

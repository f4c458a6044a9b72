"""Searches the index for the passages that answer a question, and weighs its words by how rare they are there.

Knows the index, the embedder and the reranker; not what is done with the passages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from uuid import UUID

from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval.rerank import rerank_passages, score_passages
from citewell.errors import EmptyKnowledgeBase
from citewell.models import NO_FILTERS, Filters, Passage
from citewell.text import keywords

CANDIDATES = 40
"""Passages ranked for every question; those beyond top_k show how far the first ones stand out."""

HINT_LOG_ODDS = 0.5
"""Log-odds added to a passage that the reader looks at; with more, an unrelated hint does harm (docs/log.md)."""

_HINT_COVERAGE = 0.9  # the share of a hint's keywords that a passage must contain
_TOP_RANKS = 5  # the passages ranked below these are the background


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
    hinted: frozenset[str] = frozenset()
    """Ids of the chunks that contain the text the reader looks at."""
    from_selection: bool = False
    """Whether all passages are parts of a reader's selection, and the words were counted there."""


async def retrieve(
    question: str, *, project: UUID, engines: AnswerEngines, limit: int, filters: Filters = NO_FILTERS, hint: str = ""
) -> Retrieval:
    """The passages of the index that answer best. `hint` is the text the reader looks at; it can decide the first."""
    index = engines.index
    async with engines.embedder_call():
        vector = await engines.embedder.embed_query(question)
    terms = keywords(question)
    async with engines.index_call():
        candidates = await index.search(
            project, vector=vector, words=question, limit=max(limit, CANDIDATES), filters=filters
        )
        total, counts = await index.frequencies(project, list(terms), filters=filters)
        empty = not total and not (filters and (await index.frequencies(project, []))[0])
    if empty:
        raise EmptyKnowledgeBase("nothing has been ingested into this project yet; run `citewell ingest PATH` first")
    frequencies = dict(zip(terms, counts, strict=True))
    retrieval = weigh_words(candidates, total=total, frequencies=frequencies, limit=len(candidates))
    ranked = await rerank_passages(question, retrieval.passages, reranker=engines.reranker, weights=retrieval.weights)
    best = ranked[:limit]
    hinted = frozenset(passage.chunk.id for passage in best if _contains_hint(passage, hint))
    passages = _move_hinted_first(best, hinted, question, retrieval.weights)
    return replace(retrieval, passages=passages, hinted=hinted)


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


def _contains_hint(passage: Passage, hint: str) -> bool:
    """Whether a passage contains nearly all keywords of the text the reader looks at."""
    hint_stems = keywords(hint).keys()
    passage_stems = frozenset().union(*passage.sentence_stems)
    return bool(hint_stems) and len(hint_stems & passage_stems) >= _HINT_COVERAGE * len(hint_stems)


def _move_hinted_first(
    best: Sequence[Passage], hinted: frozenset[str], question: str, weights: Mapping[str, float]
) -> tuple[Passage, ...]:
    """The passages with the first hinted one in front, if it answers nearly as well as the best one."""
    place = next((place for place, passage in enumerate(best) if passage.chunk.id in hinted), 0)
    if not place:
        return tuple(best)
    best_score, hinted_score = score_passages(question, [best[0], best[place]], weights)
    if hinted_score + HINT_LOG_ODDS < best_score:
        return tuple(best)
    return (best[place], *best[:place], *best[place + 1 :])

"""Find the passages a question is about, and how much each of its words matters here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from uuid import UUID

from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval.rerank import rerank_passages, score_passages
from citewell.errors import EmptyKnowledgeBase
from citewell.models import NO_FILTERS, Filters, Passage
from citewell.text import keywords

_NEARLY_ALL = 0.9
CANDIDATES = 40
"""Passages ranked for every question; those beyond top_k tell how special the first ones are."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a search found, best first, and how much each word of the question matters in this project."""

    passages: tuple[Passage, ...]
    background: float
    """The usual similarity of what was not good enough: a question the book answers stands out from it."""
    weights: Mapping[str, float]
    """Share of each stem of the question's subject: rare ones weigh more. They add up to 1."""
    unknown: frozenset[str]
    """Stems that no chunk of the project speaks."""
    hinted: frozenset[str] = frozenset()
    """Ids of the chunks that speak what the reader looks at."""
    from_selection: bool = False
    """Whether all of it comes from a reader's selection, and the words were counted there."""


async def retrieve(
    question: str, *, project: UUID, engines: AnswerEngines, limit: int, filters: Filters = NO_FILTERS, hint: str = ""
) -> Retrieval:
    """The passages that answer best. `hint` is what the reader looks at: it may decide which of them comes first."""
    index = engines.index
    async with engines.embedder_call():
        vector = await engines.embedder.embed_query(question)
    spoken = keywords(question)
    async with engines.index_call():
        ranked = await index.search(
            project, vector=vector, words=question, limit=max(limit, CANDIDATES), filters=filters
        )
        total, counts = await index.frequencies(project, list(spoken), filters=filters)
        empty = not total and not (filters and (await index.frequencies(project, []))[0])
    if empty:
        raise EmptyKnowledgeBase("nothing has been ingested into this project yet; run `citewell ingest PATH` first")
    found = weigh_words(ranked, total=total, frequencies=dict(zip(spoken, counts, strict=True)), limit=len(ranked))
    passages = await rerank_passages(question, found.passages, reranker=engines.reranker, weights=found.weights)
    best = passages[:limit]
    here = frozenset(one.chunk.id for one in best if _speaks(one, hint))
    return replace(found, passages=_led_by(here, best, question, found.weights), hinted=here)


HINT_LOG_ODDS = 0.5
"""Log-odds by which a passage gains where the reader looks at it: with more, an unrelated hint costs (docs/log.md)."""


def _speaks(passage: Passage, hint: str) -> bool:
    """Whether a passage says, nearly word for word, what the reader looks at."""
    wanted = keywords(hint).keys()
    said = frozenset().union(*passage.sentence_stems)
    return bool(wanted) and len(wanted & said) >= _NEARLY_ALL * len(wanted)


def _led_by(
    here: frozenset[str], best: Sequence[Passage], question: str, weights: Mapping[str, float]
) -> tuple[Passage, ...]:
    """The passages with the one that is looked at in front, where it answers nearly as well as the one that was."""
    place = next((place for place, one in enumerate(best) if one.chunk.id in here), 0)
    if not place:
        return tuple(best)
    first, other = score_passages(question, [best[0], best[place]], weights)
    return (best[place], *best[:place], *best[place + 1 :]) if other + HINT_LOG_ODDS >= first else tuple(best)


def weigh_words(ranked: Sequence[Passage], *, total: int, frequencies: Mapping[str, int], limit: int) -> Retrieval:
    """Pure: what the engine gave, as the answer needs it."""
    rarity = {stem: log(1 + (total - count + 0.5) / (count + 0.5)) for stem, count in frequencies.items()}
    whole = sum(rarity.values()) or 1.0
    rest = [passage.score for passage in ranked[5:]]
    return Retrieval(
        passages=tuple(ranked[:limit]),
        background=sum(rest) / len(rest) if rest else 0.0,
        weights={stem: value / whole for stem, value in rarity.items()},
        unknown=frozenset(stem for stem, count in frequencies.items() if not count),
    )

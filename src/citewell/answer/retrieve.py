"""Find the passages a question is about, and how much each of its words matters here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from uuid import UUID

from citewell.answer.rerank import reorder
from citewell.errors import EmptyKnowledgeBase
from citewell.models import EVERYWHERE, Passage, Where
from citewell.ports import Embedder, Index, Reranker
from citewell.terms import subject


@dataclass(frozen=True, slots=True)
class Engines:
    """What an answer is made with."""

    embedder: Embedder
    index: Index
    reranker: Reranker


CANDIDATES = 40
"""Passages ranked for every question; those beyond top_k tell how special the first ones are."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a search found, best first, and how much each word of the question matters in this project."""

    passages: tuple[Passage, ...]
    background: float
    """The usual similarity of what was not good enough: a question the book answers stands out from it."""
    weights: Mapping[str, float]
    """Share of each stem of the question's subject: rare ones weigh more. They add up to 1."""
    unknown: frozenset[str]
    """Stems that no chunk of the project speaks."""


async def retrieve(
    question: str, *, project: UUID, engines: Engines, limit: int, where: Where = EVERYWHERE
) -> Retrieved:
    index = engines.index
    vector = await engines.embedder.embed_query(question)
    ranked = await index.search(project, vector=vector, words=question, limit=max(limit, CANDIDATES), where=where)
    spoken = subject(question)
    total, counts = await index.frequencies(project, list(spoken), where=where)
    if not total and not (where and (await index.frequencies(project, []))[0]):
        raise EmptyKnowledgeBase("nothing has been ingested into this project yet; run `citewell ingest PATH` first")
    found = weigh(ranked, total=total, frequencies=dict(zip(spoken, counts, strict=True)), limit=len(ranked))
    passages = await reorder(question, found.passages, reranker=engines.reranker, weights=found.weights)
    return replace(found, passages=passages[:limit])


def weigh(ranked: Sequence[Passage], *, total: int, frequencies: Mapping[str, int], limit: int) -> Retrieved:
    """Pure: what the engine gave, as the answer needs it."""
    rarity = {stem: log(1 + (total - count + 0.5) / (count + 0.5)) for stem, count in frequencies.items()}
    whole = sum(rarity.values()) or 1.0
    rest = [passage.score for passage in ranked[5:]]
    return Retrieved(
        passages=tuple(ranked[:limit]),
        background=sum(rest) / len(rest) if rest else 0.0,
        weights={stem: value / whole for stem, value in rarity.items()},
        unknown=frozenset(stem for stem, count in frequencies.items() if not count),
    )

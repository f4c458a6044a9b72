"""Retrieves the passages that answer a question: from the index, or from the reader's selection.

`retrieve_passages` is the one call that the answer flow needs. Knows the index, the embedder and the reranker; not what
is done with the passages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval.definitions import asked_symbol, defines_symbol, lead_with_definition
from citewell.answer.retrieval.rerank import LocalReranker, Retrieval, rerank_passages, score_passages, weigh_words
from citewell.answer.retrieval.selection import retrieve_from_selection
from citewell.answer.retrieval.spelling import correct_spelling, misspelt_words, suggest
from citewell.errors import EmptyKnowledgeBase
from citewell.models import NO_FILTERS, Filters, Passage
from citewell.text import keywords, stem
from citewell.tracing import span

CANDIDATES = 40
"""Passages ranked for every question; those beyond top_k show how far the first ones stand out."""

FURTHER_PASSAGES = 3
"""Passages kept beyond `limit`, for a reader."""

HINT_LOG_ODDS = 0.5
"""Log-odds added to a passage that the reader looks at; with more, an unrelated hint does harm (docs/log.md)."""

_NOTHING_INGESTED = "nothing has been ingested into this project yet; run `citewell ingest PATH` first"
_HINT_COVERAGE = 0.9  # the share of a hint's keywords that a passage must contain


async def check_not_empty(project: UUID, engines: AnswerEngines) -> None:
    """Raise EmptyKnowledgeBase for a project without documents. The index knows how many chunks it has."""
    async with engines.index_call():
        total, _ = await engines.index.frequencies(project, [])
    if not total:
        raise EmptyKnowledgeBase(_NOTHING_INGESTED)


async def retrieve_passages(
    question: str,
    *,
    project: UUID,
    engines: AnswerEngines,
    limit: int,
    selection: str = "",
    hint: str = "",
    filters: Filters = NO_FILTERS,
) -> Retrieval:
    """The passages that answer best.

    With a `selection`, only its parts: the index is not searched. Else those of the index that pass the `filters`;
    `hint` is the text the reader looks at, which may decide which of them comes first.
    """
    with span("retrieve"):
        if selection:
            return await retrieve_from_selection(question, selection, engines=engines, limit=limit)
        return await retrieve(question, project=project, engines=engines, limit=limit, filters=filters, hint=hint)


async def retrieve(
    question: str, *, project: UUID, engines: AnswerEngines, limit: int, filters: Filters = NO_FILTERS, hint: str = ""
) -> Retrieval:
    """The passages of the index that answer best. `hint` is the text the reader looks at; it can decide the first.

    A question with typing errors is searched again without them.
    """
    retrieval = await _search(question, project=project, engines=engines, limit=limit, filters=filters)
    corrected = await _correct_spelling(question, retrieval, project=project, engines=engines)
    if corrected != question:
        question = corrected
        retrieval = await _search(question, project=project, engines=engines, limit=limit, filters=filters)
    found = retrieval.passages
    if symbol := asked_symbol(question):  # one letter is in every passage, and only its definition tells what it is
        found = tuple(passage for passage in found if defines_symbol(symbol, passage.chunk.text))
        retrieval = replace(retrieval, nearest=() if found else retrieval.passages[:limit])
    ranked = await rerank_passages(question, found, reranker=engines.reranker, weights=retrieval.weights)
    best = lead_with_definition(question, ranked, limit)
    hinted = frozenset(passage.chunk.id for passage in best if _contains_hint(passage, hint))
    passages = _move_hinted_first(best, hinted, question, retrieval.weights)
    is_final = engines.reranker.model != LocalReranker.model  # whoever pays for an order gets it
    further = () if is_final else tuple(one for one in ranked[: limit + FURTHER_PASSAGES] if one not in passages)
    return replace(retrieval, passages=passages, further=further, hinted=hinted, question=question)


async def _search(question: str, *, project: UUID, engines: AnswerEngines, limit: int, filters: Filters) -> Retrieval:
    """The candidates in the index's own order, and how much each word of the question matters."""
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
        raise EmptyKnowledgeBase(_NOTHING_INGESTED)
    frequencies = dict(zip(terms, counts, strict=True))
    return weigh_words(candidates, total=total, frequencies=frequencies, limit=len(candidates))


async def _correct_spelling(question: str, retrieval: Retrieval, *, project: UUID, engines: AnswerEngines) -> str:
    """The question without typing errors in words that no document has; `retrieval` is what it found as it is."""
    words = misspelt_words(question, retrieval.unknown)
    if not words:
        return question
    suggestions = suggest(words, (passage.chunk.text for passage in retrieval.passages))
    stems = sorted({stem(word) for word in words} | {stem(one.word) for found in suggestions.values() for one in found})
    async with engines.index_call():
        _, counts = await engines.index.frequencies(project, stems)  # of all documents, whatever the filters
    return correct_spelling(question, suggestions, dict(zip(stems, counts, strict=True)))


def _contains_hint(passage: Passage, hint: str) -> bool:
    """Whether a passage contains nearly all keywords of the text the reader looks at."""
    hint_stems = keywords(hint).keys()
    passage_stems = frozenset().union(*passage.sentence_stems)
    return bool(hint_stems) and len(hint_stems & passage_stems) >= _HINT_COVERAGE * len(hint_stems)


def _move_hinted_first(
    best: Sequence[Passage], hinted: frozenset[str], question: str, weights: Mapping[str, float]
) -> tuple[Passage, ...]:
    """The passages with the first hinted one in front, if it answers nearly as well as the best one."""
    rank = next((rank for rank, passage in enumerate(best) if passage.chunk.id in hinted), 0)
    if not rank:
        return tuple(best)
    best_score, hinted_score = score_passages(question, [best[0], best[rank]], weights)
    if hinted_score + HINT_LOG_ODDS < best_score:
        return tuple(best)
    return (best[rank], *best[:rank], *best[rank + 1 :])

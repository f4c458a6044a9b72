"""The answer flow: understand, retrieve, rerank, write, cite, check. One stream of pieces, then one `Answer`.

Every door renders this stream in its own shape; there is no second path.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Self

from citewell.answer.engines import AnswerEngines
from citewell.answer.question import CONTEXT_EXCHANGES, ResolvedQuestion, refer_to_selection, resolve_question
from citewell.answer.quoting import CONFIDENCE_BANDS, Quote, estimate_confidence, score_candidates, select_quotes
from citewell.answer.reply import Draft, Fallback, deliver
from citewell.answer.retrieval import HINT_LOG_ODDS, Retrieval, retrieve, retrieve_from_selection, selection_as_passage
from citewell.answer.writing import PassageContext
from citewell.models import NO_FILTERS, Answer, Exchange, Filters, Piece, Project, StageReached
from citewell.text import replace_surrogates, stems, unit_text

_log = logging.getLogger("citewell.answer")


async def answer(
    question: str,
    *,
    project: Project,
    engines: AnswerEngines,
    top_k: int = 5,
    history: Sequence[Exchange] = (),
    filters: Filters = NO_FILTERS,
    selection: str = "",
    hint: str = "",
    fallback: Fallback = "quotes",
    buffered: bool = False,
) -> AsyncGenerator[Piece | Answer, None]:
    """The answer as it is written: stages, text and citations, then the whole as an `Answer`.

    A `selection` is all that is answered from: no index is asked. A `hint` is what the reader looks at while asking
    everything there is. Where a writer fails, there are quotes `fallback`, or just sources; filters it breaks off, that
    is an error, unless the answer is told `buffered` anyway. Close the stream when nobody listens any more.
    """
    with _Stages() as stages:
        question, selection, hint = map(replace_surrogates, (question, selection, hint))
        asked = await resolve_question(question, history, engines.writer, marked=selection or hint)
        stages.reach("RETRIEVING")
        yield StageReached("retrieving")
        if selection:
            found = await retrieve_from_selection(asked.sought, selection, engines=engines, limit=top_k)
        else:
            asked = refer_to_selection(asked, hint)
            found = await retrieve(
                asked.question, project=project.id, engines=engines, limit=top_k, filters=filters, hint=hint
            )
        stages.reach("GENERATING", passages=len(found.passages))
        yield StageReached("generating")
        quotes, certainty = _quotes(asked, found)
        case = Draft(asked, found, filters, quotes, certainty, selection_as_passage(selection) if selection else None)
        telling = deliver(
            case,
            writer=engines.writer,
            context=PassageContext(engines, project.id, filters),
            history=history[-CONTEXT_EXCHANGES:],
            instead=fallback,
            at_once=buffered,
        )
        async with aclosing(telling):
            async for piece in telling:
                if isinstance(piece, Answer):
                    told = piece
                else:
                    yield piece
        stages.reach("COMPLETED", **_facts(told))
    try:
        yield told
    finally:  # many who listen leave once they have the answer
        if engines.on_unanswered and told.mode == "no_results" and asked.kind == "question" and not filters:
            engines.on_unanswered(project.id, asked.question)


async def collect(pieces: AsyncGenerator[Piece | Answer, None], render: Callable[[Piece], str]) -> tuple[str, Answer]:
    """The stream collected: the rendered text, and the answer it ends with."""
    said: list[str] = []
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Answer):
                return "".join(said), piece
            said.append(render(piece))
    raise RuntimeError("an answer stream ends with an Answer")


def _facts(told: Answer) -> dict[str, object]:
    """What the log says of an answer."""
    facts = {"confidence": round(told.confidence, 3), "covered": told.confidence > 0, "model": told.model}
    spent = {"prompt_tokens": told.usage.prompt_tokens, "answer_tokens": told.usage.answer_tokens} if told.usage else {}
    return facts | spent


def _quotes(asked: ResolvedQuestion, found: Retrieval) -> tuple[list[Quote], float]:
    """The quotes that answer, none where the passages do not; and how sure that is."""
    if not asked.wants_answer or not found.passages:
        return [], 0.0
    sought = asked.sought if found.from_selection else asked.question
    scored = score_candidates(sought, found.passages, found.weights, favour=dict.fromkeys(found.hinted, HINT_LOG_ODDS))
    certainty = estimate_confidence(sought, found, scored)
    fresh = [one for one in scored if not asked.was_said(unit_text(found.passages[one.passage].chunk.text, one.unit))]
    if found.from_selection and sought:
        echo = frozenset(stems(sought))
        fresh = [one for one in fresh if not one.words <= echo]
    elif asked.points:
        fresh = fresh or scored  # there may be nothing but what was marked
    return (
        select_quotes(asked.question, fresh, found.passages) if certainty >= CONFIDENCE_BANDS["refuse"] else []
    ), certainty


class _Stages:
    """What the log tells of one question: each stage with the time since it came in, and how it ended."""

    def __enter__(self) -> Self:
        self._began = perf_counter()
        self.reach("RECEIVED")
        return self

    def reach(self, stage: str, **facts: object) -> None:
        latency_ms = round((perf_counter() - self._began) * 1000, 1)
        _log.info(stage, extra={"stage": stage, "latency_ms": latency_ms, **facts})

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.reach("FAILED", error=kind.__name__)

"""The answer flow: resolve the question, retrieve passages, quote them or let an LLM write, and check. One stream.

`answer` streams pieces and ends with an `Answer`. Every endpoint and command renders this stream in its own shape;
there is no second path. An LLM's text is checked inside `write`, unit by unit, before any of it is shown. What
outlasts a question, `conversation.py` remembers.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Literal, Self

from citewell.answer.engines import AnswerEngines
from citewell.answer.question import CONTEXT_EXCHANGES, resolve
from citewell.answer.quoting import quote, read_passages
from citewell.answer.reply import LLM_UNAVAILABLE, Draft, to_pieces
from citewell.answer.retrieval import check_not_empty, retrieve_passages, selection_as_passage
from citewell.answer.writing import PassageContext, WrittenText, write
from citewell.errors import WriterUnavailable
from citewell.models import NO_FILTERS, Answer, Exchange, Filters, Piece, Project, StageReached
from citewell.ports import Writer
from citewell.text import replace_surrogates
from citewell.tracing import current_span, span

_log = logging.getLogger("citewell.answer")

Fallback = Literal["quotes", "sources"]
"""What the reader gets where an LLM fails."""


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
    """Stages, text and citations as they come, then the whole as an `Answer`.

    With a `selection` the answer comes from it alone; a `hint` is the text the reader looks at while asking about
    everything. Where an LLM fails before its first word, the `fallback` takes its place; where it breaks off later,
    that is an error, unless the answer is `buffered`. Close the stream when nobody listens any more.
    """
    with _StageLog() as stages:
        deadline = _first_words_deadline(engines.writer)
        question, selection, hint = map(replace_surrogates, (question, selection, hint))
        if not selection:
            await check_not_empty(project.id, engines)
        stages.reach("RETRIEVING")
        yield StageReached("retrieving")  # from here on an endpoint that streams can report errors as events only
        resolved = await resolve(question, history, engines.writer, selection=selection, hint=hint)
        retrieval = await retrieve_passages(
            resolved.search_text,
            project=project.id,
            engines=engines,
            limit=top_k,
            selection=selection,
            hint=hint,
            filters=filters,
        )
        stages.reach("GENERATING", passages=len(retrieval.passages))
        yield StageReached("generating")
        reading = await read_passages(resolved, retrieval, engines.reader)
        quotes = quote(resolved, reading, decline_below=engines.decline_below)
        selected = selection_as_passage(selection) if selection else None
        draft = Draft(resolved, reading.retrieval, filters, quotes, selected, engines.title)
        if quotes.quotes and engines.writer:
            context = PassageContext(engines, project.id, filters)
            pieces = _write(draft, engines.writer, context, history, fallback, deadline=deadline, buffered=buffered)
        else:
            pieces = _stream(draft.from_quotes() if quotes.quotes else draft.refuse())
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Answer):
                    result = piece
                else:
                    yield piece
        stages.reach("COMPLETED", **_log_fields(result))
    try:
        yield result
    finally:  # many clients leave once they have the answer
        is_unanswered = result.mode == "no_results" and resolved.kind == "question" and not filters
        if engines.on_unanswered and is_unanswered:
            engines.on_unanswered(project.id, resolved.question)


async def collect(pieces: AsyncGenerator[Piece | Answer, None], render: Callable[[Piece], str]) -> tuple[str, Answer]:
    """The rendered text of a whole stream, and the answer it ends with."""
    texts: list[str] = []
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Answer):
                return "".join(texts), piece
            texts.append(render(piece))
    raise RuntimeError("an answer stream ends with an Answer")


async def _stream(answer: Answer) -> AsyncGenerator[Piece | Answer, None]:
    for piece in to_pieces(answer):
        yield piece
    yield answer


async def _write(
    draft: Draft,
    writer: Writer,
    context: PassageContext,
    history: Sequence[Exchange],
    fallback: Fallback,
    *,
    deadline: float,
    buffered: bool,
) -> AsyncGenerator[Piece | Answer, None]:
    """The LLM's answer, or the fallback where it fails before its first word."""
    started = False
    text = write(
        draft.question.question,
        draft.retrieval.passages,
        writer=writer,
        context=context,
        history=history[-CONTEXT_EXCHANGES:],
        min_support=draft.quotes.confidence,
        deadline=deadline,
        selection=draft.selection,
        buffered=buffered,
    )
    try:
        with span("write", {"gen_ai.request.model": writer.model}):
            async with aclosing(text):
                async for piece in text:
                    if isinstance(piece, WrittenText):
                        rest, answer = draft.from_text(piece)
                    else:
                        started = True
                        yield piece
        for piece in rest:
            yield piece
    except WriterUnavailable as error:
        _log.warning("the answer was not written%s: %s", " to its end" if started else "", error)
        if started:
            raise WriterUnavailable("the language model broke off; ask again in a moment") from error
        answer = draft.from_quotes(LLM_UNAVAILABLE) if fallback == "quotes" else draft.from_sources()
        for piece in to_pieces(answer):
            yield piece
    yield answer


def _first_words_deadline(writer: Writer | None) -> float:
    """When the LLM's first words must have come, in the event loop's time, whatever calls an answer needs."""
    return asyncio.get_running_loop().time() + (writer.first_words_seconds if writer else 0.0)


def _log_fields(answer: Answer) -> dict[str, str | float | None]:
    usage = answer.usage
    tokens = {"prompt_tokens": usage.prompt_tokens, "answer_tokens": usage.answer_tokens} if usage else {}
    covered = answer.confidence > 0
    return {"confidence": round(answer.confidence, 3), "covered": covered, "model": answer.model, **tokens}


class _StageLog:
    """Logs each stage of one question with the time since it came in, and how it ended."""

    def __enter__(self) -> Self:
        self._started_at = perf_counter()
        self.reach("RECEIVED")
        return self

    def reach(self, stage: str, **fields: str | float | None) -> None:
        latency_ms = round((perf_counter() - self._started_at) * 1000, 1)
        _log.info(stage, extra={"stage": stage, "latency_ms": latency_ms, **fields})
        current_span().set({f"citewell.{name}": value for name, value in fields.items() if value is not None})

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.reach("FAILED", error=kind.__name__)

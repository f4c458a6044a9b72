"""Stream the text that an LLM writes from a question and its passages: the entry point for the answer flow.

Every unit is checked before it is streamed. What to reply when the LLM declines is decided elsewhere.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from citewell.answer.writing.context import PassageContext
from citewell.answer.writing.pipeline import Pipeline
from citewell.errors import WriterUnavailable
from citewell.models import Exchange, Passage, Piece, Segment, TokenUsage
from citewell.ports import Writer


@dataclass(frozen=True, slots=True)
class WrittenText:
    """The whole text that an LLM wrote, as sentences with support verdicts."""

    segments: tuple[Segment, ...]
    model: str
    usage: TokenUsage | None
    declined: bool
    """Whether the LLM replied that its passages do not answer the question."""


async def write(
    question: str,
    passages: Sequence[Passage],
    *,
    writer: Writer,
    context: PassageContext,
    history: Sequence[Exchange],
    selection: Passage | None = None,
    strict: bool = False,
    buffered: bool = False,
) -> AsyncGenerator[Piece | WrittenText, None]:
    """Stream the checked pieces of the LLM's text, then the whole; if `buffered`, all of it at the end.

    Raises WriterUnavailable if the LLM fails, breaks off, or writes nothing for the reader.
    """
    task = context.build_task(
        question,
        passages,
        context_tokens=writer.context_tokens,
        history=history,
        selected=selection is not None,
    )
    if not context.passages:
        raise WriterUnavailable("no passage fits into CITEWELL_LLM_CONTEXT_TOKENS beside the rules and the question")
    pipeline = Pipeline(context.passages, task.instructions, selection=selection, strict=strict)
    usage: TokenUsage | None = None
    buffer: list[Piece] = []
    has_started = False
    try:
        async with aclosing(writer.write(task)) as deltas:
            async for delta in deltas:
                if isinstance(delta, TokenUsage):
                    usage = delta
                    continue
                buffer += pipeline.feed(delta)
                if buffered:
                    continue
                for piece in buffer:
                    has_started = True
                    yield piece
                buffer = []
    except WriterUnavailable:
        for piece in pipeline.end() if has_started else ():
            yield piece  # the unit that was being written when the LLM broke off
        raise
    for piece in (*buffer, *pipeline.end()):
        yield piece
    if not pipeline.has_words and not pipeline.declined:
        raise WriterUnavailable(f"{writer.model} wrote nothing for its reader")
    yield WrittenText(tuple(pipeline.segments), writer.model, usage, pipeline.declined)

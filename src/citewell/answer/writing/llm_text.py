"""The one entry point of this package for the answer flow: from a question and its passages to an LLM's text.

Every unit of the text was checked before it is given. What becomes of a text that says nothing is the reply's to say.
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
    """What an LLM wrote, sentence by sentence with verdicts."""

    segments: tuple[Segment, ...]
    model: str
    usage: TokenUsage | None
    declined: bool
    """Whether the LLM says that its passages do not answer."""


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
    """The LLM's text in pieces as they are checked, then the whole; all of it at the end if `buffered`.

    Raises WriterUnavailable where the LLM fails, breaks off, or writes nothing for its reader.
    """
    task = context.writing_task(
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
    waiting: list[Piece] = []
    started = False
    try:
        async with aclosing(writer.write(task)) as deltas:
            async for delta in deltas:
                if isinstance(delta, TokenUsage):
                    usage = delta
                    continue
                waiting += pipeline.feed(delta)
                if buffered:
                    continue
                for piece in waiting:
                    started = True
                    yield piece
                waiting = []
    except WriterUnavailable:
        for piece in pipeline.end() if started else ():
            yield piece  # the unit that was being written when the LLM broke off
        raise
    for piece in (*waiting, *pipeline.end()):
        yield piece
    if not pipeline.has_words and not pipeline.declined:
        raise WriterUnavailable(f"{writer.model} wrote nothing for its reader")
    yield WrittenText(tuple(pipeline.segments), writer.model, usage, pipeline.declined)

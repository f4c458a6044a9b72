"""Stream the text that an LLM writes from a question and its passages: the entry point for the answer flow.

Every unit is checked before it is streamed. What to reply where nothing of it is shown is decided elsewhere.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from citewell.answer.writing.context import PassageContext
from citewell.answer.writing.pipeline import Pipeline
from citewell.answer.writing.release import Claims, Release
from citewell.errors import WriterUnavailable
from citewell.models import Exchange, Passage, Piece, Segment, TokenUsage
from citewell.ports import Writer


@dataclass(frozen=True, slots=True)
class WrittenText:
    """What is shown of the text that an LLM wrote, as sentences with support verdicts."""

    segments: tuple[Segment, ...]
    """Empty if nothing of it is shown."""
    model: str
    usage: TokenUsage | None
    claims: Claims
    """What the LLM claimed, shown or not; "none" for a refusal, an echo of the question, a tool call or nothing."""
    unsupported: tuple[str, ...] = ()
    """Claims to give beside the answer, because no passage supports them."""


async def write(
    question: str,
    passages: Sequence[Passage],
    *,
    writer: Writer,
    context: PassageContext,
    history: Sequence[Exchange],
    min_support: float,
    deadline: float | None = None,
    selection: Passage | None = None,
    buffered: bool = False,
) -> AsyncGenerator[Piece | WrittenText, None]:
    """Stream the checked pieces of the LLM's text, then the whole; if `buffered`, all of it at the end.

    Nothing is shown unless its mean support is at least `min_support`. Raises WriterUnavailable if the LLM fails or
    breaks off.
    """
    task = context.build_task(
        question,
        passages,
        context_tokens=writer.context_tokens,
        history=history,
        selected=selection is not None,
        deadline=deadline,
    )
    if not context.passages:
        raise WriterUnavailable("no passage fits into CITEWELL_LLM_CONTEXT_TOKENS beside the rules and the question")
    pipeline = Pipeline(context.passages, task.instructions, question=question, selection=selection)
    release = Release(min_support, context.engines.unsupported)
    usage: TokenUsage | None = None
    buffer: list[Piece] = []
    async with aclosing(writer.write(task)) as deltas:
        async for delta in deltas:
            if isinstance(delta, TokenUsage):
                usage = delta
                continue
            buffer += [piece for unit in pipeline.feed(delta) for piece in release.add(unit)]
            if buffered:
                continue
            for piece in buffer:
                yield piece
            buffer = []
    buffer += [piece for unit in pipeline.end() for piece in release.add(unit)]
    for piece in (*buffer, *release.end()):
        yield piece
    yield WrittenText(tuple(release.segments), writer.model, usage, release.claims, release.unsupported)

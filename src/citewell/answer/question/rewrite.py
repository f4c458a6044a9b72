"""A follow-up made to stand alone: by the writer where there is one, by rules where there is none or it fails."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from citewell.answer.question.follow_up import CONTEXT_EXCHANGES, ResolvedQuestion, resolve_follow_up
from citewell.answer.writing import Preamble, fit_history
from citewell.errors import WriterUnavailable
from citewell.models import Exchange
from citewell.ports import Writer, WritingTask
from citewell.text import content_words, stems

_log = logging.getLogger("citewell.answer")

_RULES = """\
Rewrite the reader's last question so that it can be understood without the conversation before it: put in what "it", \
"that", "the second one" and the like stand for. Keep the reader's language and wording otherwise, add nothing, and do \
not answer it. Reply with the question alone. If it stands alone already, repeat it as it is."""

_LONGEST = 400  # characters of a question that a search can use
_TOKENS = 150
_SECONDS = 10.0


async def resolve_question(
    question: str, history: Sequence[Exchange], writer: Writer | None, *, marked: str = ""
) -> ResolvedQuestion:
    """What is asked. What a writer makes of it counts only where each of its words was said in the conversation."""
    asked = resolve_follow_up(question, history, marked=marked)
    if writer is None or marked or not history or asked.kind == "courtesy" or len(question) > _LONGEST:
        return asked
    told = history[-CONTEXT_EXCHANGES:]
    words = await _rewritten(question, told, writer)
    if not _was_said(words, [question, *(part for one in told for part in (one.question, one.answer))]):
        return asked
    return replace(asked, question=words, kind="more" if asked.kind == "more" else "question", reply="")


async def _rewritten(question: str, told: Sequence[Exchange], writer: Writer) -> str:
    """The writer's words; none where it does not answer in time."""
    work = WritingTask(_RULES, question, fit_history(told, writer.context_tokens // 2), max_tokens=_TOKENS)
    preamble, said = Preamble(), ""
    try:
        async with asyncio.timeout(_SECONDS), aclosing(writer.write(work)) as words:
            async for piece in words:
                said += preamble.feed(piece) if isinstance(piece, str) else ""
    except (WriterUnavailable, TimeoutError) as error:
        _log.warning("a follow-up was understood by rules: %s", error or "the writer took too long")
        return ""
    return (said + preamble.end()).strip().strip('"“”')


def _was_said(words: str, conversation: Sequence[str]) -> bool:
    """Whether this is one question, made of what was said."""
    if not words or "\n" in words or len(words) > _LONGEST:
        return False
    return set(stems(" ".join(content_words(words)))) <= {stem for part in conversation for stem in stems(part)}

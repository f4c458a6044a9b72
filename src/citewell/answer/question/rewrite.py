"""Resolves a question, rewritten by the LLM where there is one, by rules where there is none or it fails.

`resolve` is the one call that the answer flow needs. Searches nothing.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from citewell.answer.question.follow_up import (
    CONTEXT_EXCHANGES,
    ResolvedQuestion,
    refer_to_selection,
    resolve_follow_up,
)
from citewell.answer.writing import PreambleFilter, fit_history
from citewell.errors import WriterUnavailable
from citewell.models import Exchange
from citewell.ports import Writer, WritingTask
from citewell.text import content_words, stems

_log = logging.getLogger("citewell.answer")

_RULES = """\
Rewrite the reader's last question so that it can be understood without the conversation before it: put in what "it", \
"that", "the second one" and the like stand for. Keep the reader's language and wording otherwise, add nothing, and do \
not answer it. Reply with the question alone. If it stands alone already, repeat it as it is."""

_MAX_QUESTION_CHARACTERS = 400  # a longer question is no use to a search
_MAX_TOKENS = 150
_TIMEOUT_SECONDS = 10.0
_MAX_TIME_SHARE = 1 / 3  # of the time for the first words of the answer


async def resolve(
    question: str,
    history: Sequence[Exchange],
    writer: Writer | None,
    *,
    selection: str = "",
    hint: str = "",
) -> ResolvedQuestion:
    """The question that stands alone, with what "this" refers to.

    `selection` is the text that the answer must come from; `hint` is the text that the reader looks at.
    """
    resolved = await resolve_question(question, history, writer, marked=selection or hint)
    return replace(resolved, from_selection=True) if selection else refer_to_selection(resolved, hint)


async def resolve_question(
    question: str, history: Sequence[Exchange], writer: Writer | None, *, marked: str = ""
) -> ResolvedQuestion:
    """The question that stands alone. The LLM's version counts only if the conversation contains each of its words.

    `marked` is the text that the reader has marked on the page.
    """
    resolved = resolve_follow_up(question, history, marked=marked)
    if (
        writer is None
        or marked
        or not history
        or resolved.kind == "courtesy"
        or len(question) > _MAX_QUESTION_CHARACTERS
    ):
        return resolved
    exchanges = history[-CONTEXT_EXCHANGES:]
    rewritten = await _rewrite_with_llm(question, exchanges, writer)
    conversation = [question, *(text for exchange in exchanges for text in (exchange.question, exchange.answer))]
    if not _uses_only_words_of(rewritten, conversation):
        return resolved
    kind = resolved.kind if resolved.kind == "more" else "question"
    return replace(resolved, question=rewritten, kind=kind, reply="")


async def _rewrite_with_llm(question: str, exchanges: Sequence[Exchange], writer: Writer) -> str:
    """The question in the LLM's words; empty where it fails or takes too long."""
    seconds = min(_TIMEOUT_SECONDS, writer.first_words_seconds * _MAX_TIME_SHARE)
    work = WritingTask(_RULES, question, fit_history(exchanges, writer.context_tokens // 2), max_tokens=_MAX_TOKENS)
    preamble, rewritten = PreambleFilter(), ""
    try:
        async with asyncio.timeout(seconds), aclosing(writer.write(work)) as words:
            async for piece in words:
                rewritten += preamble.feed(piece) if isinstance(piece, str) else ""
    except (WriterUnavailable, TimeoutError) as error:
        _log.warning("a follow-up was understood by rules: %s", error or "the writer took too long")
        return ""
    return (rewritten + preamble.end()).strip().strip('"“”')


def _uses_only_words_of(question: str, conversation: Sequence[str]) -> bool:
    """Whether this is one line whose content words all occur in the conversation: then the LLM made nothing up."""
    if not question or "\n" in question or len(question) > _MAX_QUESTION_CHARACTERS:
        return False
    known_stems = {stem for text in conversation for stem in stems(text)}
    return set(stems(" ".join(content_words(question)))) <= known_stems

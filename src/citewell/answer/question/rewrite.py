"""Rewrites a follow-up with the LLM so that it stands alone. Decides nothing: `resolution.py` says when it is used."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing

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

MAX_QUESTION_CHARACTERS = 400
"""A longer question is no use to a search."""

_MAX_TOKENS = 150
_TIMEOUT_SECONDS = 10.0


async def rewrite_with_llm(question: str, exchanges: Sequence[Exchange], writer: Writer) -> str:
    """The question in the LLM's words; empty where it fails or takes too long."""
    work = WritingTask(_RULES, question, fit_history(exchanges, writer.context_tokens // 2), max_tokens=_MAX_TOKENS)
    preamble, rewritten = Preamble(), ""
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS), aclosing(writer.write(work)) as words:
            async for piece in words:
                rewritten += preamble.feed(piece) if isinstance(piece, str) else ""
    except (WriterUnavailable, TimeoutError) as error:
        _log.warning("a follow-up was understood by rules: %s", error or "the writer took too long")
        return ""
    return (rewritten + preamble.end()).strip().strip('"“”')


def uses_only_words_of(question: str, conversation: Sequence[str]) -> bool:
    """Whether this is one line whose content words all occur in the conversation: then the LLM made nothing up."""
    if not question or "\n" in question or len(question) > MAX_QUESTION_CHARACTERS:
        return False
    known_stems = {stem for text in conversation for stem in stems(text)}
    return set(stems(" ".join(content_words(question)))) <= known_stems

"""The one entry point of this package: from a message and its conversation to a question that stands alone.

Uses the LLM where there is one, and rules where there is none or it fails. Searches nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

from citewell.answer.question.follow_up import CONTEXT_EXCHANGES, refer_to_selection, resolve_follow_up
from citewell.answer.question.resolved_question import ResolvedQuestion
from citewell.answer.question.rewrite import MAX_QUESTION_CHARACTERS, rewrite_with_llm, uses_only_words_of
from citewell.models import Exchange
from citewell.ports import Writer


async def resolve(
    question: str, history: Sequence[Exchange], writer: Writer | None, *, selection: str = "", hint: str = ""
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
        or len(question) > MAX_QUESTION_CHARACTERS
    ):
        return resolved
    exchanges = history[-CONTEXT_EXCHANGES:]
    rewritten = await rewrite_with_llm(question, exchanges, writer)
    conversation = [question, *(text for exchange in exchanges for text in (exchange.question, exchange.answer))]
    if not uses_only_words_of(rewritten, conversation):
        return resolved
    kind = resolved.kind if resolved.kind == "more" else "question"
    return replace(resolved, question=rewritten, kind=kind, reply="")

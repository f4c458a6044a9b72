"""Resolves what a reader asks: follow-ups, references to a selection, the topic. Searches nothing."""

from citewell.answer.question.follow_up import (
    CONTEXT_EXCHANGES,
    ResolvedQuestion,
    refer_to_selection,
    resolve_follow_up,
)
from citewell.answer.question.rewrite import resolve, resolve_question

__all__ = [
    "CONTEXT_EXCHANGES",
    "ResolvedQuestion",
    "refer_to_selection",
    "resolve",
    "resolve_follow_up",
    "resolve_question",
]

"""Suggests first questions that the documents surely answer, from their headings. Calls no LLM."""

from citewell.answer.suggestions.starter_questions import suggest_questions

__all__ = ["suggest_questions"]

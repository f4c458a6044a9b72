"""What LLMs write to refer to a passage: the shapes of their citations, and the names of passages. Pure."""

from citewell.answer.writing.references.passage_names import PassageNames
from citewell.answer.writing.references.shapes import (
    ANY_BRACKET,
    BLANKS,
    BRACKETS,
    CITING_PARENTHESIS,
    CITING_PARENTHESIS_START,
    NUMBER_OR_RANGE,
    PARENTHESES,
    References,
    is_labelled_numbers,
    is_numbers,
    looks_like_citation,
    read_parenthesis,
    read_references,
    starts_with_citation,
)

__all__ = [
    "ANY_BRACKET",
    "BLANKS",
    "BRACKETS",
    "CITING_PARENTHESIS",
    "CITING_PARENTHESIS_START",
    "NUMBER_OR_RANGE",
    "PARENTHESES",
    "PassageNames",
    "References",
    "is_labelled_numbers",
    "is_numbers",
    "looks_like_citation",
    "read_parenthesis",
    "read_references",
    "starts_with_citation",
]

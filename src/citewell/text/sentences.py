"""Finds sentence boundaries. The only module that knows sentencex."""

import re

from sentencex import get_sentence_boundaries

from citewell.text.language import detect_language
from citewell.text.stemming import stems

_BLOCK_BREAK = re.compile(r"\n(?=\s*(?:[-*+>#|]|\d{1,3}[.)]\s|\n))")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence of a text."""
    return [(boundary["start_index"], boundary["end_index"]) for boundary in get_sentence_boundaries("en", text)]


def sentence_stems(text: str, language: str | None = None) -> list[list[str]]:
    """The stems of each sentence of a text; lists and tables are split by line."""
    language = language or detect_language(text)
    result = []
    for block in _BLOCK_BREAK.split(text):
        for start, end in sentence_spans(block):
            if sentence := stems(block[start:end], language):
                result.append(sentence)
    return result

"""Finds sentence boundaries. The only module that knows sentencex."""

import re
from collections.abc import Iterator

from sentencex import get_sentence_boundaries

from citewell.text.language import detect_language
from citewell.text.stemming import stems

_BLOCK_BREAK = re.compile(r"\n(?=\s*(?:[-*+>#|]|\d{1,3}[.)]\s|\n))")


_MAX_SPLIT_CHARACTERS = 10_000


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence of a text.

    A longer text is split in parts: the time that sentencex takes may grow with the square of the length.
    """
    return [
        (begin + boundary["start_index"], begin + boundary["end_index"])
        for begin, end in _parts(text)
        for boundary in get_sentence_boundaries("en", text[begin:end])
    ]


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each part; a part ends at a line end or a space if it has one."""
    begin = 0
    while len(text) - begin > _MAX_SPLIT_CHARACTERS:
        limit = begin + _MAX_SPLIT_CHARACTERS
        end = text.rfind("\n", begin, limit) + 1 or text.rfind(" ", begin, limit) + 1 or limit
        yield begin, end
        begin = end
    yield begin, len(text)


def sentence_stems(text: str, language: str | None = None) -> list[list[str]]:
    """The stems of each sentence of a text; lists and tables are split by line."""
    language = language or detect_language(text)
    result = []
    for block in _BLOCK_BREAK.split(text):
        for start, end in sentence_spans(block):
            if sentence := stems(block[start:end], language):
                result.append(sentence)
    return result

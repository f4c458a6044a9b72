"""A text cut into windows of whole sentences, each small enough for a model to read. Pure, and knows no model."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from citewell.text import sentence_spans

# Vendors count tokens in ways of their own. English words have fewer than this says, no alphabet has over four times as
# many: what is small enough by this count is small enough by theirs.
_ROUGH = re.compile(r"[A-Za-z0-9]{1,3}|\S")


def rough_tokens(text: str) -> list[tuple[int, int]]:
    """Where about every token begins and ends, for a model whose own tokens nobody here knows."""
    return [found.span() for found in _ROUGH.finditer(text)]


def whole_sentences(text: str, offsets: Sequence[tuple[int, int]], *, largest: int) -> Iterator[tuple[int, int]]:
    """Token ranges that cover the text: as many whole sentences as fit, a longer one in even parts."""
    starts = [offset[0] for offset in offsets]
    sentences = [bisect_left(starts, start) for start, _ in sentence_spans(text)]
    ends = sorted({*sentences, len(offsets)} - {0}) or [0]
    first = 0
    for last, following in zip_longest(ends, ends[1:]):
        if following is not None and following - first <= largest:
            continue  # the next sentence fits as well
        parts = max(1, -(-(last - first) // largest))
        for part in range(parts):
            yield first + (last - first) * part // parts, first + (last - first) * (part + 1) // parts
        first = last


def span_of(offsets: Sequence[tuple[int, int]], first: int, last: int) -> tuple[int, int]:
    """Where a range of tokens lies in its text."""
    return (offsets[first][0], offsets[last - 1][1]) if last else (0, 0)

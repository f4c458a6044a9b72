"""Text as a model can read it: valid UTF-8, cut into windows of whole sentences. Pure, and knows no model."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from citewell.text import sentence_spans

# Vendors count tokens in different ways. English words have fewer than this counts, and no script has over four times
# as many: what is small enough by this count is small enough by theirs.
_APPROXIMATE_TOKEN = re.compile(r"[A-Za-z0-9]{1,3}|\S")


def replace_surrogates(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot encode, replaced by `?`; offsets stay the same."""
    return text.encode("utf-8", "replace").decode()


def approximate_tokens(text: str) -> list[tuple[int, int]]:
    """The approximate spans of tokens, for a model whose tokenizer is not known here."""
    return [match.span() for match in _APPROXIMATE_TOKEN.finditer(text)]


def split_at_sentences(text: str, offsets: Sequence[tuple[int, int]], *, max_tokens: int) -> Iterator[tuple[int, int]]:
    """Ranges of tokens that cover the text: as many whole sentences as fit, a longer sentence in even parts."""
    starts = [offset[0] for offset in offsets]
    sentences = [bisect_left(starts, start) for start, _ in sentence_spans(text)]
    ends = sorted({*sentences, len(offsets)} - {0}) or [0]
    first = 0
    for last, following in zip_longest(ends, ends[1:]):
        if following is not None and following - first <= max_tokens:
            continue  # the next sentence fits as well
        parts = max(1, -(-(last - first) // max_tokens))
        for part in range(parts):
            yield first + (last - first) * part // parts, first + (last - first) * (part + 1) // parts
        first = last


def span_of(offsets: Sequence[tuple[int, int]], first: int, last: int) -> tuple[int, int]:
    """The characters that a range of tokens covers."""
    return (offsets[first][0], offsets[last - 1][1]) if last else (0, 0)

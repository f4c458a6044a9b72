"""Splits text into words, in any script. Pure.

Scripts that put no spaces between words are read as pairs of neighbouring characters.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

# Letters and digits of any script, with the vowel signs that Python's \w leaves out.
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e"
)
WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+(?:[.'’](?:[^\W_]|[{_MARKS}])+)*")
UNSPACED = re.compile(
    r"[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def split_words(text: str) -> list[str]:
    """The words of a text as written; pairs of characters where a script has no spaces."""
    matches: list[str] = WORD.findall(text)
    return matches if text.isascii() else [part for word in matches for part in _split_unspaced(word)]


def _split_unspaced(word: str) -> Iterator[str]:
    if word.isascii() or not UNSPACED.search(word):
        yield word
        return
    end = 0
    for run in UNSPACED.finditer(word):
        if run.start() > end:
            yield word[end : run.start()]
        pairs = [first + second for first, second in pairwise(run[0])]
        yield from pairs or [run[0]]
        end = run.end()
    if end < len(word):
        yield word[end:]


def replace_surrogates(text: str) -> str:
    """The text with a replacement character for each lone surrogate, which no encoding can hold; same length."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)

"""Remove the parts of the prompt that an LLM recites. Pure.

Compares words in order and knows nothing of Markdown: a prompt in a code block is removed as well.
"""

import re

from citewell.answer.sanitize.output import CITATION_PLACEHOLDER

MIN_RECITED_WORDS = 8
"""This many words of the prompt in a row are a recital, not a coincidence."""

_PREFIX_WORDS = 3  # a text that ends with this many words of the prompt may go on with it
_WORD = re.compile(r"\w+")
_MAX_GAP_CHARACTERS = 64  # words further apart are not in a row


class PromptLeakFilter:
    """Removes `MIN_RECITED_WORDS` or more words of the prompt in a row, whatever punctuation is between them."""

    def __init__(self, prompt: str) -> None:
        words = [word.casefold() for word in _WORD.findall(prompt)]
        self._positions: dict[str, list[int]] = {}
        for index, word in enumerate(words):
            self._positions.setdefault(word, []).append(index)
        starts = range(len(words) - _PREFIX_WORDS + 1)
        self._prefixes = {tuple(words[start : start + _PREFIX_WORDS]) for start in starts}

    def may_continue(self, text: str) -> bool:
        """Whether the text ends with words of the prompt, so that it must stay in the buffer until more is read."""
        return tuple(word.casefold() for word in _WORD.findall(text[-200:])[-_PREFIX_WORDS:]) in self._prefixes

    def remove(self, text: str, before: str = "") -> str:
        """The text without recited words, but with the citations among them; `before` is the text already shown."""
        before = " ".join([*_WORD.findall(before)[1 - _PREFIX_WORDS :], ""])  # a unit cannot end after a prefix
        while recited := self._find_recited(before + text):
            start, end = (max(0, position - len(before)) for position in recited)
            placeholders = CITATION_PLACEHOLDER * text.count(CITATION_PLACEHOLDER, start, end)
            text = text[:start].removesuffix(" ") + placeholders + text[end:]
        return text

    def _find_recited(self, text: str) -> tuple[int, int] | None:
        """The start and end of the first recital, if there is one."""
        lengths: dict[int, int] = {}
        longest, words = 0, list(_WORD.finditer(text))
        for index, word in enumerate(words):
            if index and word.start() - words[index - 1].end() > _MAX_GAP_CHARACTERS:
                lengths = {}
            lengths = {place: lengths.get(place - 1, 0) + 1 for place in self._positions.get(word[0].casefold(), ())}
            run = max(lengths.values(), default=0)
            if run < longest:
                return words[index - longest].start(), words[index - 1].end()
            longest = run if run >= MIN_RECITED_WORDS else 0
        return (words[-longest].start(), words[-1].end()) if longest else None

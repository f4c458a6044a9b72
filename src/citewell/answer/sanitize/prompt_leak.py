"""Remove words of the prompt that an LLM recites. Pure.

Knows words and their order, nothing of Markdown: a prompt in a code block is a prompt.
"""

import re

from citewell.answer.sanitize.output import CITED

LEAST = 8
"""Words in a row that are recited, not a coincidence."""

_BEGUN = 3  # words of the prompt at the end of a text, after which more may follow
_WORD = re.compile(r"\w+")
_LONG_GAP = 64  # characters between two words that part them


class Prompt:
    """The words of a prompt, to be removed where `LEAST` or more of them stand in a row, whatever is between them."""

    def __init__(self, prompt: str) -> None:
        words = [word.casefold() for word in _WORD.findall(prompt)]
        self._places: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            self._places.setdefault(word, []).append(place)
        self._begun = {tuple(words[place : place + _BEGUN]) for place in range(len(words) - _BEGUN + 1)}

    def may_go_on(self, text: str) -> bool:
        """Whether the last words of a text are of the prompt, so that what follows must be seen first."""
        return tuple(word.casefold() for word in _WORD.findall(text[-200:])[-_BEGUN:]) in self._begun

    def remove(self, text: str, before: str = "") -> str:
        """The text without what is recited, but with the citations in it; `before` was shown before it."""
        before = " ".join([*_WORD.findall(before)[1 - _BEGUN :], ""])  # had there been more, the text would not be cut
        while recited := self._recited(before + text):
            start, end = (max(0, place - len(before)) for place in recited)
            cited = CITED * text.count(CITED, start, end)
            text = text[:start].removesuffix(" ") + cited + text[end:]
        return text

    def _recited(self, text: str) -> tuple[int, int] | None:
        """Where the first recital begins and ends."""
        lengths: dict[int, int] = {}
        longest, words = 0, list(_WORD.finditer(text))
        for number, word in enumerate(words):
            if number and word.start() - words[number - 1].end() > _LONG_GAP:
                lengths = {}
            lengths = {place: lengths.get(place - 1, 0) + 1 for place in self._places.get(word[0].casefold(), ())}
            run = max(lengths.values(), default=0)
            if run < longest:
                return words[number - longest].start(), words[number - 1].end()
            longest = run if run >= LEAST else 0
        return (words[-longest].start(), words[-1].end()) if longest else None

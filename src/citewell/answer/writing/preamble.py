"""Take what is not for a reader out of an LLM's stream: what it thinks first, its word for "not covered". Pure."""

from citewell.answer.writing.prompt import NOT_COVERED

_THINKS, _THOUGHT = "<think>", "</think>"
_MOST_MARKS = 20  # characters before the first word


class Preamble:
    """`feed` it a stream; after the word for "not covered", where nothing was written before it, nothing comes out."""

    def __init__(self) -> None:
        self.declined = False
        """Whether the word was there."""
        self._buffer = ""
        self._has_words = self._is_silent = False

    def feed(self, text: str, *, is_end: bool = False) -> str:
        text = self._buffer + text if self._has_words else (self._buffer + text).lstrip()
        if not self._has_words and text.startswith(_THINKS):
            _, closed, rest = text.partition(_THOUGHT)
            self._buffer = "" if closed else _THINKS + text[len(_THINKS) :][-len(_THOUGHT) :]
            return self.feed(rest, is_end=is_end) if closed else ""
        while NOT_COVERED in text:
            self.declined = True
            before, _, after = text.partition(NOT_COVERED)
            self._is_silent = self._is_silent or not (self._has_words or has_words(before))
            text = before + after
        begun = next((n for n in range(len(NOT_COVERED) - 1, 0, -1) if text.endswith(NOT_COVERED[:n])), 0)
        shown = text if is_end else text[: len(text) - begun]
        is_first = not (self._has_words or self._is_silent or has_words(shown))  # "**" may stand before the word
        may_think = not self._has_words and _THINKS.startswith(text)
        shown = "" if not is_end and (may_think or (is_first and len(shown) < _MOST_MARKS)) else shown
        self._buffer, self._has_words = text[len(shown) :], self._has_words or has_words(shown)
        return "" if self._is_silent else shown

    def end(self) -> str:
        return self.feed("", is_end=True)


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit in it."""
    return any(char.isalnum() for char in text)

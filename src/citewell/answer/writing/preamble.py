"""Remove from an LLM's stream what is not for readers: its thinking, and the word NOT_COVERED. Pure."""

NOT_COVERED = "NOT_COVERED"
"""What some LLMs reply where they find no answer, though the prompt does not ask for it. Readers never see it."""

_THINKING_START, _THINKING_END = "<think>", "</think>"
_MAX_MARK_CHARACTERS = 20  # such as "**", before the first word


class PreambleFilter:
    """Filters a stream with `feed` and `end`. If the text begins with NOT_COVERED, nothing comes out."""

    def __init__(self) -> None:
        self._buffer = ""
        self._has_words = self._is_muted = False

    def feed(self, text: str, *, is_end: bool = False) -> str:
        text = self._buffer + text if self._has_words else (self._buffer + text).lstrip()
        if not self._has_words and text.startswith(_THINKING_START):
            _, closed, rest = text.partition(_THINKING_END)
            self._buffer = "" if closed else _THINKING_START + text[len(_THINKING_START) :][-len(_THINKING_END) :]
            return self.feed(rest, is_end=is_end) if closed else ""
        while NOT_COVERED in text:
            before, _, after = text.partition(NOT_COVERED)
            self._is_muted = self._is_muted or not (self._has_words or has_words(before))
            text = before + after
        lengths = range(len(NOT_COVERED) - 1, 0, -1)
        partial = next((length for length in lengths if text.endswith(NOT_COVERED[:length])), 0)
        output = text if is_end else text[: len(text) - partial]
        is_first = not (self._has_words or self._is_muted or has_words(output))  # "**" may stand before the word
        may_be_thinking = not self._has_words and _THINKING_START.startswith(text)
        output = "" if not is_end and (may_be_thinking or (is_first and len(output) < _MAX_MARK_CHARACTERS)) else output
        self._buffer, self._has_words = text[len(output) :], self._has_words or has_words(output)
        return "" if self._is_muted else output

    def end(self) -> str:
        return self.feed("", is_end=True)


def has_words(text: str) -> bool:
    """Whether the text contains a letter or a digit."""
    return any(char.isalnum() for char in text)

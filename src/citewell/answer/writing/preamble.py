"""What a writer says that is not for its reader: what it thinks first, and its word for "not covered". Pure."""

from citewell.answer.writing.prompt import NOT_COVERED

_THINKS, _THOUGHT = "<think>", "</think>"
_MOST_MARKS = 20  # characters before the first word


class Preamble:
    """Takes both out of a stream; after the word, where nothing else was said before it, takes out everything."""

    def __init__(self) -> None:
        self.declined = False
        """Whether the word was there."""
        self._held = ""
        self._spoke = False
        self._thinks = False
        self._silent = False

    def feed(self, text: str) -> str:
        self._held += text
        if not self._spoke and not self._thinks:
            self._held = self._held.lstrip()
            if self._held and _THINKS.startswith(self._held):
                return ""  # it may be about to
            self._thinks = self._held.startswith(_THINKS)
        if self._thinks:
            _, thought, rest = self._held.partition(_THOUGHT)
            if not thought:
                self._held = _THINKS + self._held[-len(_THOUGHT) :]
                return ""
            self._thinks, self._held = False, ""
            return self.feed(rest)
        return self._heard(ended=False)

    def end(self) -> str:
        return "" if self._thinks else self._heard(ended=True)

    def _heard(self, *, ended: bool) -> str:
        said, found, rest = self._held.partition(NOT_COVERED)
        if found:
            self.declined = True
            self._silent = self._silent or not (self._spoke or _has_words(said))
            self._held = said + rest
            return self._heard(ended=ended)
        cut = len(self._held) if ended else len(self._held) - _begun(self._held)
        said = self._held[:cut]
        if not (ended or self._spoke or self._silent or _has_words(said)) and len(said) < _MOST_MARKS:
            return ""  # "**" may be all that stands before the word
        self._held = self._held[cut:]
        self._spoke = self._spoke or _has_words(said)
        return "" if self._silent else said


def _has_words(text: str) -> bool:
    return any(mark.isalnum() for mark in text)


def _begun(text: str) -> int:
    """How many characters at the end may be the beginning of the word."""
    return next((n for n in range(min(len(text), len(NOT_COVERED) - 1), 0, -1) if NOT_COVERED.startswith(text[-n:])), 0)

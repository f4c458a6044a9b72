"""What a filter lets through, with the gaps closed where something was removed. Pure."""

import re
from typing import NamedTuple

from citewell.answer.sanitize.html import is_open_tag

CITED = "\x00"
"""In place of a citation."""

_CLOSING = f".,;:!?)…\r\n {CITED}"
_IN_URL = (
    *("www.", "http:", "https:", "ftp:", "mailto:", "javascript:", "vbscript:", "data:", "file:", "tel:"),
    *("xmpp:", "magnet:", "//", "@"),
)
_RUN = re.compile(r"[^\s<]*\Z")
_PUNCTUATION = re.compile(r"[.,;:!?)'\"*_~]+")
_WORD = re.compile(r"[A-Za-z]{1,10}\Z")
_OPEN_QUOTE = re.compile(r"=\s*([\"'])(?:(?!\1).)*\Z", re.DOTALL)
_LINE_START = re.compile(r"(?:\A|[\r\n])[ \t>]*(?:(?:[-*+]|\d{1,9}[.)]|\[\^[^\]\s]{1,20}\]:)[ \t]+)*\Z")
_TAIL = 64
# What the text of a link hardly has: a line's end, a sentence's end, and a parenthesis that closes what "[" opened.
_NO_TEXT = re.compile(r"[\r\n]|\w{2}[.!?…][)\"'”’*_]{0,3} |\[[^\[\]()]{0,60}\)|.{122}")


class Opener(NamedTuple):
    """A `[` that may turn out to open a link."""

    place: int
    length: int
    in_tag: bool
    begins_line: bool


class Output:
    """`put` what stays and tell what is `removed`; `before` is the end of what was shown before.

    Where something was removed, one blank is left of two and none before a full stop; and where the two ends would mean
    something together that they did not mean apart, a blank keeps them apart.
    """

    def __init__(self, before: str = "") -> None:
        self.openers: list[Opener] = []
        self._before, self._text = before, ""
        self._has_gap = self._parts_words = False

    @property
    def text(self) -> str:
        return self._text.removesuffix(" ") if self._has_gap else self._text

    @property
    def tail(self) -> str:
        return (self._before + self._text[-_TAIL:])[-_TAIL:]

    @property
    def begins_line(self) -> bool:
        """Whether nothing but blanks and marks of lists and quotes stands before in the line."""
        return bool(_LINE_START.search(self.tail))

    @property
    def is_in_word(self) -> bool:
        """Whether a letter would go on with the last word."""
        return not self._has_gap and (self.tail[-1:].isalnum() or self.tail[-1:] == "_")

    def put(self, text: str) -> None:
        if self._has_gap and is_in_url(self.tail) and (found := _PUNCTUATION.match(text)):
            self._text += found[0]  # the gap is still to be closed
            text = text[found.end() :]
        if self._has_gap and text:
            self._has_gap = False
            text = self._close_gap(text)
        self._text += text

    def removed(self, text: str = "", *, parts_words: bool = False) -> None:
        """Something was removed here; the citations in it stay."""
        tag = self._open_tag()
        if len(tag) > 1:  # nothing may complete what this began
            quote = _OPEN_QUOTE.search(tag)
            self.put(f"{quote[1] if quote else ''}<")
        self._has_gap = True
        self.put(CITED * text.count(CITED))
        self._has_gap, self._parts_words = True, parts_words

    def open(self, bracket: str) -> None:
        """Put a bracket that may be taken back."""
        if self._has_gap:
            self._has_gap = False
            self.put(" " if self._stays_apart(self.tail, bracket[0]) else "")
        self.openers.append(Opener(len(self._text), len(bracket), bool(self._open_tag()), self.begins_line))
        self.put(bracket)

    def take_back(self, opener: Opener) -> str | None:
        """What was put since the bracket, without it; None if it cannot be the text of a link."""
        text, is_no_text = self._text[opener.place + opener.length :], _NO_TEXT.search(self._text, opener.place)
        if opener.in_tag or is_no_text or (opener.begins_line and text.startswith("<")):
            return None
        self._text = self._text[: opener.place]
        return text

    def _open_tag(self) -> str:
        """What was put since a "<", if that may become a tag."""
        tag = self._text[self._text.rfind("<") :] if "<" in self._text else ""
        return tag if is_open_tag(tag) else ""

    def _close_gap(self, text: str) -> str:
        """What to put when `text` comes to stand where something was removed."""
        tail, first = self.tail, text[0]
        if self._text.endswith(" ") and first in _CLOSING and not self.begins_line:
            self._text = self._text if self._stays_apart(tail[:-1], first) else self._text[:-1]
        elif first == " " and (not tail or tail[-1] in " \r\n"):
            return text[1:]
        elif self._stays_apart(tail, first):
            return f" {text}"
        return text

    def _stays_apart(self, tail: str, first: str) -> bool:
        """Whether the last character and the next one would mean something together."""
        before, word = tail[-1:], _WORD.search(tail)
        begun = f"{word[0]}{first}".lower() if word else "-"
        if not before.strip() or first.isspace():
            return False
        return (
            before == "<"
            or first == "@"
            or before + first in ("``", ":/", "//", "![")
            or (before in ("]", CITED) and first in "(:[")
            or (self._parts_words and first not in _CLOSING)
            or is_in_url(tail)
            or any(one.startswith(begun) for one in _IN_URL)
        )


def is_in_url(tail: str) -> bool:
    """Whether what follows without a blank would go on with an address."""
    run = _RUN.search(tail)
    begun = run[0].lower() if run else ""
    return len(begun) == _TAIL or any(one in begun for one in _IN_URL)

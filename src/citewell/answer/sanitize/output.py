"""Collect the sanitized text and close the gaps where something was removed. Pure.

Knows nothing of what is allowed: its caller decides what to keep.
"""

import re
from typing import NamedTuple

from citewell.answer.sanitize.html import is_open_tag

CITATION_PLACEHOLDER = "\x00"
"""The character that stands for a citation while a unit is sanitized."""

_NO_BLANK_BEFORE = f".,;:!?)…\r\n {CITATION_PLACEHOLDER}"
_URL_PARTS = (
    *("www.", "http:", "https:", "ftp:", "mailto:", "javascript:", "vbscript:", "data:", "file:", "tel:"),
    *("xmpp:", "magnet:", "//", "@"),
)
_NON_BLANKS = re.compile(r"[^\s<]*\Z")
_LEADING_PUNCTUATION = re.compile(r"[.,;:!?)'\"*_~]+")
_LAST_WORD = re.compile(r"[A-Za-z]{1,10}\Z")
_OPEN_QUOTE = re.compile(r"=\s*([\"'])(?:(?!\1).)*\Z", re.DOTALL)
_LINE_START = re.compile(r"(?:\A|[\r\n])[ \t>]*(?:(?:[-*+]|\d{1,9}[.)]|\[\^[^\]\s]{1,20}\]:)[ \t]+)*\Z")
_TAIL_CHARACTERS = 64
# What the text of a link hardly contains: the end of a line or sentence, or a ")" that closes what "[" opened.
_NOT_LINK_TEXT = re.compile(r"[\r\n]|\w{2}[.!?…][)\"'”’*_]{0,3} |\[[^\[\]()]{0,60}\)|.{122}")


class Opener(NamedTuple):
    """A `[` or `![` that may turn out to open a link or an image."""

    position: int
    length: int
    is_in_tag: bool
    is_at_line_start: bool


class Output:
    """The sanitized text of a unit: `put` what stays, `mark_removed` what does not.

    `before` is the end of the text already shown. Where something was removed, two blanks become one, and none is left
    before a full stop. A blank separates the two ends if together they would form markup, such as a URL or a tag.
    """

    def __init__(self, before: str = "") -> None:
        self.openers: list[Opener] = []
        self._before, self._text = before, ""
        self._has_gap = self._separates_words = False

    @property
    def text(self) -> str:
        return self._text.removesuffix(" ") if self._has_gap else self._text

    @property
    def tail(self) -> str:
        return (self._before + self._text[-_TAIL_CHARACTERS:])[-_TAIL_CHARACTERS:]

    @property
    def is_at_line_start(self) -> bool:
        """Whether the line has nothing so far but blanks and the marks of lists and quotations."""
        return bool(_LINE_START.search(self.tail))

    @property
    def is_in_word(self) -> bool:
        """Whether a letter put next would continue the last word."""
        return not self._has_gap and (self.tail[-1:].isalnum() or self.tail[-1:] == "_")

    def put(self, text: str) -> None:
        if self._has_gap and is_in_url(self.tail) and (punctuation := _LEADING_PUNCTUATION.match(text)):
            self._text += punctuation[0]  # the gap stays open
            text = text[punctuation.end() :]
        if self._has_gap and text:
            self._has_gap = False
            text = self._close_gap(text)
        self._text += text

    def mark_removed(self, text: str = "", *, separates_words: bool = False) -> None:
        """Note that `text` was removed here, and keep the citations in it."""
        tag = self._find_open_tag()
        if len(tag) > 1:  # close it, so that nothing that follows completes the tag
            quote = _OPEN_QUOTE.search(tag)
            self.put(f"{quote[1] if quote else ''}<")
        self._has_gap = True
        self.put(CITATION_PLACEHOLDER * text.count(CITATION_PLACEHOLDER))
        self._has_gap, self._separates_words = True, separates_words

    def put_opener(self, bracket: str) -> None:
        """Put an opening bracket that `take_back_link_text` can remove again."""
        if self._has_gap:
            self._has_gap = False
            self.put(" " if self._must_separate(self.tail, bracket[0]) else "")
        self.openers.append(Opener(len(self._text), len(bracket), bool(self._find_open_tag()), self.is_at_line_start))
        self.put(bracket)

    def take_back_link_text(self, opener: Opener) -> str | None:
        """Remove a bracket and the text after it, and return that text; None if it cannot be the text of a link."""
        text = self._text[opener.position + opener.length :]
        is_other_text = opener.is_in_tag or _NOT_LINK_TEXT.search(self._text, opener.position)
        if is_other_text or (opener.is_at_line_start and text.startswith("<")):
            return None
        self._text = self._text[: opener.position]
        return text

    def _find_open_tag(self) -> str:
        """The text from the last "<" on, if it may become a tag; otherwise empty."""
        tag = self._text[self._text.rfind("<") :] if "<" in self._text else ""
        return tag if is_open_tag(tag) else ""

    def _close_gap(self, text: str) -> str:
        """The text to put after a gap: `text` with a blank added or removed in front."""
        tail, first = self.tail, text[0]
        if self._text.endswith(" ") and first in _NO_BLANK_BEFORE and not self.is_at_line_start:
            self._text = self._text if self._must_separate(tail[:-1], first) else self._text[:-1]
        elif first == " " and (not tail or tail[-1] in " \r\n"):
            return text[1:]
        elif self._must_separate(tail, first):
            return f" {text}"
        return text

    def _must_separate(self, tail: str, first: str) -> bool:
        """Whether `tail` and the next character would form markup without a blank between them."""
        last, word = tail[-1:], _LAST_WORD.search(tail)
        joined = f"{word[0]}{first}".lower() if word else "-"
        if not last.strip() or first.isspace():
            return False
        return (
            last == "<"
            or first == "@"
            or last + first in ("``", ":/", "//", "![")
            or (last in ("]", CITATION_PLACEHOLDER) and first in "(:[")
            or (self._separates_words and first not in _NO_BLANK_BEFORE)
            or is_in_url(tail)
            or any(part.startswith(joined) for part in _URL_PARTS)
        )


def is_in_url(tail: str) -> bool:
    """Whether text put next, without a blank, would continue a URL or an e-mail address."""
    end = _NON_BLANKS.search(tail)
    non_blanks = end[0].lower() if end else ""
    return len(non_blanks) == _TAIL_CHARACTERS or any(part in non_blanks for part in _URL_PARTS)

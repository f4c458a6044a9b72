"""What a filter lets through, as long as some of it may still be taken back. Pure.

Knows where text closes over a gap, nothing of why something went.
"""

import copy
import re
from collections import deque
from dataclasses import dataclass

from citewell.answer.marks import Item, Marks
from citewell.answer.tags import HELD, may_be_tag

CITED = "\x00"
"""In place of a citation, which is an int outside."""

_CLOSING = f".,;:!?)…\r\n {CITED}"
_ADDRESSES = ("www.", "http:", "https:", "ftp:", "mailto:", "javascript:", "vbscript:", "data:", "file:", "tel:")
_IN_ADDRESS = (*_ADDRESSES, "xmpp:", "magnet:", "//", "@")
_RUN = re.compile(r"[^\s<]*\Z")
_PUNCTUATION = re.compile(r"[.,;:!?)'\"*_~]+")
_WORD = re.compile(r"[A-Za-z]{1,10}\Z")
_OPEN_QUOTE = re.compile(r"=\s*(?:(\")[^\"]*|(')[^']*)\Z")
_TAIL = 64
_TEXT = 120  # characters of the text of a link
# What the text of a link hardly has: a line's end, a sentence's end, and a parenthesis that closes what "[" opened.
_NO_TEXT = re.compile(r"[\r\n]|\w{2}[.!?…][)\"'”’*_]{0,3} |\[[^\[\]()]{0,60}\)")
_NESTED = 32  # brackets that may be taken back at a time


@dataclass(slots=True)
class Opener:
    """A `[` that may turn out to open a link, and how everything stood before it."""

    place: int
    count: int
    length: int
    marks: Marks
    tail: str
    in_tag: bool
    after_blank: bool
    is_given_up: bool = False
    """Whether it is too late to take it back: what came since was shown."""

    @property
    def begins_line(self) -> bool:
        return self.marks.at_line_start


class Said:
    """`put` what stays and tell what is `gone`; `told` gives what cannot change any more.

    Where something went, one blank is left of two and none before a full stop; and where the two ends would mean
    something together that they did not mean apart, a blank keeps them apart.
    """

    def __init__(self) -> None:
        self.marks = Marks(kindly=False)  # what a renderer will see, so it reads what stays
        self.tail = ""
        self.openers: list[Opener] = []
        self._parts: list[str] = []
        self._count = 0  # of all that was ever put: it does not shrink when something is taken back
        self._blank = ""  # the last blank: it goes if what follows goes
        self._angle = ""  # what was let through since a "<", as long as that may become a tag
        self._has_gone = self._parts_words = False

    @property
    def is_in_word(self) -> bool:
        """Whether a letter would go on with the last word."""
        return not self._has_gone and (self.tail[-1:].isalnum() or self.tail[-1:] == "_")

    @property
    def is_in_address(self) -> bool:
        """Whether what follows without a blank would go on with an address."""
        return _is_in_address(self.tail)

    def put(self, text: str, *, is_read: bool = False) -> None:
        if not text:
            return
        if self._has_gone and self.is_in_address and (found := _PUNCTUATION.match(text)):
            self._put(found[0], is_read)  # the gap is still to be closed
            text = text[found.end() :]
        if self._has_gone and text:
            self._has_gone = False
            text = self._close_gap(text)
        self._put(text, is_read)

    def _put(self, text: str, is_read: bool) -> None:
        if not is_read:
            self.marks.mask(text)
        self._add(text)

    def gone(self, text: str = "", *, parts_words: bool = False) -> None:
        """Something went here; the citations in it stay."""
        if len(self._angle) > 1:  # nothing may complete what this began
            quote = _OPEN_QUOTE.search(self._angle)
            self.put(f"{quote[1] or quote[2] if quote else ''}<")
        self._has_gone = True
        self.put(CITED * text.count(CITED))
        self._has_gone = True
        self._parts_words = parts_words

    def open(self, bracket: str) -> None:
        """Put a bracket that may be taken back."""
        if self._has_gone:
            self._has_gone = False
            self.put(" " if self._stays_apart(self.tail, bracket[0]) else "")
        blank, self._blank = self._blank, ""
        self._parts += [blank] if blank else []
        del self.openers[: max(0, len(self.openers) - _NESTED)]
        place, in_tag = len(self._parts), bool(self._angle)
        self.openers.append(
            Opener(place, self._count, len(bracket), copy.copy(self.marks), self.tail, in_tag, bool(blank))
        )
        self.put(bracket)

    def take_back(self, opener: Opener) -> str | None:
        """What was put since the bracket, without it; None if it is too late for that."""
        text = "".join(self._parts[max(0, opener.place) :])[opener.length :] + self._blank
        begins_html = opener.begins_line and text.startswith("<")
        if opener.in_tag or begins_html or self._gives_up(opener):
            return None
        del self._parts[opener.place :]
        self.marks, self.tail = opener.marks, opener.tail
        self._blank = self._angle = ""
        if opener.after_blank:
            self._blank = self._parts.pop()
        return text

    def told(self, cited: deque[int], *, final: bool = False) -> list[Item]:
        while self.openers and (final or self._count - self.openers[0].count > HELD):
            self.openers.pop(0)
        if final and not self._has_gone:
            self._parts.append(self._blank)
        first = next((one for one in self.openers if not self._gives_up(one)), None)
        end = first.place - first.after_blank if first else len(self._parts)
        text = "".join(self._parts[:end])
        del self._parts[:end]
        for opener in self.openers:
            opener.place -= end
        told: list[Item] = []
        for place, part in enumerate(text.split(CITED)):
            told += [cited.popleft()] if place else []
            told += [part] if part else []
        return told

    def _gives_up(self, opener: Opener) -> bool:
        opener.is_given_up = opener.is_given_up or self._count - opener.count > _TEXT
        return opener.is_given_up

    def _add(self, text: str) -> None:
        self._count += len(text)
        if self.openers and not self.openers[-1].is_given_up:
            since = (self.tail + text)[-(self._count - self.openers[-1].count) :]
            if _NO_TEXT.search(since):
                for opener in self.openers:
                    opener.is_given_up = True
        self.tail = (self.tail + text)[-_TAIL:]
        opened = text.rfind("<")
        if opened >= 0:
            self._angle = text[opened:]
        elif self._angle:
            self._angle += text
        if self._angle and not may_be_tag(self._angle):
            self._angle = ""
        whole = self._blank + text
        self._blank = " " if whole.endswith(" ") else ""
        self._parts.append(whole[: len(whole) - len(self._blank)])

    def _close_gap(self, text: str) -> str:
        """What to put when `text` comes to stand where something went."""
        before, first = self.tail[-1:], text[0]
        if self._blank and first in _CLOSING and not self.marks.at_line_start:
            if not self._stays_apart(self.tail[:-1], first):
                self._blank, self.tail = "", self.tail[:-1]
        elif first == " " and (not before or before in "\r\n"):
            return text[1:]
        elif self._stays_apart(self.tail, first):
            return f" {text}"
        return text

    def _stays_apart(self, tail: str, first: str) -> bool:
        """Whether the last character and the next one would mean something together."""
        before = tail[-1:]
        if not before or before.isspace() or first.isspace():
            return False
        word = _WORD.search(tail)
        begun = f"{word[0]}{first}".lower() if word else ""
        return (
            before == "<"
            or (before == first == "`")
            or (before in ("]", CITED) and first in "(:[")
            or (before in (":", "/") and first == "/")
            or (before == "!" and first == "[")
            or first == "@"
            or _is_in_address(tail)
            or bool(begun and any(one.startswith(begun) for one in _IN_ADDRESS))
            or (self._parts_words and first not in _CLOSING)
        )


def _is_in_address(tail: str) -> bool:
    run = _RUN.search(tail)
    begun = run[0].lower() if run else ""
    return len(begun) == _TAIL or any(one in begun for one in _IN_ADDRESS)

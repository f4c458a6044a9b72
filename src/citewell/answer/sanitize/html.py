"""Find the HTML in a text: tags, comments and addresses in angle brackets. Pure."""

import re
from typing import Literal, NamedTuple

from citewell.text import words_by_label

_NAMES = words_by_label("html-elements.txt")
_LONGEST = 300  # characters of a tag, a comment or a script

_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)(?=[\s/>\x00]|\Z)")
_AUTOLINK = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9.-]{1,255})>")
_DECLARATION = re.compile(
    r"<(?:!--[\s\S]{0,300}?-->|!\[CDATA\[[\s\S]{0,300}?\]\]>|\?[\s\S]{0,300}?\?>|![A-Za-z][^>]{0,300}>)"
)
_DECLARES = re.compile(r"<(?:\?|!(?:--|\[CDATA\[|[A-Za-z]))")
_SCRIPT = re.compile(r"<(script|style)\b[^>]{0,300}>[\s\S]{0,300}?</\1\s*>", re.IGNORECASE)
_WITH_VALUE = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*[\s\x00][^<>]*=[^<>]*>")
_BARE = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*\s*/?>")
_BEGUN = re.compile(r"<(?:[!?]|/?[A-Za-z])[^<>,;)\[\]]*\Z")
_GENERIC = re.compile(r"<[A-Z][a-z]\w*[>,]")
_WORDS = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s+[\w'’,;.:()-]+){4}\s")  # "<a" means less, four words on
_COMPARED = re.compile(r"<[a-z]\s[^=\"']*\Z")
_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*[\r\n]")


class Tag(NamedTuple):
    """What opens with `<`, up to `end`; "open" is a tag that nothing closes, which browsers close where they like."""

    end: int
    kind: Literal["tag", "harmless", "address", "open"]
    parts_words: bool = False


def is_open_tag(text: str) -> bool:
    """Whether what began with `<` may still become a tag or an address."""
    return bool(_BEGUN.fullmatch(text))


def is_bare_tag(text: str) -> bool:
    """Whether this is a tag without attributes, which loads nothing and runs nothing."""
    return bool(_BARE.fullmatch(text)) and not re.match(r"</?(?:script|style|iframe|svg|math)\b", text, re.IGNORECASE)


def find_tag(text: str, at: int, *, before: str, begins_line: bool) -> Tag | None:
    """The tag, comment or address that opens at `at`; None if `<` means "less".

    `before` is what stands before it: "x<y" and "List<Object>" have no tag. At the start of a line whatever looks like
    a tag is one, since it would begin a block in which nothing is Markdown.
    """
    if found := _AUTOLINK.match(text, at):
        return Tag(found.end(), "address")
    found = _DECLARATION.match(text, at) or _SCRIPT.match(text, at)
    if found or _DECLARES.match(text, at):
        return Tag(found.end(), "tag") if found else Tag(at + 1, "open")
    is_after_word = before[-1:].isalnum() or before[-1:] == "_"
    if is_after_word and _GENERIC.match(text, at) and not text[at + 1 :].lower().startswith(("script", "style")):
        return None
    stop, name = _stop(text, at), _NAME.match(text, at)
    if name and name[1].lower() in _NAMES["elements"]:
        return _element(text, at, stop, name=name[1].lower(), is_after_word=is_after_word)
    if found := _WITH_VALUE.match(text, at, stop):
        return Tag(found.end(), "tag")
    is_cut = bool(_BEGUN.fullmatch(text, at, stop)) and (stop < len(text) or " " in text[at:] or "\n" in text[at:])
    return Tag(at + 1, "open") if is_cut or (begins_line and _BARE.match(text, at)) else None


def _element(text: str, at: int, stop: int, *, name: str, is_after_word: bool) -> Tag:
    """A tag of HTML reaches to the first `>`, whatever stands between: so browsers read it at their most lenient."""
    close = text.find(">", at, stop)
    if close < 0 or (is_after_word and _COMPARED.match(text, at, close)):
        return Tag(at + 1, "open")  # "a<b and c>d" says something
    is_harmless = name in _NAMES["harmless"] and bool(_BARE.fullmatch(text, at, close + 1))
    return Tag(close + 1, "harmless" if is_harmless else "tag", name in _NAMES["blocks"])


def _stop(text: str, at: int) -> int:
    """Where a tag that has not ended is given up: at a blank line, after four words or many characters."""
    blank_line = _BLANK_LINE.search(text, at, at + _LONGEST)
    stop = blank_line.start() if blank_line else min(len(text), at + _LONGEST)
    words = _WORDS.match(text, at, stop)
    return words.end() if words else stop

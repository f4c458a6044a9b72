"""Find HTML in a text: tags, comments and autolinks. Pure; knows nothing of which tags are allowed."""

import re
from typing import Literal, NamedTuple

from citewell.text import words_by_label

_ELEMENT_NAMES = words_by_label("html-elements.txt")
_MAX_TAG_CHARACTERS = 300  # also of a comment or a script

_TAG_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)(?=[\s/>\x00]|\Z)")
_AUTOLINK = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9.-]{1,255})>")
_DECLARATION = re.compile(
    r"<(?:!--[\s\S]{0,300}?-->|!\[CDATA\[[\s\S]{0,300}?\]\]>|\?[\s\S]{0,300}?\?>|![A-Za-z][^>]{0,300}>)"
)
_DECLARATION_START = re.compile(r"<(?:\?|!(?:--|\[CDATA\[|[A-Za-z]))")
_SCRIPT = re.compile(r"<(script|style)\b[^>]{0,300}>[\s\S]{0,300}?</\1\s*>", re.IGNORECASE)
_TAG_WITH_ATTRIBUTE = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*[\s\x00][^<>]*=[^<>]*>")
_BARE_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*\s*/?>")
_ACTIVE_TAG = re.compile(r"</?(?:script|style|iframe|svg|math)\b", re.IGNORECASE)
_UNCLOSED_TAG = re.compile(r"<(?:[!?]|/?[A-Za-z])[^<>,;)\[\]]*\Z")
_GENERIC = re.compile(r"<[A-Z][a-z]\w*[>,]")
_FOUR_WORDS = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s+[\w'’,;.:()-]+){4}\s")  # so "<" means less than
_COMPARISON = re.compile(r"<[a-z]\s[^=\"']*\Z")
_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*[\r\n]")


class Tag(NamedTuple):
    """What begins with `<` and reaches to `end`; "open" is an unclosed tag, which browsers close where they like."""

    end: int
    kind: Literal["tag", "harmless", "autolink", "open"]
    separates_words: bool = False


def is_open_tag(text: str) -> bool:
    """Whether this text, which begins with `<`, may still become a tag or an autolink."""
    return bool(_UNCLOSED_TAG.fullmatch(text))


def is_bare_tag(text: str) -> bool:
    """Whether this is a tag without attributes that loads nothing and runs nothing."""
    return bool(_BARE_TAG.fullmatch(text)) and not _ACTIVE_TAG.match(text)


def find_tag(text: str, start: int, *, before: str, is_at_line_start: bool) -> Tag | None:
    """The tag, comment or autolink that begins at `start`; None if `<` means "less than".

    `before` is the text before it: "x<y" and "List<Object>" contain no tag. At the start of a line, whatever looks like
    a tag is one, because it would begin an HTML block, in which nothing is Markdown.
    """
    if match := _AUTOLINK.match(text, start):
        return Tag(match.end(), "autolink")
    match = _DECLARATION.match(text, start) or _SCRIPT.match(text, start)
    if match or _DECLARATION_START.match(text, start):
        return Tag(match.end(), "tag") if match else Tag(start + 1, "open")
    is_after_word = before[-1:].isalnum() or before[-1:] == "_"
    if is_after_word and _GENERIC.match(text, start) and not text[start + 1 :].lower().startswith(("script", "style")):
        return None
    limit, name = _tag_limit(text, start), _TAG_NAME.match(text, start)
    if name and name[1].lower() in _ELEMENT_NAMES["elements"]:
        return _parse_element(text, start, limit, name=name[1].lower(), is_after_word=is_after_word)
    if match := _TAG_WITH_ATTRIBUTE.match(text, start, limit):
        return Tag(match.end(), "tag")
    has_more_words = limit < len(text) or " " in text[start:] or "\n" in text[start:]
    is_open = has_more_words and _UNCLOSED_TAG.fullmatch(text, start, limit)
    return Tag(start + 1, "open") if is_open or (is_at_line_start and _BARE_TAG.match(text, start)) else None


def _parse_element(text: str, start: int, limit: int, *, name: str, is_after_word: bool) -> Tag:
    """The tag of a known HTML element, up to the first `>` as in the most lenient browsers."""
    close = text.find(">", start, limit)
    if close < 0 or (is_after_word and _COMPARISON.match(text, start, close)):
        return Tag(start + 1, "open")  # "a<b and c>d" is a comparison
    is_harmless = name in _ELEMENT_NAMES["harmless"] and bool(_BARE_TAG.fullmatch(text, start, close + 1))
    return Tag(close + 1, "harmless" if is_harmless else "tag", name in _ELEMENT_NAMES["blocks"])


def _tag_limit(text: str, start: int) -> int:
    """Where the search for the end of a tag stops: at a blank line, after four words or `_MAX_TAG_CHARACTERS`."""
    blank_line = _BLANK_LINE.search(text, start, start + _MAX_TAG_CHARACTERS)
    limit = blank_line.start() if blank_line else min(len(text), start + _MAX_TAG_CHARACTERS)
    words = _FOUR_WORDS.match(text, start, limit)
    return words.end() if words else limit

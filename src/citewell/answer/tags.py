"""Read the HTML in a text that is still being written: tags, comments and addresses in angle brackets. Pure."""

import re
from typing import Literal, NamedTuple

from citewell.answer.sources import WAIT, Wait

HELD = 2000
"""Characters after which an address or target that has not ended is given up."""
HELD_TAG = 300
"""Characters after which a tag, a comment, a script or code in a line that has not ended is given up."""


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_ELEMENTS = _names(
    """a abbr acronym address animate animatemotion animatetransform applet area article aside audio b base basefont bdi
    bdo bgsound big blink blockquote body br button canvas caption center circle cite clippath code col colgroup data
    datalist dd defs del desc details dfn dialog dir div dl dt ellipse em embed fieldset figcaption figure filter font
    footer foreignobject form frame frameset g h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe image img input ins
    isindex kbd keygen label legend li line link listing main map mark marquee math menu menuitem meta meter multicol
    nav nobr noembed noframes noscript object ol optgroup option output p param path picture plaintext polygon polyline
    portal pre progress q rect rb rp rt rtc ruby s samp script search section select set slot small source spacer span
    strike strong style sub summary sup svg table tbody td template text textarea tfoot th thead time title tr track
    tspan tt u ul use var video wbr xmp"""
)
_ACTIVE = _names(
    """animate animatemotion animatetransform applet base body bgsound button embed foreignobject form frame frameset
    head html iframe image input isindex keygen link listing marquee math meta noembed noframes noscript object param
    plaintext portal script select set slot style svg template textarea title use xmp"""
)
_SWALLOW = _names("iframe math noscript plaintext script style svg template textarea title xmp")
_PARTS_WORDS = _names("br p div li tr td th h1 h2 h3 h4 h5 h6 hr ul ol table blockquote section pre dt dd")
_CLOSERS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}

_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)")
_LOCAL = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]"
_AUTOLINK = re.compile(rf"<([A-Za-z][A-Za-z0-9+.-]{{1,31}}:[^\s<>]*|{_LOCAL}{{1,64}}@[A-Za-z0-9.-]{{1,255}})>")
_AUTOLINK_BEGUN = re.compile(
    rf"<(?:[A-Za-z][A-Za-z0-9+.-]{{0,31}}(?::[^\s<>]*)?|{_LOCAL}{{1,64}}(?:@[A-Za-z0-9.-]{{0,255}})?)"
)
_ATTRIBUTES = r"(?:\s+[A-Za-z_:][\w.:-]*(?:\s*=\s*(?:[^\s\"'=<>`]+|'[^']*'|\"[^\"]*\"))?)*"
_TAG = re.compile(rf"</?[A-Za-z][A-Za-z0-9-]*{_ATTRIBUTES}\s*/?>")
_TAG_BEGUN = re.compile(rf"<(?:[!?]|/?(?:[A-Za-z][A-Za-z0-9-]*{_ATTRIBUTES}(?:\s*/?|\s*=\s*(?:'[^']*|\"[^\"]*)?))?)?")
_GENERIC = re.compile(r"<[A-Z][a-z]\w*[>,]")
_WORDS = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s+[\w'’,;.:()-]+){4}\s")  # "<a" means less, four words on
_COMPARED = re.compile(r"<[a-z]\s[^=\"']*\Z")
_HANDLER = re.compile(r"[\s/\"']on\w+\s*=|script:|data:", re.IGNORECASE)
_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*[\r\n]")


class Tag(NamedTuple):
    """What opens with `<`, up to `end`; "open" is a tag that nothing closes, which browsers close where they like."""

    end: int
    kind: Literal["tag", "address", "open"]
    does_nothing: bool = False
    """Whether it may be shown: it loads, runs and hides nothing."""
    parts_words: bool = False
    closes: str = ""
    """The name of what an end tag ends."""


def may_be_tag(text: str) -> bool:
    """Whether what began with `<` may still become a tag or an address."""
    return len(text) <= HELD and bool(_TAG_BEGUN.fullmatch(text) or _AUTOLINK_BEGUN.fullmatch(text))


def tag(text: str, at: int, *, before: str, begins_line: bool, final: bool) -> Tag | Wait | None:  # noqa: PLR0911 (one kind each)
    """The tag, comment or address that opens at `at`; None if `<` means "less"; "wait" if that is not known yet.

    `before` is what stands before it: "x<y" and "List<Object>" have no tag. At the start of a line whatever looks like
    a tag is one, since it would begin a block in which nothing is Markdown.
    """
    after_word = before[-1:].isalnum() or before[-1:] == "_"
    if at + 1 == len(text):
        return None if final else WAIT
    if text[at + 1] in "!?":
        return _declaration(text, at, final)
    name = _NAME.match(text, at)
    if not name:
        return WAIT if not final and text[at:] == "</" else None
    if name.end() == len(text) and not final:
        return WAIT if name.end() - at <= 64 else None
    if found := _AUTOLINK.match(text, at, at + HELD):
        return Tag(found.end(), "address")
    begun = _AUTOLINK_BEGUN.match(text, at, at + HELD)
    if begun and begun.end() == len(text) and not final:
        return WAIT
    if after_word and _GENERIC.match(text, at) and name[1].lower() not in _SWALLOW:
        return None
    if name[1].lower() in _ELEMENTS and (name.end() == len(text) or text[name.end()] in " \t\r\n\f/>"):
        return _element(text, at, name[1].lower(), after_word=after_word, final=final)
    stop = _stop(text, at)
    if found := _TAG.match(text, at, stop):
        if "=" in found[0]:
            return Tag(found.end(), "tag")
        return Tag(at + 1, "open") if begins_line else None
    if not may_be_tag(text[at:stop]):
        return None
    if stop == len(text) < at + HELD_TAG:
        return None if final else WAIT
    return Tag(at + 1, "open")


def _declaration(text: str, at: int, final: bool) -> Tag | Wait | None:
    head = text[at : at + len("<![CDATA[")]
    opening = next((one for one in _CLOSERS if head.startswith(one)), None)
    if not opening:
        if not final and any(one.startswith(head) for one in _CLOSERS):
            return WAIT
        if not re.match(r"<![A-Za-z]", head):
            return None
    closer = _CLOSERS[opening] if opening else ">"
    close = text.find(closer, at + 2, at + HELD_TAG)
    if close >= 0:
        return Tag(close + len(closer), "tag")
    return Tag(at + 1, "open") if final or len(text) - at >= HELD_TAG else WAIT


def _stop(text: str, at: int) -> int:
    """Where a tag that has not ended is given up: at a blank line, after four words or many characters."""
    stop = min(len(text), at + HELD_TAG)
    if blank_line := _BLANK_LINE.search(text, at, stop):
        stop = blank_line.start()
    words = _WORDS.match(text, at, stop)
    return words.end() if words else stop


def _element(text: str, at: int, name: str, *, after_word: bool, final: bool) -> Tag | Wait:
    """A tag of HTML reaches to the first `>`, whatever stands between: so browsers read it at their most lenient."""
    stop = _stop(text, at)
    close = text.find(">", at, stop)
    if close < 0:
        return WAIT if not final and stop == len(text) < at + HELD_TAG else Tag(at + 1, "open")
    if _COMPARED.match(text, at, close) and after_word:
        return Tag(at + 1, "open")  # "a<b and c>d" says something
    end = close + 1
    if name in ("script", "style") and text[at + 1] != "/":
        inner = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, end, end + HELD_TAG)
        if not inner and not final and len(text) - end < HELD_TAG:
            return WAIT
        end = inner.end() if inner else end
    does_nothing = name not in _ACTIVE and not _HANDLER.search(text, at, end)
    closes = name if text[at + 1] == "/" else ""
    return Tag(end, "tag", does_nothing=does_nothing, parts_words=name in _PARTS_WORDS, closes=closes)

"""What an answer may point at: the addresses and tags that stand in the texts it was written from. Pure."""

import html
import re
from typing import Final, Literal, NamedTuple

WAIT: Final = "wait"
Wait = Literal["wait"]

# An address that stands in a text is not the beginning or the end of a longer one: what follows must not go on with it.
_BEFORE = r"(?<![\w+.\-/%~:@#?=&])"
_AFTER = r"(?![\w/%~@#=&+$-]|[.,:;!?'*()]+[\w/%~@#=&+$-])"
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_UNSEEN = re.compile(r"[\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u2060\ufeff]")
_SCRIPT = re.compile(r"(?:javascript|vbscript|data|file|blob|view-source):", re.IGNORECASE)

_SPACE = re.compile(r"[ \t\r\n]*")
_ANGLED = re.compile(r"<(?:[^<>\r\n\\]|\\[^\r\n])*")
_BARE = re.compile(r"(?:[^\s\x00-\x1f\x7f()\\]|\\[^\s\x00-\x1f])+|\\")
_TITLE = {
    '"': re.compile(r'"(?:[^"\\]|\\[\s\S])*'),
    "'": re.compile(r"'(?:[^'\\]|\\[\s\S])*"),
    "(": re.compile(r"\((?:[^()\\]|\\[\s\S])*"),
}
_BLANK_LINE = re.compile(r"\r?\n[ \t]*\r?\n|\r[ \t]*\r")
_NESTED = 32  # parentheses in an address


class Sources:
    """The passages of an answer and the addresses of their pages; more may be added while it is written.

    sources.add("See https://a.org/b."); sources("https://a.org/b") -> True; sources("https://a.org/b?q=1") -> False
    """

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        self._texts.append(text)

    def __call__(self, target: str) -> bool:
        """Whether this address, or this tag, stands in a text just so, whole."""
        if not target.strip():
            return False
        if not any(target in text for text in self._texts):
            return False
        if target.startswith("<") and target.endswith(">"):
            return True
        exact = re.compile(_BEFORE + re.escape(target) + _AFTER)
        return any(exact.search(text) for text in self._texts)


class Link(NamedTuple):
    """Where `(target "title")` ends, and what it points at."""

    end: int
    target: str


def readings(target: str) -> set[str]:
    """An address as it is written and as it is read: without backslashes and with its entities resolved."""
    return {target, _ESCAPE.sub(r"\1", target), html.unescape(_ESCAPE.sub(r"\1", target))}


def runs_script(target: str) -> bool:
    """Whether to follow this address is to run it, however it is written."""
    return any(_SCRIPT.match(_UNSEEN.sub("", one)) for one in readings(target))


def link(text: str, at: int, *, final: bool) -> Link | Wait | None:  # noqa: PLR0911 (one place each)
    """The parenthesis of a link that opens at `at`, None if it is none, "wait" if that is not known yet."""
    wait: Wait | None = None if final else WAIT
    begin = _past_space(text, at + 1)
    if begin is None or begin == len(text):
        return wait if begin else None
    if text[begin] == "<":
        angled = _ANGLED.match(text, begin)
        end = angled.end() if angled else begin
        if end == len(text) or text[end] != ">":
            return wait if end == len(text) else None
        target, end = text[begin + 1 : end], end + 1
    else:
        bare = _bare(text, begin)
        if bare is None or bare == len(text):
            return wait if bare else None
        target, end = text[begin:bare], bare
    after = _past_space(text, end)
    if after is None or after == len(text):
        return wait if after else None
    if after > end and text[after] in _TITLE:
        title = _TITLE[text[after]].match(text, after)
        close = title.end() if title else after
        if close == len(text) or _BLANK_LINE.search(text, after, close):
            return None if _BLANK_LINE.search(text, after, close) else wait
        if text[close] != {"(": ")"}.get(text[after], text[after]):
            return None
        after = _past_space(text, close + 1)
        if after is None or after == len(text):
            return wait if after else None
    return Link(after + 1, target) if text[after] == ")" else None


def _past_space(text: str, at: int) -> int | None:
    space = _SPACE.match(text, at)
    end = space.end() if space else at
    return None if _BLANK_LINE.search(text, at, end) else end


def _bare(text: str, at: int) -> int | None:
    """Where an address without angle brackets ends: at a blank or at a parenthesis that it did not open."""
    depth = 0
    while at < len(text):
        if run := _BARE.match(text, at):
            at = run.end()
        elif text[at] == "(" and depth < _NESTED:
            depth, at = depth + 1, at + 1
        elif text[at] == ")" and depth:
            depth, at = depth - 1, at + 1
        else:
            return None if depth else at
    return at

"""Where bare addresses begin and end in a text. Pure.

Reads as widely as those who make links of plain text: GitHub's Markdown, and the linkers of chat windows.
"""

import re

from citewell.answer.sanitize.links import Link

_URL = re.compile(
    r"""(?i:(?:https?|ftps?|sftp|file|wss?)://|www\.(?=\w)|(?:mailto|xmpp|(?:java|vb)script):(?=\S)|tel:(?=[+0-9])
        |magnet:(?=\?)|data:(?=[\w.+-]{0,40}[/;,]))|://|@(?=(?:[\w-]{1,63}\.){1,8}[^\W\d])""",  # react@18.2.0 is none
    re.VERBOSE,
)
_SLASHES, _HOST = re.compile("//"), re.compile(r"//(?=[\w-]{1,64}\.\w|\[)")
_BEFORE = {":": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z"), "@": re.compile(r"[\w.+%:=?&/#-]*\Z")}
# It ends at a blank or "<", at a citation, which will have a blank before it, and where the text of a link ends.
_STOPS = re.compile(r"[\s<\x00]|\](?=\()|\Z")
_TRAILING = re.compile(r"(?:[.,:;!?'\"*_~|…>`}”’»]|&\w+;)+\Z")
_PAIRS = {")": "(", "]": "["}


def find_url(text: str, at: int, before: str) -> Link | None:
    """The address that begins at `at`, with the end of `before` that belongs to it: "name" of "name@host.org"."""
    char, last = text[at], before[-1:]
    found = (_URL if char != "/" else _SLASHES if last == ":" else _HOST).match(text, at)
    if not found or (char == "@" and not last.strip()) or (char == "/" and (last.isalnum() or last in ("_", "/"))):
        return None
    stop, begun = _STOPS.search(text, found.end()), found.end()
    end = stop.start() if stop else len(text)
    while end > begun:  # it ends before what closes or ends the sentence around it
        opening = _PAIRS.get(text[end - 1])
        if trailing := _TRAILING.search(text, max(begun, end - 64), end):
            end = trailing.start()
        elif opening and text.count(text[end - 1], at, end) > text.count(opening, at, end):
            end -= 1
        else:
            break
    belongs = _BEFORE[char].search(before) if char in _BEFORE else None
    return Link(end, (belongs[0] if belongs else "") + text[at:end])

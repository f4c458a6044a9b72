"""Where bare addresses begin and end in a text. Pure.

Reads as widely as those who make links of plain text: GitHub's Markdown, and the linkers of chat windows.
"""

import re

_URL = re.compile(
    r"""(?i:(?:https?|ftps?|sftp|file|wss?)://|www\.(?=\w)|(?:mailto|xmpp|(?:java|vb)script):(?=\S)|tel:(?=[+0-9])
        |magnet:(?=\?)|data:(?=[\w.+-]{0,40}[/;,]))""",
    re.VERBOSE,
)
_HOST = re.compile(r"//(?=[\w-]{1,64}\.\w|\[)")
_MAIL_HOST = re.compile(r"@(?=(?:[\w-]{1,63}\.){1,8}[^\W\d])")  # react@18.2.0 is none
_BEFORE = {":": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z"), "@": re.compile(r"[\w.+%:=?&/#-]*\Z")}
# It ends at a blank or "<", at a citation, which will have a blank before it, and where the text of a link ends.
_STOPS = re.compile(r"[\s<\x00]|\](?=\()|\Z")
_TRAILING = re.compile(r"(?:[.,:;!?'\"*_~|…>`}”’»]|&\w+;)+\Z")
_PAIRS = {")": "(", "]": "["}


def url_end(text: str, at: int, before: str) -> int | None:
    """Where the address ends that begins at `at`; None if there is none. `before` is what stands before it."""
    if text[at] == "@":
        found = None if not before or before[-1].isspace() else _MAIL_HOST.match(text, at)
    elif text.startswith("://", at):
        return _end(text, at, at + 3)
    elif text.startswith("//", at) and before.endswith(":"):
        return _end(text, at, at + 2)
    elif text[at] == "/":
        found = None if re.search(r"[\w/]\Z", before) else _HOST.match(text, at)
    else:
        found = None if re.search(r"\w\Z", before) else _URL.match(text, at)
    return _end(text, at, found.end()) if found else None


def whole_url(text: str, before: str) -> str:
    """An address with what stands before it and belongs to it: "name" of "name@host.org"."""
    belongs = _BEFORE[text[0]].search(before) if text[0] in _BEFORE else None
    return (belongs[0] if belongs else "") + text


def _end(text: str, at: int, begun: int) -> int:
    """Where an address ends: before what closes or ends the sentence around it."""
    stop = _STOPS.search(text, begun)
    end = stop.start() if stop else len(text)
    while end > begun:
        if trailing := _TRAILING.search(text, max(begun, end - 64), end):
            end = trailing.start()
        elif (opening := _PAIRS.get(text[end - 1])) and text.count(text[end - 1], at, end) > text.count(
            opening, at, end
        ):
            end -= 1
        else:
            break
    return end

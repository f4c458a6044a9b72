"""Find bare URLs and e-mail addresses in a text. Pure.

Finds whatever GitHub's Markdown or the linkers of chat windows turn into a link. Knows nothing of which are allowed.
"""

import re

from citewell.answer.sanitize.links import Link

_URL = re.compile(
    r"""(?i:(?:https?|ftps?|sftp|file|wss?)://|www\.(?=\w)|(?:mailto|xmpp|(?:java|vb)script):(?=\S)|tel:(?=[+0-9])
        |magnet:(?=\?)|data:(?=[\w.+-]{0,40}[/;,]))|://|@(?=(?:[\w-]{1,63}\.){1,8}[^\W\d])""",  # not react@18.2.0
    re.VERBOSE,
)
_SLASHES, _SLASHES_AND_HOST = re.compile("//"), re.compile(r"//(?=[\w-]{1,64}\.\w|\[)")
_PREFIXES = {":": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z"), "@": re.compile(r"[\w.+%:=?&/#-]*\Z")}
# A URL ends at a blank or "<", at a citation (shown with a blank before it), and where the text of a link ends.
_URL_END = re.compile(r"[\s<\x00]|\](?=\()|\Z")
_TRAILING_PUNCTUATION = re.compile(r"(?:[.,:;!?'\"*_~|…>`}”’»]|&\w+;)+\Z")
_PAIRS = {")": "(", "]": "["}


def find_url(text: str, start: int, before: str) -> Link | None:
    """The URL that begins at `start`, with the end of `before` that belongs to it ("name" of name@host)."""
    char, previous = text[start], before[-1:]
    match = (_URL if char != "/" else _SLASHES if previous == ":" else _SLASHES_AND_HOST).match(text, start)
    is_in_path = char == "/" and (previous.isalnum() or previous in ("_", "/"))
    if not match or is_in_path or (char == "@" and not previous.strip()):
        return None
    stop, min_end = _URL_END.search(text, match.end()), match.end()
    end = stop.start() if stop else len(text)
    while end > min_end:  # leave out what ends the sentence or closes a bracket around the URL
        opening = _PAIRS.get(text[end - 1])
        if trailing := _TRAILING_PUNCTUATION.search(text, max(min_end, end - 64), end):
            end = trailing.start()
        elif opening and text.count(text[end - 1], start, end) > text.count(opening, start, end):
            end -= 1
        else:
            break
    prefix = _PREFIXES[char].search(before) if char in _PREFIXES else None
    return Link(end, (prefix[0] if prefix else "") + text[start:end])

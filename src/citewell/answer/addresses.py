"""Where bare addresses begin and end in a text that is still being written. Pure.

Reads as widely as those who make links of plain text: GitHub's Markdown, and the linkers of chat windows.
"""

import re

_SCHEMES = ("https://", "http://", "ftps://", "ftp://", "sftp://", "file://", "wss://", "ws://")
_OTHERS = ("www.", "mailto:", "javascript:", "vbscript:", "data:", "tel:", "xmpp:", "magnet:")
STARTS = "hfswmjvdtxHFSWMJVDTX"
ADDRESS = re.compile(
    rf"(?i:{'|'.join(map(re.escape, _SCHEMES))}|www\.(?=\w)|mailto:(?=\S)|tel:(?=[+0-9])|xmpp:(?=\S)"
    r"|magnet:(?=\?)|(?:java|vb)script:(?=\S)"
    r"|data:(?=[\w.+-]{0,40}[/;,]))"
)
ADDRESS_BEGUN = re.compile(
    "(?i:"
    + "|".join(sorted({re.escape(one[:end]) for one in (*_SCHEMES, *_OTHERS) for end in range(1, len(one) + 1)}))
    + r"|data:[\w.+-]{0,40})"
)
HOST = re.compile(r"//(?=[\w-]{1,64}\.\w|\[)")
HOST_BEGUN = re.compile(r"//?[\w-]{0,64}\.?")
MAIL_HOST = re.compile(r"@(?:[\w-]{1,63}\.){1,8}[^\W\d]")  # react@18.2.0 is none
MAIL_HOST_BEGUN = re.compile(r"@(?:[\w-]{1,63}\.){0,8}[\w-]{0,63}")
BEFORE = {":": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z"), "@": re.compile(r"[\w.+%:=?&/#-]*\Z")}
"""What stands before these and belongs to the address."""
STOPS = re.compile(r"[\s<\x00]|\](?=\()")
"""Blanks and `<`; a citation, as it will have a blank before it; and where the text of a link ends."""
_TRAILING = re.compile(r"(?:[.,:;!?'\"*_~|…>`}”’»]|&\w+;)+\Z")
_PAIRS = {")": "(", "]": "["}


def end_of_address(text: str, at: int, end: int) -> int:
    """Where a bare address ends: before what closes or ends the sentence around it."""
    while end > at:
        if found := _TRAILING.search(text, at, end):
            end = found.start()
        elif (opening := _PAIRS.get(text[end - 1])) and _closes_more(text[at:end], opening):
            end -= 1
        else:
            break
    return end


def _closes_more(text: str, opening: str) -> bool:
    """Whether its last character closes nothing that opens in it."""
    return text.count(text[-1]) > text.count(opening)

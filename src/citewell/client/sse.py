"""Parses server-sent events from a stream of bytes, wherever the network splits it. Pure.

Skips comments (keep-alives) and named events, which no endpoint sends.
"""

import codecs
import re

_LINE_END = re.compile(r"\r\n|\r|\n")


class EventReader:
    """`feed` it bytes; returns the data of the events that they complete.

    EventReader().feed(b'data: {"done"') -> [];  then .feed(b': true}\\n\\n') -> ['{"done": true}']
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode
        self._incomplete_line = ""
        self._event_name = ""
        self._data_lines: list[str] = []

    def feed(self, content: bytes) -> list[str]:
        completed: list[str] = []
        *lines, self._incomplete_line = self._lines(self._incomplete_line + self._decode(content))
        for line in lines:
            if not line:
                if self._data_lines and self._event_name in ("", "message"):
                    completed.append("\n".join(self._data_lines))
                self._event_name, self._data_lines = "", []
                continue
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                self._data_lines.append(value)
            elif field == "event":
                self._event_name = value
        return completed

    @staticmethod
    def _lines(text: str) -> list[str]:
        """Complete lines, and last the incomplete one; a final CR may be the first half of a CRLF."""
        if text.endswith("\r"):
            *lines, last = _LINE_END.split(text[:-1])
            return [*lines, f"{last}\r"]
        return _LINE_END.split(text)

"""Read server-sent events as they come in, cut wherever the network cut them. Pure.

Knows the format and no door: comments (beats) and named events, which none of our doors sends, are passed over.
"""

import codecs
import re

_LINE_END = re.compile(r"\r\n|\r|\n")


class EventReader:
    """`feed` bytes, get the data of the events that they complete.

    EventReader().feed(b'data: {"done"') -> [];  then .feed(b': true}\\n\\n') -> ['{"done": true}']
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode
        self._rest = ""
        self._name = ""
        self._data: list[str] = []

    def feed(self, content: bytes) -> list[str]:
        told: list[str] = []
        *lines, self._rest = self._lines(self._rest + self._decode(content))
        for line in lines:
            if not line:
                if self._data and self._name in ("", "message"):
                    told.append("\n".join(self._data))
                self._name, self._data = "", []
                continue
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                self._data.append(value)
            elif field == "event":
                self._name = value
        return told

    @staticmethod
    def _lines(text: str) -> list[str]:
        """Whole lines, and last what is not yet one; a final CR may be the first half of a line's end."""
        if text.endswith("\r"):
            *lines, last = _LINE_END.split(text[:-1])
            return [*lines, f"{last}\r"]
        return _LINE_END.split(text)

"""Remove tool calls that an LLM writes as text, as small ones do: JSON alone, in a fence or in `<tool_call>`. Pure."""

import re
from collections.abc import Callable
from typing import Literal

_MAX_CALL_CHARACTERS = 4000  # longer JSON is no call
_MAX_OPENING_CHARACTERS = 120  # of the fence and the tags before a call
_TAG = re.compile(r"<\|?/?(?:tool_calls?|function_calls?|function|tools?|python_tag)\b[^<>\n]{0,60}>|\[/?TOOL_CALLS\]")
_OPEN_TAG = re.compile(r"<[^<>\n]{0,60}\Z|\[/?[A-Z_]{0,12}\Z")
_NAME = re.compile(r"""["'](?:name|function|tool|tool_name)["']\s*:\s*["']([\w.-]{1,64})["']""")
_ARGUMENTS = re.compile(r"""["'](?:arguments|parameters|args|input|tool_input)["']\s*:""")
_ARGUMENTS_ALONE = re.compile(
    r"""\s*\{\s*"query"\s*:\s*"(?P<query>[^"]*)"(?:\s*,\s*"(?:limit|score_threshold)"\s*:\s*[\d.]+)*\s*\}\s*"""
)


class ToolCallFilter:
    """Filters a stream with `feed` and `end`. `is_in_passage` tells whether a passage contains a text.

    feed('{"name": "search", "arguments": {"query": "pumps"}}\\nA pump.') -> "A pump."

    JSON that begins a line is held until it ends. It stays unless it has a name and arguments, like a call; one whose
    name a passage has in quotes is an example from there, and stays, too.
    """

    def __init__(self, is_in_passage: Callable[[str], bool]) -> None:
        self._is_in_passage = is_in_passage
        self._state: Literal["text", "line start", "json", "after call"] = "line start"
        self._buffer = ""
        self._output: list[str] = []
        self._depth, self._quote, self._is_escaped = 0, "", False  # of the JSON in the buffer

    def feed(self, text: str) -> str:
        for char in text:
            self._read(char)
        return self._take_output()

    def end(self) -> str:
        if self._state == "after call":
            self._output.append(_TAG.sub("", self._buffer).strip(" \t\n`~"))
        elif not (self._state == "json" and self._is_call(self._buffer)):
            self._output.append(self._buffer)
        self._buffer = ""
        return self._take_output()

    def _take_output(self) -> str:
        output, self._output = "".join(self._output), []
        return output

    def _read(self, char: str) -> None:
        match self._state:
            case "text":
                self._output.append(char)
                self._state = "line start" if char == "\n" else "text"
            case "line start":
                self._buffer += char
                self._read_line_start()
            case "json":
                self._buffer += char
                self._count_brackets(char)
                if self._depth == 0 and not self._quote:
                    self._end_json()
                elif len(self._buffer) > _MAX_CALL_CHARACTERS:
                    self._release("text")
            case "after call":
                self._read_after_call(char)

    def _read_line_start(self) -> None:
        rest = self._buffer.lstrip()
        if rest.startswith(("```", "~~~")):
            _, newline, code = rest.partition("\n")
            rest = code.lstrip() if newline else ""
        elif rest in ("`", "``", "~", "~~"):
            rest = ""
        while tag := _TAG.match(rest):
            rest = rest[tag.end() :].lstrip()
        json = rest.lstrip("[ \t\n")
        if json.startswith("{"):
            self._depth, self._quote, self._is_escaped = rest.count("["), "", False
            self._state = "json"
            self._count_brackets("{")
        elif (json and not _OPEN_TAG.match(rest)) or len(self._buffer) > _MAX_OPENING_CHARACTERS:
            self._release("line start" if self._buffer.endswith("\n") else "text")

    def _count_brackets(self, char: str) -> None:
        if self._quote:
            is_end = char == self._quote and not self._is_escaped
            self._is_escaped = char == "\\" and not self._is_escaped
            self._quote = "" if is_end else self._quote
        elif char == '"':
            self._quote = char
        else:
            self._depth += (char in "{[") - (char in "}]")

    def _end_json(self) -> None:
        if self._is_call(self._buffer):
            self._buffer, self._state = "", "after call"
        else:
            self._release("text")

    def _read_after_call(self, char: str) -> None:
        """Remove the fence or the tag that closes a call."""
        self._buffer += char
        rest = self._buffer.lstrip(" \t\n`~")
        if rest and not _TAG.fullmatch(rest) and not _OPEN_TAG.match(rest):
            rest, self._buffer, self._state = _TAG.sub("", rest).lstrip(), "", "line start"
            for held in rest:
                self._read(held)

    def _release(self, state: Literal["text", "line start"]) -> None:
        self._output.append(self._buffer)
        self._buffer, self._state = "", state

    def _is_call(self, text: str) -> bool:
        name, alone = _NAME.search(text), _ARGUMENTS_ALONE.fullmatch(text)
        if alone:
            return not self._is_in_passage(text.strip())
        return bool(name and _ARGUMENTS.search(text) and not self._is_in_passage(f'"{name[1]}"'))

"""Tell prose from what must stay as it is, code and formulas, in Markdown that is still being written. Pure.

Knows where blocks and spans begin and end, nothing of what the filters look for in the prose between them.
"""

import re
from typing import Literal

State = Literal["prose", "fence", "indented", "code", "math", "dollar", "escape", "bracket", "begin"]

Item = str | int
"""A piece of a stream: text, or a citation by its handle."""

HIDDEN = "\x00"
_BLANK = " \t"
_NEWLINE = "\r\n"
_PLAIN = re.compile(r"[^`$\\\r\n]+")
_LINE = re.compile(r"[^\r\n]+")
_CODE = re.compile(r"[^`\r\n]+")
_ITEM = re.compile(r"[-*+]|\d{1,9}[.)]")
_ITEM_BEGUN = re.compile(r"\d{1,9}|~{1,2}|\[\^[^\]\s]{0,20}\]?")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]{1,20}\]:")
_INFO = 80  # characters after a fence that are read
# What no one writes after a fence: a handle, or a sentence. A handle right after the end of code is meant for it.
_SAID = re.compile(r"\[\^?[0-9]|(?:^|[ \t])[^\W\d_]+[ \t]+[\w'’-]+,?[ \t]+[\w'’-]+[ \t.,;:!?]")
_BEGIN = re.compile(r"b(?:e(?:g(?:i(?:n(?:\{[a-zA-Z*]{0,24})?)?)?)?)?")


class Marks:
    """Reads a stream and knows whether it stands in prose; every character is read once, in order.

    A model is read with good will, since nobody can wait for what comes: a backtick opens code up to the same run of
    backticks or the end of its line, `$` before neither blank nor digit opens a formula up to the next one on its line,
    `$$`, `\\(`, `\\[` and `\\begin{x}` open one up to their counterpart or a blank line. A fence lasts until it is
    closed, if only by a line with a handle after it ("``` [2]"), and none begins where a handle or a sentence follows;
    four blanks after a blank line begin code, four more than its text inside a list.

    If not `kindly`, it is read as a renderer reads, to which a fence is a fence, and formulas are prose.

    `sure` is False from where another reader of the same text may disagree on which lines a fence encloses. What is
    safe only inside code must not rely on a fence from then on.
    """

    def __init__(self, *, kindly: bool = True) -> None:
        self._kindly = kindly
        self._formula_opened = False  # as others may read it, where formulas are prose
        self.state: State = "prose"
        self.sure = True
        # The line so far:
        self._lead = True  # nothing but blanks and the marks of lists and quotes
        self._column = 0
        self._begun = ""  # what may become the mark of a list or a fence
        self._quoted = self._listed = False
        self._after_gap = True  # the line before was blank, or there was none
        self._returned = False  # "\n" after "\r" ends no line of its own
        self._item = 0  # where the text of the last list item begins
        self._lists = False
        # The code or formula that is open:
        self._mark = "`"
        self._length = 0
        self._indent = 0
        self._in_quote = False
        self._opening = False  # the run that opens is still growing
        self._may_fence = False
        self._info = ""  # what stands after a run of backticks that may open a fence
        self._run = 0
        self._phase: Literal["info", "lead", "run", "tail", "handle", "text"] = "text"
        self._closer = ""
        self._tail = ""

    def mask(self, text: str) -> str:
        """The text with every character of code and formulas hidden, as long as it was.

        Marks().mask("see `a[0]` [1]") -> "see \\0\\0\\0\\0\\0\\0 [1]"
        """
        shown: list[str] = []
        at = 0
        while at < len(text):
            end, is_prose = self._stretch(text, at)
            shown.append(text[at:end] if is_prose else HIDDEN * (end - at))
            at = end
        return "".join(shown)

    def surely_code(self, text: str, at: int) -> int:
        """Where the lines of code end that begin at `at` and that every reader takes for code; these are now read."""
        while at < len(text):
            if self._lead and text[at] not in _BLANK + _NEWLINE:
                self._settle(text[at])
            if self.state == "fence" and self._phase == "lead" and text[at] not in _BLANK + _NEWLINE:
                self.sure = self.sure and self._column >= self._indent
            in_fence = self.state == "fence" and self._phase != "info"
            if not self.sure or not (in_fence or (self.state == "indented" and not self._lists)):
                return at
            at, _ = self._stretch(text, at)
        return at

    @property
    def at_line_start(self) -> bool:
        """Whether nothing but blanks and marks of lists and quotes stands before in the line."""
        return self._lead and not self._begun

    def _stretch(self, text: str, at: int) -> tuple[int, bool]:
        """Read on while nothing changes: where that ends, and whether it is prose."""
        skip = None
        if self.state == "prose" and not self._lead:
            skip = _PLAIN.match(text, at)
        elif (self.state == "indented" and not self._lead) or (
            self.state == "fence" and self._phase in ("text", "info")
        ):
            skip = None if self._opening else _LINE.match(text, at)
        elif self.state == "code" and not self._opening and not self._run:
            skip = None if self._reads_info else _CODE.match(text, at)
        if skip:
            self._returned = False
            self._doubt_table(skip[0])
            return skip.end(), self.state == "prose"
        return at + 1, self._read(text[at])

    def _doubt_table(self, text: str) -> None:
        """Some read the line that opens a fence as one of a table."""
        opens = self._may_fence if self.state == "code" else self.state == "fence" and self._phase == "info"
        self.sure = self.sure and not (opens and "|" in text)

    def _read(self, char: str) -> bool:
        if char in _NEWLINE:
            if not (char == "\n" and self._returned):
                self._end_line()
            self._returned = char == "\r"
            return self.state == "prose"
        self._returned = False
        self._settle(char)
        self._doubt_table(char)
        match self.state:
            case "prose":
                return self._read_prose(char)
            case "fence":
                return self._read_fence(char)
            case "code":
                return self._read_code(char)
            case "math":
                self._read_math(char)
            case "dollar":
                self._open_formula("$$")
            case "escape":
                self._read_escaped(char)
            case "begin":
                self._tail += char
                if char == "}":
                    self._open_formula("\\end" + self._tail[len("begin") :])
            case "indented":
                self._lead = self._lead and char in _BLANK
                self._count(char)
        return False

    def _settle(self, char: str) -> None:
        """Decide what the next character has to be known for."""
        if self.state == "fence" and self._phase == "lead" and self._in_quote and not self._quoted:
            if char not in _BLANK + ">":  # the quote is over, and its code with it
                self.state, self.sure = "prose", False
        elif self.state == "code" and char != "`":
            self._settle_code()
        elif self.state == "dollar" and char != "$":
            self.state = "prose"
            if char not in _BLANK and not char.isdigit():
                self._open_formula("$")
        elif self.state == "bracket":
            self.state = "prose"
            if not char.isdigit():
                self._open_formula("\\]")
        elif self.state == "begin" and not ((char == "}" and "{" in self._tail) or _BEGIN.fullmatch(self._tail + char)):
            self.state = "prose"
        elif self._lead and char not in _BLANK and self.state in ("prose", "indented") and not self._begun:
            self._settle_indented(char)

    def _settle_indented(self, char: str) -> None:
        if self._quoted or self._listed:
            return
        if self._after_gap and self._column == 0 and not (char in "-*+" or char.isdigit()):
            self._item = 0
        was_code = self.state == "indented"
        is_code = (was_code or self._after_gap) and self._column >= self._item + 4
        self.state = "indented" if is_code else "prose"

    def _settle_code(self) -> None:
        if self._opening:
            self._opening = False
            self._may_fence = self._may_fence and self._length >= 3
        elif self._run == self._length:
            self.state = "prose"
        self._run = 0

    def _read_prose(self, char: str) -> bool:
        lead, starts, self._lead = self._lead, self.at_line_start, False
        if char in "`$\\":
            self._begun = ""
        if char == "`":
            self.state, self._mark, self._length, self._run = "code", char, 1, 0
            self._opening, self._may_fence, self._info = True, starts, ""
            return False
        if char in "$\\":
            self.state = "dollar" if char == "$" else "escape"
            return False
        if lead:
            self._read_lead(char)
        return self.state == "prose"

    def _read_lead(self, char: str) -> None:
        """Read what may be indentation, the mark of a quote or list item, or a fence of tildes."""
        begun, self._begun = self._begun + char, ""
        if char in _BLANK:
            if _ITEM.fullmatch(begun[:-1]):
                self._listed = self._lists = True
                self._item = self._column + len(begun)
            self._count(char)
            self._lead = len(begun) == 1 or self._listed
        elif char == ">" and len(begun) == 1:
            self._quoted = self._lead = True
            self._column = 0
        elif begun == "~~~":
            self.state, self._mark, self._length, self._opening = "fence", "~", 3, True
            self._open_fence()
        elif _FOOTNOTE.fullmatch(begun):
            self._lists = self._listed = self._lead = True
            self._item = 0
        elif _ITEM.fullmatch(begun) or _ITEM_BEGUN.fullmatch(begun) or begun == "[":
            self._begun, self._lead = begun, True

    def _count(self, char: str) -> None:
        self._column += 4 - self._column % 4 if char == "\t" else 1

    def _open_fence(self) -> None:
        self._phase, self._indent, self._in_quote = "info", self._column, self._quoted
        self.sure = self.sure and not (self._quoted or self._listed or self._indent >= 4 or self._formula_opened)

    def _read_fence(self, char: str) -> bool:
        """Whether it may be prose nevertheless: a handle after the end of the code."""
        match self._phase:
            case "info":
                self._opening = self._opening and char == self._mark
                self._length += self._opening
            case "lead" if char in _BLANK:
                self._count(char)
            case "lead" if char == ">" and self._in_quote:
                self._quoted = True
            case "lead":
                self._read_fence_lead(char)
            case "run" if char == self._mark:
                self._run += 1
            case "run" | "tail":
                may_end = self._kindly and self._run >= self._length
                self._phase = "tail" if char in _BLANK else "handle" if char == "[" and may_end else "text"
                return may_end and self._phase != "text"
            case "handle":
                self._phase = "text"
                if char.isdigit() or char == "^":
                    self.state, self._lead = "prose", False
                    return True
            case "text":
                pass
        return False

    def _read_fence_lead(self, char: str) -> None:
        """Read the first character of a line inside a fence, which may begin its end."""
        self.sure = self.sure and self._column >= self._indent
        closes = char == self._mark and (
            self._column <= max(3, self._indent + 3) if self._indent else self._column <= 3
        )
        if closes and self._column > 3 and self._indent <= 3:
            self.sure = False
        self._phase, self._run = ("run", 1) if closes else ("text", 0)

    def _read_code(self, char: str) -> bool:
        if char == "`" and self._opening:
            self._length += 1
        elif char == "`":
            self._run += 1
            self._may_fence = False
        elif self._reads_info:
            return self._read_info(char)
        return False

    @property
    def _reads_info(self) -> bool:
        return self._kindly and self._may_fence and len(self._info) < _INFO

    def _read_info(self, char: str) -> bool:
        """Read what stands after a fence: prose, if nothing but a blank stands between and it is said to the reader."""
        self._info += char
        if self._info[0] not in _BLANK + "[":
            return False
        if _SAID.search(self._info):
            self.state = "prose"
        return self.state == "prose" or not self._info.strip(_BLANK + "[^")

    def _read_math(self, char: str) -> None:
        self._lead = self._lead and char in _BLANK
        if self._closer == "$" and self._tail == "\\":
            self._tail = ""
            return
        self._tail = (self._tail + char)[-max(len(self._closer), 1) :]
        if self._tail == self._closer:
            self.state = "prose"

    def _read_escaped(self, char: str) -> None:
        self.state = "prose"
        if not self._kindly:
            self._formula_opened = char in "[(" or (self._formula_opened and char not in "])")
        elif char == "(":
            self._open_formula("\\)")
        elif char == "[":
            self.state = "bracket"
        elif char == "b":
            self.state, self._tail = "begin", char

    def _open_formula(self, closer: str) -> None:
        self.state, self._closer, self._tail = ("math" if self._kindly else "prose"), closer, ""
        self._formula_opened ^= closer == "$$"

    def _end_line(self) -> None:
        if self.state == "code":
            self._settle_code()
        if self.state == "code" and self._may_fence and not (self._kindly and _SAID.search(self._info + " ")):
            self.state = "fence"
            self._open_fence()
        elif self.state == "fence" and self._phase in ("run", "tail") and self._run >= self._length:
            self.state = "prose"
        elif self.state == "math" and not (self._closer == "$" or self._lead):
            pass
        elif self.state not in ("fence", "indented"):
            self.state = "prose"
        if self._lists_empty_item():
            self._lists = True
        self._phase, self._opening, self._run = "lead", False, 0
        self._after_gap = self._lead and not (self._quoted or self._listed or self._begun)
        self._lead, self._column, self._begun = True, 0, ""
        self._quoted = self._listed = False

    def _lists_empty_item(self) -> bool:
        return self._lead and bool(_ITEM.fullmatch(self._begun))

"""Which characters of Markdown are code or formulas. Pure.

Knows how Markdown is read, nothing of citations.
"""

import re
from typing import NamedTuple

from markdown_it import MarkdownIt

HIDDEN = "\x01"
"""In place of a character of code or of a formula."""

_SPECIAL = re.compile(r"`+|\$\$?|\\begin\{[a-zA-Z*]{1,24}\}|\\[\s\S]?")
_BACKTICKS = re.compile(r"`+")
_DOLLARS = re.compile(r"\$(?![\s\d$])(?:\\.|[^$\\\n])*\$")
_LINE_END = re.compile(r"[\r\n]|\Z")
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n")
_LINE_START = re.compile(r"(?:^|\n)[ \t>]*\Z")
# What nobody writes after a fence: a citation or a sentence. A citation right after the end of code is meant for it.
_SENTENCE = re.compile(r"\[\^?[0-9]|(?:^|[ \t])[^\W\d_]+[ \t]+[\w'’-]+,?[ \t]+[\w'’-]+[ \t.,;:!?]")

_PARSER = MarkdownIt("commonmark").enable("table")


_BLOCK = re.compile(r"^[ \t]*(?:[-*+>|\[]|\d{1,9}[.)]|`{3}|~{3})|^(?: {4}|\t)", re.MULTILINE)


class Masked(NamedTuple):
    """A text with its code and formulas hidden, as long as it was."""

    text: str
    is_open: bool
    """Whether a formula of several lines has not ended."""


def is_sentence(after_fence: str) -> bool:
    """Whether the text after "```" is meant for the reader, so that it opens no code."""
    return bool(_SENTENCE.search(f"{after_fence} "))


def opens_block(text: str) -> bool:
    """Whether a line may begin a list, a quotation, a table or code."""
    return bool(_BLOCK.search(text))


def mask(text: str, *, formulas: bool = True) -> Masked:
    """Hide code between backticks and formulas.

    mask("see `a[0]` [1]").text -> "see \\1\\1\\1\\1\\1\\1 [1]"

    Models forget to close: a backtick opens code up to the same run of backticks or the end of its line, and `$$`,
    `\\(`, `\\[` and `\\begin{x}` open a formula up to their counterpart or a blank line.
    """
    parts, at, is_open = [], 0, False
    while special := _SPECIAL.search(text, at):
        start = special.start()
        end, is_open = _code_end(text, special), False
        if special[0][0] != "`" and formulas:
            end, is_open = _formula_end(text, special)
        parts += [text[at:start], HIDDEN * (end - start)]
        at = end
    return Masked("".join([*parts, text[at:]]), is_open)


def _code_end(text: str, special: re.Match[str]) -> int:
    end, line_end = special.end(), _LINE_END.search(text, special.end())
    stop = line_end.start() if line_end else len(text)
    if special[0][0] != "`":
        return end
    if len(special[0]) >= 3 and _LINE_START.search(text, 0, special.start()) and is_sentence(text[end:stop]):
        return end
    return next((run.end() for run in _BACKTICKS.finditer(text, end, stop) if run[0] == special[0]), stop)


def _formula_end(text: str, special: re.Match[str]) -> tuple[int, bool]:
    mark, end = special[0], special.end()
    if mark == "$":
        formula = _DOLLARS.match(text, special.start())
        return (formula.end() if formula else end), False
    closers = {"$$": "$$", "\\(": "\\)", "\\[": "" if text[end : end + 1].isdigit() else "\\]"}
    closer = mark.replace("begin", "end") if mark.startswith("\\begin") else closers.get(mark, "")
    if not closer:
        return end, False
    blank_line = _BLANK_LINE.search(text, end)
    stop = blank_line.start() if blank_line else len(text)
    close = text.find(closer, end, stop)
    return (close + len(closer), False) if close >= 0 else (stop, not blank_line)


def mask_code(document: str) -> str:
    """Hide what a renderer shows as code in a whole text: blocks, and what stands between backticks."""
    lines = document.splitlines(keepends=True)
    code = [
        range(*token.map) for token in _PARSER.parse(document) if token.type in ("fence", "code_block") and token.map
    ]
    hidden = {number for block in code for number in block}
    return "".join(
        HIDDEN * len(line) if number in hidden else mask(line, formulas=False).text for number, line in enumerate(lines)
    )

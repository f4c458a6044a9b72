"""Which characters of Markdown are code or formulas. Pure; knows nothing of citations."""

import re
from collections import Counter

from markdown_it import MarkdownIt

HIDDEN = "\x01"
"""In place of a character of code or of a formula."""

_SPECIAL = re.compile(r"`+|\$\$|\$(?![\s\d$])(?:\\.|[^$\\\n])*\$|\\begin\{[a-zA-Z*]{1,24}\}|\\\[(?!\d)|\\[\s\S]?")
_LINE = re.compile(r"[^\r\n]*")
_BACKTICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n|\Z")
_LINE_START = re.compile(r"(?:^|\n)[ \t>]*\Z")
# What nobody writes after a fence: a citation or a sentence. A citation right after the end of code is meant for it.
_SENTENCE = re.compile(r"\[\^?[0-9]|(?:^|[ \t])[^\W\d_]+[ \t]+[\w'’-]+,?[ \t]+[\w'’-]+[ \t.,;:!?]")
_BLOCK = re.compile(r"^[ \t]*(?:[-*+>|\[]|\d{1,9}[.)]|`{3}|~{3})|^(?: {4}|\t)", re.MULTILINE)
_PARSER = MarkdownIt("commonmark").enable("table")


def is_sentence(after_fence: str) -> bool:
    """Whether the text after "```" is meant for the reader, so that it opens no code."""
    return bool(_SENTENCE.search(f"{after_fence} "))


def adds_block(before: str, after: str) -> bool:
    """Whether lines begin a list, a quotation, a table or code that did not begin one before."""
    return bool(Counter(_BLOCK.findall(after)) - Counter(_BLOCK.findall(before)))


def mask(text: str, *, formulas: bool = True) -> tuple[str, bool]:
    """The text with code between backticks and formulas hidden, and whether a formula of several lines is open.

    mask("see `a[0]` [1]") -> ("see \\1\\1\\1\\1\\1\\1 [1]", False)

    Models forget to close: a backtick opens code up to the same run of backticks or the end of its line, and `$$`,
    `\\(`, `\\[` and `\\begin{x}` open a formula up to their counterpart or a blank line.
    """
    parts, at, is_open = [], 0, False
    while special := _SPECIAL.search(text, at):
        end, is_open = special.end(), False
        closer = {"$$": "$$", "\\(": "\\)", "\\[": "\\]"}.get(special[0], special[0].replace("\\begin", "\\end"))
        if special[0][0] == "`":
            end = _code_end(text, special)
        elif (formulas and closer != special[0]) or (special[0] == "$$" and formulas):
            blank_line = _BLANK_LINE.search(text, end)
            stop = blank_line.start() if blank_line else len(text)
            close = text.find(closer, end, stop)
            end, is_open = (close + len(closer), False) if close >= 0 else (stop, stop == len(text))
        parts += [text[at : special.start()], HIDDEN * (end - special.start())]
        at = end
    return "".join([*parts, text[at:]]), is_open


def _code_end(text: str, opening: re.Match[str]) -> int:
    line = _LINE.match(text, opening.end())
    if not line or (len(opening[0]) > 2 and is_sentence(line[0]) and _LINE_START.search(text, 0, opening.start())):
        return opening.end()
    runs = _BACKTICKS.finditer(text, opening.end(), line.end())
    return next((run.end() for run in runs if run[0] == opening[0]), line.end())


def mask_code(document: str) -> str:
    """The document with what a renderer shows as code hidden: blocks, and what stands between backticks."""
    code = [token.map for token in _PARSER.parse(document) if token.type in ("fence", "code_block") and token.map]
    hidden = {number for lines in code for number in range(*lines)}
    lines = enumerate(document.splitlines(keepends=True))
    return "".join(HIDDEN * len(line) if n in hidden else mask(line, formulas=False)[0] for n, line in lines)

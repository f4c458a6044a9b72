"""Mask the code and the formulas in Markdown. Pure; knows nothing of citations but their shape."""

import re
from collections import Counter

from markdown_it import MarkdownIt

from citewell.answer.writing.references import starts_with_citation
from citewell.text import split_units

HIDDEN = "\x01"
"""The character that replaces each character of code or of a formula."""

_MASK_START = re.compile(r"`+|\$\$|\$(?![\s\d$])(?:\\.|[^$\\\n])*\$|\\begin\{[a-zA-Z*]{1,24}\}|\\\[(?!\d)|\\[\s\S]?")
_LINE = re.compile(r"[^\r\n]*")
_BACKTICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n|\Z")
_LINE_START = re.compile(r"(?:^|\n)[ \t>]*\Z")
# After a fence, a citation or a sentence is no language name. A citation after the closing fence is for the code.
_SENTENCE_OR_CITATION = re.compile(r"\[\^?[0-9]|(?:^|[ \t])[^\W\d_]+[ \t]+[\w'’-]+,?[ \t]+[\w'’-]+[ \t.,;:!?]")
_BLOCK_START = re.compile(r"^[ \t]*(?:[-*+>|\[]|\d{1,9}[.)]|`{3}|~{3})|^(?: {4}|\t)", re.MULTILINE)
_PARSER = MarkdownIt("commonmark").enable("table")


def is_sentence(after_fence: str) -> bool:
    """Whether the text after a fence is a sentence or a citation for the reader, so that the fence opens no code."""
    return bool(_SENTENCE_OR_CITATION.search(f"{after_fence} ")) or starts_with_citation(after_fence)


def adds_block(before: str, after: str) -> bool:
    """Whether more lines of `after` than of `before` begin a list, a quotation, a table or code."""
    return bool(Counter(_BLOCK_START.findall(after)) - Counter(_BLOCK_START.findall(before)))


def mask(text: str, *, formulas: bool = True) -> tuple[str, bool]:
    """The text with inline code and formulas replaced by `HIDDEN`, and whether a formula is still open at its end.

    mask("see `a[0]` [1]") -> ("see \\1\\1\\1\\1\\1\\1 [1]", False)

    LLMs forget to close: code reaches from a backtick to the same run of backticks or the end of its line, a formula
    from `$$`, `\\(`, `\\[` or `\\begin{x}` to its counterpart or a blank line.
    """
    parts, start, is_open = [], 0, False
    while opening := _MASK_START.search(text, start):
        end, is_open = opening.end(), False
        closer = {"$$": "$$", "\\(": "\\)", "\\[": "\\]"}.get(opening[0], opening[0].replace("\\begin", "\\end"))
        if opening[0][0] == "`":
            end = _find_code_end(text, opening)
        elif formulas and (closer != opening[0] or opening[0] == "$$"):
            blank_line = _BLANK_LINE.search(text, end)
            stop = blank_line.start() if blank_line else len(text)
            close = text.find(closer, end, stop)
            end, is_open = (close + len(closer), False) if close >= 0 else (stop, stop == len(text))
        parts += [text[start : opening.start()], HIDDEN * (end - opening.start())]
        start = end
    return "".join([*parts, text[start:]]), is_open


def _find_code_end(text: str, opening: re.Match[str]) -> int:
    line = _LINE.match(text, opening.end())
    if not line or (len(opening[0]) > 2 and is_sentence(line[0]) and _LINE_START.search(text, 0, opening.start())):
        return opening.end()
    runs = _BACKTICKS.finditer(text, opening.end(), line.end())
    return next((run.end() for run in runs if run[0] == opening[0]), line.end())


def mask_code(document: str) -> str:
    """The document with code blocks and inline code replaced by `HIDDEN`."""
    blocks = [token.map for token in _PARSER.parse(document) if token.type in ("fence", "code_block") and token.map]
    code_lines = {number for block in blocks for number in range(*block)}
    lines = document.splitlines(keepends=True)
    return "".join(
        HIDDEN * len(line) if n in code_lines else mask(line, formulas=False)[0] for n, line in enumerate(lines)
    )


def ends_in_block(text: str) -> bool:
    """Whether a citation marker right after the text would become part of a code block, formula or table."""
    kinds = [unit.kind for unit in split_units(text)[-1:]]
    return "\n" in text and (kinds in (["code"], ["math"], ["row"]) or text.rstrip().endswith(("```", "~~~")))

"""Read plain text as paragraphs, and source code as code blocks."""

import re
from collections.abc import Iterator

from citewell.models import Block, ParsedDocument

_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_LONG_BLOCK_LINES = 60  # a code block ends at the next blank line after this many, or after twice as many

LANGUAGES = {
    ".c": "c", ".cc": "cpp", ".cpp": "cpp", ".cs": "csharp", ".css": "css", ".go": "go", ".h": "c", ".hpp": "cpp",
    ".java": "java", ".js": "js", ".jsx": "jsx", ".kt": "kotlin", ".lua": "lua", ".php": "php", ".pl": "perl",
    ".py": "python", ".r": "r", ".rb": "ruby", ".rs": "rust", ".scala": "scala", ".sh": "bash", ".sql": "sql",
    ".swift": "swift", ".ts": "ts", ".tsx": "tsx",
}  # fmt: skip


def read_text(source: str, *, fallback_title: str) -> ParsedDocument:
    """Paragraphs between blank lines; line numbers stay the same."""
    blocks = [Block("text", match.start(), min(match.end() + 1, len(source))) for match in _PARAGRAPH.finditer(source)]
    return ParsedDocument(fallback_title, source, tuple(blocks))


def read_code(source: str, *, fallback_title: str, language: str) -> ParsedDocument:
    """The file as fenced blocks, a new one at each top-level definition; `lines` maps to the file's line numbers."""
    fence = "```"
    while fence in source:
        fence += "`"
    text = ""
    blocks: list[Block] = []
    lines: list[int] = []
    for first, code in _split_definitions(source.split("\n")):
        start = len(text)
        text += f"{fence}{language}\n" + "\n".join(code) + f"\n{fence}\n\n"
        blocks.append(Block("code", start, len(text) - 1))
        lines += [first, *range(first, first + len(code)), first + len(code) - 1, first + len(code) - 1]
    return ParsedDocument(fallback_title, text, tuple(blocks), lines=(*lines, lines[-1]) if lines else ())


def _split_definitions(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines in blocks, each with the number of its first line; split before lines that are not indented."""
    start = 0
    for number in range(1, len(lines) + 1):
        long = number - start >= _LONG_BLOCK_LINES
        after_blank = number < len(lines) and not lines[number - 1].strip()
        top_level = after_blank and lines[number][:1] not in ("", " ", "\t", "}", ")", "]")
        cut = number == len(lines) or top_level or (long and after_blank) or number - start >= 2 * _LONG_BLOCK_LINES
        if not cut:
            continue
        while start < number and not lines[start].strip():
            start += 1
        end = number
        while end > start and not lines[end - 1].strip():
            end -= 1
        if end > start:
            yield start + 1, lines[start:end]
        start = number

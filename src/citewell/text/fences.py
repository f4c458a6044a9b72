"""Finds Markdown code fences, also inside quotes and list items. Pure."""

import re

FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
"""The opening line of a fenced code block; the group is its row of backticks or tildes."""


def closes_fence(line: str, fence: str) -> bool:
    """Whether a line ends the code block that `fence` opened."""
    bare = line.strip(" \t>")
    return bare.startswith(fence) and not bare.strip(fence[0])

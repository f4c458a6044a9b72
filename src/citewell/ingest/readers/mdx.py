"""Markdown and MDX as a reader of the built page would see it, line for line.

`plain_markdown` blanks what a page does not show (frontmatter, imports, JSX tags, comments) and keeps
what it does. Every line stays on its line, so line 40 of the result is line 40 of the file. Code,
fenced or inline, is never touched. This room knows nothing of headings or blocks: `markdown.py` does.
"""

import io
import re
from collections.abc import Iterator

from citewell.text import FENCE, closes_fence

_ESM = re.compile(
    r"import\s+(?:[\w*${}\s,]+\s+from\s+)?['\"]|import\s+[\w*$,\s]*\{[^}]*$"
    r"|export\s+(?:default|const|let|var|function|async|class|\{|\*)"
)
_ADMONITION = re.compile(
    r"^(?P<indent>[ \t>]*):::+[ \t]*(?:[\w-]+)?(?:\[(?P<label>[^\]]*)\])?[ \t]*(?:\{[^}]*\})?(?P<title>.*)$"
)
_BLOCK = re.compile(r"^(?P<indent>[ \t>]*)///+[ \t]*(?:[\w-]+)?[ \t]*(?:\|[ \t]*(?P<title>.*))?$")
_INDENTED_BLOCK = re.compile(r"^(?P<indent> *)(?:!!!|\?\?\?\+?|===)[ \t]*[\w -]*(?:\"(?P<title>.*)\")?[ \t]*$")
_LABEL = re.compile(r"^\([\w:.-]+\)=$")  # MyST's name for the heading that follows
_HEADING_ID = re.compile(
    r"^([ \t>]*#{1,6}[ \t].*?)[ \t]*(?:\{#(?P<id>[^}\s]+)\}|\{/\*[ \t]*#(?P<mdx_id>[^*\s]+)[ \t]*\*/\})[ \t]*$"
)
_LINK = re.compile(r"!?\[((?:[^\[\]`\n]|`[^`\n]*`|\n(?![ \t]*\n)){0,500})\]\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)?)\)")
_TAG_OPEN = re.compile(r"</?(?P<name>[A-Za-z][\w.-]*)(?=[\s/>])|</?>")
_SHOWN_ATTRIBUTE = re.compile(
    r"\b(?:label|title|alt|caption|summary|description|term|heading)"
    r"\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|\{\s*[\"'`]([^\"'`]*)[\"'`]\s*\})"
)
_INTERESTING = re.compile(r"[`<{\[!\\]")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_LONGEST_TAG = 4000


def split_frontmatter(source: str) -> tuple[str, str]:
    """The YAML between the opening `---` lines, and the source with those lines blanked."""
    match = re.match(r"---[ \t]*\n(?:(.*?)\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", source, re.DOTALL)
    if not match:
        return "", source
    return match.group(1) or "", "\n" * match.group(0).count("\n") + source[match.end() :]


def plain_markdown(source: str) -> str:
    """The source without imports, JSX tags and comments, every line still on its line."""
    if "!!!" in source or "???" in source or '=== "' in source:
        source = _unindented(source)
    return "".join(text if is_code else _without_markup(text) for is_code, text in _regions(source))


def heading_id(line: str) -> str:
    """The id that a heading line gives itself: "## Setup {#set-up}" -> "set-up"."""
    match = _HEADING_ID.match(line)
    return (match["id"] or match["mdx_id"]) if match else ""


def _unindented(source: str) -> str:
    """MkDocs' `!!! note "Title"` blocks: the title, then the content without its extra indentation."""
    out: list[str] = []
    inside: list[int] = []
    fence = ""
    for line in source.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        while inside and line.strip() and indent < inside[-1]:
            inside.pop()
        shown = line[4 * len(inside) :] if line.strip() else line
        if fence:
            fence = "" if shown.strip() == fence else fence
        elif opening := FENCE.match(shown):
            fence = opening["fence"]
        elif block := _INDENTED_BLOCK.match(line):
            inside.append(len(block["indent"]) + 4)
            shown = _titled(shown[: len(shown) - len(shown.lstrip(" "))], block["title"] or "")
        out.append(shown)
    return "\n".join(out)


def _titled(indent: str, title: str) -> str:
    """A block's title as a bold line, as authors write headings that are none."""
    bare = title.strip().strip("*").strip()
    return f"{indent}**{bare}**" if bare else indent.rstrip()


def _regions(source: str) -> Iterator[tuple[bool, str]]:
    """Fenced code and what lies between, in order; joined they are the source."""
    prose: list[str] = []
    code: list[str] = []
    fence = ""
    for line in io.StringIO(source, newline="\n"):  # as CommonMark: a line ends at "\n" alone
        if fence:
            code.append(line)
            if closes_fence(line.rstrip("\n"), fence):
                yield True, "".join(code)
                fence, code = "", []
        elif opening := FENCE.match(line.rstrip("\n")):
            yield False, "".join(prose)
            fence, prose, code = opening["fence"], [], [line]
        else:
            prose.append(line)
    yield bool(fence), "".join(code or prose)


def _without_markup(text: str) -> str:
    lines = "".join(_scan(_without_esm(text))).split("\n")
    return "\n".join(_without_directive(line) for line in lines)


def _without_directive(line: str) -> str:
    """`:::tip Watch out` becomes "**Watch out**", `## Title {#id}` loses the id."""
    if ":::" in line and (match := _ADMONITION.match(line)):
        return _titled(match["indent"], match["label"] or match["title"])
    if line.endswith(")=") and _LABEL.match(line):
        return ""
    if "///" in line and (match := _BLOCK.match(line)):
        return _titled(match["indent"], match["title"] or "")
    return _HEADING_ID.sub(r"\1", line) if "#" in line else line


def _without_esm(text: str) -> str:
    """Blank every `import` and `export` statement; one ends where its brackets do."""
    if "import" not in text and "export" not in text:
        return text
    out: list[str] = []
    depth = 0
    inside = False
    for line in text.split("\n"):
        if not inside and _ESM.match(line):
            inside, depth = True, 0
        if not inside:
            out.append(line)
            continue
        depth += sum(line.count(mark) for mark in "([{") - sum(line.count(mark) for mark in ")]}")
        out.append("")
        if depth <= 0:
            inside = False
    return "\n".join(out)


def _scan(text: str) -> Iterator[str]:
    """The text piece by piece, with markup replaced by what it shows."""
    position = 0
    while match := _INTERESTING.search(text, position):
        start = match.start()
        yield text[position:start]
        end, shown = _markup_at(text, start)
        yield shown
        position = end
    yield text[position:]


def _markup_at(text: str, start: int) -> tuple[int, str]:
    """Where the markup that begins at `start` ends, and what a reader sees of it."""
    match text[start]:
        case "\\":
            end = min(start + 2, len(text))
        case "`":
            end = _code_span_end(text, start)
        case "<" if text.startswith("<!--", start):
            return _comment(text, start, closing="-->")
        case "{" if text.startswith("{/*", start):
            return _comment(text, start, closing="*/}")
        case "<":
            return _tag(text, start)
        case "[" | "!" if link := _LINK.match(text, start):
            return link.end(), _link(link)
        case _:
            end = start + 1
    return end, text[start:end]


def _code_span_end(text: str, start: int) -> int:
    """The end of the inline code that opens here, or of its backticks where nothing closes it."""
    ticks = start
    while ticks < len(text) and text[ticks] == "`":
        ticks += 1
    run = text[start:ticks]
    paragraph = _BLANK_LINE.search(text, ticks)
    limit = paragraph.start() if paragraph else len(text)
    closing = ticks
    while (closing := text.find(run, closing, limit)) != -1:
        end = closing + len(run)
        if text[end : end + 1] != "`":
            return end
        while text[end : end + 1] == "`":
            end += 1
        closing = end
    return ticks


def _comment(text: str, start: int, *, closing: str) -> tuple[int, str]:
    end = text.find(closing, start)
    if end == -1:
        return start + 1, text[start]
    end += len(closing)
    if text[start] == "{" and _HEADING_ID.match(text[text.rfind("\n", 0, start) + 1 : end]):
        return end, text[start:end]  # `{/* #id */}` goes with its heading
    return end, _newlines(text[start:end])


def _link(link: re.Match[str]) -> str:
    """A link on the web stays; one inside the book is only its words, since its target moves."""
    if link[0][0] != "!" and re.match(r"\s*<?(?:https?:|mailto:)", link[2]):
        return link[0]
    return "".join(_scan(link[1]))


def _tag(text: str, start: int) -> tuple[int, str]:
    opening = _TAG_OPEN.match(text, start)
    end = _tag_end(text, opening.end()) if opening and opening["name"] else None
    if opening and not opening["name"]:
        return opening.end(), ""
    if not opening or end is None:
        return start + 1, text[start]
    tag, name = text[start:end], (opening["name"] or "").lower()
    if name in ("script", "style") and not tag.startswith("</"):
        closing = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, end)
        if not tag.endswith("/>") and closing:
            end = closing.end()
        return end, _newlines(text[start:end])
    shown = [next(filter(None, found.groups()), "") for found in _SHOWN_ATTRIBUTE.finditer(tag)]
    words = ": ".join(" ".join(part.split()) for part in shown if part.strip())
    if name == "summary":
        words = "**"  # before and after what it says
    elif words:
        words = f"**{words}** " if text[end : end + 1] not in ("", "\n") else f"**{words}**"
    gap = " " if name == "br" else ""
    return end, gap + words + _newlines(tag)


def _tag_end(text: str, position: int) -> int | None:
    """Just past the `>` that closes a tag; quotes and braces inside it may hold others."""
    depth = 0
    quote = ""
    for index in range(position, min(len(text), position + _LONGEST_TAG)):
        mark = text[index]
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "\"'" or (mark == "`" and depth):
            quote = mark
        elif mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
        elif mark == ">" and depth <= 0:
            return index + 1
        elif mark == "<" and depth <= 0:
            return None
    return None


def _newlines(text: str) -> str:
    return "\n" * text.count("\n")

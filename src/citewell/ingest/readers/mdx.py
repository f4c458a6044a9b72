"""Markdown and MDX as the built page shows it, line for line.

`plain_markdown` removes what a page does not show (frontmatter, imports, JSX tags, comments). Line numbers
stay the same: line 40 of the result is line 40 of the file. Fenced and inline code is never changed. This
module does not parse headings or blocks; `markdown.py` does.
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
_SLASH_BLOCK = re.compile(r"^(?P<indent>[ \t>]*)///+[ \t]*(?:[\w-]+)?[ \t]*(?:\|[ \t]*(?P<title>.*))?$")
_MKDOCS_BLOCK = re.compile(r"^(?P<indent> *)(?:!!!|\?\?\?\+?|===)[ \t]*[\w -]*(?:\"(?P<title>.*)\")?[ \t]*$")
_MYST_LABEL = re.compile(r"^\([\w:.-]+\)=$")  # a label for the heading that follows
_HEADING_ID = re.compile(
    r"^([ \t>]*#{1,6}[ \t].*?)[ \t]*(?:\{#(?P<id>[^}\s]+)\}|\{/\*[ \t]*#(?P<mdx_id>[^*\s]+)[ \t]*\*/\})[ \t]*$"
)
_LINK = re.compile(r"!?\[((?:[^\[\]`\n]|`[^`\n]*`|\n(?![ \t]*\n)){0,500})\]\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)?)\)")
_TAG_OPEN = re.compile(r"</?(?P<name>[A-Za-z][\w.-]*)(?=[\s/>])|</?>")
_VISIBLE_ATTRIBUTE = re.compile(
    r"\b(?:label|title|alt|caption|summary|description|term|heading)"
    r"\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|\{\s*[\"'`]([^\"'`]*)[\"'`]\s*\})"
)
_MARKUP_START = re.compile(r"[`<{\[!\\]")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_MAX_TAG_CHARACTERS = 4000


def split_frontmatter(source: str) -> tuple[str, str]:
    """The YAML between the opening `---` lines, and the source with those lines made blank."""
    match = re.match(r"---[ \t]*\n(?:(.*?)\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", source, re.DOTALL)
    if not match:
        return "", source
    return match.group(1) or "", "\n" * match.group(0).count("\n") + source[match.end() :]


def plain_markdown(source: str) -> str:
    """The source without imports, JSX tags and comments; line numbers stay the same."""
    if "!!!" in source or "???" in source or '=== "' in source:
        source = _dedent_mkdocs_blocks(source)
    return "".join(text if is_code else _without_markup(text) for is_code, text in _split_fenced_code(source))


def heading_id(line: str) -> str:
    """The explicit id of a heading line: "## Setup {#set-up}" -> "set-up"; "" if it has none."""
    match = _HEADING_ID.match(line)
    return (match["id"] or match["mdx_id"]) if match else ""


def _dedent_mkdocs_blocks(source: str) -> str:
    """MkDocs' `!!! note "Title"` blocks: the title, then the content without its extra indentation."""
    lines: list[str] = []
    block_indents: list[int] = []
    fence = ""
    for line in source.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        while block_indents and line.strip() and indent < block_indents[-1]:
            block_indents.pop()
        dedented = line[4 * len(block_indents) :] if line.strip() else line
        if fence:
            fence = "" if dedented.strip() == fence else fence
        elif opening := FENCE.match(dedented):
            fence = opening["fence"]
        elif block := _MKDOCS_BLOCK.match(line):
            block_indents.append(len(block["indent"]) + 4)
            dedented = _bold_title(dedented[: len(dedented) - len(dedented.lstrip(" "))], block["title"] or "")
        lines.append(dedented)
    return "\n".join(lines)


def _bold_title(indent: str, title: str) -> str:
    """A block's title as a bold line after the indent; without a title, a blank line."""
    bare = title.strip().strip("*").strip()
    return f"{indent}**{bare}**" if bare else indent.rstrip()


def _split_fenced_code(source: str) -> Iterator[tuple[bool, str]]:
    """The source in parts, in order: whether a part is fenced code, and its text."""
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
    lines = "".join(_replace_markup(_without_esm(text))).split("\n")
    return "\n".join(_without_directive(line) for line in lines)


def _without_directive(line: str) -> str:
    """`:::tip Watch out` becomes "**Watch out**", `## Title {#id}` loses the id."""
    if ":::" in line and (match := _ADMONITION.match(line)):
        return _bold_title(match["indent"], match["label"] or match["title"])
    if line.endswith(")=") and _MYST_LABEL.match(line):
        return ""
    if "///" in line and (match := _SLASH_BLOCK.match(line)):
        return _bold_title(match["indent"], match["title"] or "")
    return _HEADING_ID.sub(r"\1", line) if "#" in line else line


def _without_esm(text: str) -> str:
    """The text with `import` and `export` statements made blank; a statement ends where its brackets close."""
    if "import" not in text and "export" not in text:
        return text
    lines: list[str] = []
    depth = 0
    inside = False
    for line in text.split("\n"):
        if not inside and _ESM.match(line):
            inside, depth = True, 0
        if not inside:
            lines.append(line)
            continue
        depth += sum(line.count(bracket) for bracket in "([{") - sum(line.count(bracket) for bracket in ")]}")
        lines.append("")
        if depth <= 0:
            inside = False
    return "\n".join(lines)


def _replace_markup(text: str) -> Iterator[str]:
    """The text in pieces, with markup replaced by what the page shows for it."""
    position = 0
    while match := _MARKUP_START.search(text, position):
        start = match.start()
        yield text[position:start]
        end, visible = _markup_at(text, start)
        yield visible
        position = end
    yield text[position:]


def _markup_at(text: str, start: int) -> tuple[int, str]:
    """Where the markup that begins at `start` ends, and what the page shows for it."""
    match text[start]:
        case "\\":
            end = min(start + 2, len(text))
        case "`":
            end = _code_span_end(text, start)
        case "<" if text.startswith("<!--", start):
            return _skip_comment(text, start, closing="-->")
        case "{" if text.startswith("{/*", start):
            return _skip_comment(text, start, closing="*/}")
        case "<":
            return _replace_tag(text, start)
        case "[" | "!" if link := _LINK.match(text, start):
            return link.end(), _link_text(link)
        case _:
            end = start + 1
    return end, text[start:end]


def _code_span_end(text: str, start: int) -> int:
    """The end of the inline code that opens here; the end of its backticks if nothing closes it."""
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


def _skip_comment(text: str, start: int, *, closing: str) -> tuple[int, str]:
    end = text.find(closing, start)
    if end == -1:
        return start + 1, text[start]
    end += len(closing)
    if text[start] == "{" and _HEADING_ID.match(text[text.rfind("\n", 0, start) + 1 : end]):
        return end, text[start:end]  # `{/* #id */}` goes with its heading
    return end, _only_newlines(text[start:end])


def _link_text(link: re.Match[str]) -> str:
    """A web link stays; of a link inside the site only the text stays, since its target moves."""
    if link[0][0] != "!" and re.match(r"\s*<?(?:https?:|mailto:)", link[2]):
        return link[0]
    return "".join(_replace_markup(link[1]))


def _replace_tag(text: str, start: int) -> tuple[int, str]:
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
        return end, _only_newlines(text[start:end])
    values = [next(filter(None, match.groups()), "") for match in _VISIBLE_ATTRIBUTE.finditer(tag)]
    words = ": ".join(" ".join(value.split()) for value in values if value.strip())
    if name == "summary":
        words = "**"  # both tags, so that the summary is bold
    elif words:
        words = f"**{words}** " if text[end : end + 1] not in ("", "\n") else f"**{words}**"
    gap = " " if name == "br" else ""
    return end, gap + words + _only_newlines(tag)


def _tag_end(text: str, position: int) -> int | None:
    """The offset after the `>` that closes a tag; one inside quotes or braces does not. None if there is none."""
    depth = 0
    quote = ""
    for index in range(position, min(len(text), position + _MAX_TAG_CHARACTERS)):
        character = text[index]
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" or (character == "`" and depth):
            quote = character
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif character == ">" and depth <= 0:
            return index + 1
        elif character == "<" and depth <= 0:
            return None
    return None


def _only_newlines(text: str) -> str:
    return "\n" * text.count("\n")

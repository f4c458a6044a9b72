"""Inline markup of reStructuredText: roles, links and literals as the built page shows them.

`render_inline` works on a whole paragraph, since a role may continue on the next line, and returns as many
lines as it was given. This module knows nothing of blocks: `rst/__init__.py` does.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

# Every repetition that could start at each character is bounded: a hostile page is parsed in linear time.
_QUOTED = r"(?:[^`\\]|\\.)+"
_MARKUP = re.compile(
    r"``(?P<literal>(?:[^`]|`(?!`))+)``(?!`)"
    rf"|:(?P<role>(?:[A-Za-z][\w.+-]{{0,40}}:){{1,3}})`(?P<content>{_QUOTED})`(?!`)"
    rf"|(?P<inline_target>(?<!\w)_)?`(?P<phrase>{_QUOTED})`(?P<reference>__?(?!\w))?"
    r"|\[(?P<note>[\w#*][\w#.:+-]{0,80})\]_(?!\w)"
    r"|\|(?P<substitution>[^|\s][^|\n]{0,80})\|__?(?!\w)"
    r"|\\(?P<escaped>.)"
    r"|(?<![\w.:+-])(?P<word>[A-Za-z0-9]\w{0,80}?(?:[.:+-]\w{1,80}?){0,3})__?(?![\w`])",
    re.DOTALL,
)
_WEB_URL = re.compile(r"(?:https?|ftp|mailto):")
_WHITESPACE = re.compile(r"\s+")

_CALLABLES = frozenset({"func", "meth", "function", "method"})
_OBJECTS = _CALLABLES | {
    *("class", "attr", "mod", "data", "exc", "obj", "const", "any", "type", "var", "member", "macro", "enum"),
    *("struct", "deco", "property"),
}
_CODE = frozenset(
    {
        *("code", "file", "samp", "envvar", "option", "kbd", "command", "program", "literal", "makevar", "mimetype"),
        *("regexp", "confval", "keyword", "token", "bash", "python", "setting"),
    }
)


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of a file's labels: section titles and web URLs."""

    titles: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)


def render_inline(text: str, targets: Targets) -> str:
    """A paragraph as the built page shows it, with the same number of lines.

    render_inline("See :class:`~ray.data.Dataset` and :ref:`this <x>`.", Targets()) -> "See `Dataset` and this."
    """
    return _MARKUP.sub(lambda match: _keep_line_count(_render_markup(match, targets), match[0].count("\n")), text)


def render_role(name: str, content: str) -> str:
    """The text of a role, without the labels of a file: ("ref", "this <x>") -> "this"."""
    return _render_role(name.rpartition(":")[2].lower(), content, Targets())


def label_key(name: str) -> str:
    """A label as references are matched: lower case, single spaces."""
    return _WHITESPACE.sub(" ", name.strip().strip("`")).lower()


def _render_markup(match: re.Match[str], targets: Targets) -> str:  # noqa: PLR0911 (one for each kind of markup)
    match match.lastgroup:
        case "literal":
            return _inline_code(match["literal"])
        case "content":
            return _render_role(match["role"].rstrip(":").rpartition(":")[2].lower(), match["content"], targets)
        case "phrase" if match["inline_target"]:
            return match["phrase"]
        case "reference":
            return _render_reference(match["phrase"], targets)
        case "note":
            return f"[{match['note']}]"
        case "substitution":
            return f"|{match['substitution']}|"
        case "escaped":
            return match["escaped"].strip(" ")
        case "word" if label_key(match["word"]) in targets.links:
            return _render_reference(match["word"], targets)
        case _:
            return match[0]  # `x` alone stays as it is: most authors mean code by it


def _render_role(name: str, content: str, targets: Targets) -> str:  # noqa: PLR0911 (one for each kind of role)
    title, target = _split_target(content)
    if name in _OBJECTS:
        return _object_name(name, title, target)
    match name:
        case "math":
            return f"${content}$"
        case "ref" | "numref":
            return title if target else targets.titles.get(label_key(content), content.lstrip("!"))
        case "doc":
            return title if target else _page_name(content)
        case "pep" | "rfc":
            return title if target else f"{name.upper()} {content}"
        case "strong":
            return f"**{content}**"
        case "emphasis" | "dfn":
            return f"*{content}*"
        case _ if name in _CODE:
            return _inline_code(title)
        case _:
            return title


def _object_name(name: str, title: str, target: str) -> str:
    """A class, function or other object with a dotted name: as code, unless the author gave a title with spaces."""
    if target:
        return title if re.search(r"\s", title) else _inline_code(title)
    path = title.lstrip("!")
    path = path[1:].rpartition(".")[2] if path.startswith("~") else path.lstrip(".")
    return _inline_code(path + "()" if name in _CALLABLES and not path.endswith(")") else path)


def _render_reference(phrase: str, targets: Targets) -> str:
    """A web link becomes a Markdown link; of a link inside the site only the text stays, since its target moves."""
    title, target = _split_target(phrase)
    url = "".join(target.split()) if target else targets.links.get(label_key(phrase), "")
    if url.endswith("_"):
        url = targets.links.get(label_key(url[:-1].strip("`")), "")
    if not _WEB_URL.match(url):
        return title
    return f"[{title}]({url})" if title != url else url


def _split_target(content: str) -> tuple[str, str]:
    """ "text <target>" -> ("text", "target"); without a target, the content and ""."""
    opening = content.rfind("<") if content.endswith(">") else -1
    if opening == -1:
        return content, ""
    target = content[opening + 1 : -1]
    return content[:opening].rstrip() or target, target


def _page_name(path: str) -> str:
    """The name of a linked page without a title: its file name, or the folder of an index page."""
    parts = [part for part in path.strip("/").split("/") if part not in ("index", ".", "..")]
    return parts[-1] if parts else path


def _inline_code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _keep_line_count(text: str, newlines: int) -> str:
    """The text with so many newlines: each one lost with a link target replaces a space from the end."""
    missing = newlines - text.count("\n")
    if missing > 0 and "](" not in text:  # a link stays on one line
        parts = text.rsplit(" ", missing)
        text, missing = "\n".join(parts), missing - len(parts) + 1
    return "\n" * missing + text

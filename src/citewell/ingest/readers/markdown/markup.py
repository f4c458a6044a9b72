"""Inline markup of Markdown and MDX: tags, comments, links, entities and roles as the built page shows them.

`MarkupReplacer` works on prose of any length in linear time: what one search found, the next does not look for again.
It keeps line breaks and inline code, and knows nothing of blocks.
"""

import html
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from citewell.ingest.readers.markdown.tabs import tab_begin, tab_end

_MARKUP_START = re.compile(r"[`<{\[!\\&]")
_TEXT = r"((?:[^\[\]`\n]|`[^`\n]*`|\n(?![ \t]*\n)){0,500})"
_LINK = re.compile(rf"!?\[{_TEXT}\]\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)?)\)")
_REFERENCE = re.compile(rf"!?\[{_TEXT}\](?:\[([^\[\]\n]{{0,300}})\])?")
_WEB_URL = re.compile(r"\s*<?(?:https?:|mailto:)")
_API_NAME = re.compile(r"[A-Za-z_][\w.:-]*\.[\w.:-]+|[a-z_][\w-]{2,}|`[^`]+`")  # [`Field`][pydantic.Field]
_TAG_OPEN = re.compile(r"</?(?P<name>[A-Za-z][\w.-]{0,99})(?=[\s/>])|</?>")
_TAG_PARTS = re.compile(r"[\"'`{}<>]")
_MAX_TAG_CHARACTERS = 4000
_VALUE = r"\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|\{\s*[\"'`]([^\"'`]*)[\"'`]\s*\})"
_VISIBLE_ATTRIBUTE = re.compile(rf"\b(?:label|title|alt|caption|summary|description|term|heading){_VALUE}")
_TAB_LABEL = tuple(re.compile(rf"\b{name}{_VALUE}") for name in ("label", "title", "value"))
_TABS = frozenset({"tab", "tabitem"})
_ABBREVIATION_END = re.compile(r"([^<>]{1,200})</(?:abbr|dfn)\s*>", re.IGNORECASE)
_HEADING_ID_COMMENT = re.compile(r"\{/\*[ \t]*#[^*\s]+[ \t]*\*/\}[ \t]*(?=\n|\Z)")
_ATTRIBUTES = re.compile(
    r"(?<![^\s)\]`*>])\{:?[ \t]*(?:[#.][A-Za-z]|[a-z-]{1,30}=[\"'])[^{}\n]{0,200}\}(?![ \t]*(?:\n|\Z))"
)
_JSX_STRING = re.compile(
    r"\{[ \t]*(?:'((?:[^'\\\n]|\\.){0,2000})'|\"((?:[^\"\\\n]|\\.){0,2000})\"|`((?:[^`\\$]|\\.){0,20000})`)[ \t]*\}"
)
_ROLE = re.compile(r"\{(?P<name>[A-Za-z][\w:.+-]{0,40})\}`(?P<content>[^`\n]{1,500})`(?!`)")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_KEEP_ENTITY = re.compile(r"[\x00-\x1f\x7f-\x9f`*_\[\]\\#|~$\ud800-\udfff]")  # would be read as markup
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n)")
_TICKS = re.compile("`+")


@dataclass(frozen=True, slots=True)
class LinkTargets:
    """What a page says elsewhere: the URL of each reference, and the label of each tab by its value."""

    urls: Mapping[str, str] = field(default_factory=dict)
    tab_labels: Mapping[str, str] = field(default_factory=dict)


def replace_markup(text: str, targets: LinkTargets) -> str:
    """The text with markup replaced by what the page shows for it."""
    return "".join(_MarkupReplacer(text, targets).pieces())


def reference_key(label: str) -> str:
    """A link label as references are matched: lower case, single spaces."""
    return " ".join(label.lower().split())


class _MarkupReplacer:
    """Goes through a text once."""

    def __init__(self, text: str, targets: LinkTargets) -> None:
        self._text = text
        self._targets = targets
        self._ticks: dict[int, list[int]] | None = None
        self._paragraph_ends: list[int] = []
        self._never_closed: set[str] = set()
        self._tag_steps_left = 20_000 + 2 * len(text)

    def pieces(self) -> Iterator[str]:
        text, position = self._text, 0
        while match := _MARKUP_START.search(text, position):
            start = match.start()
            yield text[position:start]
            position, visible = self._markup_at(start)
            yield visible
        yield text[position:]

    def _markup_at(self, start: int) -> tuple[int, str]:  # noqa: PLR0911 (one for each kind of markup)
        """Where the markup that begins at `start` ends, and what the page shows for it."""
        text = self._text
        match text[start]:
            case "\\":
                end = min(start + 2, len(text))
            case "`":
                end = self._code_span_end(start)
            case "<" if text.startswith("<!--", start):
                return self._skip_comment(start, closing="-->")
            case "{":
                return self._replace_braces(start)
            case "<":
                return self._replace_tag(start)
            case "&" if entity := _ENTITY.match(text, start):
                return entity.end(), _entity_text(entity[0], text[max(start - 12, 0) : start])
            case "[" | "!" if link := _LINK.match(text, start):
                return link.end(), self._link_text(link[0], link[1], link[2])
            case "[" | "!" if reference := _REFERENCE.match(text, start):
                return self._replace_reference(reference)
            case _:
                end = start + 1
        return end, text[start:end]

    def _code_span_end(self, start: int) -> int:
        """The end of the inline code that opens here; the end of its backticks if nothing closes it."""
        text = self._text
        if self._ticks is None:
            self._ticks = defaultdict(list)
            for run in _TICKS.finditer(text):
                self._ticks[len(run[0])].append(run.start())
            self._paragraph_ends = [match.start() for match in _BLANK_LINE.finditer(text)]
        ticks = next(iter(_TICKS.finditer(text, start))).end()
        length = ticks - start
        same = self._ticks.get(length, [])
        following = bisect_left(same, ticks)
        if following == len(same):
            return ticks
        paragraph = bisect_right(self._paragraph_ends, ticks - 1)
        limit = self._paragraph_ends[paragraph] if paragraph < len(self._paragraph_ends) else len(text)
        return same[following] + length if same[following] < limit else ticks

    def _find_closing(self, closing: str, start: int) -> int:
        """Where the text has this next; -1 if it has none. A search that failed is not made again."""
        if closing in self._never_closed:
            return -1
        if (found := self._text.find(closing, start)) == -1:
            self._never_closed.add(closing)
        return found

    def _skip_comment(self, start: int, *, closing: str) -> tuple[int, str]:
        text = self._text
        if text[start] == "{" and (heading_id := _HEADING_ID_COMMENT.match(text, start)):
            return heading_id.end(), heading_id[0]  # it goes with its heading
        end = self._find_closing(closing, start)
        if end == -1:
            return start + 1, text[start]
        end += len(closing)
        return end, _only_newlines(text[start:end])

    def _replace_braces(self, start: int) -> tuple[int, str]:
        """`{'text'}` is text, {ref}`text <target>` too; `{#anchor}` and `{.class}` are not shown."""
        text = self._text
        if text.startswith("{/*", start):
            return self._skip_comment(start, closing="*/}")
        if string := _JSX_STRING.match(text, start):
            shown = next((group for group in string.groups() if group is not None), "")
            return string.end(), re.sub(r"\\([^\n])", lambda escape: " " if escape[1] in "nrt" else escape[1], shown)
        if role := _ROLE.match(text, start):
            from citewell.ingest.readers.rst import render_role  # noqa: PLC0415 (that package imports this one)

            return role.end(), render_role(role["name"], role["content"])
        if attributes := _ATTRIBUTES.match(text, start):  # at a line's end `page.py` removes them
            return attributes.end(), ""
        return start + 1, text[start]

    def _link_text(self, whole: str, words: str, url: str) -> str:
        """A web link stays; of a link inside the site only the text stays, since its target moves."""
        shown = replace_markup(words, self._targets)
        if whole[0] == "!" or not _WEB_URL.match(url):
            return shown
        return whole if shown == words else f"[{shown}]({url})"

    def _replace_reference(self, reference: re.Match[str]) -> tuple[int, str]:
        """`[text][label]` as a link to what the page defines for the label; names of an API are only text."""
        words, label = reference[1], reference[2]
        url = self._targets.urls.get(reference_key(label or words), "")
        if url:
            mark = "!" if reference[0].startswith("!") else ""
            return reference.end(), self._link_text(f"{mark}[{words}]({url})", words, url)
        is_index = self._text[reference.start() - 1 : reference.start()].isalnum()  # matrix[row][column]
        if label is not None and words and not is_index and _API_NAME.fullmatch(label or words):
            return reference.end(), replace_markup(words, self._targets)
        return reference.start() + 1, reference[0][0]

    def _replace_tag(self, start: int) -> tuple[int, str]:
        text = self._text
        opening = _TAG_OPEN.match(text, start)
        if opening and not opening["name"]:
            return opening.end(), ""
        end = self._tag_end(opening.end()) if opening else None
        if not opening or end is None:
            return start + 1, text[start]
        tag, name = text[start:end], opening["name"].lower()
        if name in ("script", "style") and not tag.startswith("</"):
            return self._skip_element(name, start, end)
        lines = _only_newlines(tag)
        if name in _TABS:
            return end, self._tab_mark(tag) + lines
        values = [next(filter(None, match.groups()), "") for match in _VISIBLE_ATTRIBUTE.finditer(tag)]
        words = ": ".join(" ".join(value.split()) for value in values if value.strip() and "{{" not in value)
        if name == "summary":
            words = "**"  # both tags, so that the summary is bold
        elif words and name in ("abbr", "dfn") and (content := _ABBREVIATION_END.match(text, end)):
            return content.end(), f"{content[1]} ({words}){lines}"
        elif words:
            words = f"**{words}** " if text[end : end + 1] not in ("", "\n") else f"**{words}**"
        gap = " " if name == "br" else ""
        return end, gap + words + lines

    def _skip_element(self, name: str, start: int, end: int) -> tuple[int, str]:
        closing = self._find_closing(f"</{name}", end) if self._text[end - 2] != "/" else -1
        if closing != -1 and (bracket := self._find_closing(">", closing)) != -1:
            end = bracket + 1
        return end, _only_newlines(self._text[start:end])

    def _tab_mark(self, tag: str) -> str:
        if tag.startswith("</"):
            return tab_end
        if tag.endswith("/>"):
            return ""
        labels = [next(filter(None, found.groups()), "") for name in _TAB_LABEL if (found := name.search(tag))]
        label = labels[0] if labels else ""
        return tab_begin(self._targets.tab_labels.get(label, label))

    def _tag_end(self, position: int) -> int | None:
        """The offset after the `>` that closes a tag; one inside quotes or braces does not. None if there is none."""
        text = self._text
        if self._tag_steps_left < 0:  # so many tags that never end: none of them is one
            return None
        depth = steps = 0
        quote = ""
        for part in _TAG_PARTS.finditer(text, position, position + _MAX_TAG_CHARACTERS):
            steps += 1
            character = part[0]
            if quote:
                quote = "" if character == quote else quote
            elif character in "\"'" or (character == "`" and depth):
                quote = character
            elif character == "{":
                depth += 1
            elif character == "}":
                depth -= 1
            elif character == ">" and depth <= 0:
                return part.end()
            elif character == "<" and depth <= 0:
                break
        self._tag_steps_left -= steps
        return None


def _entity_text(entity: str, before: str) -> str:
    """The character that an entity stands for; the entity where that would be markup."""
    character = html.unescape(entity).replace("\u00a0", " ")
    begins_line = not before.rpartition("\n")[2].strip(" \t>-*+")
    if _KEEP_ENTITY.search(character) or (begins_line and character in (">", "-", "+", "=")):
        return entity
    return character


def _only_newlines(text: str) -> str:
    return "\n" * text.count("\n")

"""Sanitize the Markdown of an answer: remove links, URLs and HTML that its passages do not contain. Pure.

Knows how renderers read Markdown, and nothing of where the answer is shown: any renderer must be safe.
"""

import html
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from markdown_it import MarkdownIt

from citewell.answer.sanitize.allowed import AllowedTargets
from citewell.answer.sanitize.bare_urls import find_url
from citewell.answer.sanitize.html import find_tag, is_bare_tag
from citewell.answer.sanitize.links import parse_definition_target, parse_link_target, target_spellings
from citewell.answer.sanitize.output import CITATION_PLACEHOLDER, Opener, Output, is_in_url

_PLAIN_TEXT = re.compile(r"[^\w`<\[\]!\\\n:/&@\x00]+")  # no character that begins markup
_WORD = re.compile(r"\w+")
_ESCAPE_OR_ENTITY = re.compile(r"&(?:#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,9}|[A-Za-z]{1,8});|\\[!-/:-@\[-`{-~]")
_LINE_END = re.compile(r"[\r\n]|\Z")
_MAX_CODE_CHARACTERS = 300  # between backticks
_BACKTICKS = re.compile(r"`+")
_MARKUP_START = re.compile(r"<(?=[A-Za-z/!?])|\](?=[(:\[])")

_PARSER = MarkdownIt("commonmark").enable("table")
_PARSER.normalizeLink = lambda url: url  # type: ignore[method-assign]
_PARSER.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005


class Sanitizer:
    """Sanitizes the units of an answer, one after the other, with `clean`.

    - A link, image, link definition or bare URL stays if its whole target is allowed. Otherwise a link keeps its text,
      `name@host` keeps its name, and the others are removed. A target that runs a script is always removed.
    - An HTML tag is removed unless it is allowed, harmless and not at the start of a line; `x < y` and `List<String>`
      are no tags. The text between tags stays, except that of scripts and styles.
    - Code between backticks stays where every renderer reads it as code: on one line, outside of tables. Formulas are
      sanitized like prose, since some renderers do not know them.

    A removal could join what was apart (`<scr<b>ipt>`): `Output` separates it. At the end the text is parsed; if that
    shows a link or a tag which the scan missed, all markup in the text is disabled.
    """

    def __init__(self, allowed: AllowedTargets) -> None:
        self.tail = ""
        """The last characters of the sanitized text so far."""
        self._allowed = allowed
        self._is_code_uncertain = False  # whether renderers may disagree on code between backticks in this paragraph
        self._open_tags: Counter[str] = Counter()
        self._kept_targets: set[str] = set()
        self._text, self._output = "", Output()

    def clean(self, text: str, *, is_code: bool = False) -> str:
        """The sanitized text of a unit. `is_code`: every renderer reads it as a block of code, so it is not changed."""
        self._is_code_uncertain = self._is_code_uncertain and not is_code
        text = text if is_code else self._verify(self._scan(text))
        self.tail = (self.tail + text[-64:])[-64:]
        return text

    def _scan(self, text: str) -> str:
        scanners: dict[str, Callable[[int], int]] = {"`": self._scan_code, "<": self._scan_tag}
        scanners |= {"!": self._scan_opening, "[": self._scan_opening, "]": self._scan_closing}
        scanners |= {"\\": self._scan_escape, "&": self._scan_escape, "\n": self._scan_newline}
        scanners |= {CITATION_PLACEHOLDER: self._scan_citation}
        self._text, self._output, start = text, Output(self.tail), 0
        while start < len(text):
            plain = (_WORD if self._output.is_in_word else _PLAIN_TEXT).match(text, start)
            start = self._keep(start, plain.end()) if plain else scanners.get(text[start], self._scan_bare_url)(start)
        return self._output.text

    def _verify(self, text: str) -> str:
        """The text, with all markup disabled if a parser finds a link or a tag in it that was not checked."""
        environment: dict[str, Any] = {}
        tokens = [token for block in _PARSER.parse(text, environment) for token in (block, *(block.children or ()))]
        targets = {token.attrs[name] for token in tokens for name in ("href", "src") if name in token.attrs}
        targets |= {definition["href"] for definition in environment.get("references", {}).values()}
        tags = [token.content for token in tokens if token.type in ("html_inline", "html_block")]
        is_safe = targets <= self._kept_targets and all(map(is_bare_tag, tags))
        return text if is_safe else _MARKUP_START.sub(r"\g<0> ", text)

    # One method for each character that may begin markup: it returns the position to continue at.

    def _scan_bare_url(self, start: int) -> int:
        url, word = find_url(self._text, start, self._output.tail), _WORD.match(self._text, start)
        if not url:
            return self._keep(start, word.end() if word else start + 1)
        is_mail = self._text[start] == "@" and self._allowed.allows_url(f"mailto:{url.target}")
        return (self._keep if is_mail or self._allowed.allows_url(url.target) else self._drop)(start, url.end)

    def _scan_escape(self, start: int) -> int:
        """Remove an escape or an entity that spells a part of a URL: it can only be there to hide the URL."""
        escape, tail = _ESCAPE_OR_ENTITY.match(self._text, start), self._output.tail
        pair, char = self._text[start : start + 2], html.unescape(escape[0]) if escape else ""
        hides_url = {
            "\\/": tail.endswith((":", "/")),
            "\\.": is_in_url(tail) or tail.lower().endswith("www"),
            "\\@": not tail[-1:].isspace(),
        }.get(pair, len(char) == 1 and char.isascii() and (char.isalnum() or char in ":/.@\\_-+\t\r\n"))
        return (self._drop if escape and hides_url else self._keep)(start, escape.end() if escape else start + 1)

    def _scan_newline(self, start: int) -> int:
        if not self._text[self._text.rfind("\n", 0, start) + 1 : start].strip(" \t\r>"):  # a paragraph ends
            self._is_code_uncertain = False
            self._output.openers.clear()
        return self._keep(start, start + 1)

    def _scan_code(self, start: int) -> int:
        """Keep code that the same run of backticks closes on its line; after any other run, nothing is surely code."""
        line_end = _LINE_END.search(self._text, start, start + _MAX_CODE_CHARACTERS)
        runs = _BACKTICKS.finditer(self._text, start, line_end.start() if line_end else start)
        opening = next(runs)
        close = None if self._is_code_uncertain else next((run for run in runs if run[0] == opening[0]), None)
        # In a table, "|" ends the cell, and the code with it.
        self._is_code_uncertain = close is None or "|" in self._text[start : close.end()]
        return self._keep(start, opening.end() if self._is_code_uncertain or close is None else close.end())

    def _scan_tag(self, start: int) -> int:
        at_start = self._output.is_at_line_start
        tag = find_tag(self._text, start, before=self._output.tail, is_at_line_start=at_start)
        text = self._text[start : tag.end] if tag else ""
        name, step = text.strip("</ >").lower(), -1 if text.startswith("</") else 1
        if not tag:
            return self._keep(start, start + 1)
        if tag.kind == "open":
            self._output.put("< ")
        elif tag.kind == "autolink" and self._allowed.allows_link(text[1:-1]):
            self._kept_targets |= target_spellings(text[1:-1])
            self._keep(start, tag.end)
            self._output.mark_removed()  # some linkers would continue the URL over its ">"
        elif (
            tag.kind == "harmless" and not at_start and self._open_tags[name] + step >= 0 and self._allowed.allows(text)
        ):
            self._open_tags[name] += step
            self._keep(start, tag.end)
        else:
            self._output.mark_removed(text, separates_words=tag.separates_words)
        return tag.end

    def _scan_opening(self, start: int) -> int:
        bracket = "![" if self._text.startswith("![", start) else self._text[start]
        (self._output.put if bracket == "!" else self._output.put_opener)(bracket)
        return start + len(bracket)

    def _scan_closing(self, start: int) -> int:
        """Check the target after `](` or `]:`, whatever is before it, so that no target stays unchecked."""
        opener = self._output.openers.pop() if self._output.openers else None
        is_link = self._text.startswith("](", start)
        is_definition = self._text.startswith("]:", start) and opener is not None and opener.is_at_line_start
        link = parse_link_target(self._text, start + 1) if is_link else None
        link = parse_definition_target(self._text, start) if is_definition else link
        if not link:
            self._output.put("] " if is_link else "]")
            return start + 1
        if self._allowed.allows_link(link.target):
            self._kept_targets |= target_spellings(link.target)
            return self._keep(start, link.end if is_link else start + 1)
        self._put_unlinked(opener, self._text[start : link.end], is_whole=is_definition)
        return link.end

    def _put_unlinked(self, opener: Opener | None, removed: str, *, is_whole: bool) -> None:
        """Put the text of a link without its target, and nothing of an image or a link definition."""
        text = self._output.take_back_link_text(opener) if opener else None
        if opener is None or text is None:
            self._output.put("]")
        elif is_whole or opener.length > 1:
            removed = text + removed
        else:
            self._output.mark_removed()
            self._output.put(text)
        self._output.mark_removed(removed)

    def _scan_citation(self, start: int) -> int:
        """Separate a citation, which is shown in brackets, from what would turn these into a link."""
        following = self._text[start + 1 : start + 2]
        makes_link = following == "(" or (following == ":" and self._output.is_at_line_start)
        self._output.put(CITATION_PLACEHOLDER + " " if makes_link else CITATION_PLACEHOLDER)
        return start + 1

    def _keep(self, start: int, end: int) -> int:
        self._output.put(self._text[start:end])
        return end

    def _drop(self, start: int, end: int) -> int:
        self._output.mark_removed(self._text[start:end])
        return end

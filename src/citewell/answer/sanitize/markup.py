"""Keep out of an answer what would act in a reader's browser and does not stand in its sources. Pure.

Knows Markdown as renderers read it, nothing of who shows the answer: what leaves here may be rendered by anyone.
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
from citewell.answer.sanitize.links import definition_target, link_target, readings
from citewell.answer.sanitize.output import CITED, Opener, Output, is_in_url

_PLAIN = re.compile(r"[^\w`<\[\]!\\\n:/&@\x00]+")  # begins nothing
_WORD = re.compile(r"\w+")
_SPELLED = re.compile(r"&(?:#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,9}|[A-Za-z]{1,8});|\\[!-/:-@\[-`{-~]")
_LINE_END = re.compile(r"[\r\n]|\Z")
_LONGEST_CODE = 300  # characters between backticks
_BACKTICKS = re.compile(r"`+")
_ACTS = re.compile(r"<(?=[A-Za-z/!?])|\](?=[(:\[])")

_PARSER = MarkdownIt("commonmark").enable("table")
_PARSER.normalizeLink = lambda url: url  # type: ignore[method-assign]
_PARSER.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005


class Sanitizer:
    """`clean` the units of an answer, one after the other.

    - A link, image, definition or bare address stays if the whole of its target stands in the sources; otherwise a link
      keeps its text, `name@host` its name, and the others go. One that runs a script goes in any case.
    - An HTML tag goes unless it stands in a source, does nothing and begins no line; `x < y` and `List<String>` are
      none. The text between tags stays, but for that of scripts and styles.
    - Code between backticks stays where every renderer takes it for code: on one line, outside of tables. Formulas are
      prose to a renderer that knows none, so they are prose here.

    What goes could bring together what stood apart (`<scr<b>ipt>`): `Output` keeps it apart. In the end the text is
    parsed, and if there is a link or a tag in it that was not looked at, nothing in it acts.
    """

    def __init__(self, allowed: AllowedTargets) -> None:
        self.shown = ""
        """The end of what was shown so far."""
        self._allowed = allowed
        self._is_loose = False  # in this paragraph, backticks enclose nothing for sure
        self._open_tags: Counter[str] = Counter()
        self._kept: set[str] = set()  # targets that may be shown
        self._text, self._output = "", Output()

    def clean(self, text: str, *, is_code: bool = False) -> str:
        """The text without what may not leave; `is_code` is what every renderer takes for a block of code."""
        self._is_loose = self._is_loose and not is_code
        text = text if is_code else self._check(self._scan(text))
        self.shown = (self.shown + text[-64:])[-64:]
        return text

    def _scan(self, text: str) -> str:
        rules: dict[str, Callable[[int], int]] = {"`": self._code, "<": self._tag, "\n": self._newline}
        rules |= {"!": self._open, "[": self._open, "]": self._close, CITED: self._citation}
        rules |= {"\\": self._spelled, "&": self._spelled}
        self._text, self._output, at = text, Output(self.shown), 0
        while at < len(text):
            plain = (_WORD if self._output.is_in_word else _PLAIN).match(text, at)
            at = self._keep(at, plain.end()) if plain else rules.get(text[at], self._bare_url)(at)
        return self._output.text

    def _check(self, text: str) -> str:
        """The text if a renderer finds nothing in it that was not looked at; otherwise without anything that acts."""
        environment: dict[str, Any] = {}
        tokens = [token for block in _PARSER.parse(text, environment) for token in (block, *(block.children or ()))]
        targets = {token.attrs[name] for token in tokens for name in ("href", "src") if name in token.attrs}
        targets |= {definition["href"] for definition in environment.get("references", {}).values()}
        tags = [token.content for token in tokens if token.type in ("html_inline", "html_block")]
        return text if targets <= self._kept and all(map(is_bare_tag, tags)) else _ACTS.sub(r"\g<0> ", text)

    # One rule for each character that may begin something: it gives where to go on.

    def _bare_url(self, at: int) -> int:
        url, word = find_url(self._text, at, self._output.tail), _WORD.match(self._text, at)
        if not url:
            return self._keep(at, word.end() if word else at + 1)
        is_mail = self._text[at] == "@" and self._allowed.has_url(f"mailto:{url.target}")
        return (self._keep if is_mail or self._allowed.has_url(url.target) else self._drop)(at, url.end)

    def _spelled(self, at: int) -> int:
        """An escape or an entity goes if it spells a part of an address: only who hides something writes it so."""
        found, tail = _SPELLED.match(self._text, at), self._output.tail
        pair, char = self._text[at : at + 2], html.unescape(found[0]) if found else ""
        hides = {
            "\\/": tail.endswith((":", "/")),
            "\\.": is_in_url(tail) or tail.lower().endswith("www"),
            "\\@": not tail[-1:].isspace(),
        }.get(pair, len(char) == 1 and char.isascii() and (char.isalnum() or char in ":/.@\\_-+\t\r\n"))
        return (self._drop if found and hides else self._keep)(at, found.end() if found else at + 1)

    def _newline(self, at: int) -> int:
        if not self._text[self._text.rfind("\n", 0, at) + 1 : at].strip(" \t\r>"):  # a paragraph ends
            self._is_loose = False
            self._output.openers.clear()
        return self._keep(at, at + 1)

    def _code(self, at: int) -> int:
        """Code is what the same run of backticks closes on its line; after any other run nothing is code for sure."""
        line_end = _LINE_END.search(self._text, at, at + _LONGEST_CODE)
        runs = _BACKTICKS.finditer(self._text, at, line_end.start() if line_end else at)
        opening = next(runs)
        close = None if self._is_loose else next((run for run in runs if run[0] == opening[0]), None)
        self._is_loose = close is None or "|" in self._text[at : close.end()]  # in a table, "|" ends the cell
        return self._keep(at, opening.end() if self._is_loose or close is None else close.end())

    def _tag(self, at: int) -> int:
        begins_line = self._output.begins_line
        tag = find_tag(self._text, at, before=self._output.tail, begins_line=begins_line)
        text = self._text[at : tag.end] if tag else ""
        name, step = text.strip("</ >").lower(), -1 if text.startswith("</") else 1
        if not tag:
            return self._keep(at, at + 1)
        if tag.kind == "open":
            self._output.put("< ")
        elif tag.kind == "address" and self._allowed.has_link(text[1:-1]):
            self._kept |= readings(text[1:-1])
            self._keep(at, tag.end)
            self._output.removed()  # some linkers would go on over its ">"
        elif (
            tag.kind == "harmless" and not begins_line and self._open_tags[name] + step >= 0 and self._allowed.has(text)
        ):
            self._open_tags[name] += step
            self._keep(at, tag.end)
        else:
            self._output.removed(text, parts_words=tag.parts_words)
        return tag.end

    def _open(self, at: int) -> int:
        bracket = "![" if self._text.startswith("![", at) else self._text[at]
        (self._output.put if bracket == "!" else self._output.open)(bracket)
        return at + len(bracket)

    def _close(self, at: int) -> int:
        """What opens with `](` or `]:`, whatever stands before: no target leaves that was not looked at."""
        opener = self._output.openers.pop() if self._output.openers else None
        is_link = self._text.startswith("](", at)
        is_definition = self._text.startswith("]:", at) and opener is not None and opener.begins_line
        link = link_target(self._text, at + 1) if is_link else None
        link = definition_target(self._text, at) if is_definition else link
        if not link:
            self._output.put("] " if is_link else "]")
            return at + 1
        if self._allowed.has_link(link.target):
            self._kept |= readings(link.target)
            return self._keep(at, link.end if is_link else at + 1)
        self._unlink(opener, self._text[at : link.end], is_whole=is_definition)
        return link.end

    def _unlink(self, opener: Opener | None, removed: str, *, is_whole: bool) -> None:
        """Keep the text of a link, and nothing of an image or definition."""
        text = self._output.take_back(opener) if opener else None
        if opener is None or text is None:
            self._output.put("]")
        elif is_whole or opener.length > 1:
            removed = text + removed
        else:
            self._output.removed()
            self._output.put(text)
        self._output.removed(removed)

    def _citation(self, at: int) -> int:
        """A citation will be shown in brackets: what follows must not make a link of it."""
        following, begins_line = self._text[at + 1 : at + 2], self._output.begins_line
        self._output.put(CITED + " " if following == "(" or (following == ":" and begins_line) else CITED)
        return at + 1

    def _keep(self, at: int, end: int) -> int:
        self._output.put(self._text[at:end])
        return end

    def _drop(self, at: int, end: int) -> int:
        self._output.removed(self._text[at:end])
        return end

"""Keep out of an answer what would act in a reader's browser and does not stand in its sources. Pure.

Knows Markdown as renderers read it, nothing of who shows the answer: what leaves here may be rendered by anyone.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from citewell.answer.sanitize.allowed import AllowedTargets
from citewell.answer.sanitize.bare_urls import url_end, whole_url
from citewell.answer.sanitize.html import find_tag, is_bare_tag
from citewell.answer.sanitize.links import link_target, readings
from citewell.answer.sanitize.output import CITED, Output

# Words that begin no address, and characters that begin nothing at all.
_PLAIN = re.compile(r"(?:[^\W_]+(?![\w.:@])|[^\w`<\[\]!\\\r\n:/&@\x00])+|\w+(?=[\s,;)])")
_WORD = re.compile(r"\w+")
_ENTITY = re.compile(r"&(?:#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,9}|[A-Za-z]{1,8});")
_LONGEST_CODE = 300
_BACKTICKS = re.compile(r"`+")
_LINE_END = re.compile(r"[\r\n]|\Z")
_DEFINITION = re.compile(
    r"\]:[ \t]*(?:\r\n?|\n)?[ \t]*(<[^<>\r\n]*>|[^\s<]\S*)(?:[ \t]+[\"'(][^\r\n]*)?[ \t]*(?=[\r\n]|\Z)"
)
_ACTS = re.compile(r"<(?=[A-Za-z/!?])|\](?=[(:\[])")

_PARSER = MarkdownIt("commonmark").enable("table")
_PARSER.normalizeLink = lambda url: url  # type: ignore[method-assign]
_PARSER.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005


class Sanitizer:
    """`clean` the units of an answer, one after the other.

    - A link, image, definition or bare address stays if the whole of its target stands in the sources; otherwise a link
      keeps its text, `name@host` its name, and the others go. One that runs a script goes in any case. A bare address
      reaches to the next blank or `<`, as it does to those who make links of them.
    - An HTML tag goes unless it stands in a source, does nothing and begins no line; `x < y` and `List<String>` are
      none. The text between tags stays, but for that of scripts and styles.
    Code between backticks stays as it is, where every renderer takes it for code: on one line, outside of tables.
    Formulas are prose to a renderer that knows none, so they are prose here.

    What goes could bring together what stood apart (`<scr<b>ipt>`); `Output` keeps it apart, and `](` that begins no
    link becomes `] (`. Entities that spell letters, colons and slashes go: only who hides something writes them.
    In the end the text is parsed, and if there is a link or a tag in it that was not looked at, none of it acts.
    """

    def __init__(self, allowed: AllowedTargets) -> None:
        self.shown = ""
        """The end of what was shown so far."""
        self._allowed = allowed
        self._is_loose = False  # in this paragraph, backticks enclose nothing for sure
        self._open_tags: Counter[str] = Counter()
        self._kept: set[str] = set()  # targets and tags that may be shown
        self._text = ""
        self._output = Output("")
        self._rules: dict[str, Callable[[int], int]] = {
            "`": self._code,
            "<": self._tag,
            "!": self._image,
            "[": self._open,
            "]": self._close,
            CITED: self._citation,
            "\\": self._escape,
            "\n": self._newline,
            "&": self._entity,
        }

    def clean(self, text: str, *, is_code: bool = False) -> str:
        """The text without what may not leave; `is_code` is what every renderer takes for a block of code."""
        if not is_code:
            text = self._checked(self._scan(text))
        self._is_loose = self._is_loose and not is_code
        self.shown = (self.shown + text[-64:])[-64:]
        return text

    def _scan(self, text: str) -> str:
        self._text, self._output = text, Output(self.shown)
        at = 0
        while at < len(text):
            plain = _WORD.match(text, at) if self._output.is_in_word else _PLAIN.match(text, at)
            at = self._keep(at, plain.end()) if plain else self._rules.get(text[at], self._bare_url)(at)
        return self._output.text

    def _checked(self, text: str) -> str:
        """The text if a renderer finds nothing in it that was not looked at; otherwise without anything that acts."""
        is_known = all(one in self._kept or is_bare_tag(one) for one in _markup(text))
        return text if is_known else _ACTS.sub(r"\g<0> ", text)

    # One rule for each character that may begin something: it gives where to go on.

    def _bare_url(self, at: int) -> int:
        end = url_end(self._text, at, self._output.tail)
        if end is None:
            word = _WORD.match(self._text, at)
            return self._keep(at, word.end() if word else at + 1)
        target = whole_url(self._text[at:end], self._output.tail)
        is_mail = self._text[at] == "@" and self._allowed.has(f"mailto:{target}")
        return self._keep(at, end) if is_mail or self._allowed.has(target) else self._drop(at, end)

    def _entity(self, at: int) -> int:
        entity = _ENTITY.match(self._text, at)
        char = html.unescape(entity[0]) if entity else ""
        if entity and char.isascii() and (char.isalnum() or char in ":/.@\\_-+\t\r\n"):
            return self._drop(at, entity.end())
        return self._keep(at, entity.end() if entity else at + 1)

    def _escape(self, at: int) -> int:
        pair, tail = self._text[at : at + 2], self._output.tail
        hides = (
            (pair == "\\/" and tail[-1:] in (":", "/"))
            or (pair == "\\." and (self._output.is_in_url or tail.lower().endswith("www")))
            or (pair == "\\@" and not tail[-1:].isspace())
        )
        if hides:
            return self._drop(at, at + 2)
        return self._keep(at, at + 2 if re.match(r"\\[!-/:-@\[-`{-~]", pair) else at + 1)

    def _newline(self, at: int) -> int:
        if self._output.begins_line:  # a blank line
            self._is_loose = False
            self._output.openers.clear()
        return self._keep(at, at + 1)

    def _code(self, at: int) -> int:
        """Code is what the same run of backticks closes on its line; after any other run nothing is code for sure."""
        opening, line_end = _BACKTICKS.match(self._text, at), _LINE_END.search(self._text, at, at + _LONGEST_CODE)
        end = opening.end() if opening else at + 1
        stop = line_end.start() if line_end else at
        runs = () if self._is_loose else _BACKTICKS.finditer(self._text, end, stop)
        close = next((run.end() for run in runs if opening and run[0] == opening[0]), None)
        if close is None:
            self._is_loose = True
        elif "|" not in self._text[end:close]:  # in a table it parts two cells
            end = close
        return self._keep(at, end)

    def _tag(self, at: int) -> int:
        tag = find_tag(self._text, at, before=self._output.tail, begins_line=self._output.begins_line)
        if not tag:
            return self._keep(at, at + 1)
        text = self._text[at : tag.end]
        if tag.kind == "open":
            self._output.put("< ")
        elif tag.kind == "address" and self._allowed.has_link(text[1:-1]):
            self._kept |= readings(text[1:-1])
            self._keep(at, tag.end)
            self._output.removed()  # some linkers would go on over its ">"
        elif tag.kind == "harmless" and self._allowed.has_exactly(text) and self._matches(text):
            self._keep(at, tag.end)
        else:
            self._output.removed(text, parts_words=tag.parts_words)
        return tag.end

    def _matches(self, tag: str) -> bool:
        """Whether a tag ends something that was kept, or begins something where it does not begin its line."""
        name, is_end = tag.strip("</ >").lower(), tag.startswith("</")
        if self._output.begins_line or (is_end and not self._open_tags[name]):
            return False
        self._open_tags[name] += -1 if is_end else 1
        return True

    def _image(self, at: int) -> int:
        if self._text[at + 1 : at + 2] != "[":
            return self._keep(at, at + 1)
        self._output.open("![")
        return at + 2

    def _open(self, at: int) -> int:
        self._output.open("[")
        return at + 1

    def _close(self, at: int) -> int:
        """What opens with `](` or `]:`, whatever stands before."""
        following, openers = self._text[at + 1 : at + 2], self._output.openers
        if following == "(":
            return self._target(at)
        if following == ":" and openers and openers[-1].begins_line:
            return self._definition(at)
        del openers[-1:]
        return self._keep(at, at + 1)

    def _target(self, at: int) -> int:
        """`](target "title")`: no target leaves that was not looked at, even if it belongs to no bracket."""
        link = link_target(self._text, at + 1)
        if link and not self._allowed.has_link(link.target):
            return self._unlink(at, link.end)
        del self._output.openers[-1:]
        if not link:
            return self._part(at)
        self._kept |= readings(link.target)
        return self._keep(at, link.end)

    def _definition(self, at: int) -> int:
        """`[x]: target` at the start of a line."""
        found = _DEFINITION.match(self._text, at)
        target = found[1] if found else ""
        target = target[1:-1] if target.startswith("<") else target
        if found and not self._allowed.has_link(target):
            return self._unlink(at, found.end(), is_whole=True)
        del self._output.openers[-1:]
        self._kept |= readings(target)
        return self._keep(at, at + 1)

    def _part(self, at: int) -> int:
        """Keep a bracket from what would make a link of it."""
        self._output.put("] ")
        return at + 1

    def _unlink(self, at: int, end: int, *, is_whole: bool = False) -> int:
        """Keep the text of a link, and nothing of an image or definition."""
        openers, removed = self._output.openers, self._text[at:end]
        opener = openers.pop() if openers else None
        text = self._output.take_back(opener) if opener else None
        if opener is None or text is None:
            self._output.put("]")
        elif is_whole or opener.length > 1:
            removed = text + removed
        else:
            self._output.removed()
            self._output.put(text)
        self._output.removed(removed)
        return end

    def _citation(self, at: int) -> int:
        """A citation will be shown in brackets: what follows must not make a link of it."""
        following, begins_line = self._text[at + 1 : at + 2], self._output.begins_line
        self._keep(at, at + 1)
        if following == "(" or (following == ":" and begins_line):
            self._output.put(" ")
        return at + 1

    def _keep(self, at: int, end: int) -> int:
        self._output.put(self._text[at:end])
        return end

    def _drop(self, at: int, end: int) -> int:
        self._output.removed(self._text[at:end])
        return end


def _markup(text: str) -> Iterator[str]:
    """The targets of all links, images and definitions, and all HTML, as a renderer reads the text."""
    environment: dict[str, dict[str, dict[str, str]]] = {}
    for token in _flat(_PARSER.parse(text, environment)):
        target = token.attrs.get("href", token.attrs.get("src"))
        if token.type in ("html_inline", "html_block") or target is not None:
            yield token.content if target is None else str(target)
    yield from (one["href"] for one in environment.get("references", {}).values())


def _flat(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or [])

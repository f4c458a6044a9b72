"""Keep out of a streamed answer what would act in a reader's browser and does not come from its sources. Pure.

Knows Markdown as renderers read it, nothing of who shows the answer: what leaves here may be rendered by anyone.
"""

import html
import re
from collections import Counter, deque
from collections.abc import Callable
from typing import Literal

from citewell.answer.addresses import (
    ADDRESS,
    ADDRESS_BEGUN,
    BEFORE,
    HOST,
    HOST_BEGUN,
    MAIL_HOST,
    MAIL_HOST_BEGUN,
    STARTS,
    STOPS,
    end_of_address,
)
from citewell.answer.marks import Item
from citewell.answer.recital import Recital
from citewell.answer.said import CITED, Said
from citewell.answer.sources import WAIT, Link, Wait, link, readings, runs_script
from citewell.answer.tags import HELD, HELD_TAG, Tag, tag

_PATIENT = 256  # held characters from which on not every new one is worth another look

# Words that begin no address, and characters that begin nothing at all.
_PLAIN = re.compile(rf"(?:(?<!\w)[^\W{STARTS}]\w*|(?<=\w)\w+|[^\w`<\[\]!\\\r\n:/&@\x00]|[:/](?![/\x00]|\Z))+")
_WORD = re.compile(r"\w+")
_ENTITY = re.compile(r"&(?:#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,9}|[A-Za-z]{1,8});")
_ENTITY_BEGUN = re.compile(r"&(?:#[0-9]{0,9}|#[xX][0-9a-fA-F]{0,9}|[A-Za-z]{0,8})")

_AFTER_TARGET = re.compile(r"[\s)]")
_BACKTICKS = re.compile(r"`+")
_LINE_END = re.compile(r"[\r\n]")
_LINES = re.compile(r"\]:[ \t]*(?:(?:\r\n?|\n)[ \t]*)?[^\r\n]*")
_MAY_GO = re.compile(r"[<\[\]&\\]|//|www|mailto|script|data")
_SENTENCE = re.compile(r"\]:[ \t]+[^\s<>&\\\[\]`!]+[ \t]+\w+[ \t]+\w+[ \t]")
_DEFINITION = re.compile(
    r"\]:[ \t]*(?:\r\n?|\n)?[ \t]*(<[^<>\r\n]*>|[^\s<]\S*)(?:[ \t]+[\"'(][^\r\n]*)?[ \t]*(?=[\r\n]|\Z)"
)


class Safe:
    """`feed` the items of a stream (text, and citations as `int`), get them without what may not leave.

    - A link, image, definition or bare address stays if the whole of its target stands in the sources; otherwise a link
      keeps its text, `name@host` its name, and the others go. One that runs a script goes in any case. A bare address
      reaches to the next blank or `<`, as it does to those who make links of them.
    - An HTML tag goes unless it stands in a source, does nothing and begins no line; `x < y` and `List<String>` are
      none. The text between tags stays, but for that of scripts and styles.
    - Eight words or more of the instructions in a row go, in code too.
    Code stays as it is, where every renderer takes it for code: in a fence or indented (`Marks` knows), and between
    backticks on one line. Formulas are prose to a renderer that knows none, so they are prose here.

    What goes could bring together what stood apart (`<scr<b>ipt>`); so where text closes over a gap a blank is put if
    the two ends would mean something together, and `](` that begins no link becomes `] (`. Entities that spell letters,
    colons and slashes go: only who hides something writes them.
    """

    def __init__(self, sources: Callable[[str], bool], *, instructions: str = "") -> None:
        self._sources = sources
        self._recital = Recital(instructions)
        self._said = Said()
        self._held = ""
        self._look_again = 0  # length of `_held` from which on another look is worth it
        self._cited: deque[int] = deque()
        self._loose: Literal["", "line", "paragraph"] = ""  # how long backticks enclose nothing for sure
        self._open_tags: Counter[str] = Counter()
        self._skip_to: re.Pattern[str] | None = None  # the end of what is too long to hold
        self._steps: dict[str, Callable[[int, bool], int | Wait]] = {
            "`": self._backticks,
            "<": self._angle,
            "!": self._exclaim,
            "[": self._open,
            "]": self._close,
            CITED: self._citation,
            "\\": self._escape,
            "\r": self._newline,
            "\n": self._newline,
            ":": self._slashes,
            "/": self._slashes,
            "&": self._entity,
            "@": self._at,
        }

    def feed(self, items: list[Item]) -> list[Item]:
        return self._take(self._recital.feed(items), final=False)

    def end(self) -> list[Item]:
        return self._take(self._recital.end(), final=True)

    def _take(self, items: list[Item], *, final: bool) -> list[Item]:
        if not items and not final:
            return []
        for item in items:
            if isinstance(item, int):
                self._cited.append(item)
            self._held += CITED if isinstance(item, int) else item.replace(CITED, "\ufffd")
        at = 0
        is_due = final or len(self._held) >= self._look_again
        while is_due and at < len(self._held):
            step = self._step(at, final)
            if step == WAIT:
                break
            at = step
        self._held = self._held[at:]
        size = len(self._held)
        if is_due:
            self._look_again = size + size // 8 if size > _PATIENT else 0
        return self._said.told(self._cited, final=final)

    def _step(self, at: int, final: bool) -> int | Wait:
        text = self._held
        if self._skip_to:
            end = self._skip_to.search(text, at)
            self._skip_to = None if end else self._skip_to
            return self._drop(at, end.start() if end else len(text))
        code = self._said.marks.surely_code(text, at)
        if code > at:
            self._said.put(text[at:code], is_read=True)
            self._loose = ""
            return code
        if plain := self._plain(at):
            return self._say(at, plain)
        return self._steps.get(text[at], self._word)(at, final)

    def _plain(self, at: int) -> int:
        """Where text ends that begins nothing; a word that was begun is gone on with."""
        if self._said.is_in_word and (word := _WORD.match(self._held, at)):
            return word.end()
        plain = _PLAIN.match(self._held, at)
        return plain.end() if plain else 0

    def _word(self, at: int, final: bool) -> int | Wait:
        """A word that begins like an address."""
        if found := ADDRESS.match(self._held, at):
            return self._address(at, found.end(), final)
        if not final and len(self._held) - at <= 50 and ADDRESS_BEGUN.fullmatch(self._held, at):
            return WAIT
        word = _WORD.match(self._held, at)
        return self._say(at, word.end() if word else at + 1)

    def _slashes(self, at: int, final: bool) -> int | Wait:
        """`://` after any word, and `//host.name`."""
        if self._held.startswith("://", at):
            return self._address(at, at + 3, final)
        if not final and self._held[at:] in (":", ":/"):
            return WAIT
        if self._held[at] == "/" and (self._said.tail[-1:] == ":" or not re.search(r"[\w/]\Z", self._said.tail)):
            if HOST.match(self._held, at) or (self._said.tail[-1:] == ":" and self._held.startswith("//", at)):
                return self._address(at, at + 2, final)
            begun = HOST_BEGUN.match(self._held, at)
            if begun and begun.end() == len(self._held) and not final:
                return WAIT
        return self._say(at, at + 1)

    def _at(self, at: int, final: bool) -> int | Wait:
        """`name@host.name`; what stands before has been said, so only the rest may go."""
        if self._said.tail[-1:].isspace() or not self._said.tail:
            return self._say(at, at + 1)
        if MAIL_HOST.match(self._held, at):
            return self._address(at, at + 1, final)
        begun = MAIL_HOST_BEGUN.match(self._held, at)
        if begun and begun.end() == len(self._held) and not final:
            return WAIT
        return self._say(at, at + 1)

    def _address(self, at: int, begun: int, final: bool) -> int | Wait:
        stop = STOPS.search(self._held, begun, at + HELD)
        if not stop and len(self._held) - at > HELD:
            self._skip_to = STOPS
            return self._drop(at, at + HELD)
        if not stop and not final:
            return WAIT
        end = end_of_address(self._held, begun, stop.start() if stop else len(self._held))
        before = BEFORE[self._held[at]].search(self._said.tail) if self._held[at] in BEFORE else None
        target = (before[0] if before else "") + self._held[at:end]
        stands = self._stands(target) or (self._held[at] == "@" and self._stands(f"mailto:{target}"))
        return self._say(at, end) if stands else self._drop(at, end)

    def _stands(self, target: str) -> bool:
        return any(self._sources(one) for one in readings(target))

    def _entity(self, at: int, final: bool) -> int | Wait:
        if found := _ENTITY.match(self._held, at):
            char = html.unescape(found[0])
            hides = char.isascii() and (char.isalnum() or char in ":/.@\\_-+\t\r\n")
            return self._drop(at, found.end()) if hides else self._say(at, found.end())
        begun = _ENTITY_BEGUN.match(self._held, at)
        if begun and begun.end() == len(self._held) and not final:
            return WAIT
        return self._say(at, at + 1)

    def _escape(self, at: int, final: bool) -> int | Wait:
        pair = self._held[at : at + 2]
        if len(pair) == 1:
            return self._say(at, at + 1) if final else WAIT
        hides = (
            (pair == "\\/" and self._said.tail[-1:] in (":", "/"))
            or (pair == "\\." and (self._said.is_in_address or self._said.tail.lower().endswith("www")))
            or (pair == "\\@" and not self._said.tail[-1:].isspace())
        )
        if hides:
            return self._drop(at, at + 2)
        is_escape = pair[1].isascii() and pair[1].isprintable() and not pair[1].isalnum() and pair[1] != " "
        return self._say(at, at + 2 if is_escape else at + 1)

    def _newline(self, at: int, _: bool) -> int:
        if self._held[at] == "\n" and self._said.tail.endswith("\r"):
            pass
        elif self._said.marks.at_line_start:
            self._loose = ""
            self._said.openers.clear()
        elif self._loose == "line":
            self._loose = ""
        return self._say(at, at + 1)

    # Code between backticks

    def _backticks(self, at: int, final: bool) -> int | Wait:
        """Code is what the same run of backticks closes on its line; what a later line closes nobody can tell yet."""
        run = _BACKTICKS.match(self._held, at)
        end = run.end() if run else at + 1
        if end == len(self._held) and not final and end - at <= HELD_TAG:
            return WAIT
        if self._loose:
            return self._say(at, end)
        line_end = _LINE_END.search(self._held, end, at + HELD_TAG)
        stop = line_end.start() if line_end else min(len(self._held), at + HELD_TAG)
        ends = bool(line_end) or final or stop == at + HELD_TAG
        if self._said.marks.at_line_start and end - at >= 3 and "`" not in self._held[end:stop]:
            if not ends:
                return WAIT
            self._loose = "paragraph"  # it opens a fence, or a paragraph goes on with it
            return self._say(at, end)
        closing = (one for one in _BACKTICKS.finditer(self._held, end, stop) if len(one[0]) == end - at)
        close = next((one for one in closing if self._held[one.end() : one.end() + 1] != "`"), None)
        if not final and (close.end() == len(self._held) if close else not ends):
            return WAIT
        if not close:
            self._loose = "paragraph"
        elif "|" in self._held[end : close.start()]:
            self._loose = "line"  # in a table it parts two cells
        else:
            end = close.end()
        return self._say(at, end)

    # HTML

    def _angle(self, at: int, final: bool) -> int | Wait:
        begins_line = self._said.marks.at_line_start
        found = tag(self._held, at, before=self._said.tail, begins_line=begins_line, final=final)
        if found == WAIT:
            return WAIT
        if not found:
            return self._say(at, at + 1)
        text = self._held[at : found.end]
        match found.kind:
            case "open":
                self._said.put("< ")
            case "address" if self._may_lead_to(text[1:-1]):
                self._said.put(text)
                self._said.gone()  # some linkers would go on over its ">"
            case "tag" if found.does_nothing and not begins_line and self._sources(text) and self._matches(found, text):
                self._said.put(text)
            case _:
                self._said.gone(text, parts_words=found.parts_words)
        return found.end

    def _matches(self, found: Tag, text: str) -> bool:
        """Whether an end tag ends something that was kept; a start tag is remembered for that."""
        if not found.closes:
            self._open_tags[text[1:-1].split(maxsplit=1)[0].lower()] += 1
            return True
        was_kept = self._open_tags[found.closes] > 0
        self._open_tags[found.closes] -= was_kept
        return was_kept

    # Links

    def _exclaim(self, at: int, final: bool) -> int | Wait:
        if at + 1 == len(self._held) and not final:
            return WAIT
        if self._held[at + 1 : at + 2] != "[":
            return self._say(at, at + 1)
        self._said.open("![")
        return at + 2

    def _open(self, at: int, _: bool) -> int:
        self._said.open("[")
        return at + 1

    def _close(self, at: int, final: bool) -> int | Wait:
        """What opens with `](` or `]:`, whatever stands before."""
        following = self._held[at + 1 : at + 2]
        if not following and not final:
            return WAIT
        if following == "(":
            return self._target(at, final)
        if following == ":" and self._said.openers and self._said.openers[-1].begins_line:
            return self._definition(at, final)
        self._forget_opener()
        return self._say(at, at + 1)

    def _target(self, at: int, final: bool) -> int | Wait:
        """`](target "title")`: no target leaves that was not looked at, even if it belongs to no bracket."""
        window = self._held[at : at + HELD + 1]
        found = link(window, 1, final=final and len(window) <= HELD)
        if found == WAIT and len(window) <= HELD:
            return WAIT
        if found == WAIT:
            self._skip_to, found = _AFTER_TARGET, Link(2, "")
        if found and not self._may_lead_to(found.target):
            return self._unlink(at, at + found.end)
        self._forget_opener()
        if found:
            return self._say(at, at + found.end)
        return self._part(at)

    def _definition(self, at: int, final: bool) -> int | Wait:
        """`[x]: target` at the start of a line."""
        if _SENTENCE.match(self._held, at, at + HELD):  # whatever goes of it, these words stay
            self._forget_opener()
            return self._say(at, at + 1)
        lines = _LINES.match(self._held, at, at + HELD)
        if not lines or (lines.end() == len(self._held) and not final):
            return WAIT
        found = _DEFINITION.match(self._held, at, at + HELD)
        target = found[1] if found else ""
        target = target[1:-1] if target.startswith("<") else target
        if found and not self._may_lead_to(target):
            return self._unlink(at, found.end(), is_whole=True)
        self._forget_opener()
        if not found and _MAY_GO.search(lines[0], 2):
            return self._part(at)  # without what goes it might define something
        return self._say(at, at + 1)

    def _part(self, at: int) -> int:
        """Keep a bracket from what would make a link of it."""
        self._said.put("] ")
        return at + 1

    def _forget_opener(self) -> None:
        del self._said.openers[-1:]

    def _may_lead_to(self, target: str) -> bool:
        return self._stands(target) and not runs_script(target)

    def _unlink(self, at: int, end: int, *, is_whole: bool = False) -> int:
        """Keep the text of a link, and nothing of an image or definition."""
        opener = self._said.openers.pop() if self._said.openers else None
        text = self._said.take_back(opener) if opener else None
        gone = self._held[at:end]
        if opener is None or text is None:
            self._said.put("]")
        elif is_whole or opener.length > 1:
            gone = text + gone
        else:
            self._said.gone()
            self._said.put(text)
        self._said.gone(gone)
        return end

    def _citation(self, at: int, final: bool) -> int | Wait:
        """A citation will be shown in brackets: what follows must not make a link of it."""
        following = self._held[at + 1 : at + 2]
        if not following and not final:
            return WAIT
        begins_line = self._said.marks.at_line_start
        self._say(at, at + 1)
        if following == "(" or (following == ":" and begins_line):
            self._said.put(" ")
        return at + 1

    def _say(self, at: int, end: int) -> int:
        self._said.put(self._held[at:end])
        return end

    def _drop(self, at: int, end: int) -> int:
        self._said.gone(self._held[at:end])
        return end

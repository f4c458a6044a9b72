"""Find the handles by which a model cites, `[1]`, `[2]`…, in its text as it streams. Pure.

Knows which handles exist, nothing of what they stand for.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from citewell.answer.marks import Item, Marks
from citewell.answer.sources import WAIT, Link, link

HELD = 48
"""Characters that are held back at most, and only while they may still be part of a citation; but for these two:"""
HELD_ID = 98
"""while hexadecimal digits follow a bracket, which may become the id of a chunk;"""
HELD_LINK = 300
"""while the target of a link follows a handle."""

_MARGIN = 8  # of what is held, for what joins a bracket to the one before and for what follows it
_RANGE = 100  # handles that a range stands for at most, so that [1-999999999] costs nothing
_CONTEXT = 64  # characters before a bracket that are looked at
_PAIRS = {"[": "]", "【": "】", "［": "］"}
_BLANKS = " \t\u00a0\u202f"
_CITED = "\x01"  # in place of a citation, for what comes after it

_B = rf"[{_BLANKS}]"
_NAMES = ("sources", "passages", "references", "refs", "citations", "documents", "docs", "excerpts")
_CUES = ("see also", "see", "cf.", "cf", "e.g.", "source:", "sources:", "ref:", "from")


def _prefixes(words: tuple[str, ...]) -> str:
    """Any beginning of any of the words."""
    return "|".join(sorted({re.escape(word[:end]) for word in words for end in range(1, len(word) + 1)}, reverse=True))


# [1]  [1, 3]  [1; 3]  [1-3]  [^1]  [Source 1]  [source: 1]  [ 1 ]  【1†source】  ［1］
_NAME = rf"(?i:{'|'.join(f'{name[:-1]}s?' for name in _NAMES)})\.?{_B}?[:#]?{_B}?"
_NUMBER = rf"(?:{_NAME})?\^?[0-9]{{1,9}}"
_SPAN = rf"{_NUMBER}(?:{_B}?[-–—‑]{_B}?{_NUMBER})?"
_NEXT = rf"{_B}?(?:[,;]{_B}?(?:(?:and|&){_B})?|{_B}(?:and|&){_B})"
_NOTE = r"†[^\[\]【】［］\r\n\x00]{0,20}"
_ID = r"[0-9a-fA-F]{64}"  # of a chunk: some doors cite by it, the model is never told any
_BRACKET = rf"[\[【［]{_B}?(?:{_ID}{_B}?|{_SPAN}(?:{_NEXT}{_SPAN})*{_B}?(?:{_NOTE})?)[\]】］]"
_CITATION = re.compile(_BRACKET)
_NAME_BEGUN = rf"(?i:{_prefixes(_NAMES)})|{_NAME}"
_NUMBER_BEGUN = rf"(?:{_NAME_BEGUN})?\^?[0-9]{{0,9}}"
_SPAN_BEGUN = rf"{_NUMBER_BEGUN}|{_NUMBER}{_B}?(?:[-–—‑]{_B}?(?:{_NUMBER_BEGUN})?)?"
_NEXT_BEGUN = rf"{_B}?(?:[,;]{_B}?)?(?:(?:a|an|and|&){_B}?)?"
_INSIDE_BEGUN = rf"{_B}?(?:{_SPAN}{_NEXT})*(?:{_SPAN_BEGUN}|{_SPAN}{_NEXT_BEGUN}|{_SPAN}{_B}?{_NOTE})"
_BRACKET_BEGUN = rf"[\[【［](?:{_INSIDE_BEGUN}|{_B}?[0-9a-fA-F]{{0,64}}{_B}?)?"
_CITATION_BEGUN = re.compile(_BRACKET_BEGUN)
_ONE = re.compile(rf"({_NUMBER})(?:{_B}?[-–—‑]{_B}?({_NUMBER}))?")
_DIGITS = re.compile(r"[0-9]+")
_CHUNK = re.compile(rf".{_B}?{_ID}{_B}?.")

# What stands between citations that stand together; a parenthesis that holds nothing else.
_JOIN = rf"(?:{_B}(?:and|or|&){_B}|{_B}?(?:[,;]{_B}?(?:(?:and|or|&){_B})?)?)"
_JOINT = re.compile(rf"{_JOIN}(?=[\[【［(])")
_JOINT_BEGUN = re.compile(rf"{_B}?(?:[,;]{_B}?)?(?:(?:a|an|and|o|or|&){_B}?)?")
_CUE = rf"{_B}?(?:(?i:{'|'.join(map(re.escape, _CUES))}){_B}?)?"
_CUE_BEGUN = rf"{_B}?(?:(?i:{_prefixes(_CUES)}){_B}?)?"
_LINKED = rf"{_BRACKET}(?:\([^\s()]*\))?"
_ONLY_CITED = re.compile(rf"\({_CUE}{_LINKED}(?:{_JOIN}{_LINKED})*{_B}?\)")
_ONLY_CITED_BEGUN = re.compile(
    rf"\((?:{_CUE_BEGUN}|{_CUE}(?:{_LINKED}{_JOIN})*"
    rf"(?:{_LINKED}(?:{_JOINT_BEGUN.pattern})?|{_BRACKET}\([^\s()]*|{_BRACKET_BEGUN}))"
)
_BEGINS_ID = re.compile(rf"(?:\({_CUE})?[\[【［]{_B}?[0-9a-fA-F]{{10}}")
_BEGINS_LINK = re.compile(rf"\({_CUE}{_BRACKET}\(")
_ADDRESS_LIKE = re.compile(r"[#/.:]")
_TO_TARGET_END = re.compile(r"[^\s)]*(\)?)")

# What tells a subscript from a citation.
_STEM = re.compile(r"[\w.]+$")
_CODE_LIKE = re.compile(
    r"[\w.]*_[\w.]*|[a-z](?=\w*[0-9A-Z]|\w*\.\w)[\w.]*|[A-Za-z]|arr|args?|argv|idx|vec|buf|ptr|tmp|nums|dp|lst"
)
_NUMERAL = re.compile(r"[0-9.]+")
_GOES_ON = re.compile(rf"\.[a-z_]|{_B}?(?:[=+%]|[-*/<>!]=)|\[(?![0-9^{_BLANKS}])")
_MAY_GO_ON = re.compile(rf"\.|{_B}?[-*/<>!]?|\[")
_ASSIGNED = re.compile(rf"(?:[=∈∉×≤≥]{_B}*|[\w]\()$")
_LINE_START = re.compile(rf"(?:^|[\r\n])[{_BLANKS}>]*$")
_CLOSES = frozenset(".,;:!?)]}»”’…%\r\n" + _BLANKS)

_PLAIN = re.compile(rf"(?:[^\[【［({_BLANKS}]|{_B}(?![\[【［(]|\Z))+")
_WAIT = -1  # where to go on: not yet


class _Found(NamedTuple):
    """A bracket that cites, up to `end`, with the known handles in it."""

    end: int
    handles: list[int]


class Handles:
    """`feed` a model's text as it comes, get its text with each handle in it as an `int`.

    handles = Handles({1, 3}.__contains__)
    handles.feed("Lift the foot [1, 9][") -> ["Lift the foot", 1];  .feed("3].") -> [3];  .end() -> ["."]

    Cited is what stands in `[…]`, `【…】` or `［…］` and is made of numbers, ranges, commas and words such as "source".
    The blank before goes with it, since whoever shows a citation puts his own. A handle that does not exist goes
    without a trace: with its blank, with the comma that joined it to another, with the parenthesis it leaves empty.

    So does the id of a chunk (`[` 64 hexadecimal digits `]`), which only the doors may write. A handle that is written
    as a link, `[1](pumps.md)`, cites, and its target goes.

    What is no citation stays, character for character: code and formulas (`Marks` says what these are), links with
    other texts, images, definitions (`[1]: …` at the start of a line), everything with a zero (`arr[0]`, `[0, 1]`,
    `[0-9]`, `[2024-01]`), numbers above 9999, falling ranges, and, unless such a handle exists, years (1000 to 2999).

    A bracket right after a word cites, as many models write so, unless it looks like a subscript:
    - the word has an underscore, or begins in lower case and has a digit, a capital or a dot inside (`x1[1]`,
      `myList[1]`, `self.items[1]`; but `IPv6[1]`, `Node.js[1]`, `2024[1]` cite), or is one letter, or `arr` or its kin;
    - it follows a call or another subscript: `f(x)[1]`, `rows[i][1]` (but `(LQR)[1]`, `word(s)[1]`, `[text][1]` cite);
    - the text goes on like code: `users[1].name`, `x[1] = 2`, `grid[1][i]`, `handlers[1](event)`.
    After `=` or `∈`, or as the first thing in a call (`sum([1, 2])`), a bracket is a list.
    """

    def __init__(self, known: Callable[[int], bool]) -> None:
        self._known = known
        self._marks = Marks()
        self._raw = ""
        self._view = ""  # `_raw` with code and formulas hidden
        self._done = 0  # how much of the view is done with
        self._past = ""  # the end of that, and of the views before
        self._gap = ""  # a blank before a citation that may vanish
        self._swallows = False  # the target of a link that is too long to hold
        self._kept: bool | None = None  # right after citations: whether any of them was kept
        self._out: list[Item] = []

    def feed(self, text: str) -> list[Item]:
        self._raw += text
        self._view += self._marks.mask(text)
        return self._scan(final=False)

    def end(self) -> list[Item]:
        return self._scan(final=True)

    def _scan(self, *, final: bool) -> list[Item]:
        at = 0
        while at < len(self._view) or (final and self._kept is not None):
            self._done = at
            if self._swallows and at < len(self._view):
                at = self._swallow(at)
                continue
            at = self._after_citation(at, final) if self._kept is not None else self._in_prose(at, final)
            if at == _WAIT:
                at = self._done
                break
        self._raw, self._view = self._raw[at:], self._view[at:]
        told, self._out = self._out, []
        return told

    def _swallow(self, at: int) -> int:
        target = _TO_TARGET_END.match(self._view, at)
        end = target.end() if target else at
        self._swallows = end == len(self._view) and not (target and target[1])
        return end

    def _in_prose(self, at: int, final: bool) -> int:
        if plain := _PLAIN.match(self._view, at):
            return self._say(at, plain.end())
        start = at + (self._view[at] in _BLANKS)
        if start == len(self._view) and not final:
            return _WAIT
        found = self._bracket(start, final)
        if found is None:
            return self._say(at, at + 1)
        if isinstance(found, int):
            return found
        self._gap = self._raw[at:start]
        self._kept = False
        return self._cite(found)

    def _after_citation(self, at: int, final: bool) -> int:
        """Go on to a citation that stands with the one before, or see what the vanished ones leave behind."""
        joint = _JOINT.match(self._view, at)
        if not joint and not final and _JOINT_BEGUN.fullmatch(self._view, at):
            return _WAIT
        start = joint.end() if joint else at
        found = self._bracket(start, final)
        if isinstance(found, int):
            return found
        if found is None:
            return self._leave(at)
        if self._kept and found.handles:  # the comma between stays, the blank before the citation does not
            self._say(at, start - (start > at and self._view[start - 1] in _BLANKS))
        return self._cite(found)

    def _cite(self, found: _Found) -> int:
        if found.handles:
            self._kept, self._gap = True, ""
            self._out.extend(found.handles)
        self._past += _CITED
        return found.end

    def _leave(self, at: int) -> int:
        """End a run of citations: where nothing is left of it, nothing may show that something was."""
        kept, self._kept = self._kept, None
        gap, self._gap = self._gap, ""
        if kept:
            return at
        following = self._view[at : at + 1]
        if gap and following and following not in _CLOSES:
            self._out.append(gap)
        elif not gap and following and following in _BLANKS and self._begins_line():
            return at + 1
        return at

    def _begins_line(self) -> bool:
        return bool(_LINE_START.search(self._past.rstrip(_CITED))) or self._past.rstrip(_CITED).endswith("(")

    def _bracket(self, at: int, final: bool) -> _Found | int | None:
        """What cites from here on, `_WAIT`, or nothing."""
        opening = self._view[at : at + 1]
        if opening == "(":
            return self._parenthesis(at, final)
        return self._citation(at, final) if opening in _PAIRS else None

    def _parenthesis(self, at: int, final: bool) -> _Found | int | None:
        """A parenthesis that would be left with nothing in it."""
        if self._stem(at):
            return None
        longest = self._longest(at)
        whole = _ONLY_CITED.match(self._view, at, at + longest)
        if not whole:
            begun = _ONLY_CITED_BEGUN.fullmatch(self._view, at, at + longest)
            waits = begun and not final and len(self._view) - at < longest
            return _WAIT if waits and not any(self._named(at, len(self._view))) else None
        vanish = all(handles is not None and not handles for handles in self._named(at, whole.end()))
        return _Found(whole.end(), []) if vanish else None

    def _longest(self, at: int) -> int:
        """How many characters from here on may be what cites."""
        if _BEGINS_ID.match(self._view, at):
            return HELD_ID - _MARGIN
        return (HELD_LINK if _BEGINS_LINK.match(self._view, at) else HELD) - _MARGIN

    def _named(self, at: int, end: int) -> Iterator[list[int] | None]:
        return (self._handles(one) for one in _CITATION.finditer(self._view, at, end))

    def _citation(self, at: int, final: bool) -> _Found | int | None:
        longest = self._longest(at)
        found = _CITATION.match(self._view, at, at + longest)
        if not found:
            waits = not final and len(self._view) - at < longest and _CITATION_BEGUN.fullmatch(self._view, at)
            return _WAIT if waits else None
        handles = self._handles(found)
        is_id = bool(_CHUNK.fullmatch(found[0]))
        if handles is None or (self._is_listed(at) and not is_id):
            return None
        whole = _Found(found.end(), handles)
        return self._in_place(at, whole, is_id, final) if self._view[at] == "[" else whole

    def _in_place(self, at: int, found: _Found, is_id: bool, final: bool) -> _Found | int | None:
        """What a bracket is, given what stands around it."""
        rest = self._view[found.end : found.end + 3]
        attached = "" if is_id else self._stem(at)
        if not final and (not rest or (attached and _MAY_GO_ON.fullmatch(rest))):
            return _WAIT
        if rest[:1] == ":" and _LINE_START.search(self._before(at)):
            return _Found(found.end + 1, []) if is_id else None
        if attached and (_GOES_ON.match(rest) or self._is_subscripted(attached)):
            return None
        return self._link(at, found, final) if rest[:1] == "(" else found

    def _link(self, at: int, found: _Found, final: bool) -> _Found | int | None:
        """A bracket with a parenthesis right after it: the target of a link goes with it, other text stays."""
        if self._before(at).endswith("!"):
            return None
        limit = found.end + HELD_LINK - HELD
        target = link(self._raw[found.end : limit], 0, final=False)
        end = found.end
        is_long = target == WAIT and len(self._raw) >= limit
        if isinstance(target, Link):
            end += target.end
        elif target == WAIT:
            if not (is_long or final):
                return _WAIT
            end = min(limit, len(self._raw))  # what was cut off is no text either
        if self._stem(at) and not _ADDRESS_LIKE.search(self._raw, found.end, end):
            return None
        self._swallows = is_long
        return _Found(end, found.handles)

    def _handles(self, found: re.Match[str]) -> list[int] | None:
        """The handles in a bracket that exist; None if its numbers are no handles."""
        if found[0][-1] != _PAIRS[found[0][0]]:
            return None
        if _CHUNK.fullmatch(found[0]):
            return []
        handles: list[int] = []
        for one in _ONE.finditer(found[0].partition("†")[0]):
            figures = _DIGITS.findall(one[0])
            numbers = [int(figure) for figure in figures]
            first, last = numbers[0], numbers[-1]
            if any(figure.startswith("0") for figure in figures) or first > 9999 or first > last:
                return None
            if any(1000 <= number < 3000 and not self._known(number) for number in numbers):
                return None
            handles += filter(self._known, range(first, min(last, first + _RANGE - 1) + 1))
        return list(dict.fromkeys(handles))

    def _before(self, at: int) -> str:
        return (self._past + self._view[self._done : at])[-_CONTEXT:]

    def _is_listed(self, at: int) -> bool:
        return bool(_ASSIGNED.search(self._before(at)))

    def _stem(self, at: int) -> str:
        """The text before, if the bracket stands right after a word, a parenthesis or a bracket."""
        before = self._before(at)
        return before if before[-1:].isalnum() or before[-1:] in ("_", ")", "]") else ""

    def _is_subscripted(self, before: str) -> bool:
        """Whether what stands right before a bracket looks like something that has a subscript."""
        if before[-1] in ")]":
            start = _opening(before)
            inside, outside = before[start + 1 : -1], before[:start]
            if before[-1] == ")":
                return (outside[-1:].isalnum() or outside[-1:] == "_") and inside not in ("s", "es")
            return outside[-1:].isalnum() or outside[-1:] in ("_", "!", ")", "]") or inside.strip().isdigit()
        stem = _STEM.search(before)
        return bool(stem and not _NUMERAL.fullmatch(stem[0]) and _CODE_LIKE.fullmatch(stem[0].lstrip(".")))

    def _say(self, start: int, end: int) -> int:
        if end > start:
            self._out.append(self._raw[start:end])
            self._past = (self._past + self._view[start:end])[-_CONTEXT:]
        return end


def _opening(before: str) -> int:
    """Where the parenthesis or bracket opens that closes at the end; 0 if that is too far back."""
    closing = before[-1]
    opening = "(" if closing == ")" else "["
    depth = 0
    for at in range(len(before) - 1, -1, -1):
        depth += (before[at] == closing) - (before[at] == opening)
        if not depth:
            return at
    return 0

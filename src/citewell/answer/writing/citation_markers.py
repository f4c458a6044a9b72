"""Find the markers by which an LLM cites passages, `[1]`, `[2]`…, in a finished unit of its text. Pure.

Knows which numbers exist, nothing of the passages that they stand for.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from citewell.answer.sanitize import CITED, link_target
from citewell.answer.writing.markdown import HIDDEN, mask

_RANGE = 100  # numbers that a range stands for at most, so that [1-999999999] costs nothing
_CONTEXT = 64  # characters before a bracket that are looked at
_LONGEST = 400  # characters of a bracket, or of a parenthesis around some
_PAIRS = {"[": "]", "【": "】", "［": "］"}
_BLANKS = " \t\u00a0\u202f"

_B = rf"[{_BLANKS}]"
_NAMES = "sources? passages? references? refs? citations? documents? docs? excerpts?".replace(" ", "|")
_CUES = r"see also|see|cf\.|cf|e\.g\.|sources?:|ref:|from"

# [1]  [1, 3]  [1; 3]  [1-3]  [^1]  [Source 1]  [source: 1]  [ 1 ]  【1†source】  ［1］
_NUMBER = rf"(?:(?i:{_NAMES})\.?{_B}?[:#]?{_B}?)?\^?[0-9]{{1,9}}"
_SPAN = rf"{_NUMBER}(?:{_B}?[-–—‑]{_B}?{_NUMBER})?"
_COMMA = rf"{_B}?(?:[,;]{_B}?(?:(?:and|&){_B})?|{_B}(?:and|&){_B})"
_NOTE = rf"†[^\[\]【】［］\r\n{CITED}{HIDDEN}]{{0,20}}"
_ID = r"[0-9a-fA-F]{64}"  # of a chunk: some endpoints cite by it, the LLM is never told any
_BRACKET = rf"[\[【［]{_B}?(?:{_ID}{_B}?|{_SPAN}(?:{_COMMA}{_SPAN})*{_B}?(?:{_NOTE})?)[\]】］]"
_CITATION = re.compile(_BRACKET)
_ONE = re.compile(rf"({_NUMBER})(?:{_B}?[-–—‑]{_B}?({_NUMBER}))?")
_DIGITS = re.compile(r"[0-9]+")
_CHUNK = re.compile(rf".{_B}?{_ID}{_B}?.")

# What stands between citations that stand together; a parenthesis that holds nothing else.
_JOIN = rf"(?:{_B}(?:and|or|&){_B}|{_B}?(?:[,;]{_B}?(?:(?:and|or|&){_B})?)?)"
_JOINT = re.compile(rf"{_JOIN}(?=[\[【［(])")
_LINKED = rf"{_BRACKET}(?:\([^\s()]*\))?"
_ONLY_CITED = re.compile(rf"\({_B}?(?:(?i:{_CUES}){_B}?)?{_LINKED}(?:{_JOIN}{_LINKED})*{_B}?\)")
_ADDRESS_LIKE = re.compile(r"[#/.:]")
_UNCLOSED_TARGET = re.compile(r"\([^\s()]*\Z")
_OPENING = re.compile(r"[\[【［(]")

# What tells a subscript from a citation.
_STEM = re.compile(r"[\w.]+$")
_CODE_LIKE = re.compile(
    r"[\w.]*_[\w.]*|[a-z](?=\w*[0-9A-Z]|\w*\.\w)[\w.]*|[A-Za-z]|arr|args?|argv|idx|vec|buf|ptr|tmp|nums|dp|lst"
)
_NUMERAL = re.compile(r"[0-9.]+")
_GOES_ON = re.compile(rf"\.[a-z_]|{_B}?(?:[=+%]|[-*/<>!]=)|\[(?![0-9^{_BLANKS}])")
_ASSIGNED = re.compile(r"(?:[=∈∉×≤≥]\s*|[\w]\()$")
_LINE_START = re.compile(rf"(?:^|[\r\n])[{_BLANKS}>]*$")
_CLOSES = frozenset(".,;:!?)]}»”’…%\r\n" + _BLANKS)


class Marked(NamedTuple):
    """A text with `CITED` in place of each citation, and the numbers that are cited, in order."""

    text: str
    numbers: list[int]


class _Bracket(NamedTuple):
    """A bracket that cites, up to `end`, with the known numbers in it."""

    end: int
    numbers: list[int]


def mark_citations(text: str, known: Callable[[int], bool], *, before: str = "") -> Marked:
    """Put `CITED` in place of each number of a passage that is cited.

    mark_citations("Lift the foot [1, 9][3].", {1, 3}.__contains__) -> ("Lift the foot\\0\\0.", [1, 3])

    Cited is what stands in `[…]`, `【…】` or `［…］` and is made of numbers, ranges, commas and words such as "source".
    The blank before goes with it, since whoever shows a citation puts his own. A number that does not exist goes
    without a trace: with its blank, with the comma that joined it to another, with the parenthesis it leaves empty.
    So does the id of a chunk (`[` 64 hexadecimal digits `]`), which only endpoints may write. A number that is written
    as a link, `[1](pumps.md)`, cites, and its target goes.

    What is no citation stays, character for character: code and formulas, links with other texts, images, definitions
    (`[1]: …` at the start of a line), everything with a zero (`arr[0]`, `[0, 1]`, `[0-9]`, `[2024-01]`), numbers above
    9999, falling ranges, and, unless such a number exists, years (1000 to 2999). A bracket right after a word cites, as
    many models write so, unless it looks like a subscript:
    - the word has an underscore, or begins in lower case and has a digit, a capital or a dot inside (`x1[1]`,
      `myList[1]`, `self.items[1]`; but `IPv6[1]`, `Node.js[1]`, `2024[1]` cite), or is one letter, or `arr` or its kin;
    - it follows a call or another subscript: `f(x)[1]`, `rows[i][1]` (but `(LQR)[1]`, `word(s)[1]`, `[text][1]` cite);
    - the text goes on like code: `users[1].name`, `x[1] = 2`, `grid[1][i]`, `handlers[1](event)`.
    After `=` or `∈`, or as the first thing in a call (`sum([1, 2])`), a bracket is a list. `before` is what stands
    before the text.
    """
    return _Marking(text, known, before[-_CONTEXT:]).run()


class _Marking:
    def __init__(self, text: str, known: Callable[[int], bool], before: str) -> None:
        self._text = text
        self._view = mask(text).text
        self._known = known
        self._past = before  # the end of what is done with, code and formulas hidden
        self._parts: list[str] = []
        self._numbers: list[int] = []

    def run(self) -> Marked:
        at = 0
        while opening := _OPENING.search(self._view, at):
            start = opening.start()
            self._keep(at, start)
            bracket = self._bracket(start)
            at = self._cite_all(start, bracket) if bracket else self._keep(start, start + 1)
        self._keep(at, len(self._text))
        return Marked("".join(self._parts), self._numbers)

    def _cite_all(self, start: int, bracket: _Bracket | None) -> int:
        """Cite what stands together from here on; where nothing is left of it, nothing may show that something was."""
        is_cited, gap, at = False, self._take_blank(), start
        while bracket:
            if bracket.numbers:  # the comma between stays, the blank before the citation does not
                if is_cited:
                    self._keep(at, start - (start > at and self._view[start - 1] in _BLANKS))
                is_cited = True
                self._numbers += bracket.numbers
                self._parts.append(CITED * len(bracket.numbers))
            self._past += CITED
            at = bracket.end
            joint = _JOINT.match(self._view, at)
            start = joint.end() if joint else at
            bracket = self._bracket(start)
        following = self._view[at : at + 1]
        if not is_cited and gap and following and following not in _CLOSES:
            self._parts.append(gap)
        elif not is_cited and not gap and following and following in _BLANKS and self._begins_line():
            return at + 1
        return at

    def _take_blank(self) -> str:
        """The blank before a citation, taken back."""
        if not self._parts or self._parts[-1][-1:] not in set(_BLANKS):
            return ""
        blank, self._parts[-1] = self._parts[-1][-1], self._parts[-1][:-1]
        return blank

    def _begins_line(self) -> bool:
        past = self._past.rstrip(CITED)
        return bool(_LINE_START.search(past)) or past.endswith("(")

    def _bracket(self, at: int) -> _Bracket | None:
        opening = self._view[at : at + 1]
        if opening == "(":
            return self._parenthesis(at)
        return self._citation(at) if opening in _PAIRS else None

    def _parenthesis(self, at: int) -> _Bracket | None:
        """A parenthesis that would be left with nothing in it."""
        whole = None if self._is_attached() else _ONLY_CITED.match(self._view, at, at + _LONGEST)
        if whole and all(numbers == [] for numbers in self._named(at, whole.end())):
            return _Bracket(whole.end(), [])
        return None

    def _named(self, at: int, end: int) -> Iterator[list[int] | None]:
        return (self._cited(bracket[0]) for bracket in _CITATION.finditer(self._view, at, end))

    def _citation(self, at: int) -> _Bracket | None:
        found = _CITATION.match(self._view, at, at + _LONGEST)
        numbers = self._cited(found[0]) if found else None
        if not found or numbers is None:
            return None
        is_id = bool(_CHUNK.fullmatch(found[0]))
        if not is_id and _ASSIGNED.search(self._past):
            return None
        end, rest = found.end(), self._view[found.end() : found.end() + 3]
        if self._view[at] != "[":
            return _Bracket(end, numbers)
        if rest[:1] == ":" and _LINE_START.search(self._past):
            return _Bracket(end + 1, []) if is_id else None
        if not is_id and self._is_attached() and (_GOES_ON.match(rest) or self._is_subscripted()):
            return None
        return self._linked(end, numbers) if rest[:1] == "(" else _Bracket(end, numbers)

    def _linked(self, end: int, numbers: list[int]) -> _Bracket | None:
        """A bracket with a parenthesis right after it: the target of a link goes with it, other text stays."""
        if self._past.endswith("!"):
            return None
        link, unclosed = link_target(self._text, end), _UNCLOSED_TARGET.match(self._text, end)
        after = link.end if link else len(self._text) if unclosed else end
        if self._is_attached() and not _ADDRESS_LIKE.search(self._text, end, after):
            return None
        return _Bracket(after, numbers)

    def _cited(self, bracket: str) -> list[int] | None:
        """The numbers in a bracket that exist; None if it does not cite."""
        if bracket[-1] != _PAIRS[bracket[0]]:
            return None
        if _CHUNK.fullmatch(bracket):
            return []
        cited: list[int] = []
        for one in _ONE.finditer(bracket.partition("†")[0]):
            figures = _DIGITS.findall(one[0])
            numbers = [int(figure) for figure in figures]
            first, last = numbers[0], numbers[-1]
            if any(figure.startswith("0") for figure in figures) or first > 9999 or first > last:
                return None
            if any(1000 <= number < 3000 and not self._known(number) for number in numbers):
                return None
            cited += filter(self._known, range(first, min(last, first + _RANGE - 1) + 1))
        return list(dict.fromkeys(cited))

    def _is_attached(self) -> bool:
        """Whether the bracket stands right after a word, a parenthesis or a bracket."""
        return self._past[-1:].isalnum() or self._past[-1:] in ("_", ")", "]")

    def _is_subscripted(self) -> bool:
        """Whether what stands right before a bracket looks like something that has a subscript."""
        before = self._past
        if before[-1] in ")]":
            start = _opening(before)
            inside, outside = before[start + 1 : -1], before[:start]
            if before[-1] == ")":
                return (outside[-1:].isalnum() or outside[-1:] == "_") and inside not in ("s", "es")
            return outside[-1:].isalnum() or outside[-1:] in ("_", "!", ")", "]") or inside.strip().isdigit()
        stem = _STEM.search(before)
        return bool(stem and not _NUMERAL.fullmatch(stem[0]) and _CODE_LIKE.fullmatch(stem[0].lstrip(".")))

    def _keep(self, start: int, end: int) -> int:
        if end > start:
            self._parts.append(self._text[start:end])
            self._past = (self._past + self._view[max(start, end - _CONTEXT) : end])[-_CONTEXT:]
        return end


def _opening(before: str) -> int:
    """Where the parenthesis or bracket opens that closes at the end; 0 if that is too far back."""
    opening, depth = ("(" if before[-1] == ")" else "["), 0
    for at in range(len(before) - 1, -1, -1):
        depth += (before[at] == before[-1]) - (before[at] == opening)
        if not depth:
            return at
    return 0

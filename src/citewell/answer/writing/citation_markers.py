"""Find the markers by which an LLM cites passages, `[1]`, `[2]`…, in a finished unit of its text. Pure.

Knows which numbers exist, nothing of the passages that they stand for.
"""

import re
from collections.abc import Callable

from citewell.answer.sanitize import CITATION_PLACEHOLDER, parse_link_target
from citewell.answer.writing.markdown import HIDDEN, mask

_RANGE = 100  # numbers that a range stands for at most, so that [1-999999999] costs nothing
_CONTEXT = 64  # characters before a bracket that are looked at
_LONGEST = 400  # characters of a bracket, or of a parenthesis around some
_PAIRS = {"[": "]", "【": "】", "［": "］"}
_BLANKS = (" ", "\t", "\u00a0", "\u202f")

_B = rf"[{''.join(_BLANKS)}]"
_NAMES = "sources? passages? references? refs? citations? documents? docs? excerpts?".replace(" ", "|")
_CUES = r"see also|see|cf\.|cf|e\.g\.|sources?:|ref:|from"

# [1]  [1, 3]  [1; 3]  [1-3]  [^1]  [Source 1]  [source: 1]  [ 1 ]  【1†source】  ［1］
_NUMBER = rf"(?:(?i:{_NAMES})\.?{_B}?[:#]?{_B}?)?\^?[0-9]{{1,9}}"
_SPAN = rf"{_NUMBER}(?:{_B}?[-–—‑]{_B}?{_NUMBER})?"
_COMMA = rf"{_B}?(?:[,;]{_B}?(?:(?:and|&){_B})?|{_B}(?:and|&){_B})"
_NOTE = rf"†[^\[\]【】［］\r\n{CITATION_PLACEHOLDER}{HIDDEN}]{{0,20}}"
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

# What tells a subscript from a citation: a name as code has it, a call, or another subscript before it; what follows.
_SUBSCRIPTED = re.compile(
    r"""(?:(?<![\w.])\.*(?![0-9.]+\Z)(?:[\w.]*_[\w.]*|[a-z](?=\w*[0-9A-Z]|\w*\.\w)[\w.]*|[A-Za-z]|arr|args?|argv|idx|vec|buf
        |ptr|tmp|nums|dp|lst) | \w\((?!e?s\))[^()]*\) | [\w!)\]]\[[^\[\]]*\] | \[\s*\d+\s*\])\Z""",
    re.VERBOSE,
)
_GOES_ON = re.compile(rf"\.[a-z_]|{_B}?(?:[=+%]|[-*/<>!]=)|\[(?![0-9^ \t\u00a0\u202f])")
_ASSIGNED = re.compile(r"(?:[=∈∉×≤≥]\s*|[\w]\()$")
_LINE_START = re.compile(r"(?:^|[\r\n])[ \t\u00a0\u202f>]*$")
_CLOSES = frozenset(".,;:!?)]}»”’…%\r\n" + "".join(_BLANKS))


_Bracket = tuple[int, list[int]]
"""Where a bracket that cites ends, and the known numbers in it."""


def mark_citations(text: str, known: Callable[[int], bool], *, before: str = "") -> tuple[str, list[int]]:
    """Replace each citation by `CITATION_PLACEHOLDER`, and list their numbers; `before` is the text before this one.

    mark_citations("Lift the foot [1, 9][3].", {1, 3}.__contains__) -> ("Lift the foot\\0\\0.", [1, 3])

    Cited is what stands in `[…]`, `【…】` or `［…］` and is made of numbers, ranges, commas and words such as "source".
    The blank before goes with it, since whoever shows a citation puts one. A number that does not exist goes without a
    trace: with its blank, with the comma that joined it to another, with the parenthesis it leaves empty. So do the id
    of a chunk (64 hexadecimal digits), which only endpoints may write, and the target of `[1](pumps.md)`.

    What is no citation stays, character for character: code and formulas, links with other texts, images, definitions
    (`[1]: …`), everything with a zero (`arr[0]`, `[0-9]`, `[2024-01]`), numbers above 9999, falling ranges, years that
    are no number of a passage, subscripts (`x1[1]`, `self.items[1]`, `f(x)[1]`, `rows[i][1]`, `users[1].name`; but
    `IPv6[1]`, `Node.js[1]`, `(LQR)[1]` and `word(s)[1]` cite), and lists (`x = [1, 2]`, `sum([1, 2])`).
    """
    return _Marking(text, known, before[-_CONTEXT:]).run()


class _Marking:
    def __init__(self, text: str, known: Callable[[int], bool], before: str) -> None:
        self._text, self._view, self._known = text, mask(text)[0], known
        self._past = before  # the end of what is done with, code and formulas hidden
        self._parts: list[str] = []
        self._numbers: list[int] = []

    def run(self) -> tuple[str, list[int]]:
        at = 0
        while opening := _OPENING.search(self._view, at):
            start = opening.start()
            self._keep(at, start)
            bracket = self._bracket(start)
            at = self._cite(start, bracket) if bracket else self._keep(start, start + 1)
        self._keep(at, len(self._text))
        return "".join(self._parts), self._numbers

    def _cite(self, start: int, bracket: _Bracket | None) -> int:
        """Cite what stands together from here on; where nothing is left of it, nothing may show that something was."""
        is_cited, gap, at, past = False, "", start, self._past
        if self._parts and self._parts[-1].endswith(_BLANKS):
            gap, self._parts[-1] = self._parts[-1][-1], self._parts[-1][:-1]
        while bracket:
            end, numbers = bracket
            if numbers and is_cited:  # the comma between stays, the blank before the citation does not
                self._keep(at, start - self._view[at:start].endswith(_BLANKS))
            is_cited = is_cited or bool(numbers)
            self._numbers += numbers
            self._parts.append(CITATION_PLACEHOLDER * len(numbers))
            self._past += CITATION_PLACEHOLDER
            at = end
            joint = _JOINT.match(self._view, at)
            start = joint.end() if joint else at
            bracket = self._bracket(start)
        following = self._view[at : at + 1]
        if not is_cited and gap and following and following not in _CLOSES:
            self._parts.append(gap)
        is_first = not gap and (_LINE_START.search(past) or past.endswith("("))
        return at + 1 if not is_cited and is_first and following and following in _BLANKS else at

    def _bracket(self, at: int) -> _Bracket | None:
        """What cites from here on, or a parenthesis that would be left with nothing in it."""
        if self._view[at : at + 1] in _PAIRS:
            return self._citation(at)
        whole = None if self._is_attached() else _ONLY_CITED.match(self._view, at, at + _LONGEST)
        brackets = _CITATION.findall(whole[0]) if whole else ()
        return (whole.end(), []) if whole and not any(self._cited(one) != [] for one in brackets) else None

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
            return (end, numbers)
        if rest[:1] == ":" and _LINE_START.search(self._past):
            return (end + 1, []) if is_id else None
        if not is_id and self._is_attached() and (_GOES_ON.match(rest) or _SUBSCRIPTED.search(self._past)):
            return None
        return self._linked(end, numbers) if rest[:1] == "(" else (end, numbers)

    def _linked(self, end: int, numbers: list[int]) -> _Bracket | None:
        """A bracket with a parenthesis right after it: the target of a link goes with it, other text stays."""
        if self._past.endswith("!"):
            return None
        link, unclosed = parse_link_target(self._text, end), _UNCLOSED_TARGET.match(self._text, end)
        after = link.end if link else len(self._text) if unclosed else end
        if self._is_attached() and not _ADDRESS_LIKE.search(self._text, end, after):
            return None
        return (after, numbers)

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

    def _keep(self, start: int, end: int) -> int:
        if end > start:
            self._parts.append(self._text[start:end])
            self._past = (self._past + self._view[max(start, end - _CONTEXT) : end])[-_CONTEXT:]
        return end

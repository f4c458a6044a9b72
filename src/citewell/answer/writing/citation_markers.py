"""Find the citation markers `[1]`, `[2]`… in a finished unit of an LLM's text. Pure.

Knows which numbers exist, and nothing of the passages that they stand for.
"""

import re
from collections.abc import Callable

from citewell.answer.sanitize import CITATION_PLACEHOLDER, parse_link_target
from citewell.answer.writing.markdown import HIDDEN, mask

_MAX_RANGE_NUMBERS = 100  # so that [1-999999999] costs nothing
_CONTEXT_CHARACTERS = 64  # examined before a bracket
_MAX_BRACKET_CHARACTERS = 400  # also of a parenthesis around brackets
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
_ID = r"[0-9a-fA-F]{64}"  # of a chunk: some endpoints cite by it, but no prompt contains one
_BRACKET = rf"[\[【［]{_B}?(?:{_ID}{_B}?|{_SPAN}(?:{_COMMA}{_SPAN})*{_B}?(?:{_NOTE})?)[\]】］]"
_CITATION_MARKER = re.compile(_BRACKET)
_NUMBER_OR_RANGE = re.compile(rf"({_NUMBER})(?:{_B}?[-–—‑]{_B}?({_NUMBER}))?")
_DIGITS = re.compile(r"[0-9]+")
_CHUNK_ID = re.compile(rf".{_B}?{_ID}{_B}?.")

# What joins neighbouring citation markers; a parenthesis that contains nothing else.
_JOIN = rf"(?:{_B}(?:and|or|&){_B}|{_B}?(?:[,;]{_B}?(?:(?:and|or|&){_B})?)?)"
_JOIN_BEFORE_BRACKET = re.compile(rf"{_JOIN}(?=[\[【［(])")
_LINKED = rf"{_BRACKET}(?:\([^\s()]*\))?"
_CITING_PARENTHESIS = re.compile(rf"\({_B}?(?:(?i:{_CUES}){_B}?)?{_LINKED}(?:{_JOIN}{_LINKED})*{_B}?\)")
_URL_CHARACTER = re.compile(r"[#/.:]")
_UNCLOSED_TARGET = re.compile(r"\([^\s()]*\Z")
_OPENING_BRACKET = re.compile(r"[\[【［(]")

# A subscript, not a citation: after a name as in code, a call or another subscript; or before more code.
_SUBSCRIPTED_NAME = re.compile(
    r"""(?:(?<![\w.])\.*(?![0-9.]+\Z)(?:[\w.]*_[\w.]*|[a-z](?=\w*[0-9A-Z]|\w*\.\w)[\w.]*|[A-Za-z]|arr|args?|argv|idx|vec|buf
        |ptr|tmp|nums|dp|lst) | \w\((?!e?s\))[^()]*\) | [\w!)\]]\[[^\[\]]*\] | \[\s*\d+\s*\])\Z""",
    re.VERBOSE,
)
_CODE_AFTER = re.compile(rf"\.[a-z_]|{_B}?(?:[=+%]|[-*/<>!]=)|\[(?![0-9^ \t\u00a0\u202f])")
_LIST_BEFORE = re.compile(r"(?:[=∈∉×≤≥]\s*|[\w]\()$")
_LINE_START = re.compile(r"(?:^|[\r\n])[ \t\u00a0\u202f>]*$")
_NO_BLANK_BEFORE = frozenset(".,;:!?)]}»”’…%\r\n" + "".join(_BLANKS))


_Marker = tuple[int, list[int]]
"""The end of a citation marker, and the known numbers in it."""


def mark_citations(text: str, is_known: Callable[[int], bool], *, before: str = "") -> tuple[str, list[int]]:
    """Replace each citation by `CITATION_PLACEHOLDER`, and list their numbers; `before` is the text before this one.

    mark_citations("Lift the foot [1, 9][3].", {1, 3}.__contains__) -> ("Lift the foot\\0\\0.", [1, 3])

    A citation marker is `[…]`, `【…】` or `［…］` of numbers, ranges, commas and words such as "source". The blank
    before it is removed, because one is added when a citation is shown. A number that does not exist is removed with
    its blank, the comma that joined it to another, and a parenthesis that would be empty. So are the id of a chunk (64
    hexadecimal digits), which only endpoints may write, and the target of `[1](pumps.md)`.

    Everything else stays unchanged: code and formulas, links with other texts, images, definitions (`[1]: …`), numbers
    with a leading zero (`arr[0]`, `[0-9]`, `[2024-01]`) or above 9999, falling ranges, years that are no number of a
    passage, subscripts (`x1[1]`, `self.items[1]`, `f(x)[1]`, `rows[i][1]`, `users[1].name`; but `IPv6[1]`,
    `Node.js[1]`, `(LQR)[1]` and `word(s)[1]` cite), and lists (`x = [1, 2]`, `sum([1, 2])`).
    """
    return _MarkerScanner(text, is_known, before[-_CONTEXT_CHARACTERS:]).scan()


class _MarkerScanner:
    def __init__(self, text: str, is_known: Callable[[int], bool], before: str) -> None:
        self._text, self._masked, self._is_known = text, mask(text)[0], is_known
        self._before = before  # the end of the text scanned so far, masked
        self._parts: list[str] = []
        self._numbers: list[int] = []

    def scan(self) -> tuple[str, list[int]]:
        position = 0
        while opening := _OPENING_BRACKET.search(self._masked, position):
            start = opening.start()
            self._keep(position, start)
            marker = self._parse_marker(start)
            position = self._replace_markers(start, marker) if marker else self._keep(start, start + 1)
        self._keep(position, len(self._text))
        return "".join(self._parts), self._numbers

    def _replace_markers(self, start: int, marker: _Marker | None) -> int:
        """Replace neighbouring markers and return their end; if no number is known, leave no blank or comma behind."""
        is_cited, gap, position, before = False, "", start, self._before
        if self._parts and self._parts[-1].endswith(_BLANKS):
            gap, self._parts[-1] = self._parts[-1][-1], self._parts[-1][:-1]
        while marker:
            end, numbers = marker
            if numbers and is_cited:  # keep the comma between them, not the blank
                self._keep(position, start - self._masked[position:start].endswith(_BLANKS))
            is_cited = is_cited or bool(numbers)
            self._numbers += numbers
            self._parts.append(CITATION_PLACEHOLDER * len(numbers))
            self._before += CITATION_PLACEHOLDER
            position = end
            joint = _JOIN_BEFORE_BRACKET.match(self._masked, position)
            start = joint.end() if joint else position
            marker = self._parse_marker(start)
        following = self._masked[position : position + 1]
        if not is_cited and gap and following and following not in _NO_BLANK_BEFORE:
            self._parts.append(gap)
        is_at_start = not gap and (_LINE_START.search(before) or before.endswith("("))
        return position + 1 if not is_cited and is_at_start and following and following in _BLANKS else position

    def _parse_marker(self, start: int) -> _Marker | None:
        """The citation marker at `start`, or a parenthesis that would be empty without its unknown numbers."""
        if self._masked[start : start + 1] in _PAIRS:
            return self._parse_bracket(start)
        parenthesis = _CITING_PARENTHESIS.match(self._masked, start, start + _MAX_BRACKET_CHARACTERS)
        if not parenthesis or self._is_attached():
            return None
        brackets = _CITATION_MARKER.findall(parenthesis[0])
        return (parenthesis.end(), []) if all(self._parse_numbers(bracket) == [] for bracket in brackets) else None

    def _parse_bracket(self, start: int) -> _Marker | None:
        match = _CITATION_MARKER.match(self._masked, start, start + _MAX_BRACKET_CHARACTERS)
        numbers = self._parse_numbers(match[0]) if match else None
        if not match or numbers is None:
            return None
        is_id = bool(_CHUNK_ID.fullmatch(match[0]))
        if not is_id and _LIST_BEFORE.search(self._before):
            return None
        end, following = match.end(), self._masked[match.end() : match.end() + 3]
        if self._masked[start] != "[":
            return (end, numbers)
        if following[:1] == ":" and _LINE_START.search(self._before):
            return (end + 1, []) if is_id else None
        is_code = _CODE_AFTER.match(following) or _SUBSCRIPTED_NAME.search(self._before)
        if is_code and self._is_attached() and not is_id:
            return None
        return self._parse_linked(end, numbers) if following[:1] == "(" else (end, numbers)

    def _parse_linked(self, end: int, numbers: list[int]) -> _Marker | None:
        """The marker with the parenthesis right after it, if that is a link target; other text stays."""
        if self._before.endswith("!"):
            return None
        link, unclosed = parse_link_target(self._text, end), _UNCLOSED_TARGET.match(self._text, end)
        link_end = link.end if link else len(self._text) if unclosed else end
        if self._is_attached() and not _URL_CHARACTER.search(self._text, end, link_end):
            return None
        return (link_end, numbers)

    def _parse_numbers(self, bracket: str) -> list[int] | None:
        """The known numbers in a bracket; None if it is no citation marker."""
        if bracket[-1] != _PAIRS[bracket[0]]:
            return None
        if _CHUNK_ID.fullmatch(bracket):
            return []
        known_numbers: list[int] = []
        for span in _NUMBER_OR_RANGE.finditer(bracket.partition("†")[0]):
            digits = _DIGITS.findall(span[0])
            numbers = [int(digit_run) for digit_run in digits]
            first, last = numbers[0], numbers[-1]
            if any(digit_run.startswith("0") for digit_run in digits) or first > 9999 or first > last:
                return None
            if any(1000 <= number < 3000 and not self._is_known(number) for number in numbers):
                return None
            known_numbers += filter(self._is_known, range(first, min(last, first + _MAX_RANGE_NUMBERS - 1) + 1))
        return list(dict.fromkeys(known_numbers))

    def _is_attached(self) -> bool:
        """Whether the text so far ends with a word, a parenthesis or a bracket."""
        return self._before[-1:].isalnum() or self._before[-1:] in ("_", ")", "]")

    def _keep(self, start: int, end: int) -> int:
        if end > start:
            self._parts.append(self._text[start:end])
            self._before += self._masked[max(start, end - _CONTEXT_CHARACTERS) : end]
            self._before = self._before[-_CONTEXT_CHARACTERS:]
        return end

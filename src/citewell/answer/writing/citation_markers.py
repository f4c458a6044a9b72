"""Find the citations in a finished unit of an LLM's text, whatever their shape. Pure.

Knows the shapes of citations and whether a name is one of a passage, and nothing else of passages.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from citewell.answer.sanitize import CITATION_PLACEHOLDER, parse_link_target
from citewell.answer.writing.markdown import HIDDEN, mask
from citewell.answer.writing.references import (
    BLANKS,
    BRACKETS,
    NUMBER_OR_RANGE,
    PARENTHESES,
    References,
    is_labelled_numbers,
    is_numbers,
    read_parenthesis,
    read_references,
)

_MAX_RANGE_NUMBERS = 100  # so that [1-999999999] costs nothing
_CONTEXT_CHARACTERS = 64  # examined before a bracket
_MAX_BRACKET_CHARACTERS = 400  # also of a parenthesis around brackets

_B = rf"[{''.join(BLANKS)}]"
_BRACKET = re.compile(
    rf"[\[【［](?P<inside>[^\[\]【】［］\r\n{CITATION_PLACEHOLDER}]{{1,{_MAX_BRACKET_CHARACTERS}}})[\]】］]"
)
_PARENTHESIS = re.compile(rf"[(（](?P<inside>[^()（）\[\]【】［］\r\n{CITATION_PLACEHOLDER}{HIDDEN}]{{1,200}})[)）]")
_OUTER_OPENING = re.compile(rf"[(（\[]{_B}?(?:(?i:see also|see|cf\.|cf|e\.g\.|sources?:|ref:|from){_B}?)?(?=[\[【［])")
_OUTER_CLOSING = re.compile(rf"{_B}?[)）\]]")
_DIGITS = re.compile(r"[0-9]+")
_CHUNK_ID = re.compile(r"[0-9a-fA-F]{64}")
_HASH = re.compile(r"[0-9a-fA-F-]{6,64}")  # of an id; "ref1" may as well be the name of a link

# What joins neighbouring citation markers.
_JOIN = rf"(?:{_B}(?:and|or|&){_B}|{_B}?(?:[,;]{_B}?(?:(?:and|or|&){_B})?)?)"
_JOIN_BEFORE_BRACKET = re.compile(rf"{_JOIN}(?=[\[【［(（])")
_SHORT_TARGET = re.compile(r"\([^\s()]*\)")
_URL_CHARACTER = re.compile(r"[#/.:]")
_UNCLOSED_TARGET = re.compile(r"\([^\s()]*\Z")
_OPENING_BRACKET = re.compile(r"[\[【［(（]")
_EMPHASIS = re.compile(r"(?:\*{1,3}|_{1,3})\Z")
_OPENING_EMPHASIS = re.compile(r"(?:(?<=[\s(>])|(?<![^\r\n]))(?:\*{1,3}|_{1,3})\Z")

# A subscript, not a citation: after a name as in code, a call or another subscript; or before more code.
_SUBSCRIPTED_NAME = re.compile(
    r"""(?:(?<![\w.])\.*(?![0-9.]+\Z)(?:[\w.]*_[\w.]*|[a-z](?=\w*[0-9A-Z]|\w*\.\w)[\w.]*|[A-Za-z]|arr|args?|argv|idx|vec|buf
        |ptr|tmp|nums|dp|lst) | \w\((?!e?s\))[^()]*\) | [\w!)\]]\[[^\[\]]*\] | \[\s*\d+\s*\])\Z""",
    re.VERBOSE,
)
_CODE_AFTER = re.compile(rf"\.[a-z_]|{_B}?(?:[=+%]|[-*/<>!]=)|\[(?![0-9^ \t\u00a0\u202f])")
_LIST_BEFORE = re.compile(r"(?:[=∈∉×≤≥]\s*|[\w]\(|(?<!\[)\[(?:\[[\d., -]*\][, ]*)*)$")
_LINE_START = re.compile(r"(?:^|[\r\n])[ \t\u00a0\u202f>]*$")
_NO_BLANK_BEFORE = frozenset(".,;:!?)]}»”’…%\r\n" + "".join(BLANKS))


_ARROW_AFTER = re.compile(rf"{_B}?(?:[-=]>|\{{)")  # of a function: (source: string) => …

Resolver = Callable[[str], Sequence[int]]
"""Finds the numbers of the passages that a reference names: "2", "pumps.md", "308b9271"; empty if it names none."""


class _Marker(NamedTuple):
    """A citation marker: where it ends, and the numbers of the passages that it cites."""

    end: int
    numbers: list[int]


class _Bracket(NamedTuple):
    """A bracket that is a citation, as far as can be told without the text around it."""

    end: int
    numbers: list[int]
    inside: str
    is_name: bool
    """Whether it may as well be the text of a link."""
    is_id: bool
    """Whether it is an id, and not a number or a name."""


def mark_citations(text: str, resolve: Resolver, *, before: str = "") -> tuple[str, list[int]]:
    """Replace each citation by `CITATION_PLACEHOLDER`, and list the numbers; `before` is the text before this one.

    mark_citations("Lift the foot [1, 9][feet.md].", resolve) -> ("Lift the foot\\0\\0.", [1, 3])

    A citation is a bracket `[…]`, `【…】` or `［…］` of numbers, ranges, commas and words such as "source", or of what
    else can name a passage: an id or a part of one, a file, a chunk of a document. So is `(source 3)`. What names no
    passage is removed, with its blank, the comma that joined it to another, and a parenthesis that would be empty. A
    bracket that is no citation by its shape is one if it names a passage. The blank before a citation is removed,
    because one is added when a citation is shown. The target of `[1](pumps.md)` is removed.

    Everything else stays unchanged: code and formulas, links with other texts, images, definitions (`[1]: …`), numbers
    with a leading zero (`arr[0]`, `[0-9]`, `[2024-01]`) or above 9999, falling ranges, years that are no number of a
    passage, words (`[optional]`), subscripts (`x1[1]`, `self.items[1]`, `f(x)[1]`, `rows[i][1]`, `users[1].name`; but
    `IPv6[1]`, `Node.js[1]`, `(LQR)[1]` and `word(s)[1]` cite), and lists (`x = [1, 2]`, `sum([1, 2])`).
    """
    return _MarkerScanner(text, resolve, before[-_CONTEXT_CHARACTERS:]).scan()


class _MarkerScanner:
    def __init__(self, text: str, resolve: Resolver, before: str) -> None:
        self._text, self._masked, self._resolve = text, mask(text)[0], resolve
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
        """Replace neighbouring markers and return their end; if they cite nothing, leave no blank or comma behind."""
        is_cited, position, before, last = False, start, self._before, len(self._parts) - 1
        gap = self._take_blank(last)
        while marker:
            end, numbers = marker
            if numbers and is_cited:  # keep the comma between them, not the blank
                self._keep(position, start - self._masked[position:start].endswith(BLANKS))
            is_cited = is_cited or bool(numbers)
            self._numbers += numbers
            self._parts.append(CITATION_PLACEHOLDER * len(numbers))
            self._before += CITATION_PLACEHOLDER
            position = end
            joint = _JOIN_BEFORE_BRACKET.match(self._masked, position)
            start = joint.end() if joint else position
            marker = self._parse_marker(start)
        emphasis = (_OPENING_EMPHASIS if is_cited else _EMPHASIS).search(before)
        if emphasis and last >= 0 and self._masked.startswith(emphasis[0], position):
            self._parts[last] = self._parts[last].removesuffix(emphasis[0])
            position, gap, before = position + len(emphasis[0]), self._take_blank(last), before[: emphasis.start()]
        if is_cited:
            return position
        following = self._masked[position : position + 1]
        if gap and following and following not in _NO_BLANK_BEFORE:
            self._parts.append(gap)
        is_at_start = not gap and (_LINE_START.search(before) or before.endswith("("))
        return position + 1 if is_at_start and following and following in BLANKS else position

    def _take_blank(self, part: int) -> str:
        """Remove the blank at the end of the text so far, and return it; empty if there is none."""
        if part < 0 or not self._parts[part].endswith(BLANKS):
            return ""
        blank, self._parts[part] = self._parts[part][-1], self._parts[part][:-1]
        return blank

    def _parse_marker(self, start: int) -> _Marker | None:
        """The citation marker at `start`, or a parenthesis that would be empty without what it cites."""
        opening = self._masked[start : start + 1]
        if opening in BRACKETS:
            return self._parse_bracket(start) or self._parse_outer(start)
        return (self._parse_outer(start) or self._parse_parenthesis(start)) if opening in PARENTHESES else None

    def _parse_bracket(self, start: int) -> _Marker | None:
        bracket = self._read_bracket(start)
        if bracket is None:
            return None
        is_chunk_id = bool(_CHUNK_ID.fullmatch(bracket.inside))
        if not is_chunk_id and _LIST_BEFORE.search(self._before):
            return None
        end, following = bracket.end, self._masked[bracket.end : bracket.end + 3]
        if self._masked[start] != "[":
            return _Marker(end, bracket.numbers)
        if following[:1] == ":" and _LINE_START.search(self._before):
            return _Marker(end + 1, bracket.numbers) if _HASH.fullmatch(bracket.inside) else None
        is_code = _CODE_AFTER.match(following) or _SUBSCRIPTED_NAME.search(self._before)
        if is_code and self._is_attached() and not is_chunk_id:
            return None
        return self._parse_linked(bracket) if following[:1] == "(" else _Marker(end, bracket.numbers)

    def _parse_linked(self, bracket: _Bracket) -> _Marker | None:
        """The marker with the parenthesis right after it, if that is a link target; other text stays.

        A link whose text is a name, such as `[pumps.md](pumps.md)`, is a citation only if its target names the same.
        """
        if self._before.endswith("!"):
            return None
        link, unclosed = parse_link_target(self._text, bracket.end), _UNCLOSED_TARGET.match(self._text, bracket.end)
        link_end = link.end if link else len(self._text) if unclosed else bracket.end
        if self._is_attached() and not _URL_CHARACTER.search(self._text, bracket.end, link_end):
            return None
        if link and self._links_itself(bracket, link.target):
            return None
        if bracket.is_name and (link or unclosed):
            same = bracket.numbers and link and list(self._resolve(link.target)) == bracket.numbers
            return _Marker(link_end, bracket.numbers) if same else None
        return _Marker(link_end, bracket.numbers)

    @staticmethod
    def _links_itself(bracket: _Bracket, target: str) -> bool:
        """Whether it names no passage and is the text of a link: `[4f4ed2d](https://example.org/commit/4f4ed2d)`."""
        return bracket.is_id and not bracket.numbers and bracket.inside in target

    def _parse_outer(self, start: int) -> _Marker | None:
        """`([9])`, `(see [8], [9])` or `[[9]]`: removed if nothing in it is cited; `[[1]]` cites as `[1]`."""
        opening = _OUTER_OPENING.match(self._masked, start)
        is_double = self._masked.startswith("[[", start)
        if not opening or (is_double and _LIST_BEFORE.search(self._before)):
            return None
        position, limit, numbers = opening.end(), start + _MAX_BRACKET_CHARACTERS, list[int]()
        may_be_call = not is_double and self._is_attached()  # f([9])
        while (bracket := self._read_bracket(position)) and bracket.end < limit:
            if bracket.numbers and (not is_double or len(bracket.numbers) > 1):
                return None
            numbers += bracket.numbers
            is_name = bracket.is_id or bracket.is_name
            may_be_call = may_be_call and (bracket.inside.isidentifier() or not is_name)
            target = _SHORT_TARGET.match(self._masked, bracket.end)
            if target and self._links_itself(bracket, target[0]):
                return None
            position = target.end() if target else bracket.end
            joint = _JOIN_BEFORE_BRACKET.match(self._masked, position)
            position = joint.end() if joint else position
        closing = _OUTER_CLOSING.match(self._masked, position) if position > opening.end() else None
        if may_be_call or not closing or closing[0][-1] != {**BRACKETS, **PARENTHESES}[self._masked[start]]:
            return None
        link = parse_link_target(self._text, closing.end()) if self._masked.startswith("(", closing.end()) else None
        return _Marker(link.end if link else closing.end(), numbers)

    def _parse_parenthesis(self, start: int) -> _Marker | None:
        """`(source 3)`, `(source: Pumps)`, `(see pumps.md)`."""
        match = _PARENTHESIS.match(self._masked, start)
        if not match or match[0][-1] != PARENTHESES[match[0][0]]:
            return None
        inside = match["inside"].strip("".join(BLANKS))
        if is_labelled_numbers(inside):
            numbers = self._parse_numbers(inside)
            return None if numbers is None else _Marker(match.end(), numbers)
        if (match[0][0] == "(" and self._is_attached()) or _ARROW_AFTER.match(self._masked, match.end()):
            return None
        references = read_parenthesis(inside)
        found = self._resolve_references(references) if references else None
        return None if found is None else _Marker(match.end(), found)

    def _read_bracket(self, start: int) -> _Bracket | None:
        """The bracket at `start` if it is a citation, whatever is around it."""
        match = _BRACKET.match(self._masked, start)
        if not match or match[0][-1] != BRACKETS[match[0][0]]:
            return None
        inside = match["inside"].strip("".join(BLANKS))
        if HIDDEN in inside:
            code = self._text[match.start("inside") : match.end("inside")].strip("".join(BLANKS))
            if set(inside) != {HIDDEN} or not code.startswith("`"):
                return None
            inside = code.strip("`")
        if is_numbers(inside.partition("†")[0].strip("".join(BLANKS))):
            numbers = self._parse_numbers(inside.partition("†")[0])
            if numbers or (numbers is not None and "†" not in inside):
                return _Bracket(match.end(), numbers, inside, is_name=False, is_id=False)
        references = read_references(inside)
        found = self._resolve_references(references) if references else None
        if references is None or found is None:
            return None
        return _Bracket(match.end(), found, inside, is_name=not references.is_id, is_id=references.is_id)

    def _resolve_references(self, references: References) -> list[int] | None:
        """The numbers of the passages that are named; None if that shows that it is no citation."""
        whole, *parts = references.names
        by_name = (
            [list(self._resolve(whole))]
            if self._resolve(whole) or not parts
            else [list(self._resolve(part)) for part in parts]
        )
        if not references.is_certain and not all(by_name):
            return None
        return list(dict.fromkeys(number for numbers in by_name for number in numbers))

    def _parse_numbers(self, text: str) -> list[int] | None:
        """The known numbers in a text of numbers and ranges; None if it is no citation."""
        known_numbers: list[int] = []
        for span in NUMBER_OR_RANGE.finditer(text):
            digits = _DIGITS.findall(span[0])
            numbers = [int(digit_run) for digit_run in digits]
            first, last = numbers[0], numbers[-1]
            if any(digit_run.startswith("0") for digit_run in digits) or first > 9999 or first > last:
                return None
            if any(1000 <= number < 3000 and not self._resolve(str(number)) for number in numbers):
                return None
            for number in range(first, min(last, first + _MAX_RANGE_NUMBERS - 1) + 1):
                known_numbers += self._resolve(str(number))
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

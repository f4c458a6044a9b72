"""What stands around each unit of a passage: the sentence it needs, the list it is in, what it introduces. Pure.

A unit is a sentence, list item, table row, code block or formula. Knows one passage and no question.
"""

import re
from functools import cached_property

from citewell.models import Passage
from citewell.text import Unit, announced_units, split_units, unit_text

MAX_CHARACTERS = 800
"""The longest answer made of quotes, in characters."""

_MAX_CONTEXT_CHARACTERS = 240  # of a sentence that is quoted only because the next one needs it
_MAX_CONTEXT_SENTENCES = 2
_MAX_CONTINUATION_CHARACTERS = 120
_MIN_CHARACTERS_WITHOUT_INTRODUCED = 60  # "For example:" says nothing without the code that follows

_CONTINUES_A_THOUGHT = re.compile(  # a sentence that begins in the middle of a thought
    r"""^\W*(?:this|these|those|it|they|he|she|its|their|his|her|such|both|neither|here|then|so|but|and|also|however
             |therefore|thus|hence|if\ (?:not|so)|instead|otherwise|similarly|in\ contrast|for\ example|for\ instance
             |as\ a\ result|the\ (?:former|latter|other|same|first|second|third|result)
             |where(?=\ [$`*\w]+\ (?:is|are)\b))\b
      | ^\W*because\b(?!\ of\b)[^,]*$ | ^\W*(?:one|another)\ (?:is|was)\b
      | ^\W*\w+\ (?:it|them)\b | ^[^,:;]*\b(?:do|does|did)(?:\ not)?\W*$
      | ^\W*as\ (?:mentioned|described|noted|shown|seen|discussed)\ (?:above|before|earlier)\b
      | ^\W*that(?:'s|\ (?:is|was|means|makes|leaves|would|can|may|\w+s))\b
      | ^\W*(?:if|when|for|in|at|with|after|before|from|by|on|to|of|because\ of)\ that\ \w+""",
    re.IGNORECASE | re.VERBOSE,
)
_REFERS_BACK = re.compile(  # one that can be read alone, and better after the one before
    r"\b(?:this|these|those)\b|\bthat (?:question|case|way|reason|problem|idea|rule|number|value|amount|time)\b",
    re.IGNORECASE,
)
_EXPLETIVE = re.compile(
    r"^\W*(?:it\ is\ \w+\ (?:to|that)|so\ (?:that|far|as)|then\ there)\b", re.IGNORECASE | re.VERBOSE
)
_CAPTION = re.compile(r"^\W*(?:figure|fig\.|table|listing|image)\ \d", re.IGNORECASE | re.VERBOSE)
_ONLY_A_LINK = re.compile(r"^\W*\[[^\]]+\]\(\S+\)(?:\s*[-–—:(].*)?$")
_PROMISES_TO_TEACH = re.compile(
    r"\byou(?:\ will|'ll)\ (?:be\ able|learn|understand|know)\b", re.IGNORECASE | re.VERBOSE
)
_LABEL_LINE = re.compile(
    r"""^[ \t>]*(?:(?P<heading>\#{1,6}[ \t].+) | \*\*[^*\n]+\*\*:? | <TabItem\b[^>\n]*>
                 | [`~:]{3,}\{tab(?:-item)?\}.*)[ \t]*$""",
    re.MULTILINE | re.VERBOSE,
)
_MAX_UNITS_OF_LABEL = 2  # under a tab or bold line; what follows may stand after the tabs
_BLANK = re.compile(r"[\s>]*")
_LIST_MARKER = re.compile(r"[\s>]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")


_POINTS_ELSEWHERE = re.compile(  # to another page, where the answer may be
    r"""^\W*(?:(?:please\s+)?(?:see|read|check(?:\s+out)?|refer\s+to|consult|visit|have\s+a\s+look\s+at)\b(?![^.]*`)[^.:]*\.?$
        |for\s+(?:more|further|additional|a\s+(?:full|complete|more))\b[^.]*\b(?:see|read|check|refer|visit|consult|have)\b.*$
        |(?:below|here|following)\s+(?:is|are)\s+(?:some|a\s+few|more|the)\s+(?:guides?|links?|resources?|examples?)\b.*$
        |\W*\{(?:doc|ref)\}`[^`]*`\W*.*$)""",
    re.IGNORECASE | re.VERBOSE,
)


class PassageUnits:
    """A passage split into units once, to look up what stands before, after and around each of them."""

    def __init__(self, passage: Passage, quotable: set[Unit]) -> None:
        self.passage = passage
        self.text = passage.chunk.text
        self._quotable = quotable

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        return split_units(self.text)

    @cached_property
    def _index_by_unit(self) -> dict[Unit, int]:
        return {unit: index for index, unit in enumerate(self.units)}

    def unit_text(self, unit: Unit) -> str:
        return unit_text(self.text, unit)

    def is_uninformative(self, unit: Unit) -> bool:
        """Whether a unit answers nothing by itself: a question, a promise to teach, a caption, a bare link, "See
        the API docs.", or a few words that introduce more than can be quoted."""
        if unit.kind not in ("sentence", "item"):
            return False
        words = self.unit_text(unit)
        introduction = self.introduction(unit)
        return bool(
            words.rstrip("*_ ").endswith("?")
            or _CAPTION.match(words)
            or _ONLY_A_LINK.match(words)
            or _PROMISES_TO_TEACH.search(self.unit_text(introduction) if introduction else words)
            or _POINTS_ELSEWHERE.match(words)
            or (len(words) < _MIN_CHARACTERS_WITHOUT_INTRODUCED and self._introduces_too_much(unit))
        )

    def _introduces_too_much(self, unit: Unit) -> bool:
        return sum(len(self.unit_text(following)) for following in self.introduced_units(unit)) > MAX_CHARACTERS

    @cached_property
    def _label_lines(self) -> list[re.Match[str]]:
        """The headings, bold lines and tab labels."""
        return list(_LABEL_LINE.finditer(self.text))

    def labels(self, unit: Unit) -> list[str]:
        """What a unit stands under, nearest first: the sentence before code, the tab or bold line, the headings."""
        index = self._index_by_unit[unit]
        lead = self.introduction(unit)
        labels = [self.unit_text(lead)] if lead else []
        nearest = next((label for label in reversed(self._label_lines) if label.end() <= unit.start), None)
        if nearest:
            between = sum(1 for other in self.units[:index] if other.start > nearest.end())
            if nearest["heading"] or between < _MAX_UNITS_OF_LABEL:
                labels.append(nearest[0])
        return [*labels, *reversed(self.passage.chunk.headings), self.passage.chunk.chapter]

    def preceding_context(self, unit: Unit) -> list[Unit] | None:
        """The sentences of its paragraph that a unit cannot be understood without.

        None where it cannot stand alone and that context is too long, too far away, or not in the paragraph.
        """
        needed = [unit]
        while self._refers_back(needed[0]):
            index = self._index_by_unit[needed[0]]
            previous = self.units[index - 1] if index else None
            if previous and previous not in self._quotable:
                break  # this reader has seen it already
            if (
                previous is None
                or len(needed) > _MAX_CONTEXT_SENTENCES
                or not self._in_one_paragraph(previous, needed[0])
                or len(self.unit_text(previous)) > _MAX_CONTEXT_CHARACTERS
            ):
                return None if self._continues_a_thought(needed[0]) else needed[:-1]
            needed.insert(0, previous)
        return needed[:-1]

    def continuation(self, unit: Unit) -> list[Unit]:
        """The short sentence after a sentence that goes on with its thought: "It is faster."."""
        index = self._index_by_unit[unit] + 1
        following = self.units[index] if index < len(self.units) else None
        if following is None or following not in self._quotable or not self._in_one_paragraph(unit, following):
            return []
        goes_on = self._continues_a_thought(following) and not self.introduced_units(following)
        is_short = len(self.unit_text(following)) <= _MAX_CONTINUATION_CHARACTERS
        return [following] if goes_on and is_short and not self.is_uninformative(following) else []

    def introduced_units(self, unit: Unit) -> list[Unit]:
        """The code, formula, table or list that a unit introduces; a list up to its end."""
        following = announced_units(self.text, unit, self.units[self._index_by_unit[unit] + 1 :])
        is_list = following and following[0].kind == "item"
        return self.list_items(following[0])[: len(following)] if is_list else following

    def numbered_steps(self, unit: Unit) -> list[Unit]:
        """The rest of a sentence's paragraph and the numbered list after it, or the numbered list an item is in."""
        begin = index = self._index_by_unit[unit] + (unit.kind == "sentence")
        while index < len(self.units) and self._in_one_paragraph(self.units[index - 1], self.units[index]):
            index += 1
        first = self.units[index] if index < len(self.units) else None
        if first is None or first.kind != "item" or not self.item_line(first).lstrip()[:1].isdigit():
            return []
        follows = first is unit or self.is_adjacent(self.units[index - 1], first)
        return [*self.units[begin:index], *self.list_items(first)] if follows else []

    def list_items(self, unit: Unit) -> list[Unit]:
        """All items of the list that an item is in; any other unit alone."""
        return self._lists[self._index_by_unit[unit]]

    @cached_property
    def _lists(self) -> list[list[Unit]]:
        """For each unit the list it is in; the items of a list share one object, since lists may be long."""
        lists: list[list[Unit]] = []
        for unit in self.units:
            last = lists[-1][-1] if lists else None
            same_list = last and last.kind == unit.kind == "item" and self.is_adjacent(last, unit)
            lists.append(lists[-1] if same_list else [])
            lists[-1].append(unit)
        return lists

    def introduction(self, unit: Unit) -> Unit | None:
        """The sentence that introduces a code block, a formula, or the list that an item is in."""
        first = self.list_items(unit)[0]
        index = self._index_by_unit[first]
        lead = self.units[index - 1] if index else None
        if lead is None or lead.kind != "sentence" or lead not in self._quotable or not self.is_adjacent(lead, first):
            return None
        words = self.unit_text(lead)
        introduces = unit.kind in ("code", "math") or (unit.kind == "item" and words.rstrip("*_ ").endswith(":"))
        return lead if introduces and len(words) <= _MAX_CONTEXT_CHARACTERS else None

    def is_adjacent(self, unit: Unit, following: Unit) -> bool:
        """Whether nothing but space, or the marker of a list item, stands between two units."""
        begin = following.header[0] if following.header else following.start
        between = self.text[unit.end : max(begin, unit.end)]
        return bool((_LIST_MARKER if following.kind == "item" else _BLANK).fullmatch(between))

    def item_line(self, item: Unit) -> str:
        """A list item with its marker and indentation."""
        begin = self.text.rfind("\n", 0, item.start) + 1
        marker = self.text[begin : item.start]
        if marker.lstrip().startswith(">"):
            marker = marker.lstrip("> \t")  # without the mark of a block quotation
        return f"{marker}{self.unit_text(item)}"

    def separator(self, unit: Unit, following: Unit) -> str | None:
        """What to put between two units in one quote; None where they do not belong together."""
        same_table = unit.kind == following.kind == "row" and unit.header == following.header
        if same_table and (unit.header or self.is_adjacent(unit, following)):
            return "\n"
        if following.kind == "item" and (unit == self.introduction(following) or unit in self.list_items(following)):
            return "\n"
        if not self.is_adjacent(unit, following):
            return None
        if unit.kind == following.kind == "sentence":
            return " "
        return "\n" if following.kind == "item" else "\n\n"

    def _continues_a_thought(self, unit: Unit) -> bool:
        """Whether a sentence begins with a reference to the one before it, so that it cannot stand alone."""
        words = self.unit_text(unit)
        return unit.kind == "sentence" and bool(_CONTINUES_A_THOUGHT.match(words)) and not _EXPLETIVE.match(words)

    def _refers_back(self, unit: Unit) -> bool:
        """Whether any part of a sentence refers to something named before it."""
        if self._continues_a_thought(unit):
            return True
        return unit.kind == "sentence" and bool(_REFERS_BACK.search(self.unit_text(unit)))

    def _in_one_paragraph(self, unit: Unit, following: Unit) -> bool:
        """Whether a sentence and the unit after it stand in one paragraph."""
        if unit.kind != "sentence" or not self.is_adjacent(unit, following):
            return False
        return "\n\n" not in self.text[unit.end : following.start]

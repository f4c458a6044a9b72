"""Turn the headings of a document into questions that a reader might ask. Pure.

A heading that is a question stays as it is, in any language. Others become one only in English, and only where a rule
makes good English of them: how its author says a thing in the text decides which article it takes and what is spelt
with a capital. Whether the document answers is not known here.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from citewell.text import (
    ENGLISH,
    FENCE,
    closes_fence,
    content_words,
    data_file,
    detect_language,
    function_words,
    mostly_non_latin,
    split_words,
    word_set,
)

_SHORTEST, _LONGEST = 8, 80  # characters of a question
_MOST_WORDS = 12
_PARTS = ("chapter", "part", "section", "step", "lesson", "unit", "module", "appendix", "week", "day")
_NUMBERED = re.compile(
    rf"^(?:(?:{'|'.join(_PARTS)})\s+)?(?:\d+(?:\.\d+)*|[ivxIVX]+(?=[.):]))\s*[.):–—-]?\s+", re.IGNORECASE
)
_EMPHASIS = re.compile(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)")
# Code, formulas, file names, options, links and dates have no place in a question that everybody understands.
_CODE = re.compile(r"[`<>{}\[\]=|\\$@#~^+]|\(\)|::|->|--|\w_\w|\w/\w|\w\.\w|[a-z][A-Z]\w*[A-Z(]|\bv?\d+\.\d")
_ASKS = re.compile(r"[?？؟]\s*$")
_POINTS = re.compile(  # at what stands before it, or at somebody
    r"\b(?:it|its|this|that|these|those|they|them|their|here|there|above|below|following|else|then|next|now|so"
    r"|i|my|me|we|our|us|you|your|he|she|his|her)\b",
    re.IGNORECASE,
)
_FRONT_MATTER = word_set("heading-words.txt")
"""Headings of nothing but these stand in every book, and ask nothing."""
_AUXILIARY = r"(?:is|are|was|were|can|could|should|must|may|will|would)"
_MAKES = (  # a heading, and the question that it stands for
    (re.compile(r"how to (?P<do>.+)", re.IGNORECASE), "How do you {do}?"),
    (re.compile(rf"(?P<how>how|why|where) (?P<who>.+?) (?P<is>{_AUXILIARY}) (?P<what>.+)", re.IGNORECASE),
     "{how} {is} {who} {what}?"),
    (re.compile(r"what (?P<who>.+) does", re.IGNORECASE), "What does {who} do?"),
    (re.compile(r"what (?P<who>.+) (?P<is>is|are)", re.IGNORECASE), "What {is} {who}?"),
    (re.compile(r"when (?P<what>.+ .+)", re.IGNORECASE), "What happens when {what}?"),
    (re.compile(r"(?P<which>which \S+ .+)", re.IGNORECASE), "{which}?"),
)  # fmt: skip
_GERUNDS = [line.split() for line in data_file("gerunds.txt").read_text(encoding="utf-8").splitlines()]
_VERBS = {gerund: verb for gerund, verb, *_ in _GERUNDS}
"""Of what one does with things, "choosing", the verb: "choose". Others, "timing", may be things themselves."""
_DESCRIBING = frozenset(gerund for gerund, _, *starred in _GERUNDS if starred)
"""Those that often stand before what they describe: "training data", "building blocks"."""
_DOES = frozenset(_VERBS.values())
_DETERMINED = re.compile(r"(?:an?|the|your|all|each|every|from|with|without|in|into|to|on|for)\b", re.IGNORECASE)
_INSIDE = re.compile(r"\s(?:of|for|in|on|at|to|from|with|between|by|as|under|over)\s")
_JOINED = re.compile(r"[,;:&/()]|\s(?:and|or|vs\.?|versus)\s", re.IGNORECASE)
_SINGULAR = ("ss", "us", "is", "ics", "series", "news", "lens")  # endings that look like a plural's
_UNCOUNTED = ("ing", "tion", "sion", "ics", "ity", "ism", "ment", "sis", "logy", "ance", "ence")
_SURELY = 2  # times that a text says "the …" before a single word, or several things, are called so
_POINTING = frozenset(["this", "that", "these", "those", "its", "their", "his", "her"])
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+>|]|\d{1,3}[.)])\s)")
_SMALL = re.compile(r"\b[a-z][\w’'-]*")
_LARGE = re.compile(r"(?<=[a-z,;] )[A-Z][\w’'-]*")
_BEFORE = re.compile(r"(?:^|(?:^|[\s(*“\"])(?P<word>[A-Za-z]+)\s+[*_“\"]{0,3}|[.!?]\s+[-*+>|]?\s*)$")
_AFTER = re.compile(r"[*_”\"]{0,3}(?:\s*[.,;:!?)]|\s+(?P<word>[a-z]+)\b)")
_NEAR = 40  # characters around a thing that are looked at
_NOT_PROSE = re.compile(r"^[ \t]*#{1,6}[ \t].*$|`[^`\n]*`|\]\([^)\s]*\)|\w+://\S+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HeadingQuestion:
    """A question, and how good a first question it is; the least `rank` is the best."""

    question: str
    rank: int


def heading_questions(headings: Iterable[str], text: str) -> list[HeadingQuestion]:
    """What the headings of a document ask, best first, in their order where they are as good; each once.

    questions(["Capture point", "Summary", "Choosing footholds"], "… the capture point is …")
        -> [Phrased("What is the capture point?", 1), Phrased("How do you choose footholds?", 2)]
    """
    body = _Text.of(text)
    phrased: dict[str, HeadingQuestion] = {}
    for heading in dict.fromkeys(headings):
        if (found := _phrased(_bare(heading), body)) and _fits(found.question):
            vague = len(content_words(found.question)) < 2
            phrased.setdefault(found.question.casefold(), HeadingQuestion(found.question, found.rank + 2 * vague))
    return sorted(phrased.values(), key=lambda one: one.rank)


@dataclass(frozen=True, slots=True)
class _Text:
    """A document's prose on one line, and how often each word is small in it, or large in the middle of a sentence."""

    prose: str
    small: Counter[str]
    large: Counter[str]
    english: bool

    @classmethod
    def of(cls, text: str) -> "_Text":
        prose = " ".join(_PARAGRAPH.sub(" . ", _NOT_PROSE.sub("", _unfenced(text))).split())
        english = detect_language(prose) == ENGLISH and not mostly_non_latin(prose)
        return cls(prose, Counter(_SMALL.findall(prose)), Counter(_LARGE.findall(prose)), english)


def _unfenced(text: str) -> str:
    """Without its listings; one that never closes goes on to the end."""
    lines: list[str] = []
    open_fence = ""
    for line in text.splitlines():
        if open_fence:
            open_fence = "" if closes_fence(line, open_fence) else open_fence
        elif opening := FENCE.match(line):
            open_fence = opening["fence"]
        else:
            lines.append(line)
    return "\n".join(lines)


def _bare(heading: str) -> str:
    """Without its number and emphasis, on one line."""
    line = " ".join(_EMPHASIS.sub("", heading).split())
    return _NUMBERED.sub("", line).strip(" .:–—-")


def _fits(question: str) -> bool:
    many = len(question.split()) > _MOST_WORDS
    return _SHORTEST <= len(question) <= _LONGEST and not many and question.isprintable()


def _phrased(heading: str, text: _Text) -> HeadingQuestion | None:
    if _CODE.search(heading) or not any(mark.isalpha() for mark in heading):
        return None
    if _ASKS.search(heading):
        return None if _POINTS.search(heading) or ":" in heading else _as_it_is(heading)
    spoken = heading.split()
    if not text.english or mostly_non_latin(heading) or _POINTS.search(heading) or len(spoken) > _MOST_WORDS:
        return None
    if all(word.casefold().strip(".,:!") in _FRONT_MATTER for word in spoken):
        return None
    heading = _spoken(heading, text)
    return _made(heading) or _how(heading) or _what(heading, text)


def _as_it_is(heading: str) -> HeadingQuestion | None:
    """A question of a book; one of two words, "Why robots?", hangs on what stands around it."""
    few = not mostly_non_latin(heading) and len(heading.split()) < 3
    return None if few else HeadingQuestion(heading, 0)


def _spoken(heading: str, text: _Text) -> str:
    """A heading as it is spelt in a sentence: what the text writes large in the middle of one is a name."""
    spelt = []
    for place, word in enumerate(heading.split()):
        usual = word[:1].isupper() and not any(mark.isupper() for mark in word[1:])
        known = text.small[word.lower()] or (place == 0 and word.isalpha())
        spelt.append(word.lower() if usual and known and text.large[word] <= text.small[word.lower()] else word)
    return " ".join(spelt)


def _made(heading: str) -> HeadingQuestion | None:
    for pattern, makes in _MAKES:
        if found := pattern.fullmatch(heading):
            asked = makes.format(**found.groupdict())
            return HeadingQuestion(asked[0].upper() + asked[1:], 2 if "which" in found.groupdict() else 1)
    return None


def _how(heading: str) -> HeadingQuestion | None:
    """ "Choosing a sensor", or "Choose a sensor" -> "How do you choose a sensor?" """
    first, _, rest = heading.partition(" ")
    doing = first.casefold()
    verb = _VERBS.get(doing) or (doing if doing in _DOES else None)
    determined = bool(_DETERMINED.match(rest))
    if (
        not verb
        or not rest
        or _JOINED.search(f" {rest} ")
        or ((verb == doing or doing in _DESCRIBING) and not determined)
    ):
        return None
    return HeadingQuestion(f"How do you {verb} {rest}?", 2 if determined or _is_plural(rest) else 3)


def _what(heading: str, text: _Text) -> HeadingQuestion | None:
    """ "Capture point" -> "What is the capture point?", as the text speaks of it; nothing, where it does not."""
    thing = re.sub(r"^(?:the|an?)\s+", "", heading, flags=re.IGNORECASE)
    head = _INSIDE.split(thing, maxsplit=1)[0].split()[-1:]
    first, _, rest = thing.casefold().partition(" ")
    does = first in _VERBS or first in function_words(ENGLISH)
    general = all(word in _FRONT_MATTER for word in split_words(thing.casefold()))
    if not head or general or does or _JOINED.search(thing) or _DETERMINED.match(rest):
        return None
    plural = _is_plural(head[0])
    said = Counter(_said(thing, text.prose))
    if plural and not said and thing.endswith(head[0]):
        plural, thing = False, thing[:-1]
        said = Counter(one for one in _said(thing, text.prose) if one == "a")
    often = said["the"] > said[""] if rest and not plural else said["the"] >= max(_SURELY, 2 * said[""])
    definite = often and not thing.endswith("ics")
    if plural and said:
        return HeadingQuestion(f"What are {'the ' if definite else ''}{thing}?", 1)
    if said["a"] > said[""]:
        return HeadingQuestion(f"What is {'an' if thing[0] in 'aeiouAEIOU' else 'a'} {thing}?", 1)
    if definite:
        return HeadingQuestion(f"What is the {thing}?", 1)
    return HeadingQuestion(f"What is {thing}?", 2) if said[""] and (rest or thing.endswith(_UNCOUNTED)) else None


def _is_plural(noun: str) -> bool:
    return noun.endswith("s") and not noun.endswith(_SINGULAR) and not any(mark.isupper() for mark in noun[1:])


def _said(thing: str, prose: str) -> Iterator[str]:
    """Every time the text speaks of a thing: with which article, "a", "the" or "".

    Of "the capture point controller" it is not known whether there is a capture point, so that does not count.
    """
    little = function_words(ENGLISH)
    for found in re.finditer(re.escape(thing), prose, re.IGNORECASE):
        led = _BEFORE.search(prose[max(0, found.start() - _NEAR) : found.start()])
        followed = _AFTER.match(prose[found.end() : found.end() + _NEAR])
        if not led or not followed:
            continue
        before, after = (led["word"] or "").casefold(), followed["word"] or ""
        goes_on = after and after not in little and not (before in ("a", "an") and after.endswith("s"))
        if not goes_on and before not in _POINTING and (not before or before in little):
            yield {"a": "a", "an": "a", "the": "the"}.get(before, "")

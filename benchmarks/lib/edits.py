"""Sentences of a passage as they stand, shortened, and with one thing changed that makes them wrong. Pure.

The claims that people judged hold few sentences with one wrong digit and few quotations; a writer makes both.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence

from sentencex import get_sentence_boundaries

Edit = Callable[[str, "random.Random", Sequence[str]], str | None]

_NUMBER = re.compile(r"(?<![\w.,-])\d{1,6}(?:\.\d+)?(?![\w,-])")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)*")
_AFFIRMS = re.compile(r"\b(?:is|are|was|were|can|could|will|would|should|may|must|has been|have been)\b(?! not)")
_DENIES = re.compile(r" not\b|\bno (?=[a-z])")
_UNIT = re.compile(r"(?<=\d )(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?|km|kg|mg|cm|mm|miles?|meters?)\b")
_SWAPPED_UNITS = {
    "year": "months", "month": "years", "week": "days", "day": "weeks", "hour": "minutes", "minute": "hours",
    "second": "minutes", "km": "miles", "kg": "g", "mg": "g", "cm": "mm", "mm": "cm", "mile": "km", "meter": "feet",
}  # fmt: skip
_ASIDE = re.compile(r" \([^()]{3,60}\)|, (?:which|who) [^,]{3,60}(?=,)")
_OPENING = re.compile(r"^(?:In|On|At|During|After|Since|By|For|With|However|Moreover) ?[^,]{0,50}, ")
_TURNS = {
    "increase": "decrease", "increased": "decreased", "increases": "decreases", "higher": "lower", "high": "low",
    "lower": "higher", "low": "high", "more": "less", "less": "more", "reduced": "increased", "before": "after",
    "after": "before", "first": "last", "best": "worst", "reduce": "increase", "early": "late", "positive": "negative",
    "negative": "positive", "always": "never", "large": "small", "above": "below", "below": "above", "start": "end",
}  # fmt: skip
_TURNABLE = re.compile(rf"\b(?:{'|'.join(_TURNS)})\b")


def sentences(passage: str) -> list[str]:
    """The sentences that could stand in an answer."""
    found = []
    for block in passage.split("\n"):
        for boundary in get_sentence_boundaries("en", block):
            said = block[boundary["start_index"] : boundary["end_index"]].strip()
            if 6 <= len(said.split()) <= 40 and said[0].isupper() and said.endswith(".") and "http" not in said:
                found.append(said)
    return found


def edited(passage: str, others: Sequence[str], chance: random.Random) -> Iterator[tuple[str, str, bool]]:
    """Sentences with what was done to them and whether the passage supports them; `others` are foreign sentences."""
    own = sentences(passage)
    if not own or not others:
        return
    quoted = chance.choice(own)
    yield "quoted", quoted, True
    shortened = _OPENING.sub("", _ASIDE.sub("", quoted))
    if shortened != quoted and len(shortened.split()) > 5:
        yield "shortened", shortened[0].upper() + shortened[1:], True
    yield "foreign", chance.choice(others), False
    for name, edit in _EDITS.items():
        changed = [new for said in own if (new := edit(said, chance, others)) and new not in passage]
        if changed:
            yield name, chance.choice(changed), False


def _number(said: str, chance: random.Random, _others: Sequence[str]) -> str | None:
    found = list(_NUMBER.finditer(said))
    if not found:
        return None
    at = chance.choice(found)
    digit = chance.randrange(len(at[0]))
    old = at[0][digit] if at[0][digit].isdigit() else ""
    new = chance.choice([one for one in "123456789" if one != old])
    changed = f"{at[0][:digit]}{new}{at[0][digit + 1 :]}" if old else f"{at[0]}{new}"
    return f"{said[: at.start()]}{changed}{said[at.end() :]}"


def _name(said: str, chance: random.Random, others: Sequence[str]) -> str | None:
    found = list(_NAME.finditer(said))
    foreign = [name for other in chance.sample(others, min(30, len(others))) for name in _NAME.findall(other)]
    if not found or not foreign:
        return None
    at = chance.choice(found)
    return f"{said[: at.start()]}{chance.choice(foreign)}{said[at.end() :]}"


def _negation(said: str, _chance: random.Random, _others: Sequence[str]) -> str | None:
    if denied := _DENIES.search(said):
        return said[: denied.start()] + said[denied.end() :]
    affirmed = _AFFIRMS.search(said)
    return said[: affirmed.end()] + " not" + said[affirmed.end() :] if affirmed else None


def _turn(said: str, _chance: random.Random, _others: Sequence[str]) -> str | None:
    found = _TURNABLE.search(said)
    return said[: found.start()] + _TURNS[found[0]] + said[found.end() :] if found else None


def _unit(said: str, _chance: random.Random, _others: Sequence[str]) -> str | None:
    found = _UNIT.search(said)
    return said[: found.start()] + _SWAPPED_UNITS[found[0].removesuffix("s")] + said[found.end() :] if found else None


_EDITS: dict[str, Edit] = {"number": _number, "name": _name, "negation": _negation, "opposite": _turn, "unit": _unit}

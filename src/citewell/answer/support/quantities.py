"""Finds numbers in a text as values with units, so that "1,5 km" and "1500 m" are equal. Pure.

Reads digits of any script and the number words of English. The units are in `data/units.txt`; any other word after a
number is not a unit.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import isclose

from citewell.text import table_rows

_DIGITS_WITH_UNIT = re.compile(
    r"(?<![A-Za-z0-9_.])(?<!\d{4}[–-])(?P<sign>[-−](?=\d))?(?P<number>\d{1,15}(?:(?:,\d{3})+(?!\d))?(?:[.,]\d{1,12})?)"
    r"(?:\s?(?P<scale>hundred|thousand|million|billion|trillion|[kKMB](?![\w°]))\b)?"
    r"(?P<rest>st\b|nd\b|rd\b|th\b|s\b)?(?:[ \u00a0-]?(?P<unit>%|°\s?[CF]|[A-Za-zµμΩ]{1,12}(?:/[A-Za-z]{1,3})?))?"
)
_RANGE_JOINTS = frozenset({"to", "or", "-", "–", "—"})
_BETWEEN = re.compile(r"\bbetween\s\Z", re.IGNORECASE)
_NUMBER_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALE_FACTORS = {
    "hundred": 1e2,
    "thousand": 1e3,
    "k": 1e3,
    "million": 1e6,
    "M": 1e6,
    "billion": 1e9,
    "B": 1e9,
    "trillion": 1e12,
}
_WORDS_WITH_UNIT = re.compile(
    rf"\b(?P<tens>{'|'.join(_NUMBER_WORDS)}|an?(?=\s(?:hundred|thousand|million|billion|trillion)\b))(?:-(?P<ones>one|two|three|four|five|six|seven|eight|nine))?"
    r"(?:\s(?P<scale>hundred|thousand|million|billion|trillion))?(?:[ \u00a0-](?P<unit>[A-Za-z]{1,12}))?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value in the base unit of what it measures, such as metres for a length."""

    value: float
    measures: str
    """What it measures: "length", "mass", …; empty for a number without a unit."""
    start: int
    end: int
    """Where it stands in the text, with its unit."""

    def same_value(self, other: "Quantity") -> bool:
        return isclose(self.value, other.value, rel_tol=1e-6, abs_tol=1e-12)


def find_quantities(text: str) -> list[Quantity]:
    """Every number of a text, in digits or in words, in the order in which they stand there."""
    return sorted([*_find_in_digits(text), *_find_in_words(text)], key=lambda quantity: quantity.start)


def contains_quantity(quantities: Sequence[Quantity], wanted: Quantity, *, same_unit: bool = False) -> bool:
    """Whether the value is among these; with `same_unit`, only where it measures the same."""
    return any(
        wanted.same_value(quantity) and (not same_unit or wanted.measures == quantity.measures)
        for quantity in quantities
    )


def _find_in_digits(text: str) -> Iterator[Quantity]:
    matches = list(_DIGITS_WITH_UNIT.finditer(text))
    for match, following in zip(matches, [*matches, None][1:], strict=True):
        scale = match["scale"] or ""
        factor = _SCALE_FACTORS.get(scale if scale in ("M", "B") else scale.lower(), 1.0)
        value = _parse_number(match["number"]) * factor
        value = -value if match["sign"] else value
        quantity = _to_quantity(value, match["unit"], match.start("number"), match.end())
        unit = following["unit"] if following and not quantity.measures else None
        if following and unit and _is_range(text, quantity, following.start("number")):
            measures, size = _look_up_unit(unit) or ("", 1.0)
            quantity = Quantity(value * size, measures, quantity.start, quantity.end)
        yield quantity


def _is_range(text: str, first: Quantity, end: int) -> bool:
    """Whether a number and the one that begins at `end` have one unit: "5 to 60 s", "between 5 and 60 s"."""
    joint = text[first.end : end].strip()
    return joint in _RANGE_JOINTS or (joint == "and" and bool(_BETWEEN.search(text[: first.start])))


def _parse_number(digits: str) -> float:
    """ "1,000.5" and "1,5" as numbers: a comma before three digits groups thousands, any other is a decimal comma."""
    whole, comma, fraction = digits.rpartition(",")
    if comma and "." not in fraction and len(fraction) != 3:
        return float(f"{whole.replace(',', '')}.{fraction}")
    return float(digits.replace(",", ""))


def _find_in_words(text: str) -> Iterator[Quantity]:
    for match in _WORDS_WITH_UNIT.finditer(text):
        ones = _NUMBER_WORDS[match["ones"].lower()] if match["ones"] else 0
        factor = _SCALE_FACTORS.get((match["scale"] or "").lower(), 1.0)
        value = (_NUMBER_WORDS.get(match["tens"].lower(), 1) + ones) * factor
        quantity = _to_quantity(value, match["unit"], match.start(), match.end())
        if value != 1 or quantity.measures:  # "one of them" is no quantity
            yield quantity


def _to_quantity(value: float, unit: str | None, start: int, end: int) -> Quantity:
    """The value in its base unit; `end` is where the unit ends, which is left out where it is not a known one."""
    known = _look_up_unit(unit) if unit else None
    if not known:
        return Quantity(value, "", start, end - len(unit or ""))
    measures, factor = known
    return Quantity(value * factor, measures, start, end)


def _look_up_unit(written: str) -> tuple[str, float] | None:
    """What a unit measures and its size in base units; plurals are looked up without their "s"."""
    name = written.replace(" ", "")
    if name == "MW":  # the only unit whose case matters: "mW" is a milliwatt
        return "power", 1e6
    folded = name.casefold()
    units = _units()
    return units.get(folded) or (units.get(folded.removesuffix("s")) if len(folded) > 3 else None)


@cache
def _units() -> dict[str, tuple[str, float]]:
    """What each spelling of a unit measures and its size in base units."""
    return {
        spelling: (measures, float(factor))
        for measures, factor, *spellings in table_rows("units.txt")
        for spelling in spellings
    }

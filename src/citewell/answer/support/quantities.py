"""Numbers in a text as values with their units, so that "1,5 km" and "1500 m" are the same. Pure.

Knows digits of any script and the number words of English; a word after a number counts as its unit only when it is
one that we know how to convert.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose

_DIGITS = re.compile(
    r"(?<![A-Za-z0-9_.])(?<!\d{4}[–-])(?P<sign>[-−](?=\d))?(?P<number>\d{1,15}(?:(?:,\d{3})+(?!\d))?(?:[.,]\d{1,12})?)"
    r"(?:\s?(?P<scale>hundred|thousand|million|billion|trillion|[kKMB](?![\w°]))\b)?"
    r"(?P<rest>st\b|nd\b|rd\b|th\b|s\b)?(?:[ \u00a0-]?(?P<unit>%|°\s?[CF]|[A-Za-zµμΩ]{1,12}(?:/[A-Za-z]{1,3})?))?"
)
_SMALL = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {
    "hundred": 1e2,
    "thousand": 1e3,
    "k": 1e3,
    "million": 1e6,
    "M": 1e6,
    "billion": 1e9,
    "B": 1e9,
    "trillion": 1e12,
}
_SPELT = re.compile(
    rf"\b(?P<tens>{'|'.join(_SMALL)})(?:-(?P<ones>one|two|three|four|five|six|seven|eight|nine))?"
    r"(?:\s(?P<scale>hundred|thousand|million|billion|trillion))?(?:[ \u00a0-](?P<unit>[A-Za-z]{1,12}))?\b",
    re.IGNORECASE,
)
# What a unit measures and how much of it; plurals lose their "s" before they are looked up.
_UNITS: dict[str, tuple[str, float]] = {
    "%": ("share", 1.0), "percent": ("share", 1.0), "percentage": ("share", 1.0),
    "nm": ("length", 1e-9), "nanometer": ("length", 1e-9), "nanometre": ("length", 1e-9),
    "µm": ("length", 1e-6), "μm": ("length", 1e-6), "micrometer": ("length", 1e-6), "micrometre": ("length", 1e-6),
    "mm": ("length", 1e-3), "millimeter": ("length", 1e-3), "millimetre": ("length", 1e-3),
    "cm": ("length", 1e-2), "centimeter": ("length", 1e-2), "centimetre": ("length", 1e-2),
    "m": ("length", 1.0), "meter": ("length", 1.0), "metre": ("length", 1.0),
    "km": ("length", 1e3), "kilometer": ("length", 1e3), "kilometre": ("length", 1e3),
    "inch": ("length", 0.0254), "inche": ("length", 0.0254), "ft": ("length", 0.3048), "feet": ("length", 0.3048),
    "foot": ("length", 0.3048), "yard": ("length", 0.9144), "mile": ("length", 1609.344),
    "µg": ("mass", 1e-9), "μg": ("mass", 1e-9), "mg": ("mass", 1e-6), "milligram": ("mass", 1e-6),
    "g": ("mass", 1e-3), "gram": ("mass", 1e-3), "kg": ("mass", 1.0), "kilogram": ("mass", 1.0),
    "ton": ("mass", 1e3), "tonne": ("mass", 1e3), "lb": ("mass", 0.45359237), "pound": ("mass", 0.45359237),
    "ns": ("time", 1e-9), "µs": ("time", 1e-6), "μs": ("time", 1e-6), "microsecond": ("time", 1e-6),
    "ms": ("time", 1e-3), "millisecond": ("time", 1e-3), "sec": ("time", 1.0), "second": ("time", 1.0),
    "min": ("time", 60.0), "minute": ("time", 60.0), "h": ("time", 3600.0), "hour": ("time", 3600.0),
    "hr": ("time", 3600.0), "day": ("time", 86400.0), "week": ("time", 604800.0), "month": ("months", 1.0),
    "year": ("months", 12.0), "yr": ("months", 12.0), "decade": ("months", 120.0), "century": ("months", 1200.0),
    "centurie": ("months", 1200.0), "hz": ("frequency", 1.0), "khz": ("frequency", 1e3), "mhz": ("frequency", 1e6),
    "ghz": ("frequency", 1e9), "byte": ("bytes", 1.0), "kb": ("bytes", 1e3), "mb": ("bytes", 1e6),
    "gb": ("bytes", 1e9), "tb": ("bytes", 1e12), "mv": ("voltage", 1e-3), "v": ("voltage", 1.0),
    "volt": ("voltage", 1.0), "kv": ("voltage", 1e3), "ma": ("current", 1e-3), "ampere": ("current", 1.0),
    "amp": ("current", 1.0), "mw": ("power", 1e-3), "w": ("power", 1.0), "watt": ("power", 1.0),
    "kw": ("power", 1e3), "kilowatt": ("power", 1e3), "hp": ("power", 745.7), "n": ("force", 1.0),
    "newton": ("force", 1.0), "kn": ("force", 1e3), "°c": ("celsius", 1.0), "°f": ("fahrenheit", 1.0),
    "ml": ("volume", 1e-3), "milliliter": ("volume", 1e-3), "millilitre": ("volume", 1e-3), "l": ("volume", 1.0),
    "liter": ("volume", 1.0), "litre": ("volume", 1.0), "km/h": ("speed", 1 / 3.6), "m/s": ("speed", 1.0),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value in the base unit of what it measures; `measures` is empty for a bare count."""

    value: float
    measures: str
    at: int
    end: int
    """Where it stands in the text, with its unit."""

    def same_value(self, other: "Quantity") -> bool:
        return isclose(self.value, other.value, rel_tol=1e-6, abs_tol=1e-12)


def find_quantities(text: str) -> list[Quantity]:
    """Every number of a text, in digits or in words."""
    return sorted([*_written(text), *_spelt(text)], key=lambda one: one.at)


def contains_quantity(among: Sequence[Quantity], wanted: Quantity, *, unit: bool = False) -> bool:
    """Whether the value is among these; with `unit`, of the same thing."""
    return any(wanted.same_value(one) and (not unit or wanted.measures == one.measures) for one in among)


def _written(text: str) -> Iterator[Quantity]:
    for found in _DIGITS.finditer(text):
        scale = found["scale"] or ""
        value = _read(found["number"]) * _SCALES.get(scale if scale in ("M", "B") else scale.lower(), 1.0)
        yield _quantity(-value if found["sign"] else value, found["unit"], found.start("number"), found.end())


def _read(digits: str) -> float:
    """ "1,000.5" and "1,5" as the numbers they are: a comma before three digits groups thousands."""
    whole, comma, rest = digits.rpartition(",")
    if comma and "." not in rest and len(rest) != 3:
        return float(f"{whole.replace(',', '')}.{rest}")
    return float(digits.replace(",", ""))


def _spelt(text: str) -> Iterator[Quantity]:
    for found in _SPELT.finditer(text):
        ones = _SMALL[found["ones"].lower()] if found["ones"] else 0
        value = (_SMALL[found["tens"].lower()] + ones) * _SCALES.get((found["scale"] or "").lower(), 1.0)
        spelt = _quantity(value, found["unit"], found.start(), found.end())
        if value != 1 or spelt.measures:  # "one of them" counts nothing
            yield spelt


def _quantity(value: float, unit: str | None, at: int, end: int) -> Quantity:
    known = _unit(unit) if unit else None
    return Quantity(value * known[1], known[0], at, end) if known else Quantity(value, "", at, end - len(unit or ""))


def _unit(written: str) -> tuple[str, float] | None:
    name = written.replace(" ", "")
    if name == "MW":
        return "power", 1e6
    folded = name.casefold()
    return _UNITS.get(folded) or (_UNITS.get(folded.removesuffix("s")) if len(folded) > 3 else None)

"""Finds the times and currencies that numbers are counted in: "100 per minute", "$12". Pure."""

import re
from functools import lru_cache

_PERIODS = "seconds?|sec|s|minutes?|min|hours?|hr|h|days?|weeks?|months?|years?|yr"
_ADVERBS = "hourly|daily|weekly|monthly|yearly|annual(?:ly)?"
_FREQUENCIES = "[kmg]?hz|fps|rpm|rps|qps|[kmg]bps"
_RATE = re.compile(
    rf"(?:\b(?:per|an?|each|every)\s|(?<=\w)\s?/\s?)(?P<period>{_PERIODS})\b|\b(?P<adverb>{_ADVERBS})\b"
    rf"|(?P<frequency>(?:\b|(?<=\d))(?:{_FREQUENCIES}))\b",
    re.IGNORECASE,
)
# "a second" may be the one after the first, and "for a year" is no rate: a number must stand before it.
_NUMBER_WITH_RATE = re.compile(
    rf"\d(?:\s?[^\W\d]\w*){{0,2}}?\s?(?:\b(?:per|an?(?!\ssecond\b)|each|every)\s|/\s?)(?P<period>{_PERIODS})\b"
    rf"|\d(?:\s?[^\W\d]\w*){{0,2}}?\s(?P<adverb>{_ADVERBS})\b",
    re.IGNORECASE,
)
_FULL_NAMES = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "yr": "year"} | {
    "hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annual": "year",
    "annually": "year", "rpm": "minute",
}  # fmt: skip
_CURRENCY = re.compile(
    r"(?P<before>[$€£¥])\s?\d|\d\s?(?:(?P<after>[€£¥])|(?P<name>dollars?|usd|euros?|eur|gbp|yen|jpy)\b)", re.IGNORECASE
)
_CURRENCIES = {
    "$": "dollar", "usd": "dollar", "€": "euro", "eur": "euro", "£": "pound", "gbp": "pound", "¥": "yen", "jpy": "yen",
}  # fmt: skip


def contradicts_rate(sentence: str, text: str) -> bool:
    """Whether a number is per another time, or in another currency, than any number of the text.

    contradicts_rate("It costs $12 a day.", "It costs $12 per month.") -> True
    """
    rates, currencies = _rates(sentence, _NUMBER_WITH_RATE), _find_currencies(sentence)
    return _differs(rates, _text_rates(text)) or _differs(currencies, _find_currencies(text))


def _differs(wanted: frozenset[str], known: frozenset[str]) -> bool:
    return bool(known) and not wanted <= known


def _rates(text: str, pattern: re.Pattern[str]) -> frozenset[str]:
    found = [next(group for group in match.groups() if group).casefold() for match in pattern.finditer(text)]
    return frozenset(
        _FULL_NAMES.get(name, "second" if re.fullmatch(_FREQUENCIES, name) else name.rstrip("s")) for name in found
    )


@lru_cache(maxsize=512)
def _text_rates(text: str) -> frozenset[str]:
    return _rates(text, _RATE)


@lru_cache(maxsize=512)
def _find_currencies(text: str) -> frozenset[str]:
    found = [next(group for group in match.groups() if group).casefold() for match in _CURRENCY.finditer(text)]
    return frozenset(_CURRENCIES.get(name, name.rstrip("s")) for name in found)

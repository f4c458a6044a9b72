"""Sentences of a passage: quoted, shortened, and with one thing changed that makes them wrong. Pure.

The claims that people judged have few quotations and few sentences with one wrong digit; an LLM writes both.
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
_IDENTIFIER = re.compile(r"`[A-Za-z_@-][\w.()-]{2,40}`|(?<=\s)--[a-z][\w-]+")
_BOUNDS = {
    "at most": "at least", "at least": "at most", "up to": "at least", "no more than": "no less than",
    "more than": "less than", "less than": "more than", "fewer than": "more than", "maximum": "minimum",
    "minimum": "maximum", "or more": "or less", "or higher": "or lower", "or newer": "or older",
}  # fmt: skip
_BOUND = re.compile(rf"\b(?:{'|'.join(_BOUNDS)})\b(?=[^.]{{0,30}}\d)|(?<=\d )(?:or more|or higher|or newer)\b")
_ASIDE = re.compile(r" \([^()]{3,60}\)|, (?:which|who) [^,]{3,60}(?=,)")
_OPENING = re.compile(r"^(?:In|On|At|During|After|Since|By|For|With|However|Moreover) ?[^,]{0,50}, ")
_OPPOSITES = {
    "increase": "decrease", "increased": "decreased", "increases": "decreases", "higher": "lower", "high": "low",
    "lower": "higher", "low": "high", "more": "less", "less": "more", "reduced": "increased", "before": "after",
    "after": "before", "first": "last", "best": "worst", "reduce": "increase", "early": "late", "positive": "negative",
    "negative": "positive", "always": "never", "large": "small", "above": "below", "below": "above", "start": "end",
}  # fmt: skip
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b")


def sentences(passage: str) -> list[str]:
    """The sentences of a passage that could be in an answer."""
    kept_sentences = []
    for block in passage.split("\n"):
        for boundary in get_sentence_boundaries("en", block):
            sentence = block[boundary["start_index"] : boundary["end_index"]].strip()
            if (
                6 <= len(sentence.split()) <= 40
                and sentence[0].isupper()
                and sentence.endswith(".")
                and "http" not in sentence
            ):
                kept_sentences.append(sentence)
    return kept_sentences


def edit_sentences(passage: str, others: Sequence[str], rng: random.Random) -> Iterator[tuple[str, str, bool]]:
    """Kind of edit, sentence, and whether the passage supports it; `others` are sentences of other passages."""
    own = sentences(passage)
    if not own or not others:
        return
    quoted = rng.choice(own)
    yield "quoted", quoted, True
    shortened = _OPENING.sub("", _ASIDE.sub("", quoted))
    if shortened != quoted and len(shortened.split()) > 5:
        yield "shortened", shortened[0].upper() + shortened[1:], True
    yield "foreign", rng.choice(others), False
    for name, edit in _EDITS.items():
        changed = [new for sentence in own if (new := edit(sentence, rng, others)) and new not in passage]
        if changed:
            yield name, rng.choice(changed), False


def _change_number(sentence: str, rng: random.Random, _others: Sequence[str]) -> str | None:
    numbers = list(_NUMBER.finditer(sentence))
    if not numbers:
        return None
    number = rng.choice(numbers)
    digit = rng.randrange(len(number[0]))
    old = number[0][digit] if number[0][digit].isdigit() else ""
    new = rng.choice([digit_character for digit_character in "123456789" if digit_character != old])
    changed = f"{number[0][:digit]}{new}{number[0][digit + 1 :]}" if old else f"{number[0]}{new}"
    return f"{sentence[: number.start()]}{changed}{sentence[number.end() :]}"


def _swap_name(sentence: str, rng: random.Random, others: Sequence[str]) -> str | None:
    names = list(_NAME.finditer(sentence))
    foreign = [name for other in rng.sample(others, min(30, len(others))) for name in _NAME.findall(other)]
    if not names or not foreign:
        return None
    match = rng.choice(names)
    return f"{sentence[: match.start()]}{rng.choice(foreign)}{sentence[match.end() :]}"


def _toggle_negation(sentence: str, _rng: random.Random, _others: Sequence[str]) -> str | None:
    if denied := _DENIES.search(sentence):
        return sentence[: denied.start()] + sentence[denied.end() :]
    affirmed = _AFFIRMS.search(sentence)
    return sentence[: affirmed.end()] + " not" + sentence[affirmed.end() :] if affirmed else None


def _swap_opposite(sentence: str, _rng: random.Random, _others: Sequence[str]) -> str | None:
    match = _OPPOSITE.search(sentence)
    return sentence[: match.start()] + _OPPOSITES[match[0]] + sentence[match.end() :] if match else None


def _swap_unit(sentence: str, _rng: random.Random, _others: Sequence[str]) -> str | None:
    match = _UNIT.search(sentence)
    return (
        sentence[: match.start()] + _SWAPPED_UNITS[match[0].removesuffix("s")] + sentence[match.end() :]
        if match
        else None
    )


def _swap_identifier(sentence: str, rng: random.Random, others: Sequence[str]) -> str | None:
    """Another sentence's identifier, or a flag made of the sentence's own words, as LLMs invent them."""
    identifiers = list(_IDENTIFIER.finditer(sentence))
    if not identifiers:
        return None
    match = rng.choice(identifiers)
    words = [word for word in re.findall(r"[a-z]{4,}", sentence) if f"--{word}" not in sentence]
    foreign = [name for other in rng.sample(others, min(60, len(others))) for name in _IDENTIFIER.findall(other)]
    own = [f"`--{word}`" for word in words] if "--" in match[0] else [f"`{word}_{words[0]}`" for word in words[1:]]
    candidates = [name for name in (*foreign, *own) if name != match[0]]
    return f"{sentence[: match.start()]}{rng.choice(candidates)}{sentence[match.end() :]}" if candidates else None


def _flip_bound(sentence: str, _rng: random.Random, _others: Sequence[str]) -> str | None:
    match = _BOUND.search(sentence)
    return sentence[: match.start()] + _BOUNDS[match[0]] + sentence[match.end() :] if match else None


_EDITS: dict[str, Edit] = {
    "number": _change_number,
    "name": _swap_name,
    "negation": _toggle_negation,
    "opposite": _swap_opposite,
    "unit": _swap_unit,
    "identifier": _swap_identifier,
    "bound": _flip_bound,
}

"""Checks the values of a sentence against a text: what is not in the text cannot be supported by it. Pure.

A small LLM invents flags, arguments and numbers among the question's own words, and a score that counts words calls
that supported (docs/log.md). These are rules, like `altered_quote.py`: they can only lower a verdict.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from citewell.answer.support.bounds import OPPOSITE, Bound, find_bounds
from citewell.answer.support.literals import find_literals, index_literals, lacks_code_name, missing_pieces
from citewell.answer.support.passage_facts import strip_citations
from citewell.answer.support.quantities import Quantity, contains_quantity, find_quantities
from citewell.answer.support.rates import contradicts_rate
from citewell.models import Verdict
from citewell.text import sentence_spans

_MAX_NUMBERS = 40  # of a sentence, each of which is compared with all numbers of the text
_FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})")
_LIST_MARKER = re.compile(r"^[ \t>]*(?:[-*+][ \t]+)?(?:\*\*)?\d{1,3}[.)][ \t]", re.MULTILINE)
# "Step 2" and "Figure 3" count the sentence's own parts.
_COUNTED = re.compile(
    r"\b(?:step|option|phase|part|point|item|method|approach|example|figure|table)s?\s\d+(?:[-.]\d+)*", re.IGNORECASE
)
_NUMBERED_NAME = re.compile(r"(?<![\w-])[A-Za-z]+-(?=\d)")  # GPT-4, which is a literal
_NUMBER_WITHOUT_UNIT = re.compile(r"[\d.,]*\d(?:\s?(?:hundred|thousand|million|billion|trillion|[kKMB])\b)?")

_ONLY = re.compile(r"(?<!\bnot )\b(?:only|solely|exclusively)\b", re.IGNORECASE)
_RESTRICTS = re.compile(
    r"\b(?:only|sole(?:ly)?|exclusive(?:ly)?|just|merely|alone|limited|restricted|except|unless|until|must|required?|requires"
    r"|no other|nothing else|nowhere else|single|one)\b",
    re.IGNORECASE,
)
_DEFAULT = re.compile(r"\bdefault(?:s|ed)?\b", re.IGNORECASE)
_DEFAULT_VALUE = re.compile(r"\bdefault(?:s|ed)?\b(?:\s[\w-]+){0,4}?\s?(?:is|to|of|:|=)\s(\S+)", re.IGNORECASE)
_SAYS_DEFAULT = re.compile(
    r"\bdefault|\b(?:unset|omitted|unspecified|otherwise|initially|fall(?:s|ing)? back|unless)\b"
    r"|\b(?:not|n['’]t|without)\s(?:\w+\s){0,2}?(?:set|setting|specif\w+|giv\w+|pass\w*|provid\w+|configur\w+|defin\w+)",
    re.IGNORECASE,
)
_SIGNATURE = re.compile(
    r"^\s*(?:async )?(?:def|fn|func|function|class|interface)\b|^\s*\w+\s*:\s*[\w\[\], |.]+=|\?\s*:"
)
_EXAMPLE = re.compile(
    r"\b(?:for (?:example|instance)|e\.g\.|such as|example|suppose|imagine|say,|let['’]?s|sample|like this)",
    re.IGNORECASE,
)


class _Statement(NamedTuple):
    """A sentence, a line of code or a table row: whether it is about a default, and whether it is an example."""

    text: str
    is_default: bool
    is_example: bool


def highest_verdict(sentence: str, text: str) -> Verdict:
    """The best verdict that a sentence can have: "supported" unless a value in it speaks against that.

    highest_verdict("Use --fast.", "Use --quick.") -> "unsupported"

    A number in words without a unit may count what the text lists ("three ways"), so without it the sentence is weak;
    so is "only" where nothing in the text restricts anything.
    A number that follows from others by arithmetic is unsupported: where a text has ten numbers, too many follow.
    """
    index, sentence = index_literals(text), strip_citations(sentence)
    if " ".join(sentence.split()) in _collapse_blanks(text):
        return "supported"
    for literal in find_literals(sentence):
        for piece in missing_pieces(literal, index):
            quantities = find_quantities(piece)
            if not quantities or not all(_has_quantity(quantity, piece, text) for quantity in quantities):
                return "unsupported"
    if lacks_code_name(sentence, text):
        return "unsupported"
    prose = _prose(sentence)
    if _contradicts_bound(prose, text) or contradicts_rate(prose, text) or _takes_example_for_default(prose, text):
        return "unsupported"
    missing = [
        quantity for quantity in find_quantities(prose)[:_MAX_NUMBERS] if not _has_quantity(quantity, prose, text)
    ]
    if any(quantity.measures or prose[quantity.start].isdigit() for quantity in missing):
        return "unsupported"
    adds_only = bool(_ONLY.search(prose)) and not _RESTRICTS.search(text)
    return "weak" if missing or adds_only else "supported"


def _prose(sentence: str) -> str:
    """The sentence without code blocks, list numbers and "Step 2", with code and emphasis as plain words."""
    if _FENCE.match(sentence):
        return ""
    text = _NUMBERED_NAME.sub("x", _COUNTED.sub("#", _LIST_MARKER.sub("", sentence)))
    return text.replace("`", "").replace("*", "")


def _has_quantity(quantity: Quantity, sentence: str, text: str) -> bool:
    """Whether the text has a number with its unit, converted or not; or without any, as in a table."""
    known = _quantities(text)
    if contains_quantity(known, quantity, same_unit=bool(quantity.measures)):
        return True
    number = _NUMBER_WITHOUT_UNIT.match(sentence, quantity.start)
    if not quantity.measures or not number:
        return False
    bare = find_quantities(number[0])
    without_unit = [other for other in known if not other.measures]
    is_share = quantity.measures == "share" and any(abs(other.value * 100 - quantity.value) < 1e-9 for other in known)
    return is_share or any(contains_quantity(without_unit, other) for other in bare)


@lru_cache(maxsize=512)
def _collapse_blanks(text: str) -> str:
    return " ".join(text.split())


@lru_cache(maxsize=512)
def _quantities(text: str) -> Sequence[Quantity]:
    return find_quantities(text)


@lru_cache(maxsize=512)
def _bounds(text: str) -> Sequence[Bound]:
    return find_bounds(_collapse_blanks(text))


def _contradicts_bound(sentence: str, text: str) -> bool:
    """Whether a number is a limit on the other side than in the text: "at most 10" for "at least 10"."""
    for bound in find_bounds(" ".join(sentence.split()))[:_MAX_NUMBERS]:
        same = [
            other.direction
            for other in _bounds(text)
            if other.quantity.same_value(bound.quantity) and other.quantity.measures == bound.quantity.measures
        ]
        if OPPOSITE[bound.direction] in same and bound.direction not in same:
            return True
    return False


def _takes_example_for_default(sentence: str, text: str) -> bool:
    """Whether a sentence calls a value the default that the text has only in examples."""
    if not _DEFAULT.search(sentence):
        return False
    statements = _statements(text)
    for quantity in find_quantities(sentence)[:_MAX_NUMBERS]:
        if _only_in_examples([one for one in statements if _has_quantity(quantity, sentence, one.text)]):
            return True
    value = _DEFAULT_VALUE.search(sentence)
    literal = value[1].strip(".,;:\"'“”") if value else ""
    return bool(literal) and _only_in_examples(
        [one for one in statements if not any(missing_pieces(literal, index_literals(one.text)))]
    )


def _only_in_examples(statements: Sequence[_Statement]) -> bool:
    return bool(statements) and all(one.is_example and not one.is_default for one in statements)


@lru_cache(maxsize=512)
def _statements(text: str) -> Sequence[_Statement]:
    """The statements of a text; code is about defaults if the sentence before it is, a table if a row of it is."""
    statements: list[_Statement] = []
    in_code = in_default = False
    last = ""
    for line in text.splitlines():
        if _FENCE.match(line):
            in_code, in_default = not in_code, not in_code and bool(_SAYS_DEFAULT.search(last))
        elif in_code or line.lstrip().startswith("|"):
            in_default = in_default or (not in_code and bool(_SAYS_DEFAULT.search(line)))
            is_default = in_default or bool(_SAYS_DEFAULT.search(line) or (in_code and _SIGNATURE.search(line)))
            statements.append(_Statement(line, is_default, is_example=in_code))
        elif line.strip():
            in_default = False
            for start, end in sentence_spans(line):
                last = line[start:end]
                is_default, is_example = bool(_SAYS_DEFAULT.search(last)), bool(_EXAMPLE.search(last))
                statements.append(_Statement(last, is_default, is_example))
    return statements

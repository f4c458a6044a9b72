"""Finds the passage that defines what a question asks about: "What is a pump?" asks for "A pump is a …". Pure.

The name of a product is in every passage, so neither its words nor its meaning lead to the one that defines it.
"""

import re
from collections.abc import Sequence

from citewell.models import Passage

_ASKS_FOR_DEFINITION = re.compile(
    r"""^\W*(?:what(?:\ exactly)?(?:'s|\ is|\ are)|define|explain)\ (?:exactly\ )?
        (?!the\ (?:difference|best|most|least|maximum|minimum)\b)(.+?)(?:\ (?:good|used)\ for)?$""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_ASKS_FOR_MEANING = re.compile(
    r"""^\W*(?:what\ (?:does|do)\ (.+?)\ (?:mean|stand\ for)$
             |(?:meaning|definition)\ of\ (.+)$|(.+?)\ (?:meaning|definition)$)""",
    re.IGNORECASE | re.VERBOSE,
)
_MAX_WORDS_OF_DEFINED_THING = 4
_MAX_CHARACTERS = 300  # whoever writes more asks for more than a definition, and the patterns take their time on it


def defined_thing(question: str) -> str:
    """What a definition is asked of: "what exactly is a preset, in short?" -> "preset"; empty if none is."""
    words = question.strip(" \t\n?.!")
    if len(words) > _MAX_CHARACTERS:
        return ""
    for pattern in (_ASKS_FOR_DEFINITION, _ASKS_FOR_MEANING):
        if found := pattern.match(words):
            thing = next(filter(None, found.groups())).split(",")[0]
            thing = re.sub(r"^(?:an?|the)\s+", "", thing, flags=re.IGNORECASE).strip()
            return thing if len(thing.split()) <= _MAX_WORDS_OF_DEFINED_THING else ""
    return ""


def definition_sentence(thing: str) -> re.Pattern[str]:
    """Matches "A pump is a", "**Pumps** are the" and so on, where a sentence or a line begins.

    An abbreviation is also defined where it is introduced: "the centre of mass (CoM)".
    """
    name = r"\W+".join(map(re.escape, thing.split()))
    introduced = rf"|(?:^|(?<=[.!?]\s))[^.!?\n]*\w[*_]*\s\(\W*{name}\W*\)" if _is_abbreviation(thing) else ""
    return re.compile(
        rf"(?:^|(?<=[.!?]\s))[^\w\n]*(?:(?:an?|the)\W+)?{name}s?[^\w\n]*(?:\([^)\n]*\)[^\w\n]*)?(?:is|are)\s+(?:an?|the)\b"
        + introduced,
        re.IGNORECASE | re.MULTILINE,
    )


def _is_abbreviation(thing: str) -> bool:
    """Whether a word is written as an abbreviation: two capital letters or more, as in "ZMP" and "CoM"."""
    return " " not in thing and sum(letter.isupper() for letter in thing) > 1


def asked_symbol(question: str) -> str:
    """The one letter or digit that a question asks about: "What is x?" -> "x"; empty for any other question."""
    thing = defined_thing(question) or question.strip(" \t\n?.!")
    return thing if len(thing) == 1 and thing.isascii() and thing.isalnum() else ""


def defines_symbol(symbol: str, text: str) -> bool:
    """Whether a text says what a letter stands for: "where k is the number of …", "`k`: …", "Let n be …"."""
    name = rf"(?<![\w'’./-])[`*_$(]*{re.escape(symbol)}[`*_$)]*"
    verb = r"(?:is|are|denotes?|represents?|means|stands\ for|refers\ to|be)"
    return bool(
        re.search(rf"{name}\s+{verb}\s+(?:an?|the|one|our|its)\b|^[\s*-]*{name}\s*[:=]\s*\w", text, re.MULTILINE)
    )


def lead_with_definition(question: str, ranked: Sequence[Passage], limit: int) -> Sequence[Passage]:
    """The first `limit` passages, led by the first one with the definition, if that is asked for and none has it."""
    thing = defined_thing(question)
    if not thing:
        return ranked[:limit]
    pattern = definition_sentence(thing)
    place = next((place for place, passage in enumerate(ranked) if pattern.search(passage.chunk.text)), 0)
    return ranked[:limit] if place < limit else (ranked[place], *ranked[: limit - 1])

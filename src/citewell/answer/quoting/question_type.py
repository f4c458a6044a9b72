"""What kind of answer a question asks for: code, steps, several items, a comparison, a definition. Pure.

Reads the question alone; English, and for steps a few words of German, Spanish and French.
"""

import re
from dataclasses import dataclass

_ASKS_FOR_CODE = re.compile(
    r"\b(?:code|commands?|script|snippet|syntax|listing|implement\w*|(?:launch|config\w*|yaml|xml) (?:file|example)"
    r"|in (?:python|bash|yaml|c\+\+|javascript|rust))\b",
    re.IGNORECASE,
)
_ASKS_FOR_SEVERAL = re.compile(
    r"""\bhow\ (?:do|can|should|would|could|to)\b | \bwhy\b
      | \b(?:steps?|stages?|ways?|types?|kinds?|reasons?|list|options?)\b
      | \bwhat\ (?:\w+\ ){0,3}are\b | \bwhich\ \w+s\ (?:are|do|does|can)\b
      | ^\W*(?:is|are|was|does|do|did|can|could|should|may|must|will)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS_FOR_STEPS = re.compile(
    r"\bhow (?:do|can|should|would|could|to)\b|\b(?:steps?|procedure|instructions)\b"
    r"|\bwie\b(?! (?:viele?|oft|lange?|hoch|groß|heiß|schnell|weit|alt)\b)|\b(?:schritte?|cómo|pasos|comment|étapes)\b",
    re.IGNORECASE,
)
_ASKS_TO_COMPARE = re.compile(
    r"\b(?:differences?|differs?|compared?|comparison|versus|vs|pros|cons|better|advantages?)\b", re.IGNORECASE
)
_ASKS_FOR_DEFINITION = re.compile(
    r"^\W*(?:what(?:'s|\ is|\ are)|define|explain)\ (?!the\ (?:difference|best|most|least|maximum|minimum)\b)",
    re.IGNORECASE,
)
_DEFINING_VERB = r"(?:is|are|means?|refers?\ to|stands\ for|describes?|makes?|represents?|draws)\b"


@dataclass(frozen=True, slots=True)
class QuestionType:
    """The kinds of answer that a question asks for; several may apply."""

    code: bool
    steps: bool
    comparison: bool
    several: bool
    """Whether one sentence is only a part of the answer: steps, lists, comparisons and reasons."""
    definition: re.Pattern[str] | None
    """Matches the beginning of a sentence that defines the thing asked about; None where no definition is asked for."""


def classify_question(question: str) -> QuestionType:
    """The kinds of answer that a question asks for."""
    comparison = bool(_ASKS_TO_COMPARE.search(question))
    return QuestionType(
        code=bool(_ASKS_FOR_CODE.search(question)),
        steps=bool(_ASKS_FOR_STEPS.search(question)),
        comparison=comparison,
        several=comparison or bool(_ASKS_FOR_SEVERAL.search(question)),
        definition=_definition_pattern(question),
    )


def _definition_pattern(question: str) -> re.Pattern[str] | None:
    opening = _ASKS_FOR_DEFINITION.match(question)
    if not opening:
        return None
    thing = re.sub(r"^(?:an?|the)\s+|[\s?.!]+$", "", question[opening.end() :], flags=re.IGNORECASE)
    if not thing or len(thing.split()) > 4:
        return None
    name = r"\W+".join(map(re.escape, thing.split()))
    return re.compile(
        rf"\W*(?:(?:an?|the)\W+)?(?:[\w-]+\W+){{0,4}}?\W*{name}\w{{0,2}}\W*(?:\([^)]*\)\W*)?{_DEFINING_VERB}",
        re.IGNORECASE,
    )

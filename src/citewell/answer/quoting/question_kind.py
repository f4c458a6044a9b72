"""What a question asks for: code, steps, a list, a definition, a comparison. Pure.

By rule, from its words alone; knows no passage.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from citewell.answer.quoting.alternatives import named_alternatives
from citewell.answer.retrieval import defined_thing, definition_sentence

_ASKS_FOR_CODE = re.compile(
    r"""\b(?:code|commands?|script|snippet|syntax|listing|implement\w*
          |(?:launch|config\w*|yaml|xml|json|toml|sample|example)\ (?:file|example|config\w*)
          |in\ (?:python|bash|yaml|c\+\+|javascript|typescript|rust|go|java)
          |(?:show|give)\ me\ (?!(?:all|every|the\ (?:list|difference))\b)
          |(?:the|which|what)\ lines\b|examples?\ (?:of|for|how|that|please|with)|dockerfile)\b
      | ^\W*(?:example|yaml|json|dockerfile|python|bash)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_MAY_WANT_CODE = re.compile(
    r"\b(?:code|commands?|script|snippet|syntax|python|bash|shell|yaml|json|xml|config\w*|install|run|call|write|function|api"
    r"|example|how (?:do|can|would) (?:i|we|you)|how to)\b",
    re.IGNORECASE,
)
_ASKS_FOR_SEVERAL = re.compile(
    r"""\bhow\ (?:do|can|should|would|could|to)\b | \bwhy\b
      | \b(?:steps?|stages?|ways?|types?|kinds?|reasons?|list|options?)\b
      | \bwhat\ (?:\w+\ ){0,3}are\b
      | ^\W*(?:is|are|was|does|do|did|can|could|should|may|must|will)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS_FOR_LIST = re.compile(
    r"""\b(?:list|name|all|every|types?|kinds?|options)\b
      | \b(?:what|which)\ (?:[\w-]+\ ){0,2}(?!is\b|was\b|does\b|this\b)[\w-]+[^s\W]s\ (?!is\b)\w+""",
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
_DEFINING_VERB = r"(?:is|are|means?|refers?\ to|stands\ for|describes?|makes?|represents?|draws)\b"
_ASKS_YES_OR_NO = re.compile(r"^\W*(?:is|are|was|does|do|did|can|could|should|may|must|will)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """The kinds of answer that a question asks for; several may apply."""

    code: bool
    may_want_code: bool
    """Whether code may be a part of the answer, though it is not asked for."""
    steps: bool
    comparison: bool
    several: bool
    """Whether one sentence is only a part of the answer: steps, lists, comparisons and reasons."""
    whole_list: bool
    """Whether a list answers, with all of its items: "Which strategies exist?"."""
    definition: re.Pattern[str] | None
    """Matches the beginning of a sentence that defines the thing asked about; None where no definition is asked for."""
    thing: str
    """The thing asked about; empty where no definition is asked for."""
    yes_or_no: bool
    alternatives: Mapping[str, frozenset[str]]
    """The platform, language or package manager that the question names."""

    def is_definition(self, text: str) -> bool:
        """Whether a text begins with "A pump is a", and so defines the thing without doubt."""
        return bool(self.thing and definition_sentence(self.thing).match(text))


def classify_question(question: str) -> QuestionKind:
    """The kinds of answer that a question asks for."""
    comparison = bool(_ASKS_TO_COMPARE.search(question))
    whole_list = bool(_ASKS_FOR_LIST.search(question))
    return QuestionKind(
        code=bool(_ASKS_FOR_CODE.search(question)),
        may_want_code=may_want_code(question),
        steps=bool(_ASKS_FOR_STEPS.search(question)),
        comparison=comparison,
        several=comparison or whole_list or bool(_ASKS_FOR_SEVERAL.search(question)),
        whole_list=whole_list,
        definition=_definition_pattern(question),
        thing=defined_thing(question),
        yes_or_no=bool(_ASKS_YES_OR_NO.search(question)),
        alternatives=named_alternatives(question),
    )


def may_want_code(question: str) -> bool:
    """Whether code may be a part of the answer: "How do I install it?"."""
    return bool(_MAY_WANT_CODE.search(question))


def _definition_pattern(question: str) -> re.Pattern[str] | None:
    """For "What is a pump?", matches "A pump is" and "The pump describes"."""
    thing = defined_thing(question)
    if not thing:
        return None
    name = r"\W+".join(map(re.escape, thing.split()))
    return re.compile(
        rf"\W*(?:(?:an?|the)\W+)?(?:[\w-]+\W+){{0,4}}?\W*{name}\w{{0,2}}\W*(?:\([^)]*\)\W*)?{_DEFINING_VERB}",
        re.IGNORECASE,
    )

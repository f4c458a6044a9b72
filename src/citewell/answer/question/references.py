"""Finds the word of a question that refers to something outside it: "it", "that method", "which one". Pure, English.

Does not know what the word refers to.
"""

import re

from citewell.answer.question.topic import AUXILIARY, PERSON, strip_conjunction
from citewell.text import content_words

MAX_CONTENT_WORDS = 4
"""Content words beside a reference: a question with more is better searched as it is."""

_QUESTION_WORDS = r"(?:what|which|who|why|when|where|how)"
_GENERIC_NOUN = r"(?:method|approach|technique|problem|effect|step|value|error|concept|idea|process|case|thing|topic)s?"
_REFERENCE = re.compile(
    rf"""\b(?:
        (?P<demonstrative>this|that|these|those)(?P<generic>\ {_GENERIC_NOUN}\b)?
           (?=$|[?.!,]|\ (?:happen|work|mean|matter|help|take|cost|differ|compare|important|true|possible|done|called
              |useful|necessary|relevant|better|bad|good|enough|a|an|the|in|on|for|with|from|without|also|always|ever|be|used|so)\b)
      | (?P<choice>which\ (?:one|of\ (?:them|these|those))s?)
      | (?P<possessive>its|their|his)(?=\ \w)
      | (?P<plain>it|they|them|he|she|him)(?!['’]))\b""",
    re.IGNORECASE | re.VERBOSE,
)
# "it" that refers to nothing: "Is it possible to …", "How long does it take to …".
_EXPLETIVE_IT = re.compile(
    r"""\bit\ (?:\w+\ )?(?:take|takes|took|cost|costs|mean|means|help|helps|make\ sense|feel|called|said|believed|known)
          \b.*\b(?:to|that|when|if|for|about)\b
      | \bit\ (?:\w+\ ){1,4}(?:to|that|if|when|whether|for|who)\b | \bthat\ it\b | \btime\ is\ it\b""",
    re.IGNORECASE | re.VERBOSE,
)
# What may stand before a reference to something outside the sentence: nothing that it could refer to instead.
_BEFORE_SUBJECT = re.compile(
    rf"{_QUESTION_WORDS}\b(?:(?!\b{_QUESTION_WORDS}\b)[^,;:?]){{0,60}}?\ ?{AUXILIARY}\ ", re.IGNORECASE
)
_BEFORE_OBJECT = re.compile(
    rf"""(?:(?:{_QUESTION_WORDS}\ )?{AUXILIARY}\ {PERSON}
          |(?:show|tell|explain)\ (?:me\ |us\ )?(?:how|when|where|why)\ (?:to|i|you|we)|how\ to
          |(?P<third>who|what|which))
        (?:\ [\w'’-]+){{1,3}}\ """,
    re.IGNORECASE | re.VERBOSE,
)


def find_reference(question: str) -> re.Match[str] | None:
    """The first word that refers to something outside the question; None where the question can stand alone.

    The match has the groups `generic`, `choice` and `possessive` for the kinds of reference.
    """
    reference = _REFERENCE.search(question)
    if not reference or reference[0] == "IT" or _EXPLETIVE_IT.search(question):
        return None
    before, after = strip_conjunction(question[: reference.start()]), question[reference.end() :]
    before_object = _BEFORE_OBJECT.fullmatch(before)
    if before_object and reference["possessive"] and before_object["third"] and content_words(before):
        return None  # "Who lost his crown?" refers to who
    if content_words(before) and not (_BEFORE_SUBJECT.fullmatch(before) or before_object):
        return None
    return reference if len(content_words(f"{before} {after}")) <= MAX_CONTENT_WORDS else None

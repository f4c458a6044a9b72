"""Finds, replaces and adds the topic of a question, and finds the pronoun that stands for one. English rules; pure.

Knows single sentences and answers; nothing of conversations.
"""

import re
from dataclasses import dataclass

from citewell.text import content_words

_AUXILIARY = r"(?:do|does|did|is|are|was|were|can|could|should|would|will|has|have|had|must|may|might)"
_PERSON = r"(?:i|you|we|one|people)"
_POLITE_OPENING = re.compile(
    r"""^(?:(?:and|but|so|or|please)\b[\s,]*
          | (?:can|could|would|will)\ you\ (?:please\ )?
          | i\ (?:want|would\ like|'d\ like|need)\ to\ (?:know|understand|see)\ (?:about\ )?
          | (?:tell|show|teach)\ (?:me|us)\ (?:more\ )?(?:about\ )?
          | do\ you\ know\  | (?:what|how)\ about\ )+""",
    re.IGNORECASE | re.VERBOSE,
)
_QUESTION_OPENING = re.compile(
    rf"""^(?:(?:what|who)(?:\ {_AUXILIARY}|'s|’s)(?:\ there)?(?:\ {_PERSON})?\b
          | (?:why|when|where|how)(?:\ {_AUXILIARY}|'s|’s|\ to)(?:\ (?:{_PERSON}|there))?\b
          | how\ (?:many|much|long|often|far|fast|big|old|large|high|heavy)\b
          | what|which|who|whose|why|when|where|how
          | {_AUXILIARY}\ (?:there\b)?(?:{_PERSON}\b)?
          | (?:explain|describe|define|compare|list|name)\b(?:\ (?:how|why|what|when)\b)?(?:\ (?:to|{_PERSON})\b)?
        )\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_TRAILING_CLAUSE = re.compile(rf"\s{_AUXILIARY} (?:{_PERSON}|it|they|there)\b.*$", re.IGNORECASE)
_PRONOUN = re.compile(r"(?:it|they|this|that|these|those|he|she|its|their|his)\b", re.IGNORECASE)
_DETERMINER = re.compile(r"^(?:a|an|the|my|your|our|its|their)\s+", re.IGNORECASE)
# "What is X?", "Tell me about X", "How does X work?": all of it is one thing with a name.
_ASKS_ABOUT_ONE_THING = re.compile(
    rf"^(?:what|who)(?: (?:is|are|was|were)|'s|’s) (?!{_PERSON}\b|there\b)"
    r"|^(?:explain|describe|define)(?! (?:how|why|what|when)\b)",
    re.IGNORECASE,
)
_HOW_THING_WORKS = re.compile(r"^how (?:does|do|did) (?P<thing>.+) works?$", re.IGNORECASE)
_CLAUSE_WORD = re.compile(rf"\b(?:{_AUXILIARY}|what|how|why|when|which|to|and|or|that)\b", re.IGNORECASE)

_PREPOSITION = re.compile(
    r"^(?:on|in|for|with|at|from|under|without|using|during|by|after|before|inside|against|over|via)\b", re.IGNORECASE
)
_PERSON_DOES_THING = re.compile(rf"^(?P<head>.*\b{_AUXILIARY} {_PERSON} \w+ |how to \w+ )(?P<thing>.+)$", re.IGNORECASE)
_THING_DOES = re.compile(
    rf"^(?:why|how|when|where|what) {_AUXILIARY} (?P<thing>(?:(?:a|an|the) )?\w+) \w+(?: \w+)?$",
    re.IGNORECASE,
)
_WHAT_IS_THING = re.compile(
    r"^(?:what|who)(?: (?:is|are|was|were)|'s|’s) (?:.+ (?:of|for) )?(?P<thing>.+)$", re.IGNORECASE
)
_WHAT_IS_NAME = re.compile(r"^(?:what|who)(?: is| are|'s|’s) (?!the )(?:an? )?[\w.-]+(?: [\w.-]+)?$", re.IGNORECASE)
_LAST_PREPOSITIONAL_PHRASE = re.compile(
    r"^(?P<head>.+) (?P<preposition>on|in|for|with|at|from|via|using) (?P<thing>[^,]+)$"
)

# Where or with what something is done, by the preposition it takes: "and Windows?" means "on Windows".
_ENVIRONMENTS = {
    "on": r"windows|mac\ ?os(?:\ x)?|mac|linux|ubuntu|debian|fedora|centos|android|ios|wsl|raspberry\ pi|docker|podman"
    r"|kubernetes|aws|azure|gcp",
    "in": r"python|java|javascript|typescript|rust|golang|c\+\+|c\#|ruby|php|kotlin|swift",
    "with": r"npm|yarn|pnpm|bun|pip|pipx|conda|poetry|uv|homebrew|brew",
}

_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.+)$", re.MULTILINE)
_ENUMERATION = re.compile(
    r"""(?:\b(?:are|includes?|including|between|either|both|namely|like|as|use|uses)|:)\s+
        ((?:[^,.;:?!]{2,60},\s+)+(?:and|or)?\s*[^,.;:?!]{2,60}|[^,.;:?!]{2,40}\ (?:and|or)\ [^,.;:?!]{2,40})
        (?=[.;?!]|$)""",
    re.VERBOSE,
)
_ITEM_SEPARATOR = re.compile(r",\s*(?:and|or)?\s*|\s+(?:and|or|vs\.?|versus)\s+")
_CITATION_MARKER = re.compile(r"\s*\[\d+\]")
LEADING_CONJUNCTION = re.compile(r"^(?:¿\s*)?(?:and|but|so|or|und|aber|y|pero|et|mais)\b[\s,]*", re.IGNORECASE)

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
    rf"{_QUESTION_WORDS}\b(?:(?!\b{_QUESTION_WORDS}\b)[^,;:?]){{0,60}}?\ ?{_AUXILIARY}\ ", re.IGNORECASE
)
_BEFORE_OBJECT = re.compile(
    rf"""(?:(?:{_QUESTION_WORDS}\ )?{_AUXILIARY}\ {_PERSON}
          |(?:show|tell|explain)\ (?:me\ |us\ )?(?:how|when|where|why)\ (?:to|i|you|we)|how\ to
          |(?P<third>who|what|which))
        (?:\ [\w'’-]+){{1,3}}\ """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Topic:
    """What a question is about."""

    words: str
    is_noun_phrase: bool
    """Whether the words name one thing, so that they can replace a pronoun."""


def find_topic(question: str) -> Topic | None:
    """What is left of a question without its question words and polite phrases; None where nothing is.

    find_topic("What is the capture point?") -> Topic("the capture point", is_noun_phrase=True)
    find_topic("How many checkerboard photos do I need?") -> Topic("checkerboard photos", is_noun_phrase=False)
    """
    plain = _strip_punctuation(_CITATION_MARKER.sub("", question))
    direct = _POLITE_OPENING.sub("", plain)
    if match := _HOW_THING_WORKS.match(direct):
        return Topic(match["thing"], is_noun_phrase=_is_noun_phrase(match["thing"]))
    words = _TRAILING_CLAUSE.sub("", _QUESTION_OPENING.sub("", direct, count=1)).strip(" ,:")
    words = re.sub(r"\b(?:do|does|did) ", "", words)
    if not content_words(words) or _PRONOUN.match(words):
        return None
    tell_me_about = direct != plain and not _QUESTION_OPENING.match(direct)
    about_one_thing = tell_me_about or bool(_ASKS_ABOUT_ONE_THING.match(direct))
    return Topic(words, is_noun_phrase=about_one_thing and _is_noun_phrase(words))


def replace_topic(question: str, topic: str) -> str:
    """The same question about another topic.

    replace_topic("Why do gyroscopes drift?", "accelerometers") -> "Why do accelerometers drift?"
    replace_topic("How do I install Ray on Linux?", "on Windows") -> "How do I install Ray on Windows?"
    replace_topic("How do I install Ray?", "Windows") -> "How do I install Ray on Windows?"
    """
    plain = _strip_punctuation(question)
    if not _WHAT_IS_NAME.match(plain) and (elsewhere := _replace_environment(plain, topic)):
        return f"{elsewhere}?"
    phrase = _LAST_PREPOSITIONAL_PHRASE.match(plain)
    if _PREPOSITION.match(topic):
        same_preposition = phrase and phrase["preposition"].casefold() == topic.split(maxsplit=1)[0].casefold()
        return f"{phrase['head'] if phrase and same_preposition else plain} {topic[0].lower()}{topic[1:]}?"
    if phrase and _is_name(topic) and _is_name(phrase["thing"]):
        return f"{phrase['head']} {phrase['preposition']} {topic}?"
    if match := _PERSON_DOES_THING.match(plain):
        inner = _LAST_PREPOSITIONAL_PHRASE.match(match["thing"])
        tail = f" {inner['preposition']} {inner['thing']}" if inner else ""
        return f"{match['head']}{topic}{tail}?"
    for pattern in (_HOW_THING_WORKS, _WHAT_IS_THING, _THING_DOES):
        if (match := pattern.match(plain)) and _is_noun_phrase(match["thing"]):
            return f"{plain[: match.start('thing')]}{topic}{plain[match.end('thing') :]}?"
    return add_topic(plain, topic)


def is_environment(words: str) -> bool:
    """Whether this is a system, a language or a tool that something is done on, in or with, such as "Windows"."""
    return any(re.fullmatch(names, words, re.IGNORECASE | re.VERBOSE) for names in _ENVIRONMENTS.values())


def _replace_environment(question: str, topic: str) -> str:
    """The question for another system, language or tool; empty where the topic is none, or is what is asked about."""
    for preposition, names in _ENVIRONMENTS.items():
        words = rf"(?:my\ |the\ |a\ )?(?:{names})"
        match = re.fullmatch(rf"(?:(?P<preposition>\w+)\ )?{words}", topic, re.IGNORECASE | re.VERBOSE)
        if not match or (match["preposition"] and not _PREPOSITION.match(topic)):
            continue
        asked = topic[:1].lower() + topic[1:] if match["preposition"] else f"{preposition} {topic}"
        earlier = rf"\b(?:on|in|for|with|under|using|via)\ {words}(?![\w+#-])"
        if phrase := re.search(earlier, question, re.IGNORECASE | re.VERBOSE):
            return f"{question[: phrase.start()]}{asked}{question[phrase.end() :]}"
        is_asked_about = re.search(rf"\b(?:{names})(?![\w+#-])", question, re.IGNORECASE | re.VERBOSE)
        return "" if is_asked_about else f"{question} {asked}"
    return ""


def add_example(question: str, *, code: bool) -> str:
    """The request for an example, or for code, of what a question is about.

    add_example("What is the capture point?", code=True) -> "Code for the capture point"
    add_example("How do I install Ray?", code=False) -> "How do I install Ray, with an example?"
    """
    topic = find_topic(question)
    if topic and topic.is_noun_phrase:
        return f"{'Code for' if code else 'An example of'} {topic.words}"
    return f"{_strip_punctuation(question)}, with {'code' if code else 'an example'}?"


def add_topic(question: str, topic: str) -> str:
    """The question with its topic in brackets: "How long does it take (camera calibration)?" """
    return f"{_strip_punctuation(question)} ({topic})?"


def strip_conjunction(text: str) -> str:
    """The text without the "and" or "but" it begins with."""
    return LEADING_CONJUNCTION.sub("", text)


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


def last_list(question: str, answer: str) -> tuple[list[str], bool]:
    """The items that were listed last, and whether each names a topic without the question.

    Looks for a list in the answer, then "X and Y" in the question, then quoted topics and enumerations in the answer.
    """
    text = _CITATION_MARKER.sub("", answer)
    if len(items := [_item_name(line) for line in _LIST_ITEM.findall(text)]) > 1:
        return items, False
    topic = find_topic(question)
    choice = re.sub(
        r"^.*?\b(?:between|either|both|better|compare)\b,?\s*|^.*,\s(?=.+ or )", "", topic.words if topic else ""
    )
    if re.search(r" (?:and|or|vs\.?|versus) ", choice) and len(items := _split_items(choice)) > 1:
        return items, True
    if len(items := re.findall(r"“([^”]+)”", text)) > 1:
        return items, True
    if (match := _ENUMERATION.search(text)) and len(items := _split_items(match[1])) > 1:
        return items, False
    return [], False


def _split_items(text: str) -> list[str]:
    """The items of "X, Y and Z"."""
    return [item for part in _ITEM_SEPARATOR.split(text) if (item := part.strip())]


def _item_name(line: str) -> str:
    """The name of a list item: what stands before its explanation."""
    head = re.split(r"[:;]\s|\s[–—-]\s|\.\s", line.replace("*", "").replace("`", ""), maxsplit=1)[0]
    return " ".join(head.strip(" .").split()[:12])


def _strip_punctuation(question: str) -> str:
    """The question without the marks around it."""
    return question.strip().rstrip("?!. …").lstrip("¿¡ ")


def _is_noun_phrase(words: str) -> bool:
    return len(words.split()) <= 5 and not _CLAUSE_WORD.search(words)


def _is_name(words: str) -> bool:
    """Whether the first word has a capital anywhere: "Linux", "macOS"."""
    return any(letter.isupper() for letter in _DETERMINER.sub("", words).split(" ")[0])

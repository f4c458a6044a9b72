"""What a question is about, and the same question about something else. Rules for English only; pure.

Knows single sentences, nothing of who said them when.
"""

import re
from dataclasses import dataclass

from citewell.text import content_words

_AUXILIARY = r"(?:do|does|did|is|are|was|were|can|could|should|would|will|has|have|had|must|may|might)"
_PERSON = r"(?:i|you|we|one|people)"
_POLITE = re.compile(
    r"""^(?:(?:and|but|so|or|please)\b[\s,]*
          | (?:can|could|would|will)\ you\ (?:please\ )?
          | i\ (?:want|would\ like|'d\ like|need)\ to\ (?:know|understand|see)\ (?:about\ )?
          | (?:tell|show|teach)\ (?:me|us)\ (?:more\ )?(?:about\ )?
          | do\ you\ know\  | (?:what|how)\ about\ )+""",
    re.IGNORECASE | re.VERBOSE,
)
_HEAD = re.compile(
    rf"""^(?:(?:what|who)(?:\ {_AUXILIARY}|'s|’s)(?:\ there)?(?:\ {_PERSON})?\b
          | (?:why|when|where|how)(?:\ {_AUXILIARY}|'s|’s|\ to)(?:\ (?:{_PERSON}|there))?\b
          | how\ (?:many|much|long|often|far|fast|big|old|large|high|heavy)\b
          | what|which|who|whose|why|when|where|how
          | {_AUXILIARY}\ (?:there\b)?(?:{_PERSON}\b)?
          | (?:explain|describe|define|compare|list|name)\b(?:\ (?:how|why|what|when)\b)?(?:\ (?:to|{_PERSON})\b)?
        )\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_TAIL = re.compile(rf"\s{_AUXILIARY} (?:{_PERSON}|it|they|there)\b.*$", re.IGNORECASE)
_POINTS_ELSEWHERE = re.compile(r"(?:it|they|this|that|these|those|he|she|its|their|his)\b", re.IGNORECASE)
_DETERMINER = re.compile(r"^(?:a|an|the|my|your|our|its|their)\s+", re.IGNORECASE)
# "What is X?", "Tell me about X", "How does X work?": all of it is one thing with a name.
_NAMES_ONE = re.compile(
    rf"^(?:what|who)(?: (?:is|are|was|were)|'s|’s) (?!{_PERSON}\b|there\b)"
    r"|^(?:explain|describe|define)(?! (?:how|why|what|when)\b)",
    re.IGNORECASE,
)
_WORKS = re.compile(r"^how (?:does|do|did) (?P<thing>.+) works?$", re.IGNORECASE)
_INSIDE = re.compile(rf"\b(?:{_AUXILIARY}|what|how|why|when|which|to|and|or|that)\b", re.IGNORECASE)

_PREPOSITION = re.compile(
    r"^(?:on|in|for|with|at|from|under|without|using|during|by|after|before|inside|against|over|via)\b", re.IGNORECASE
)
_WITH_ME = re.compile(rf"^(?P<head>.*\b{_AUXILIARY} {_PERSON} \w+ |how to \w+ )(?P<thing>.+)$", re.IGNORECASE)
_WITH_VERB = re.compile(
    rf"^(?:why|how|when|where|what) {_AUXILIARY} (?P<thing>(?:(?:a|an|the) )?\w+) \w+(?: \w+)?$",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"^(?:what|who)(?: (?:is|are|was|were)|'s|’s) (?:.+ (?:of|for) )?(?P<thing>.+)$", re.IGNORECASE)
_LAST_PHRASE = re.compile(r"^(?P<head>.+) (?P<preposition>on|in|for|with|at|from|via|using) (?P<thing>[^,]+)$")

_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.+)$", re.MULTILINE)
_ENUMERATED = re.compile(
    r"""(?:\b(?:are|includes?|including|between|either|both|namely|like|as|use|uses)|:)\s+
        ((?:[^,.;:?!]{2,60},\s+)+(?:and|or)?\s*[^,.;:?!]{2,60}|[^,.;:?!]{2,40}\ (?:and|or)\ [^,.;:?!]{2,40})
        (?=[.;?!]|$)""",
    re.VERBOSE,
)
_JOINT = re.compile(r",\s*(?:and|or)?\s*|\s+(?:and|or|vs\.?|versus)\s+")
_MARK = re.compile(r"\s*\[\d+\]")


@dataclass(frozen=True, slots=True)
class Topic:
    """What a question is about; `names` says that it is one thing, which can stand where a pronoun stood."""

    words: str
    names: bool


def find_topic(question: str) -> Topic | None:
    """What remains of a question without its wrapping.

    focus("What is the capture point?") -> Focus("the capture point", names=True)
    focus("How many checkerboard photos do I need?") -> Focus("checkerboard photos", names=False)
    """
    plain = _bare(_MARK.sub("", question))
    asked = _POLITE.sub("", plain)
    if found := _WORKS.match(asked):
        return Topic(found["thing"], names=_is_name(found["thing"]))
    about = _TAIL.sub("", _HEAD.sub("", asked, count=1)).strip(" ,:")
    about = re.sub(r"\b(?:do|does|did) ", "", about)
    if not content_words(about) or _POINTS_ELSEWHERE.match(about):
        return None
    named = asked != plain and not _HEAD.match(asked)  # "tell me about X"
    return Topic(about, names=(named or bool(_NAMES_ONE.match(asked))) and _is_name(about))


def replace_topic(question: str, thing: str) -> str:
    """The same question about something else.

    about_instead("Why do gyroscopes drift?", "accelerometers") -> "Why do accelerometers drift?"
    about_instead("How do I install Ray on Linux?", "on Windows") -> "How do I install Ray on Windows?"
    """
    asked = _bare(question)
    last = _LAST_PHRASE.match(asked)
    if _PREPOSITION.match(thing):
        same = last and last["preposition"].casefold() == thing.split(maxsplit=1)[0].casefold()
        return f"{last['head'] if last and same else asked} {thing[0].lower()}{thing[1:]}?"
    if last and _is_proper(thing) and _is_proper(last["thing"]):
        return f"{last['head']} {last['preposition']} {thing}?"
    if found := _WITH_ME.match(asked):
        inner = _LAST_PHRASE.match(found["thing"])
        tail = f" {inner['preposition']} {inner['thing']}" if inner else ""
        return f"{found['head']}{thing}{tail}?"
    for pattern in (_WORKS, _ABOUT, _WITH_VERB):
        if (found := pattern.match(asked)) and _is_name(found["thing"]):
            return f"{asked[: found.start('thing')]}{thing}{asked[found.end('thing') :]}?"
    return add_topic(asked, thing)


def add_topic(question: str, about: str) -> str:
    """A question with what it is about added: "How long does it take (camera calibration)?" """
    return f"{_bare(question)} ({about})?"


def last_list(question: str, answer: str) -> tuple[list[str], bool]:
    """What was listed last, and whether it stands apart from the question: offered topics do.

    An answer's list comes first, then "X and Y" in the question, then an enumeration in the answer.
    """
    said = _MARK.sub("", answer)
    if len(items := [_item(one) for one in _ITEM.findall(said)]) > 1:
        return items, False
    asked = find_topic(question)
    choice = re.sub(
        r"^.*?\b(?:between|either|both|better|compare)\b,?\s*|^.*,\s(?=.+ or )", "", asked.words if asked else ""
    )
    if re.search(r" (?:and|or|vs\.?|versus) ", choice) and len(items := _split(choice)) > 1:
        return items, True
    if len(items := re.findall(r"“([^”]+)”", said)) > 1:
        return items, True
    if (found := _ENUMERATED.search(said)) and len(items := _split(found[1])) > 1:
        return items, False
    return [], False


def _split(text: str) -> list[str]:
    return [item for one in _JOINT.split(text) if (item := one.strip())]


def _item(line: str) -> str:
    """A list item's own name: what stands before its explanation."""
    head = re.split(r"[:;]\s|\s[–—-]\s|\.\s", line.replace("*", "").replace("`", ""), maxsplit=1)[0]
    return " ".join(head.strip(" .").split()[:12])


def _bare(question: str) -> str:
    return question.strip().rstrip("?!. …").lstrip("¿¡ ")


def _is_name(thing: str) -> bool:
    return len(thing.split()) <= 5 and not _INSIDE.search(thing)


def _is_proper(thing: str) -> bool:
    return _DETERMINER.sub("", thing)[:1].isupper()

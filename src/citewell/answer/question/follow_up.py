"""What is asked: a question that stands alone, made of what was said and what was said before. Pure rules, no model.

A question that stands alone is left as it is, to the letter; only words that mean nothing by themselves
("why?", "the second one", "it") are filled in from the last question. Where there is none, we ask back.
English; of German, Spanish and French the few words that whole follow-ups consist of.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from citewell.answer.question.topic import add_topic, find_topic, last_list, replace_topic
from citewell.models import Exchange
from citewell.text import content_words

CONTEXT_EXCHANGES = 5  # exchanges that count
_LONGEST = 300  # characters: whoever writes more says what it is about
_MOST_SUBSTANCE = 4  # words of its own beside a pronoun: with more, a question is better searched as it is

QuestionKind = Literal["question", "more", "unclear", "courtesy"]


@dataclass(frozen=True, slots=True)
class ResolvedQuestion:
    """What to search for, and what kind of wish it is.

    `more` wants what was not said yet; `unclear` and `courtesy` are met with `reply` instead of an answer.
    """

    question: str
    kind: QuestionKind = "question"
    said: tuple[str, ...] = ()
    reply: str = ""
    follows: str = ""
    """The question that brought up the topic, where this one goes on about it."""
    points: bool = False
    """Whether it speaks of the words that its reader has marked."""

    @property
    def topic(self) -> str:
        return self.follows or self.question

    @property
    def sought(self) -> str:
        """What to look for in marked words; nothing, where the question is what they mean."""
        return "" if self.points and not content_of_its_own(self.question) else self.question

    @property
    def wants_answer(self) -> bool:
        return self.kind in ("question", "more")

    def was_said(self, quote: str) -> bool:
        """Whether words were quoted before, so that "tell me more" need not hear them again."""
        return any(" ".join(quote.split()) in " ".join(answer.split()) for answer in self.said)


@dataclass(frozen=True, slots=True)
class _Turn:
    asked: ResolvedQuestion
    answer: str


def resolve_follow_up(question: str, history: Sequence[Exchange] = (), *, marked: str = "") -> ResolvedQuestion:
    """The question that stands alone.

    understand("how is it computed?", [Exchange("What is the capture point?", …)])
        -> Understood("how is the capture point computed?")

    `marked` is what the reader has selected: "this" is that, and nothing is unclear where there is something to mean.
    """
    turns: list[_Turn] = []
    for exchange in history[-CONTEXT_EXCHANGES:]:
        turns.append(_Turn(_resolved(exchange.question, turns), exchange.answer))
    return _resolved(question, turns, marked=bool(marked.strip()))


def refer_to_selection(asked: ResolvedQuestion, marked: str) -> ResolvedQuestion:
    """A question that points at what is marked, with the words it points at; any other as it is."""
    if not asked.points:
        return asked
    return replace(asked, question=add_topic(asked.question, " ".join(marked.split())), said=(marked,))


def content_of_its_own(question: str) -> list[str]:
    """What a question says of its own: nothing, where it only asks what something means, or what it says."""
    return [word for word in content_words(question) if word.casefold() not in _ABOUT_WORDS]


def _resolved(question: str, turns: Sequence[_Turn], *, marked: bool = False) -> ResolvedQuestion:
    text = " ".join(question.split())
    if len(text) > _LONGEST:
        return ResolvedQuestion(text)
    if reply := _courtesy(text):
        return ResolvedQuestion(text, "courtesy", reply=reply)
    text = _THANKS_FIRST.sub("", text)
    plain = _CONJUNCTION.sub("", text).rstrip("?!. …").lstrip("¿¡ ")
    last = next((turn for turn in reversed(turns) if turn.asked.wants_answer), None)
    if marked and _THIS.search(text) and len(content_of_its_own(text)) <= _MOST_SUBSTANCE:
        return ResolvedQuestion(text, points=True)
    understood = next(filter(None, (rule(text, plain, last) for rule in _RULES)), None)
    if understood is None or (marked and understood.kind == "unclear"):
        lost = understood is not None or not content_of_its_own(text) or (last is None and bool(_reference(text)))
        return ResolvedQuestion(text, points=marked and lost)
    if understood.kind == "more":
        said = tuple(turn.answer for turn in turns if turn.asked.question == understood.question)
        return replace(understood, said=said)
    return replace(understood, question=text) if understood.kind == "unclear" else understood


# With something marked, "this" is that; but this book is the book.
_THIS = re.compile(
    r"""\b(?:this|these)\b(?!\ (?:book|site|documentation|docs|manual|chapter|page|project|year|month|week))
      | \b(?:das|dies(?:e[rs]?)?|esto|ceci|cela|ça)\W*$""",
    re.IGNORECASE | re.VERBOSE,
)
# Short as they are, such questions pass for other languages: hence the words that are wrapping in English anyway.
_ABOUT_WORDS = frozenset(
    ["tell", "me", "more", "what", "else", "explain", "why", "how", "mean", "this", "that", "it", "is", "go",
     "on", "meaning", "text", "passage", "paragraph", "paragraphs", "section", "sentence", "sentences",
     "selection", "selected", "word", "words", "summarize", "summarise", "summary", "summarized", "describe",
     "idea", "ideas", "point", "points", "key", "important", "gist", "essence", "simple", "simply", "simpler",
     "terms", "detail", "details", "briefly", "brief", "short", "author", "says", "said", "understand",
     "elaborate", "tldr", "tl;dr", "eli5", "part", "bit", "snippet", "bedeutet", "heißt", "erkläre", "erklär",
     "significa", "explica", "signifie", "explique"]
)  # fmt: skip


_THANKS = (
    r"(?:many )?thanks(?: a lot| so much)?|thank you(?: (?:so|very) much)?|thx|cheers|danke(?: schön)?|merci"
    r"(?: beaucoup)?|(?:muchas )?gracias"
)
_COURTESIES = {
    "You're welcome.": _THANKS,
    "Hello! Ask me something about this book.": r"hi(?: there)?|hello(?: there)?|hey|good (?:morning|afternoon|evening)"
    r"|hallo|hola|bonjour",
    "Goodbye!": r"(?:good)?bye|see you|tschüss|adiós|au revoir",
    "Good. Ask on whenever you like.": r"ok(?:ay)?|k|great|cool|nice|perfect|awesome|alright|fine|got it|i see"
    r"|understood|makes sense|(?:that |this )?help(?:s|ed)|(?:very )?(?:good|helpful)|interesting|super|vale|d'accord",
}
_ANY_COURTESY = re.compile(rf"(?:(?:{'|'.join(_COURTESIES.values())})(?:\W+|$))+", re.IGNORECASE)
_THANKS_FIRST = re.compile(
    rf"^(?:(?:{_THANKS}|ok(?:ay)?|great|cool|nice|got it|i see|alright)[,.!…]+\s+)+(?=\S)",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(r"^(?:¿\s*)?(?:and|but|so|or|und|aber|y|pero|et|mais)\b[\s,]*", re.IGNORECASE)


def _courtesy(text: str) -> str:
    """What to say to who only thanks, greets or agrees; nothing to everybody else."""
    if not _ANY_COURTESY.fullmatch(text):
        return ""
    return next(reply for reply, said in _COURTESIES.items() if re.search(rf"\b(?:{said})\b", text, re.IGNORECASE))


_THAT = r"(?:that|this|it|these|those|them)"
_ASK = r"(?:(?:can|could|would|will)\ you\ )?(?:please\ )?"
_MORE = re.compile(
    rf"""{_ASK}(?:
        tell\ (?:me|us)\ (?:a\ (?:bit|little)\ |some(?:thing|what)?\ )?more | (?:some\ )?more | say\ more
      | go\ (?:on|ahead|deeper) | continue | carry\ on | keep\ going | elaborate | expand | is\ that\ all
      | explain(?:\ {_THAT})?(?:\ (?:further|more|again|better|in\ (?:more\ )?detail|more\ simply))?
      | then(?:\ what)? | how\ so | (?:what|anything)\ else
      | (?:give\ (?:me|us)\ )?(?:some\ )?(?:more|further)\ (?:details?|info(?:rmation)?) | what\ do\ you\ mean
      | i\ (?:don't|don’t|do\ not)\ (?:understand|get\ it) | what\ about\ {_THAT}
      | (?:erzähl(?:e)?\ mir\ )?mehr(?:\ (?:dazu|davon|details))? | weiter
      | (?:cuéntame|dime)\ más | más(?:\ detalles)? | (?:dis-m'en|dites-m'en)\ plus | plus\ de\ détails | continue[rz]?
    )(?:\ (?:on|about|of|upon)\ {_THAT})?(?:,?\ please)?""",
    re.IGNORECASE | re.VERBOSE,
)


def _more(_text: str, plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    if not _MORE.fullmatch(plain):
        return None
    if last is None:
        return ResolvedQuestion(plain, "unclear", reply="More about what?")
    return ResolvedQuestion(last.asked.question, "more", follows=last.asked.topic)


_BARE = re.compile(
    r"""(?P<why>why(?:\ not)?|how\ come|what\ for|warum|wieso|weshalb|por\ qué|pourquoi)
          (?:\ (?:is|was)\ (?:that|this|it))?(?:\ so|\ the\ case|\ true)?
      | (?P<how>how|wie(?:\ genau)?|cómo|comment)(?:\ (?:is|was)\ (?:that|this|it))?(?:\ done)?
      | when|where|who|since\ when|which(?:\ ones?)? | how\ (?:many|much)(?:\ (?:is|are)\ there)?
      | (?:for\ )?how\ long|how\ (?:often|far|fast|big|old)|wann|wo|wer|cuándo|dónde|quand|où""",
    re.IGNORECASE | re.VERBOSE,
)


def _bare(_text: str, plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """A question word that hangs on what was asked before."""
    if not (found := _BARE.fullmatch(plain)):
        return None
    if not last:
        return ResolvedQuestion(plain, "unclear", reply=f"“{plain[:1].upper()}{plain[1:]}” about what?")
    again = (found["why"] and "why") or (found["how"] and "how")
    if again and last.asked.question.casefold().startswith(again):
        return ResolvedQuestion(last.asked.question, "more", follows=last.asked.topic)
    about = find_topic(last.asked.topic)
    # Who asks why or how of an answer has read it: the same sentences again would be no answer.
    said = (last.answer,) if again else ()
    return ResolvedQuestion(
        add_topic(plain, about.words if about else last.asked.topic), said=said, follows=last.asked.topic
    )


_SAMPLE = re.compile(
    rf"""{_ASK}(?:(?:give|show|got|have|write|is\ there|do\ you\ have)\ )?(?:(?:me|us)\ )?(?:(?:an?|some|the|any)\ )?
        (?:for\ (?:example|instance)|examples?
          |(?P<code>(?:sample\ |example\ )?(?:code|snippets?|commands?))(?:\ examples?)?)
        (?:\ (?:of|for)\ {_THAT})?(?:,?\ please)?""",
    re.IGNORECASE | re.VERBOSE,
)


def _sample(_text: str, plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """An example, or code, of what was asked about."""
    if not (found := _SAMPLE.fullmatch(plain)):
        return None
    wanted = "Code for" if found["code"] else "An example of"
    if not last:
        return ResolvedQuestion(plain, "unclear", reply=f"{wanted} what?")
    about = find_topic(last.asked.topic)
    topic = about.words if about else last.asked.topic
    return ResolvedQuestion(f"{wanted} {topic}", said=(last.answer,), follows=last.asked.topic)


_NUMBERS = ("first", "second", "third", "fourth", "fifth", "sixth")
_ORDINAL = re.compile(
    rf"""\bthe\ (?P<number>{"|".join(_NUMBERS)}|last|other|former|latter|[1-6](?:st|nd|rd|th))
         (?:\ (?:(?P<one>one)|item|point|step|option|method|approach|way|thing|part|reason|stage|kind|type|topic))?\b
         (?!\ (?:of|to|in|that|who|which|was|were|on)\b)""",
    re.IGNORECASE | re.VERBOSE,
)


def _ordinal(text: str, plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """The n-th of what was listed."""
    if not (found := _ORDINAL.search(text)):
        return None
    rest = content_words(f"{text[: found.start()]} {text[found.end() :]}")
    alone = not [word for word in rest if word.casefold() not in ("work", "works", "happen", "happens")]
    if not (found["one"] or alone) or len(rest) > _MOST_SUBSTANCE:
        return None
    items, apart = last_list(last.asked.topic, last.answer) if last else ([], False)
    place = _place(found["number"].casefold(), len(items))
    if last is None or place is None:
        return ResolvedQuestion(plain, "unclear", reply="Which one do you mean?") if alone else None
    resolved = _CONJUNCTION.sub("", f"{text[: found.start()]}{items[place]}{text[found.end() :]}")
    about = None if apart else find_topic(last.asked.topic)
    return ResolvedQuestion(add_topic(resolved, about.words) if about else resolved)


def _place(number: str, count: int) -> int | None:
    """Where the n-th thing stands in a list of so many."""
    match number:
        case "former":
            place = 0
        case "last":
            place = count - 1
        case "latter" | "other":
            place = 1 if count == 2 else count - 1 if number == "latter" else count
        case _:
            place = _NUMBERS.index(number) if number in _NUMBERS else int(number[0]) - 1
    return place if 0 <= place < count else None


_WHAT_ABOUT = re.compile(r"(?:what|how) about (?P<thing>.+)", re.IGNORECASE)
_PHRASE = re.compile(r"(?:on|in|for|with|at|from|without|using|inside|via)(?: [^\s,]+){1,3}", re.IGNORECASE)
_THING = re.compile(r"(?:(?:a|an|the|my) )?[^\s,]+(?: [^\s,]+)?", re.IGNORECASE)
_QUESTION_WORD = re.compile(
    r"\b(?:what|which|who|whom|whose|why|when|where|how|do|does|did|is|are|was|were|can|could|should|would|will|has|have|had"
    r"|if|tell|show|explain|give|describe)\b",
    re.IGNORECASE,
)


def _instead(text: str, plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """The last question about something else: "what about Docker?", "and on Windows?"."""
    if last is None:
        return None
    joined = bool(_CONJUNCTION.match(text))
    if found := _WHAT_ABOUT.fullmatch(plain):
        thing = found["thing"]
    elif (text.endswith("?") and _PHRASE.fullmatch(plain)) or (joined and _THING.fullmatch(plain)):
        thing = plain
    else:
        return None
    if _QUESTION_WORD.search(thing) or not 0 < len(content_words(thing)) < _MOST_SUBSTANCE:
        return None
    return ResolvedQuestion(replace_topic(last.asked.topic, thing))


_AUXILIARY = r"(?:do|does|did|is|are|was|were|can|could|should|would|will|has|have|had|must|may|might)"
_QUESTIONS = r"(?:what|which|who|why|when|where|how)"
_PERSON = r"(?:i|you|we|one|people)"
_GENERIC = r"(?:method|approach|technique|problem|effect|step|value|error|concept|idea|process|case|thing|topic)s?"
_REFERENCE = re.compile(
    rf"""\b(?:
        (?P<demonstrative>this|that|these|those)(?P<generic>\ {_GENERIC}\b)?
           (?=$|[?.!,]|\ (?:happen|work|mean|matter|help|take|cost|differ|compare|important|true|possible|done|called
              |useful|necessary|relevant|better|bad|good|enough|a|an|the|in|on|for|with|from|without|also|always|ever|be|used|so)\b)
      | (?P<choice>which\ (?:one|of\ (?:them|these|those))s?)
      | (?P<possessive>its|their|his)(?=\ \w)
      | (?P<plain>it|they|them|he|she|him)(?!['’]))\b""",
    re.IGNORECASE | re.VERBOSE,
)
# "it" that stands for nothing: "Is it possible to …", "How long does it take to …".
_EXPLETIVE = re.compile(
    r"""\bit\ (?:\w+\ )?(?:take|takes|took|cost|costs|mean|means|help|helps|make\ sense|feel|called|said|believed|known)
          \b.*\b(?:to|that|when|if|for|about)\b
      | \bit\ (?:\w+\ ){1,4}(?:to|that|if|when|whether|for|who)\b | \bthat\ it\b | \btime\ is\ it\b""",
    re.IGNORECASE | re.VERBOSE,
)
# What may stand before a reference that points out of its own sentence: nothing it could point to.
_SUBJECT_NEXT = re.compile(rf"{_QUESTIONS}\b(?:(?!\b{_QUESTIONS}\b)[^,;:?]){{0,60}}?\ ?{_AUXILIARY}\ ", re.IGNORECASE)
_OBJECT_NEXT = re.compile(
    rf"""(?:(?:{_QUESTIONS}\ )?{_AUXILIARY}\ {_PERSON}
          |(?:show|tell|explain)\ (?:me\ |us\ )?(?:how|when|where|why)\ (?:to|i|you|we)|how\ to
          |(?P<third>who|what|which))
        (?:\ [\w'’-]+){{1,3}}\ """,
    re.IGNORECASE | re.VERBOSE,
)


def _pronoun(text: str, _plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """A reference to what the last question was about, filled in."""
    about = find_topic(last.asked.topic) if last else None
    if last is None or about is None or not (found := _reference(text)):
        return None
    before, after = _CONJUNCTION.sub("", text[: found.start()]), text[found.end() :]
    if not about.names or found["generic"] or found["choice"]:
        return ResolvedQuestion(add_topic(f"{before}{found[0]}{after}", about.words), follows=last.asked.topic)
    owner = "’s" if found["possessive"] else ""
    return ResolvedQuestion(f"{before}{about.words}{owner}{after}", follows=last.asked.topic)


def _reference(text: str) -> re.Match[str] | None:
    """The word that points out of a question, where it has one and not much else."""
    found = _REFERENCE.search(text)
    if not found or found[0] == "IT" or _EXPLETIVE.search(text):
        return None
    before, after = _CONJUNCTION.sub("", text[: found.start()]), text[found.end() :]
    in_object = _OBJECT_NEXT.fullmatch(before)
    if in_object and found["possessive"] and in_object["third"] and content_words(before):
        return None  # "Who lost his crown?" points at who
    if content_words(before) and not (_SUBJECT_NEXT.fullmatch(before) or in_object):
        return None
    return found if len(content_words(f"{before} {after}")) <= _MOST_SUBSTANCE else None


_RULES = (_more, _bare, _sample, _ordinal, _instead, _pronoun)

"""Turns a follow-up into a question that stands alone, by rules only. Pure; calls no LLM and searches nothing.

A question that stands alone stays as it is, to the letter. Only words that mean nothing by themselves ("why?",
"the second one", "it") are filled in from the last question. Where there is none, the reply asks back.
English, plus the few words of German, Spanish and French that whole follow-ups consist of.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from citewell.answer.question.topic import (
    LEADING_CONJUNCTION,
    MAX_CONTENT_WORDS,
    add_example,
    add_topic,
    find_reference,
    find_topic,
    is_environment,
    last_list,
    replace_topic,
    strip_conjunction,
)
from citewell.models import Exchange
from citewell.text import content_words

CONTEXT_EXCHANGES = 5
"""How many of the last exchanges a follow-up may refer to."""

_MAX_FOLLOW_UP_CHARACTERS = 300  # a longer question names its own topic

QuestionKind = Literal["question", "more", "unclear", "courtesy"]


@dataclass(frozen=True, slots=True)
class ResolvedQuestion:
    """What to search for, and which kind of request it is.

    `more` asks for what was not shown yet. `unclear` and `courtesy` get `reply` instead of an answer.
    """

    question: str
    kind: QuestionKind = "question"
    already_shown: tuple[str, ...] = ()
    """Texts that the reader has seen: earlier answers, or the marked text."""
    reply: str = ""
    continues: str = ""
    """The earlier question whose topic this one continues; empty where it has a topic of its own."""
    refers_to_marked_text: bool = False
    """Whether "this" in the question means the text that the reader has marked on the page."""
    from_selection: bool = False
    """Whether the answer may come from the reader's selection only."""

    @property
    def topic_question(self) -> str:
        """The question that names the topic: an earlier one for a follow-up, else this one."""
        return self.continues or self.question

    @property
    def search_text(self) -> str:
        """The text to search for; empty where the question only asks what the selection means."""
        only_asks_meaning = self.refers_to_marked_text and not _own_content_words(self.question)
        return "" if self.from_selection and only_asks_meaning else self.question

    @property
    def wants_answer(self) -> bool:
        """Whether the question needs an answer from documents, not just a polite or clarifying reply."""
        return self.kind in ("question", "more")

    def was_shown(self, quote: str) -> bool:
        """Whether the reader has seen these words already, so that "tell me more" does not repeat them."""
        return any(" ".join(quote.split()) in " ".join(text.split()) for text in self.already_shown)


@dataclass(frozen=True, slots=True)
class _Turn:
    """An earlier exchange, its question resolved."""

    resolved: ResolvedQuestion
    answer: str

    @property
    def topic_text(self) -> str:
        """What its question is about; the whole question where no topic can be told."""
        topic = find_topic(self.resolved.topic_question)
        return topic.words if topic else self.resolved.topic_question


def resolve_follow_up(question: str, history: Sequence[Exchange] = (), *, marked: str = "") -> ResolvedQuestion:
    """The question that stands alone.

    resolve_follow_up("how is it computed?", [Exchange("What is the capture point?", …)])
        -> ResolvedQuestion("how is the capture point computed?")

    `marked` is the text that the reader has marked: "this" refers to it, and no question about it is unclear.
    """
    turns: list[_Turn] = []
    for exchange in history[-CONTEXT_EXCHANGES:]:
        turns.append(_Turn(_resolve_turn(exchange.question, turns), exchange.answer))
    return _resolve_turn(question, turns, has_marked_text=bool(marked.strip()))


def refer_to_selection(resolved: ResolvedQuestion, marked: str) -> ResolvedQuestion:
    """The question with the marked text that it refers to added; any other question unchanged."""
    if not resolved.refers_to_marked_text:
        return resolved
    question = add_topic(resolved.question, " ".join(marked.split()))
    return replace(resolved, question=question, already_shown=(marked,))


def _resolve_turn(question: str, turns: Sequence[_Turn], *, has_marked_text: bool = False) -> ResolvedQuestion:
    """The question that stands alone, given the turns before it."""
    text = " ".join(question.split())
    if len(text) > _MAX_FOLLOW_UP_CHARACTERS:
        return ResolvedQuestion(text)
    if reply := _courtesy_reply(text):
        return ResolvedQuestion(text, "courtesy", reply=reply)
    text = _strip_leading_courtesy(text)
    plain = strip_conjunction(text).rstrip("?!. …").lstrip("¿¡ ")
    last = next((turn for turn in reversed(turns) if turn.resolved.wants_answer), None)
    if has_marked_text and _THIS.search(text) and len(_own_content_words(text)) <= MAX_CONTENT_WORDS:
        return ResolvedQuestion(text, refers_to_marked_text=True)
    resolved = next(filter(None, (rule(text, plain, last) for rule in _RULES)), None)
    if resolved is None or (has_marked_text and resolved.kind == "unclear"):
        incomplete = (
            resolved is not None or not _own_content_words(text) or (last is None and bool(find_reference(text)))
        )
        return ResolvedQuestion(text, refers_to_marked_text=has_marked_text and incomplete)
    if resolved.kind == "more":
        shown = tuple(turn.answer for turn in turns if turn.resolved.question == resolved.question)
        return replace(resolved, already_shown=shown)
    return replace(resolved, question=text) if resolved.kind == "unclear" else resolved


# With text marked, "this" is the marked text; but "this book" is the book.
_THIS = re.compile(
    r"""\b(?:this|these)\b(?!\ (?:book|site|documentation|docs|manual|chapter|page|project|year|month|week))
      | \b(?:das|dies(?:e[rs]?)?|esto|ceci|cela|ça)\W*$""",
    re.IGNORECASE | re.VERBOSE,
)

# Short questions are easily taken for another language, so English question words are listed here as well.
_MEANING_QUESTION_WORDS = frozenset(
    ["tell", "me", "more", "what", "else", "explain", "why", "how", "mean", "this", "that", "it", "is", "go",
     "on", "meaning", "text", "passage", "paragraph", "paragraphs", "section", "sentence", "sentences",
     "selection", "selected", "word", "words", "summarize", "summarise", "summary", "summarized", "describe",
     "idea", "ideas", "point", "points", "key", "important", "gist", "essence", "simple", "simply", "simpler",
     "terms", "detail", "details", "briefly", "brief", "short", "author", "says", "said", "understand",
     "elaborate", "tldr", "tl;dr", "eli5", "part", "bit", "snippet", "bedeutet", "heißt", "erkläre", "erklär",
     "significa", "explica", "signifie", "explique"]
)  # fmt: skip


def _own_content_words(question: str) -> list[str]:
    """The content words of a question; none where it only asks what something means, or for a summary."""
    return [word for word in content_words(question) if word.casefold() not in _MEANING_QUESTION_WORDS]


_THANKS = (
    r"(?:many )?thanks(?: a lot| so much)?|thank you(?: (?:so|very) much)?|thx|cheers|danke(?: schön)?|merci"
    r"(?: beaucoup)?|(?:muchas )?gracias"
)
_PATTERN_BY_REPLY = {
    "You're welcome.": _THANKS,
    "Hello! What would you like to know?": r"hi(?: there)?|hello(?: there)?|hey|good (?:morning|afternoon|evening)"
    r"|hallo|hola|bonjour",
    "Goodbye!": r"(?:good)?bye|see you|tschüss|adiós|au revoir",
    "Good. Ask on whenever you like.": r"ok(?:ay)?|k|great|cool|nice|perfect|awesome|alright|fine|got it|i see"
    r"|understood|makes sense|(?:that |this )?help(?:s|ed)|(?:very )?(?:good|helpful)|interesting|super|vale|d'accord",
}
_ONLY_COURTESY = re.compile(rf"(?:(?:{'|'.join(_PATTERN_BY_REPLY.values())})(?:\W+|$))+", re.IGNORECASE)
_LEADING_COURTESY = re.compile(
    rf"^(?:(?:(?:{_THANKS}|ok(?:ay)?|great|cool|nice|got it|i see|alright)[,.!…]+\s+)+(?=\S)"
    rf"|(?:{_THANKS}|ok(?:ay)?|alright)\s+(?=(?:and|but|so)\b))",
    re.IGNORECASE,
)


def _courtesy_reply(text: str) -> str:
    """The reply to a message that only thanks, greets or agrees; empty for every other message."""
    if not _ONLY_COURTESY.fullmatch(text):
        return ""
    replies = _PATTERN_BY_REPLY.items()
    return next(reply for reply, pattern in replies if re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE))


def _strip_leading_courtesy(text: str) -> str:
    """The message without the "Thanks!" or "OK, great." before its question."""
    return _LEADING_COURTESY.sub("", text)


# Each rule below gets the message, the message without its conjunction and question mark, and the last turn that asked
# something. It returns None where it does not apply.

_THAT = r"(?:that|this|it|these|those|them)"
_POLITE_REQUEST = r"(?:(?:can|could|would|will)\ you\ )?(?:please\ )?"
_MORE_REQUEST = re.compile(
    rf"""{_POLITE_REQUEST}(?:
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


def _resolve_more_request(_text: str, plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """ "Tell me more" asks the last question again, for what was not shown yet."""
    if not _MORE_REQUEST.fullmatch(plain):
        return None
    if last is None:
        return ResolvedQuestion(plain, "unclear", reply="More about what?")
    return ResolvedQuestion(last.resolved.question, "more", continues=last.resolved.topic_question)


_BARE_QUESTION_WORD = re.compile(
    r"""(?P<why>why(?:\ not)?|how\ come|what\ for|warum|wieso|weshalb|por\ qué|pourquoi)
          (?:\ (?:is|was)\ (?:that|this|it))?(?:\ so|\ the\ case|\ true)?
      | (?P<how>how|wie(?:\ genau)?|cómo|comment)(?:\ (?:is|was)\ (?:that|this|it))?(?:\ done)?
      | when|where|who|since\ when|which(?:\ ones?)? | how\ (?:many|much)(?:\ (?:is|are)\ there)?
      | (?:for\ )?how\ long|how\ (?:often|far|fast|big|old)|wann|wo|wer|cuándo|dónde|quand|où""",
    re.IGNORECASE | re.VERBOSE,
)


def _resolve_bare_question_word(_text: str, plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """ "Why?" or "how many?" asks about the topic of the last question."""
    if not (match := _BARE_QUESTION_WORD.fullmatch(plain)):
        return None
    if not last:
        return ResolvedQuestion(plain, "unclear", reply=f"“{plain[:1].upper()}{plain[1:]}” about what?")
    why_or_how = (match["why"] and "why") or (match["how"] and "how")
    if why_or_how and last.resolved.question.casefold().startswith(why_or_how):
        return ResolvedQuestion(last.resolved.question, "more", continues=last.resolved.topic_question)
    # Whoever asks why or how about an answer has read it: the same sentences again would be no answer.
    shown = (last.answer,) if why_or_how else ()
    question = add_topic(plain, last.topic_text)
    return ResolvedQuestion(question, already_shown=shown, continues=last.resolved.topic_question)


_PREPOSITIONAL_PHRASE = r"(?:on|in|for|with|at|from|without|using|inside|under|via)(?:\ (?!please\b)[^\s,]+){1,3}"
_EXAMPLE_REQUEST = re.compile(
    rf"""{_POLITE_REQUEST}(?:(?:give|show|got|have|write|see|is\ there|are\ there|do\ you\ have|i\ need)\ )?
        (?:(?:me|us)\ )?(?:(?:an?|some|the|any)\ )?
        (?:for\ (?:example|instance)|(?:short\ |simple\ |full\ |minimal\ |concrete\ )?(?:examples?|samples?)
          |(?P<code>(?:sample\ |example\ )?(?:code|snippets?|commands?))(?:\ examples?)?)
        (?:\ (?:of|for)\ {_THAT})?(?:\ (?P<phrase>{_PREPOSITIONAL_PHRASE}))?(?:,?\ please)?
      | show\ (?:me|us)(?:\ how)?""",
    re.IGNORECASE | re.VERBOSE,
)


def _resolve_example_request(_text: str, plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """ "For example?" or "show me the code in Python" asks the last question again, for an example or code."""
    if not (match := _EXAMPLE_REQUEST.fullmatch(plain)):
        return None
    phrase, code = match["phrase"], bool(match["code"])
    if not last:
        # "Code for the arm" names its topic; "an example" does not.
        reply = f"{'Code for' if code else 'An example of'} what?"
        return None if phrase else ResolvedQuestion(plain, "unclear", reply=reply)
    question = last.resolved.topic_question
    example = add_example(replace_topic(question, phrase) if phrase else question, code=code)
    return ResolvedQuestion(example, already_shown=() if phrase else (last.answer,), continues=question)


_ORDINAL_WORDS = ("first", "second", "third", "fourth", "fifth", "sixth")
_ORDINAL = re.compile(
    rf"""\bthe\ (?P<number>{"|".join(_ORDINAL_WORDS)}|last|other|former|latter|[1-6](?:st|nd|rd|th))
         (?:\ (?:(?P<one>one)|item|point|step|option|method|approach|way|thing|part|reason|stage|kind|type|topic))?\b
         (?!\ (?:of|to|in|that|who|which|was|were|on)\b)""",
    re.IGNORECASE | re.VERBOSE,
)


def _resolve_ordinal(text: str, plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """ "The second one" is the second item of what was listed last."""
    if not (match := _ORDINAL.search(text)):
        return None
    other_words = content_words(f"{text[: match.start()]} {text[match.end() :]}")
    stands_alone = not [word for word in other_words if word.casefold() not in ("work", "works", "happen", "happens")]
    if not (match["one"] or stands_alone) or len(other_words) > MAX_CONTENT_WORDS:
        return None
    items, names_topic = last_list(last.resolved.topic_question, last.answer) if last else ([], False)
    index = _ordinal_index(match["number"].casefold(), len(items))
    if last is None or index is None:
        return ResolvedQuestion(plain, "unclear", reply="Which one do you mean?") if stands_alone else None
    question = strip_conjunction(f"{text[: match.start()]}{items[index]}{text[match.end() :]}")
    topic = None if names_topic else find_topic(last.resolved.topic_question)
    return ResolvedQuestion(add_topic(question, topic.words) if topic else question)


def _ordinal_index(number: str, count: int) -> int | None:
    """The list index that an ordinal such as "second" or "latter" names; None where the list has no such item."""
    match number:
        case "former":
            index = 0
        case "last":
            index = count - 1
        case "latter" | "other":
            index = 1 if count == 2 else count - 1 if number == "latter" else count
        case _:
            index = _ORDINAL_WORDS.index(number) if number in _ORDINAL_WORDS else int(number[0]) - 1
    return index if 0 <= index < count else None


_WHAT_ABOUT = re.compile(r"(?:what|how) about (?P<thing>.+)", re.IGNORECASE)
_SAME_ELSEWHERE = re.compile(
    rf"(?:(?:the\ )?same(?:\ thing)?\ )?(?:but\ )?(?P<thing>{_PREPOSITIONAL_PHRASE})(?P<also>\ too|\ as\ well)?",
    re.IGNORECASE | re.VERBOSE,
)
_READER_USES = re.compile(
    r"""(?:(?:what\ )?(?:if|when)\ )?(?:i|we)\ (?:only\ )?
        (?:(?:use|have|run)\ (?P<tool>[^\s,]+(?:\ [^\s,]+)?)
          |(?:am|are)\ (?P<thing>(?:on|in|using)\ [^\s,]+(?:\ [^\s,]+)?))""",
    re.IGNORECASE | re.VERBOSE,
)
_SHORT_NOUN_PHRASE = re.compile(r"(?:(?:a|an|the|my) )?[^\s,]+(?: [^\s,]+)?", re.IGNORECASE)
_QUESTION_WORD = re.compile(
    r"\b(?:what|which|who|whom|whose|why|when|where|how|do|does|did|is|are|was|were|can|could|should|would|will|has|have|had"
    r"|if|tell|show|explain|give|describe)\b",
    re.IGNORECASE,
)
_MAX_WORDS_WITHOUT_QUESTION_MARK = 2  # "in python"; more words may be what somebody types into a search box


def _resolve_topic_change(text: str, plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """ "What about Docker?", "and on Windows?" or "I use conda" asks the last question about another topic."""
    topic = _changed_topic(text, plain) if last else ""
    if last is None or _QUESTION_WORD.search(topic) or not 0 < len(content_words(topic)) < MAX_CONTENT_WORDS:
        return None
    return ResolvedQuestion(replace_topic(last.resolved.topic_question, topic))


def _changed_topic(text: str, plain: str) -> str:
    """What the last question is to be asked about instead; empty where the message is another question."""
    asks = text.endswith("?") or bool(LEADING_CONJUNCTION.match(text))
    if match := _WHAT_ABOUT.fullmatch(plain):
        return match["thing"]
    if match := _READER_USES.fullmatch(re.sub(r"['’]m\b", " am", re.sub(r"['’]re\b", " are", plain))):
        return match["thing"] or (match["tool"] if is_environment(match["tool"]) else f"with {match['tool']}")
    if match := _SAME_ELSEWHERE.fullmatch(plain):
        is_short = len(match["thing"].split()) <= _MAX_WORDS_WITHOUT_QUESTION_MARK
        return match["thing"] if asks or is_short or match["thing"] != plain else ""
    if (asks and is_environment(plain)) or (LEADING_CONJUNCTION.match(text) and _SHORT_NOUN_PHRASE.fullmatch(plain)):
        return plain
    return ""


def _resolve_pronoun(text: str, _plain: str, last: _Turn | None) -> ResolvedQuestion | None:
    """A pronoun is replaced by the topic of the last question, or the topic is added where it cannot stand there."""
    topic = find_topic(last.resolved.topic_question) if last else None
    if last is None or topic is None or not (reference := find_reference(text)):
        return None
    before, after = strip_conjunction(text[: reference.start()]), text[reference.end() :]
    if not topic.is_noun_phrase or reference["generic"] or reference["choice"]:
        question = add_topic(f"{before}{reference[0]}{after}", topic.words)
    else:
        possessive = "’s" if reference["possessive"] else ""
        question = f"{before}{topic.words}{possessive}{after}"
    return ResolvedQuestion(question, continues=last.resolved.topic_question)


_ONLY_PRONOUN = re.compile(
    r"(?:what|who)(?:['’]s| is| are| was| were) (?P<pronoun>it|this|that|these|those|they|he|she)", re.IGNORECASE
)


def _resolve_only_pronoun(_text: str, plain: str, _last: _Turn | None) -> ResolvedQuestion | None:
    """ "What is it?" is asked back where no earlier question has a topic."""
    if not (match := _ONLY_PRONOUN.fullmatch(plain)):
        return None
    return ResolvedQuestion(plain, "unclear", reply=f"What do you mean by “{match['pronoun'].lower()}”?")


_RULES = (
    _resolve_more_request,
    _resolve_bare_question_word,
    _resolve_example_request,
    _resolve_ordinal,
    _resolve_topic_change,
    _resolve_pronoun,
    _resolve_only_pronoun,
)

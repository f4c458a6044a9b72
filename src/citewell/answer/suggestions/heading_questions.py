"""Turns the headings of a document into questions that a reader might ask. Pure.

A heading that is a question stays as it is, in any language. Other headings become one only in English, and only where
a rule gives good English: the text decides which article a term takes and which words are capitalized. Does not know
whether the document answers the question.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from citewell.text import (
    ENGLISH,
    FENCE,
    closes_fence,
    content_words,
    detect_language,
    function_words,
    mostly_non_latin,
    split_words,
    table_rows,
    word_set,
)

_MIN_CHARACTERS, _MAX_CHARACTERS = 8, 80  # of a question
_MAX_WORDS = 12
_PART_NAMES = ("chapter", "part", "section", "step", "lesson", "unit", "module", "appendix", "week", "day")
_LEADING_NUMBER = re.compile(
    rf"^(?:(?:{'|'.join(_PART_NAMES)})\s+)?(?:\d+(?:\.\d+)*|[ivxIVX]+(?=[.):]))\s*[.):–—-]?\s+", re.IGNORECASE
)
_EMPHASIS = re.compile(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)")
# Code, formulas, file names, options, links and dates have no place in a question that everybody understands.
_CODE = re.compile(r"[`<>{}\[\]=|\\$@#~^+]|\(\)|::|->|--|\w_\w|\w/\w|\w\.\w|[a-z][A-Z]\w*[A-Z(]|\bv?\d+\.\d")
_ENDS_WITH_QUESTION_MARK = re.compile(r"[?？؟]\s*$")
_REFERENCE = re.compile(  # to something before the heading, or to a person
    r"\b(?:it|its|this|that|these|those|they|them|their|here|there|above|below|following|else|then|next|now|so"
    r"|i|my|me|we|our|us|you|your|he|she|his|her)\b",
    re.IGNORECASE,
)
_GENERIC_WORDS = word_set("heading-words.txt")
"""Headings that consist of these words only are in every book, and ask nothing."""
_AUXILIARY = r"(?:is|are|was|were|can|could|should|must|may|will|would)"
_QUESTION_TEMPLATES = (  # a heading, and the question that it stands for
    (re.compile(r"how to (?P<do>.+)", re.IGNORECASE), "How do you {do}?"),
    (re.compile(rf"(?P<how>how|why|where) (?P<who>.+?) (?P<is>{_AUXILIARY}) (?P<what>.+)", re.IGNORECASE),
     "{how} {is} {who} {what}?"),
    (re.compile(r"what (?P<who>.+) does", re.IGNORECASE), "What does {who} do?"),
    (re.compile(r"what (?P<who>.+) (?P<is>is|are)", re.IGNORECASE), "What {is} {who}?"),
    (re.compile(r"when (?P<what>.+ .+)", re.IGNORECASE), "What happens when {what}?"),
    (re.compile(r"(?P<which>which \S+ .+)", re.IGNORECASE), "{which}?"),
)  # fmt: skip
_GERUNDS = table_rows("gerunds.txt")
_VERB_BY_GERUND = {gerund: verb for gerund, verb, *_ in _GERUNDS}
"""The verb of each gerund that is an action: "choose" of "choosing". Others, such as "timing", may be nouns."""
_ADJECTIVE_GERUNDS = frozenset(gerund for gerund, _, *starred in _GERUNDS if starred)
"""Gerunds that often describe the next word: "training data", "building blocks"."""
_VERBS = frozenset(_VERB_BY_GERUND.values())
_DETERMINER_OR_PREPOSITION = re.compile(
    r"(?:an?|the|your|all|each|every|from|with|without|in|into|to|on|for)\b", re.IGNORECASE
)
_PREPOSITION = re.compile(r"\s(?:of|for|in|on|at|to|from|with|between|by|as|under|over)\s")
_CONJUNCTION_OR_PUNCTUATION = re.compile(r"[,;:&/()]|\s(?:and|or|vs\.?|versus)\s", re.IGNORECASE)
_SINGULAR_ENDINGS = ("ss", "us", "is", "ics", "series", "news", "lens")  # that look like a plural
_UNCOUNTABLE_ENDINGS = ("ing", "tion", "sion", "ics", "ity", "ism", "ment", "sis", "logy", "ance", "ence")
_MIN_DEFINITE_USES = 2  # for a single word or a plural to take "the"
_DEMONSTRATIVES = frozenset(["this", "that", "these", "those", "its", "their", "his", "her"])
_BLOCK_BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+>|]|\d{1,3}[.)])\s)")
_LOWERCASE_WORD = re.compile(r"\b[a-z][\w’'-]*")
_CAPITALIZED_WORD = re.compile(r"(?<=[a-z,;] )[A-Z][\w’'-]*")
_PRECEDING_WORD = re.compile(r"(?:^|(?:^|[\s(*“\"])(?P<word>[A-Za-z]+)\s+[*_“\"]{0,3}|[.!?]\s+[-*+>|]?\s*)$")
_FOLLOWING_WORD = re.compile(r"[*_”\"]{0,3}(?:\s*[.,;:!?)]|\s+(?P<word>[a-z]+)\b)")
_CONTEXT_CHARACTERS = 40  # before and after a term
_NOT_PROSE = re.compile(r"^[ \t]*#{1,6}[ \t].*$|`[^`\n]*`|\]\([^)\s]*\)|\w+://\S+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HeadingQuestion:
    """A question, and how good a first question it is: the lowest `rank` is the best."""

    question: str
    rank: int


def heading_questions(headings: Iterable[str], text: str) -> list[HeadingQuestion]:
    """The questions that the headings of a document stand for, best first, without duplicates.

    heading_questions(["Capture point", "Summary", "Choosing footholds"], "… the capture point is …")
        -> [HeadingQuestion("What is the capture point?", 1), HeadingQuestion("How do you choose footholds?", 2)]
    """
    prose = _Prose.of(text)
    questions: dict[str, HeadingQuestion] = {}
    for heading in dict.fromkeys(headings):
        if (question := _to_question(_strip_number(heading), prose)) and _has_good_length(question.question):
            vague = len(content_words(question.question)) < 2
            ranked = HeadingQuestion(question.question, question.rank + 2 * vague)
            questions.setdefault(question.question.casefold(), ranked)
    return sorted(questions.values(), key=lambda question: question.rank)


@dataclass(frozen=True, slots=True)
class _Prose:
    """The prose of a document on one line, and how often it has each word in lower case and capitalized."""

    text: str
    lowercase: Counter[str]
    capitalized: Counter[str]
    """Only inside sentences, where a capital shows a name."""
    english: bool

    @classmethod
    def of(cls, text: str) -> "_Prose":
        prose = " ".join(_BLOCK_BREAK.sub(" . ", _NOT_PROSE.sub("", _strip_code_blocks(text))).split())
        english = detect_language(prose) == ENGLISH and not mostly_non_latin(prose)
        return cls(prose, Counter(_LOWERCASE_WORD.findall(prose)), Counter(_CAPITALIZED_WORD.findall(prose)), english)


def _strip_code_blocks(text: str) -> str:
    """The text without fenced code; a fence that is never closed runs to the end."""
    lines: list[str] = []
    open_fence = ""
    for line in text.splitlines():
        if open_fence:
            open_fence = "" if closes_fence(line, open_fence) else open_fence
        elif opening := FENCE.match(line):
            open_fence = opening["fence"]
        else:
            lines.append(line)
    return "\n".join(lines)


def _strip_number(heading: str) -> str:
    """The heading without its number and emphasis, on one line."""
    line = " ".join(_EMPHASIS.sub("", heading).split())
    return _LEADING_NUMBER.sub("", line).strip(" .:–—-")


def _has_good_length(question: str) -> bool:
    few_words = len(question.split()) <= _MAX_WORDS
    return _MIN_CHARACTERS <= len(question) <= _MAX_CHARACTERS and few_words and question.isprintable()


def _to_question(heading: str, prose: _Prose) -> HeadingQuestion | None:
    """The question that a heading stands for; None where no rule applies."""
    if _CODE.search(heading) or not any(character.isalpha() for character in heading):
        return None
    if _ENDS_WITH_QUESTION_MARK.search(heading):
        return None if _REFERENCE.search(heading) or ":" in heading else _existing_question(heading)
    words = heading.split()
    if not prose.english or mostly_non_latin(heading) or _REFERENCE.search(heading) or len(words) > _MAX_WORDS:
        return None
    if all(word.casefold().strip(".,:!") in _GENERIC_WORDS for word in words):
        return None
    heading = _to_sentence_case(heading, prose)
    return _question_from_template(heading) or _how_question(heading) or _what_question(heading, prose)


def _existing_question(heading: str) -> HeadingQuestion | None:
    """A heading that is a question; not one of two words such as "Why robots?", which needs its context."""
    too_short = not mostly_non_latin(heading) and len(heading.split()) < 3
    return None if too_short else HeadingQuestion(heading, 0)


def _to_sentence_case(heading: str, prose: _Prose) -> str:
    """The heading as it is written inside a sentence: words that the text capitalizes there are names."""
    words = []
    for index, word in enumerate(heading.split()):
        only_first_capital = word[:1].isupper() and not any(character.isupper() for character in word[1:])
        known = prose.lowercase[word.lower()] or (index == 0 and word.isalpha())
        is_name = prose.capitalized[word] > prose.lowercase[word.lower()]
        words.append(word.lower() if only_first_capital and known and not is_name else word)
    return " ".join(words)


def _question_from_template(heading: str) -> HeadingQuestion | None:
    """ "How to walk" -> "How do you walk?" """
    for pattern, template in _QUESTION_TEMPLATES:
        if match := pattern.fullmatch(heading):
            question = template.format(**match.groupdict())
            return HeadingQuestion(question[0].upper() + question[1:], 2 if "which" in match.groupdict() else 1)
    return None


def _how_question(heading: str) -> HeadingQuestion | None:
    """ "Choosing a sensor", or "Choose a sensor" -> "How do you choose a sensor?" """
    first, _, rest = heading.partition(" ")
    first_word = first.casefold()
    verb = _VERB_BY_GERUND.get(first_word) or (first_word if first_word in _VERBS else None)
    if not verb or not rest or _CONJUNCTION_OR_PUNCTUATION.search(f" {rest} "):
        return None
    has_determiner = bool(_DETERMINER_OR_PREPOSITION.match(rest))
    may_be_noun_phrase = verb == first_word or first_word in _ADJECTIVE_GERUNDS
    if may_be_noun_phrase and not has_determiner:
        return None
    return HeadingQuestion(f"How do you {verb} {rest}?", 2 if has_determiner or _is_plural(rest) else 3)


def _what_question(heading: str, prose: _Prose) -> HeadingQuestion | None:
    """ "Capture point" -> "What is the capture point?", with the article that the text uses; None where it has none."""
    term = re.sub(r"^(?:the|an?)\s+", "", heading, flags=re.IGNORECASE)
    head_noun = _PREPOSITION.split(term, maxsplit=1)[0].split()[-1:]
    first, _, rest = term.casefold().partition(" ")
    is_action = first in _VERB_BY_GERUND or first in function_words(ENGLISH)
    is_generic = all(word in _GENERIC_WORDS for word in split_words(term.casefold()))
    if not head_noun or is_generic or is_action:
        return None
    if _CONJUNCTION_OR_PUNCTUATION.search(term) or _DETERMINER_OR_PREPOSITION.match(rest):
        return None
    plural = _is_plural(head_noun[0])
    articles = Counter(_articles_before(term, prose.text))
    if plural and not articles and term.endswith(head_noun[0]):
        plural, term = False, term[:-1]
        articles = Counter(article for article in _articles_before(term, prose.text) if article == "a")
    return _choose_article(term, articles, plural=plural, several_words=bool(rest))


def _choose_article(term: str, articles: Counter[str], *, plural: bool, several_words: bool) -> HeadingQuestion | None:
    """ "What is …?" with the article that the text uses most with the term; None where the text does not use it."""
    if several_words and not plural:
        mostly_definite = articles["the"] > articles[""]
    else:
        mostly_definite = articles["the"] >= max(_MIN_DEFINITE_USES, 2 * articles[""])
    definite = mostly_definite and not term.endswith("ics")
    if plural and articles:
        return HeadingQuestion(f"What are {'the ' if definite else ''}{term}?", 1)
    if articles["a"] > articles[""]:
        return HeadingQuestion(f"What is {'an' if term[0] in 'aeiouAEIOU' else 'a'} {term}?", 1)
    if definite:
        return HeadingQuestion(f"What is the {term}?", 1)
    if articles[""] and (several_words or term.endswith(_UNCOUNTABLE_ENDINGS)):
        return HeadingQuestion(f"What is {term}?", 2)
    return None


def _is_plural(noun: str) -> bool:
    has_inner_capital = any(character.isupper() for character in noun[1:])
    return noun.endswith("s") and not noun.endswith(_SINGULAR_ENDINGS) and not has_inner_capital


def _articles_before(term: str, prose: str) -> Iterator[str]:
    """The article before each use of a term in the text: "a", "the" or "".

    "The capture point controller" does not count: it does not show whether there is a capture point.
    """
    without_content = function_words(ENGLISH)
    for match in re.finditer(re.escape(term), prose, re.IGNORECASE):
        preceding = _PRECEDING_WORD.search(prose[max(0, match.start() - _CONTEXT_CHARACTERS) : match.start()])
        following = _FOLLOWING_WORD.match(prose[match.end() : match.end() + _CONTEXT_CHARACTERS])
        if not preceding or not following:
            continue
        before, after = (preceding["word"] or "").casefold(), following["word"] or ""
        is_verb = before in ("a", "an") and after.endswith("s")
        is_longer_term = after and after not in without_content and not is_verb
        if not is_longer_term and before not in _DEMONSTRATIVES and (not before or before in without_content):
            yield {"a": "a", "an": "a", "the": "the"}.get(before, "")

"""Tell what a unit of an LLM's text is: a claim, a heading, a lead-in, or an aside that answers nothing. Pure.

Asides are small talk, questions, an echo of the question, "The passages do not say …", and talk of the search tool.
"""

import re
from collections.abc import Callable, Iterable
from typing import Literal

from citewell.answer.support import needs_support
from citewell.text import split_words

UnitKind = Literal["claim", "row", "heading", "lead-in", "table-head", "aside"]
"""A row is a claim in a table. Claims and rows need a citation; the others are shown only together with them."""

SEARCH_TOOL = "search_book_content"

_MAX_TITLE_CHARACTERS = 100  # of a heading
_MAX_CELL_CHARACTERS = 40  # in the head of a table
_HEADING = re.compile(r"[ \t>]*(?:(?P<marks>#{1,6})[ \t]+(?P<title>[^\n]*)|\*\*(?P<bold>[^*\n]+)\*\*:?)\s*")
_BOLD_LEVEL = 7
_SENTENCE_END = (".", "!", "…", "。", "！")
_LEAD_IN_END = (":", "：")
_TABLE_RULE = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?\s*")
_ECHO_LABEL = re.compile(
    r"\s*(?:the\s+|reader['’]s\s+|your\s+|user\s+)*(?:question|answer|query|q|a)\s*:\s*", re.IGNORECASE
)

_SOURCES = (
    r"\b(?:passages?|documents?|texts?|context|sources?|book|excerpts?|sections?|information|material|selection)\b"
)
_SAY = r"\b(?:say|mention|contain|provide|include|state|specif|cover|answer|describ|explain|discuss|tell|address|give)"
_SOME = r"[^.!?\n]{0,60}"
_NOT = r"\b(?:do(?:es)? not|don['’]t|doesn['’]t|can ?not|can['’]t|could not|couldn['’]t|never|no|nothing)\b"
_NO_ANSWER = re.compile(
    "|".join(
        [
            rf"{_SOURCES}{_SOME}{_NOT}{_SOME}(?:{_SAY}|\binformation)",
            rf"\b(?:is|are|was) not (?:\w+ )?{_SAY[2:]}\w*{_SOME}{_SOURCES}",
            rf"\bno (?:\w+ ){{0,3}}(?:information|mention|answer)\b{_SOME}(?:{_SOURCES}|\b(?:found|available)\b)",
            r"\bthere is (?:no|not enough) (?:\w+ ){0,2}(?:information|mention|answer)\b",
            rf"\bI {_NOT[2:]} (?:\w+ )?(?:know|answer|find|have|help|tell)",
            r"\b(?:not able|unable) to (?:answer|find|determine|provide|help)\b",
            r"\b(?:can ?not|can['’]t|could not) be (?:answered|determined)\b|\bas an AI\b|\bsorry, (?:but )?I\b",
            rf"\b(?:Passagen|Texte?|Dokumente?|Abschnitte?|Quellen)\b{_SOME}\b(?:nicht|keine?n?)\b",
            rf"\bich (?:weiß|kann|habe|finde)\b{_SOME}\b(?:nicht|keine?)\b",
            rf"\b(?:passages|documents|textes?|extraits|sources)\b{_SOME}\bne\b{_SOME}\b(?:pas|rien|aucune?)\b",
            r"\bje ne (?:sais|peux|trouve)\b",
            rf"\b(?:pasajes?|documentos?|textos?|fuentes)\b{_SOME}\bno (?:mencion|dice|contien|indic|explic)",
            r"\bno (?:lo )?(?:sé|puedo (?:responder|encontrar))\b",
            r"我不知道|[无無]法回答|[没沒]有(?:提到|提及|相关|相關|说明|說明)|未(?:提及|提到)",
            r"[わ分]かりません|記載(?:されて|が|は)|答えられません",
            r"لا (?:أعرف|أعلم|تذكر|يذكر|تحتوي|يحتوي)",
        ]
    ),
    re.IGNORECASE,
)
_PROMPT_WORD = re.compile(r"\b(?:passages?|excerpts?|context|provided|above|i)\b", re.IGNORECASE)  # not of a document


def is_row(text: str) -> bool:
    """Whether this line is a row of a table."""
    return text.lstrip(" \t>").startswith("|")


def is_table_rule(text: str) -> bool:
    """Whether this line separates the head of a table from its rows."""
    return is_row(text) and "-" in text and bool(_TABLE_RULE.fullmatch(text))


def heading_level(text: str) -> int:
    """1 for "# …" to 6, and 7 for a bold line; 0 if the text is no heading."""
    heading = _HEADING.fullmatch(text)
    if not heading:
        return 0
    title = (heading["title"] or heading["bold"] or "").strip(" *#")
    if len(title) > _MAX_TITLE_CHARACTERS or title.endswith(_SENTENCE_END):
        return 0
    return len(heading["marks"] or "") or _BOLD_LEVEL


def unit_kind(text: str, *, is_code: bool = False) -> UnitKind:
    """The kind of a unit, by its text without citation markers.

    unit_kind("## Pumps") -> "heading"; unit_kind("Sure!") -> "aside"; unit_kind("**Pumps move water.**") -> "claim"
    """
    if not any(char.isalnum() for char in text) and not is_table_rule(text.rpartition("\n")[2]):
        return "aside"
    if is_code:
        return "claim"
    if is_row(text):
        return _row_kind(text.strip())
    if heading_level(text.strip()):
        return "heading"
    if needs_support(text) or _HEADING.fullmatch(text.strip()):
        return "claim"
    return "lead-in" if text.rstrip(" \n*_").endswith(_LEAD_IN_END) else "aside"


def _row_kind(text: str) -> UnitKind:
    head, _, rule = text.rpartition("\n")
    if not is_table_rule(rule):
        return "row"
    cells = [cell.strip() for cell in head.strip(" \t|>").split("|")]
    labels = [cell for cell in cells if len(cell) <= _MAX_CELL_CHARACTERS and not cell.endswith(_SENTENCE_END)]
    return "table-head" if len(labels) == len(cells) else "aside"


class AsideFilter:
    """Finds units that look like claims and answer nothing, with `is_aside`."""

    def __init__(self, question: str) -> None:
        self._question = [word.casefold() for word in split_words(question)]

    def is_aside(
        self, text: str, source_texts: Callable[[], Iterable[str]], *, is_cited: bool = False, is_code: bool = False
    ) -> bool:
        """Whether a unit echoes the question, says that there is no answer, or speaks of the search tool.

        What a passage says as well is no aside: it may contain "The manual does not mention …".
        """
        if SEARCH_TOOL in text:
            return not any(SEARCH_TOOL in source for source in source_texts())
        words = [] if is_code else [word.casefold() for word in split_words(_ECHO_LABEL.sub("", text, count=1))]
        if words and words == self._question:
            return not any(_contains(source, words) for source in source_texts())
        if not words or not _NO_ANSWER.search(text) or (is_cited and not _PROMPT_WORD.search(text)):
            return False
        return not any(_NO_ANSWER.search(source) for source in source_texts())


def _contains(source: str, words: list[str]) -> bool:
    source_words = " ".join(word.casefold() for word in split_words(source))
    return f" {' '.join(words)} " in f" {source_words} "

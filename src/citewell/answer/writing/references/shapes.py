"""The shapes in which LLMs write citations: `[1]`, `[pumps.md]`, `[308b9271]`, `(source 3)`… Pure.

Reads the text of one bracket or parenthesis. Knows nothing of which passages exist, or of the text around it.
"""

import re
from itertools import compress
from typing import Literal, NamedTuple

BRACKETS = {"[": "]", "【": "】", "［": "］"}
PARENTHESES = {"(": ")", "（": "）"}
BLANKS = (" ", "\t", "\u00a0", "\u202f")

_B = rf"[{''.join(BLANKS)}]"
_LABELS = (
    r"sources?|passages?|references?|refs?|citations?|documents?|docs?|excerpts?|chunks?|snippets?|quellen?|fuentes?"
    r"|来源|出处|文献|资料|文档"
)
_CUES = rf"(?:see{_B}also|see|cf\.?|from|per|via|according{_B}to)"

# 1  1, 3  1; 3  1-3  ^1  Source 1  source: 1
_NUMBER = rf"(?:(?i:{_LABELS}|(?:search{_B})?results?)\.?{_B}?[:#]?{_B}?)?\^?[0-9]{{1,9}}"
_SPAN = rf"{_NUMBER}(?:{_B}?[-–—‑]{_B}?{_NUMBER})?"
_COMMA = rf"{_B}?(?:[,;]{_B}?(?:(?:and|&){_B})?|{_B}(?:and|&){_B})"
_NUMBERS = re.compile(rf"{_SPAN}(?:{_COMMA}{_SPAN})*")
_LABELLED = re.compile(rf"(?i:(?:{_CUES}{_B})?(?:{_LABELS})\.?)(?:{_B}?[:#]{_B}?|{_B}|(?<=[^\x00-\x7f]))(?=\^?[0-9])")
NUMBER_OR_RANGE = re.compile(rf"({_NUMBER})(?:{_B}?[-–—‑]{_B}?({_NUMBER}))?")

# What follows the name of a document: #priming  :12  _5  , chunk 5  p. 3
_POSITION = (
    rf"(?:[#?][\w./%=-]{{1,80}}|{_B}?[,:]?{_B}?\(?(?i:chunk|index|lines?|l|pages?|pp?|section|§|#)?"
    rf"[{''.join(BLANKS)}_.:#-]{{0,2}}[0-9]{{1,6}}(?:[-–]\w{{1,6}})?\)?)"
)
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_MIN_HASH_CHARACTERS = 6
# Part of a hash, such as a chunk's id: digits and letters, so that no word and no number is one.
_HASH = (
    r"(?![0-9]+[eE][0-9]+\b)(?:(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{6,64}|[0-9a-fA-F]{64})(?![0-9a-zA-Z])"
)
_ID = re.compile(rf"(?:{_UUID}|{_HASH}){_POSITION}?")
_DOCUMENT_SUFFIXES = "mdx?|markdown|rst|adoc|html?|pdf|docx?|odt|pptx?|xlsx?|epub|txt|tex|ipynb|csv"
_FILE = re.compile(rf"[^\s,;|<>*?\"(){{}}$]{{1,150}}\.(?i:{_DOCUMENT_SUFFIXES}){_POSITION}?")
_EXAMPLE_FILE = re.compile(r"(?i:.*\bpath/to/|(?:.*/)?(?:your|my|some|new|old|file|filename|name|example|foo|bar)\b)")
_URL = re.compile(r"https?://[^\s<>]{1,300}")
_DOCUMENT_AND_CHUNK = re.compile(rf"(?i:doc(?:ument)?){_B}?[:#]?{_B}?[0-9]+[,:;/]?{_B}?(?i:chunk){_B}?[:#]?{_B}?[0-9]+")
_PAGE_OR_SECTION = re.compile(
    rf"(?i:pp?\.{_B}?|pages?{_B})[0-9]{{1,5}}(?:{_B}?[-–]{_B}?[0-9]{{1,5}})?"
    rf"|(?i:section{_B}|sec\.{_B}?|chapter{_B}|ch\.{_B}?|§{_B}?)[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{0,4}}"
)
_TOKEN = re.compile(rf"[\w.:#/=-]{{1,150}}(?:{_B}[\w.:#/=-]{{1,40}}){{0,4}}")
_JOINED = re.compile(r"\w+(?:[_:#-]\w+)+")
_TOKEN_SEPARATOR = re.compile(r"[_:#/\s.=-]+")
_KEYWORD = re.compile(r"(?:chunk|passage|source|doc|document|ref|reference|citation|cite|excerpt|snippet)s?(?:id)?\d*")
_TOKEN_END = re.compile(rf"[0-9]{{1,9}}|{_HASH}")
_VALUE_OF_SETTING = re.compile(r"[:=]\s*[0-9]+\Z")
_MAYBE = re.compile(
    rf"[0-9a-fA-F]{{6,64}}|(?=\S*[\d./])[\w./:#%+-]{{2,200}}|[^\r\n]{{1,150}}\.\w{{1,8}}{_POSITION}?"
    r"|[^\r\n]+ [>›→] [^\r\n]+"
)

_NUMBER_WITH_NOTE = re.compile(rf"{_B}?[0-9]{{1,9}}(?::[0-9]{{1,9}})?{_B}?†")
_NUMBER_WITH_NAME = re.compile(rf"([0-9]{{1,3}}){_B}?[:|–—-]?{_B}\(?([^()]+)\)?")  # 1: pumps.md
_NAMED_SOURCE = re.compile(rf"(?i:sources?|citations?|references?|quellen?|来源|出处){_B}?[:：]{_B}?(?=\S)")
_CUE = re.compile(rf"(?i:{_CUES}){_B}?:?{_B}+(?=\S)")
_LABEL = re.compile(rf"(?i:(?:{_LABELS}|file)(?:{_B}id)?|id)(?:{_B}?[:#=]{_B}?|{_B})(?=\S)")
_SEPARATOR = re.compile(rf"{_B}?[,;]{_B}?(?:and{_B})?|{_B}(?:and|&){_B}")
_DECORATION = "".join(BLANKS) + "\"'“”„‘’«»*_`^"

_LEADING_BRACKET = re.compile(rf"{_B}*([\[【［][^\[\]【】［］\r\n]{{1,200}}[\]】］])")

# For text after the end of a sentence, where any bracket and any parenthesis with a cue or a label belongs to it.
ANY_BRACKET = r"\[?[\[【［][^\[\]【】［］\n]{1,200}[\]】］]\]?(?:\([^()\s]*\))?"
CITING_PARENTHESIS_START = rf"[(（]{_B}?(?:(?=[\[【［])|(?i:{_CUES}|{_LABELS})(?=[\W_\d]|\Z|(?<=[^\x00-\x7f])))"
_OTHER = r"[^()（）\[\]【】［］\n]"
CITING_PARENTHESIS = (
    rf"{CITING_PARENTHESIS_START}(?:{_OTHER}{{1,200}}|{_OTHER}{{0,20}}(?:{ANY_BRACKET}{_OTHER}{{0,6}}){{1,6}})[)）]"
)

_Kind = Literal["number", "id", "file", "maybe"]


class References(NamedTuple):
    """What a bracket or parenthesis refers to, other than plain numbers."""

    names: tuple[str, ...]
    """The names to look up: the whole text first, then its parts."""
    is_certain: bool
    """Whether it is a citation even if no passage has such a name."""
    is_id: bool
    """Whether it can be nothing but an id, so that it is no text of a link."""


def is_numbers(inside: str) -> bool:
    """Whether a bracket contains only numbers, ranges and labels: "1-3, 5", "Source 2"."""
    return bool(_NUMBERS.fullmatch(inside)) and not _DOCUMENT_AND_CHUNK.fullmatch(inside)


def is_labelled_numbers(inside: str) -> bool:
    """Whether a parenthesis contains a label and numbers: "source 3", "see passages 1 and 2"; "3" alone is none."""
    return bool((label := _LABELLED.match(inside)) and _NUMBERS.fullmatch(inside, label.end()))


def read_references(inside: str) -> References | None:
    """What a bracket refers to by other names than numbers; None if it is no citation.

    read_references("doc1:chunk-5") -> References(("doc1:chunk-5",), is_certain=True, is_id=True)
    """
    number = _NUMBER_WITH_NOTE.match(inside)
    text = inside[number.end() if number else 0 :].strip(_DECORATION)
    label, cue, numbered = _NAMED_SOURCE.match(text), _CUE.match(text), _NUMBER_WITH_NAME.fullmatch(text)
    if number or label:
        text = text[label.end() :].strip(_DECORATION) if label else text
        return References((text, *_split(text)), is_certain=True, is_id=bool(number))
    if cue:
        text = text[cue.end() :].strip(_DECORATION)
        is_name = _kind_of(text) not in (None, "number")
        return References((text, *_split(text)), is_certain=False, is_id=False) if is_name else None
    if numbered and _kind_of(numbered[2]) in ("id", "file"):
        return References((numbered[1], numbered[2]), is_certain=True, is_id=True)
    return _read_list(text)


def _read_list(text: str) -> References | None:
    """The references of a bracket with neither a label nor a cue: one, or several with commas."""
    kind, parts = _kind_of(text), _split(text)
    if len(parts) > 1 and kind not in ("id", "file"):
        kinds = [_kind_of(part) for part in parts]
        has_detail = kinds[0] in ("id", "file")  # as in [pumps.md, Priming]
        if not has_detail and (None in kinds or all(part == "number" for part in kinds)):
            is_title = kind == "maybe"  # as in [Rams and Hoists.pdf]
            return References((text,), is_certain=False, is_id=False) if is_title else None
        is_certain = has_detail or "maybe" not in kinds
        return References((text, *map(_drop_label, parts)), is_certain, is_id="id" in kinds)
    if kind is None or kind == "number":
        return None
    names = dict.fromkeys((text, _drop_label(text)))
    return References(tuple(names), is_certain=kind != "maybe", is_id=kind == "id")


def read_parenthesis(inside: str) -> References | None:
    """What a parenthesis refers to by other names than numbers: `(source: Pumps)`, `(see pumps.md)`, `(chunk_a_5)`.

    A file name, an id or a page in a parenthesis may be part of the text. They cite only with "source:" or "see".
    """
    text = inside.strip(_DECORATION)
    if _NAMED_SOURCE.match(text) or _CUE.match(text):
        return read_references(text)
    is_token = bool(_JOINED.fullmatch(text)) and _is_token(text)
    return References((text,), is_certain=True, is_id=True) if is_token else None


def looks_like_citation(marker: str) -> bool:
    """Whether a whole bracket or parenthesis is most likely a citation."""
    inside = marker[1:-1].strip("".join(BLANKS))
    if marker[0] in PARENTHESES:
        references = read_parenthesis(inside)
        return is_labelled_numbers(inside) or bool(references and references.is_certain)
    references = read_references(inside)
    return is_numbers(inside.partition("†")[0]) or bool(references and references.is_certain)


def starts_with_citation(text: str) -> bool:
    """Whether a text begins with a bracket that is most likely a citation."""
    bracket = _LEADING_BRACKET.match(text)
    return bool(bracket and looks_like_citation(bracket[1]))


def _split(text: str) -> list[str]:
    return [part.strip(_DECORATION) for part in _SEPARATOR.split(text)]


def _drop_label(text: str) -> str:
    return text[label.end() :].strip(_DECORATION) if (label := _LABEL.match(text)) else text


def _kind_of(text: str) -> _Kind | None:
    """What kind of reference a text is; "maybe" if only the passages can tell."""
    name = _drop_label(text)
    if name.isdecimal() and len(name) < _MIN_HASH_CHARACTERS:
        return "number" if name == text else "id"
    if _ID.fullmatch(name) or _is_token(text) or _DOCUMENT_AND_CHUNK.fullmatch(text):
        return "id"
    if _URL.fullmatch(name) or _PAGE_OR_SECTION.fullmatch(name):
        return "file"
    if _FILE.fullmatch(name):
        return "maybe" if _EXAMPLE_FILE.match(name) else "file"
    return "maybe" if _MAYBE.fullmatch(name) else None


def _is_token(text: str) -> bool:
    """Whether a text is made of a word such as "chunk", names and a number: "chunk_docid_5", "doc1:chunk-5"."""
    if not _TOKEN.fullmatch(text):
        return False
    words = [word for word in _TOKEN_SEPARATOR.split(text.casefold()) if word]
    are_keywords = [bool(_KEYWORD.fullmatch(word)) for word in words]
    are_ids = [
        bool(_TOKEN_END.fullmatch(word)) or (is_keyword and word[-1].isdigit())
        for word, is_keyword in zip(words, are_keywords, strict=True)
    ]
    keywords = list(compress(words, are_keywords))
    is_named = keywords and (are_keywords[0] or any(word.startswith(("chunk", "passage")) for word in keywords))
    if not is_named or not are_ids[-1]:
        return False
    if _VALUE_OF_SETTING.search(text) and not all(are_keywords[:-1]):  # chunk_size: 512
        return False
    has_blank = any(blank in text for blank in BLANKS)
    return not has_blank or all(map(any, zip(are_keywords, are_ids, strict=True)))

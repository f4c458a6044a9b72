"""Finds what a text has to say letter by letter: flags, identifiers, file names, code and quoted values. Pure.

Whether a sentence is wrong without them is decided elsewhere. Numbers are in `quantities.py`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from citewell.text import ENGLISH, function_words

_MAX_LITERALS = 40  # of a sentence
_MAX_QUOTED_WORDS = 3  # of a value; a longer quotation is prose
_MAX_CHARACTERS = 20_000  # of a sentence; the rest is not read

_FENCED = re.compile(r"^[ \t>]*(`{3,}|~{3,})[^\n]*\n(?P<code>.*?)(?:^[ \t>]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)(?P<code>[^`\n]{1,200})\1(?!`)")
_QUOTED = re.compile(r"(?<!\w)(?:\"(?P<straight>[^\"\n]{1,80})\"|“(?P<curly>[^“”\n]{1,80})”)(?!\w)")
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_FLAG_WITH_NO = re.compile(r"--\[no-\]([\w-]+)")
_SUFFIXES = (
    "py|js|ts|tsx|jsx|json|ya?ml|toml|ini|cfg|conf|env|sh|mdx?|rst|txt|html?|css|csv|pdf|lock|xml|sql|go|rs|java|rb"
)
# In prose: snake_case, camelCase, ENVIRONMENT_VARIABLES, calls(), files.py, /paths/of/files, --flags, GPT-4.
_IDENTIFIER = re.compile(
    rf"(?<![\w/.-])(?:--[A-Za-z][\w-]+|(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*\(\)|[\w./-]*\w\.(?:{_SUFFIXES})(?![\w.]*\w)"
    r"|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[a-z]{2,}[A-Z][a-z]{2}\w*|[.~]{0,2}(?:/[\w.-]+){2,}|[A-Za-z]+-\d\w*(?:\.\d\w*)*)(?![\w-])"
)
_CALL = re.compile(r"(?<!\w)([A-Za-z_]\w*)\(")
_LINE_OF_NAMES = re.compile(r"^[ \t>]*(?:#|\|).*$", re.MULTILINE)  # a heading or a row of a table
_ARGUMENT = re.compile(r"(?<=[(,])\s*([A-Za-z_]\w*)\s*=(?!=)")
_ENVIRONMENT_VARIABLE = re.compile(r"(?<!\w)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?!\w)")
# What stands for the reader's own value: <name>, [options], {id}, ./my-docs, path/to/file, your-name, and nothing
_PLACEHOLDER = re.compile(r"[<\[{(…].*|\$\w+|(?i:.*\b(?:your|my|path|example|foo|bar)\b.*)|[^\w]*")
_COMMAND = re.compile(r"[a-z][\w-]* [a-z][\w-]*(?=$|\s)")  # as `citewell ingest docs`: both words belong together
_PIECE = re.compile(r"[\s=,;|()]+")
_WORD = re.compile(r"[^\W_]+")
_RUN = re.compile(r"\w(?:[\w.-]*\w)?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DASHES = str.maketrans("‐‑‒–—−", "------")


@dataclass(frozen=True, slots=True)
class LiteralIndex:
    """The words of a text as they are looked up: each string has a blank before and after every word."""

    words: str
    camel_words: str
    """With camelCase taken apart."""
    runs: frozenset[str]
    """What stands without a blank, only letters and digits: "chunksize" for chunk_size."""
    flags: frozenset[str]


@lru_cache(maxsize=512)
def index_literals(text: str) -> LiteralIndex:
    """The literals of a text."""
    text = text.translate(_DASHES)
    flags = {flag.casefold() for flag in _FLAG.findall(text)}
    for name in _FLAG_WITH_NO.findall(text):
        flags |= {f"--{name.casefold()}", f"--no-{name.casefold()}"}
    return LiteralIndex(
        words=_words(text),
        camel_words=_words(_CAMEL.sub(" ", text)),
        runs=frozenset(_squash(run) for run in _RUN.findall(text)),
        flags=frozenset(flags),
    )


def find_literals(sentence: str) -> list[str]:
    """The flags, identifiers, file names, code and quoted values of a sentence, without placeholders.

    find_literals("Set `retries` to \\"all\\" with --retry-all.") -> ["retries", "all", "--retry-all"]
    """
    sentence = sentence[:_MAX_CHARACTERS].translate(_DASHES)
    literals: list[str] = []
    for block in _FENCED.finditer(sentence):
        code = block["code"]
        literals += [*_FLAG.findall(code), *_ARGUMENT.findall(code), *_ENVIRONMENT_VARIABLE.findall(code)]
    prose = _FENCED.sub(" ", sentence)
    literals += [code["code"].strip() for code in _INLINE_CODE.finditer(prose)]
    prose = _INLINE_CODE.sub(" ", prose)
    quoted = [quote["straight"] or quote["curly"] for quote in _QUOTED.finditer(prose)]
    literals += [quote for quote in quoted if quote == quote.lower() and len(quote.split()) <= _MAX_QUOTED_WORDS]
    literals += _IDENTIFIER.findall(_QUOTED.sub(" ", prose))
    return [literal for literal in dict.fromkeys(literals) if _WORD.search(literal)][:_MAX_LITERALS]


def missing_pieces(literal: str, index: LiteralIndex) -> Iterator[str]:
    """The parts of a literal that a text does not have; none if the text has it, also in another spelling.

    chunk_size, chunkSize, chunk-size and "chunk size" are one. A flag must stand there with its dashes.
    """
    flags = _FLAG.findall(literal)
    if not flags and _has(literal, index):
        return
    pieces = _PIECE.split(literal)
    if (command := _COMMAND.match(literal)) and not _has(command[0], index):
        yield command[0]
    for piece in pieces:
        stripped = piece.strip("\"'`“”.,:;!?*")
        is_argument = len(pieces) > 1 and stripped.isupper() and stripped.isalpha()  # as in `ingest PATH`
        if is_argument or _PLACEHOLDER.fullmatch(stripped) or stripped.casefold() in function_words(ENGLISH):
            continue
        if _FLAG.fullmatch(stripped):
            if stripped.casefold() not in index.flags:
                yield stripped
        elif not _has(stripped, index):
            yield stripped


def lacks_code_name(sentence: str, text: str) -> bool:
    """Whether the code of a sentence calls a function, or gives an argument, that the code of the text does not name.

    lacks_code_name("Call `print()`.", "To print it, call `show()`.") -> True

    A text without code may name them as words.
    """
    index = _index_code(text)
    if not index:
        return False
    code = _code_of(sentence[:_MAX_CHARACTERS])
    names = dict.fromkeys([*_CALL.findall(code), *_ARGUMENT.findall(code)])
    return not all(_has(name, index) for name in list(names)[:_MAX_LITERALS] if not _PLACEHOLDER.fullmatch(name))


@lru_cache(maxsize=512)
def _index_code(text: str) -> LiteralIndex | None:
    """The literals of the code, headings, tables and identifiers of a text; None if there is no code."""
    if not (code := _code_of(text)):
        return None
    return index_literals("\n".join([code, *_LINE_OF_NAMES.findall(text), *_IDENTIFIER.findall(text)]))


def _code_of(text: str) -> str:
    blocks = [block["code"] for block in _FENCED.finditer(text)]
    return "\n".join([*blocks, *(code["code"] for code in _INLINE_CODE.finditer(_FENCED.sub(" ", text)))])


def _has(literal: str, index: LiteralIndex) -> bool:
    words = _words(literal)
    spellings = {words, _words(_CAMEL.sub(" ", literal))}
    spellings |= {f"{spelling[:-2]} " for spelling in spellings if spelling.endswith("s ") and len(spelling) > 5}
    spellings |= {f"{spelling[:-1]}s " for spelling in tuple(spellings)}
    return (
        not words.strip()
        or any(spelling in text for spelling in spellings for text in (index.words, index.camel_words))
        or _squash(literal) in index.runs
    )


def _words(text: str) -> str:
    return f" {' '.join(word.casefold() for word in _WORD.findall(text))} "


def _squash(text: str) -> str:
    return "".join(_WORD.findall(text)).casefold()

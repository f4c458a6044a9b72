"""What a reader needs to check a citation: its place, a link to the very words, and whether it still holds. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from citewell.models import Answer, Passage, Trace

CitationStatus = Literal["valid", "moved", "changed", "deleted", "unknown"]

_ID = re.compile(r"\[([0-9a-f]{64})\]")
_CUTS = (re.compile(r"\n+"), re.compile(r"\s+"))  # where a text may be cut, best first


@dataclass(frozen=True, slots=True)
class Location:
    """Where a passage stands in its document, and where the words that an answer took from it do."""

    start: int
    end: int
    line: int
    """Of the first words that were quoted."""
    page: int | None
    source_url: str | None
    """The live page, at the quoted words."""


def locate(answer: Answer, passage: Passage) -> Location:
    chunk = passage.chunk
    taken = (one.source_words(passage) for one in answer.segments if passage in one.passages)
    quoted = next((words for words, start in taken if start is not None), "")
    return Location(
        start=chunk.start,
        end=chunk.end,
        line=answer.line(passage),
        page=chunk.page,
        source_url=fragment_url(chunk.url, quoted) if chunk.url else None,
    )


def citation_status(trace: Trace, cited_start: int | None = None) -> CitationStatus:
    """What became of a citation; `cited_start` is where its chunk began when it was cited."""
    if trace.current:
        return "valid" if cited_start in (None, trace.current.start) else "moved"
    if trace.moved_to:
        return "moved"
    if trace.successor:
        return "changed"
    return "deleted" if trace.known else "unknown"


def excerpt_before(text: str, most: int) -> str:
    """The end of a text, in at most so many characters: from the beginning of a line, or at least of a word.

    readable_before("the pump.\\nFill the casing.", 20) -> "Fill the casing."
    """
    if len(text) <= most:
        return text
    cut = text[-most - 1 :]
    for blanks in _CUTS:
        if found := blanks.search(cut, 0, most // 2):
            return cut[found.end() :]
    return cut[1:]


def excerpt_after(text: str, most: int) -> str:
    """The beginning of a text, in the same way."""
    if len(text) <= most:
        return text
    cut = text[: most + 1]
    for blanks in _CUTS:
        if found := list(blanks.finditer(cut, most // 2)):
            return cut[: found[-1].start()]
    return cut[:-1]


def cited_ids(text: str) -> tuple[str, ...]:
    """The chunk ids that an answer's text cites, in order of first use; what else stands in brackets is no citation."""
    return tuple(dict.fromkeys(_ID.findall(text)))


_LONG = 8  # words up to which a quote is named whole
_ENDS = 5  # words of either end of a longer one
_LEAST = 10  # characters: fewer would be found anywhere
_HIDDEN = "\x00"  # in place of what is not shown as words
# What a page may show otherwise than the source writes it: marks of some dialect, expressions, formulas, notes,
# entities, and what typographers replace.
_UNSURE = re.compile(
    r"""[*`\[\]<>{}\\|$~^#="'\ud800-\udfff\x00-\x1f\x7f-\x9f\u00ad\ufffd] | -- | \.\.\. | &\w+;
      | (?<![^\W_])_ | _(?![^\W_])""",
    re.VERBOSE,
)
_SPANNING = re.compile(r"\{[^{}]*\}|\$[^$]*\$|<[^<>]*>")  # several words that are no words
_TOKEN = re.compile(r"[^\s，。；：、！？]+[，。；：、！？]*")  # scripts without spaces still part clauses
_EDGES = " .,;:!?()，。；：、！？…–—"
_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("code")


def fragment_url(url: str, quoted: str) -> str:
    """The page, scrolled to and highlighting the quoted words; the page alone where a browser could not find them.

    fragment_url("https://a.org/b#c", "The **foot** lands.") -> "https://a.org/b#c:~:text=The%20foot%20lands"
    """
    found = _shown(quoted)
    if not found or ":~:" in url:
        return url
    return f"{url}{'' if '#' in url else '#'}:~:text={','.join(map(_escaped, found))}"


def _escaped(text: str) -> str:
    return quote(text, safe="").replace("-", "%2D")  # a dash or comma would be syntax


def _shown(quoted: str) -> tuple[str, ...]:
    """Words that the page shows as they stand here: a run of them, or how a long one begins and ends.

    All of them lie in one paragraph, the first that has enough: browsers find no phrase that runs over two.
    """
    best: tuple[str, ...] = ()
    for paragraph in _paragraphs(quoted):
        runs = [run for run in _runs(paragraph) if len(_joined(run)) >= _LEAST]
        if not runs:
            continue
        first, last = runs[0], runs[-1]
        begin, end = _joined(first[:_ENDS]), _joined(last[-_ENDS:])
        if (first is not last or len(first) >= 2 * _ENDS) and min(len(begin), len(end)) >= _LEAST:
            found: tuple[str, ...] = begin, end
        else:
            found = (_joined(first[:_LONG]),)
        if len(found[0]) >= 2 * _LEAST:
            return found
        best = best or found
    return best


def _paragraphs(quoted: str) -> Iterator[str]:
    """The paragraphs and items of a quote as they are shown; not its code, formulas and tables."""
    tables = 0
    for token in _MARKDOWN.parse(quoted):
        tables += token.nesting if token.type.startswith("table_") else 0
        if token.type == "inline" and not tables and not token.content.startswith(("|", "$$")):
            yield "".join(map(_words, token.children or ()))


def _words(token: Token) -> str:
    match token.type:
        case "text" | "code_inline":
            return token.content
        case "softbreak":
            return " "
        case "image" | "html_inline" | "hardbreak":
            return f" {_HIDDEN} "
        case _:
            return ""


def _runs(paragraph: str) -> Iterator[list[tuple[str, str]]]:
    """Neighbouring words whose look is sure, each with the space before it."""
    text = _SPANNING.sub(f" {_HIDDEN} ", paragraph)
    run: list[tuple[str, str]] = []
    end = 0
    for token in _TOKEN.finditer(text):
        if _UNSURE.search(token[0]):
            yield run
            run = []
        else:
            run.append((" " if token.start() > end else "", token[0]))
        end = token.end()
    yield run


def _joined(run: list[tuple[str, str]]) -> str:
    return "".join(space + word for space, word in run).strip(_EDGES)

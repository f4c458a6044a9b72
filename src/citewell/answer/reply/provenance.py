"""What a reader needs to check a citation: its location, a link to the quoted words, whether it is still valid. Pure.

Links use text fragments, which browsers scroll to and highlight. Reads no document and no index.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from citewell.models import CITATION_ID, Answer, Passage, Trace

CitationStatus = Literal["valid", "moved", "changed", "deleted", "unknown"]

_ID = re.compile(rf"\[({CITATION_ID})\]")
_BREAKS = (re.compile(r"\n+"), re.compile(r"\s+"))  # where an excerpt may be cut, best first


@dataclass(frozen=True, slots=True)
class Location:
    """Where a passage, and the words that an answer quotes from it, stand in their document."""

    start: int
    end: int
    line: int
    """The line of the first quoted words."""
    page: int | None
    source_url: str | None
    """The published page, scrolled to the quoted words."""


def locate(answer: Answer, passage: Passage) -> Location:
    """Where a cited passage and its first quoted words stand."""
    chunk = passage.chunk
    sources = (segment.source_words(passage) for segment in answer.segments if passage in segment.passages)
    quoted = next((words for words, start in sources if start is not None), "")
    return Location(
        start=chunk.start,
        end=chunk.end,
        line=answer.line(passage),
        page=chunk.page,
        source_url=fragment_url(chunk.url, quoted) if chunk.url else None,
    )


def citation_status(trace: Trace, cited_start: int | None = None) -> CitationStatus:
    """Whether a citation is still valid; `cited_start` is where its chunk began when it was cited."""
    if trace.current:
        return "valid" if cited_start in (None, trace.current.start) else "moved"
    if trace.moved_to:
        return "moved"
    if trace.successor:
        return "changed"
    return "deleted" if trace.known else "unknown"


def excerpt_before(text: str, max_characters: int) -> str:
    """The end of a text, starting at a line if possible, else at a word.

    excerpt_before("the pump.\\nFill the casing.", 20) -> "Fill the casing."
    """
    if len(text) <= max_characters:
        return text
    end = text[-max_characters - 1 :]
    for pattern in _BREAKS:
        if match := pattern.search(end, 0, max_characters // 2):
            return end[match.end() :]
    return end[1:]


def excerpt_after(text: str, max_characters: int) -> str:
    """The beginning of a text, ending with a line if possible, else with a word."""
    if len(text) <= max_characters:
        return text
    beginning = text[: max_characters + 1]
    for pattern in _BREAKS:
        if matches := list(pattern.finditer(beginning, max_characters // 2)):
            return beginning[: matches[-1].start()]
    return beginning[:-1]


def cited_ids(text: str) -> tuple[str, ...]:
    """The chunk ids that the text of an answer cites, in order of first use; other brackets are no citations."""
    return tuple(dict.fromkeys(_ID.findall(text)))


_MAX_WHOLE_WORDS = 8  # a longer quote is linked by its beginning and end
_END_WORDS = 5  # of the beginning and the end
_MIN_CHARACTERS = 10  # fewer would be found anywhere on the page
_PLACEHOLDER = "\x00"  # for images, HTML and formulas
# What a page may show differently from its source: Markdown, expressions, formulas, footnotes, entities, and what
# typographic replacements change.
_MAY_RENDER_DIFFERENTLY = re.compile(
    r"""[*`\[\]<>{}\\|$~^#="'\ud800-\udfff\x00-\x1f\x7f-\x9f\u00ad\ufffd] | -- | \.\.\. | &\w+;
      | (?<![^\W_])_ | _(?![^\W_])""",
    re.VERBOSE,
)
_NOT_SHOWN_AS_WORDS = re.compile(r"\{[^{}]*\}|\$[^$]*\$|<[^<>]*>")  # expressions, formulas and tags
_TOKEN = re.compile(r"[^\s，。；：、！？]+[，。；：、！？]*")  # clauses, in scripts without spaces
_PUNCTUATION = " .,;:!?()，。；：、！？…–—"
_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("code")


def fragment_url(url: str, quoted: str) -> str:
    """The URL with a text fragment for the quoted words; the URL alone where a browser could not find them.

    fragment_url("https://a.org/b#c", "The **foot** lands.") -> "https://a.org/b#c:~:text=The%20foot%20lands"
    """
    phrases = _findable_phrases(quoted)
    if not phrases or ":~:" in url:
        return url
    return f"{url}{'' if '#' in url else '#'}:~:text={','.join(map(_percent_encode, phrases))}"


def _percent_encode(text: str) -> str:
    return quote(text, safe="").replace("-", "%2D")  # a dash or comma would be syntax


def _findable_phrases(quoted: str) -> tuple[str, ...]:
    """A phrase that the page shows exactly as written here, or the beginning and end of a long one.

    They come from one paragraph, the first that is long enough: browsers find no phrase that spans two.
    """
    best: tuple[str, ...] = ()
    for paragraph in _shown_paragraphs(quoted):
        runs = [run for run in _unchanged_runs(paragraph) if len(_join_run(run)) >= _MIN_CHARACTERS]
        if not runs:
            continue
        first, last = runs[0], runs[-1]
        beginning, end = _join_run(first[:_END_WORDS]), _join_run(last[-_END_WORDS:])
        is_long = first is not last or len(first) >= 2 * _END_WORDS
        if is_long and min(len(beginning), len(end)) >= _MIN_CHARACTERS:
            phrases: tuple[str, ...] = beginning, end
        else:
            phrases = (_join_run(first[:_MAX_WHOLE_WORDS]),)
        if len(phrases[0]) >= 2 * _MIN_CHARACTERS:
            return phrases
        best = best or phrases
    return best


def _shown_paragraphs(quoted: str) -> Iterator[str]:
    """The text of each paragraph and list item as a page shows it; not code, formulas and tables."""
    table_depth = 0
    for token in _MARKDOWN.parse(quoted):
        table_depth += token.nesting if token.type.startswith("table_") else 0
        if token.type == "inline" and not table_depth and not token.content.startswith(("|", "$$")):
            yield "".join(map(_shown_text, token.children or ()))


def _shown_text(token: Token) -> str:
    """The text that a page shows for a Markdown token; a placeholder for images and HTML."""
    match token.type:
        case "text" | "code_inline":
            return token.content
        case "softbreak":
            return " "
        case "image" | "html_inline" | "hardbreak":
            return f" {_PLACEHOLDER} "
        case _:
            return ""


def _unchanged_runs(paragraph: str) -> Iterator[list[tuple[str, str]]]:
    """Runs of words that the page shows exactly as written, each word with the space before it."""
    text = _NOT_SHOWN_AS_WORDS.sub(f" {_PLACEHOLDER} ", paragraph)
    run: list[tuple[str, str]] = []
    end = 0
    for token in _TOKEN.finditer(text):
        if _MAY_RENDER_DIFFERENTLY.search(token[0]):
            yield run
            run = []
        else:
            run.append((" " if token.start() > end else "", token[0]))
        end = token.end()
    yield run


def _join_run(run: list[tuple[str, str]]) -> str:
    """The words of a run as text, without the punctuation around it."""
    return "".join(space + word for space, word in run).strip(_PUNCTUATION)

"""How an answer looks in a terminal and as JSON."""

import re
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from citewell.models import Answer, Passage, Piece

if TYPE_CHECKING:  # `citewell --help` should not wait for pydantic
    from citewell.schemas.answer import SupportedSentence

_EMPHASIS = re.compile(r"(\*\*|(?<![\w*])\*)(?=\S)(.+?)(?<=\S)\1")  # for people who read, not for machines


_LONGEST_BOLD = 400  # characters


class AnswerPrinter:
    """An answer on its way to the terminal: `render` writes each piece as it comes."""

    def __init__(self, *, silent: bool = False) -> None:
        from citewell.answer.reply import NumberedMarkers  # numpy comes with it

        self._marks = NumberedMarkers()
        self._terminal = None if silent else Terminal()

    @property
    def cited(self) -> list[Passage]:
        return self._marks.passages

    def render(self, piece: Piece) -> str:
        words = self._marks.render(piece)
        if self._terminal:
            self._terminal.write(words)
        return words

    def end(self) -> None:
        """All was said."""
        if self._terminal:
            self._terminal.end()

    def sources(self, answer: Answer) -> str:
        """What stands under the answer: what is wrong with it, its sources, or else the topics it named."""
        from citewell.http.rendering import render_support

        under = [part for part in (answer.notice, unsupported_sentences(render_support(answer) or ())) if part]
        if self.cited:
            rows = [
                f"  [{number}] {describe_location(one, answer.line(one))}"
                for number, one in enumerate(self.cited, start=1)
            ]
            doubt = ", so check them" if answer.low_confidence else ""
            under.append("\n".join([f"Sources (confidence {answer.confidence:.0%}{doubt})", *rows]))
        elif answer.nearest:
            under.append("\n".join(["Nearest topics", *(f"  {_topic(one)}" for one in answer.nearest)]))
        return "\n\n".join(["", *under]) if under else ""


def unsupported_sentences(support: "Sequence[SupportedSentence]") -> str:
    """The sentences that nothing bears out."""
    why = {"unsupported": "", "uncited": "no source: "}
    rows = [f"  {why[one.verdict]}{one.sentence}" for one in support if one.verdict in why]
    return "\n".join(["Not borne out by the sources:", *rows]) if rows else ""


class Terminal:
    """Writes a stream, breaking long lines between words where a person reads along."""

    def __init__(self) -> None:
        self._width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
        self._column = 0
        self._held = ""

    def write(self, text: str) -> None:
        """Show what is complete: a stream may break anywhere, a line only between words."""
        self._held += text
        cut = max(self._held.rfind(blank) for blank in " \n") + 1
        if self._held.count("**", 0, cut) % 2 and cut < _LONGEST_BOLD:
            cut = self._held.rfind("**", 0, cut)
        self._show(self._held[:cut])
        self._held = self._held[cut:]

    def end(self) -> None:
        self._show(self._held)
        self._held = ""

    def _show(self, text: str) -> None:
        text = _EMPHASIS.sub(r"\2", text)
        for part in re.split(r"(\s)", text) if self._width and "\n" not in text else [text]:
            if self._width and self._column + len(part) > self._width and part.strip():
                click.echo()
                self._column = 0
            if part == " " and self._column == 0 and self._width:
                continue
            click.echo(part, nl=False)
            self._column = len(part) - part.rfind("\n") - 1 if "\n" in part else self._column + len(part)


def print_text(text: str) -> None:
    """Write a text that is there whole."""
    terminal = Terminal()
    terminal.write(text)
    terminal.end()


def describe_location(passage: Passage, line: int) -> str:
    """Where a passage stands, how close it is, and its live page under it."""
    chunk = passage.chunk
    page = f" page {chunk.page}" if chunk.page else f":{line}"
    return f"{chunk.source}{page}  {chunk.label}  (score {passage.score:.2f}){_link(passage)}"


def _topic(passage: Passage) -> str:
    chunk = passage.chunk
    page = f" page {chunk.page}" if chunk.page else f":{chunk.first_line}"
    return f"{chunk.source}{page}  {chunk.topic}{_link(passage)}"


def _link(passage: Passage) -> str:
    return f"\n      {passage.chunk.url}" if passage.chunk.url else ""


def answer_json(text: str, answer: Answer, cited: list[Passage]) -> dict[str, object]:
    from citewell.http.rendering import render_support

    return {
        "answer": text,
        "confidence": round(answer.confidence, 4),
        "low_confidence": answer.low_confidence,
        "mode": answer.mode,
        "model": answer.model,
        "notice": answer.notice,
        "support": [one.model_dump() for one in render_support(answer) or ()],
        "citations": [passage_json(passage, line=answer.line(passage)) for passage in cited],
        "nearest": [
            {"title": one.chunk.topic, "source": one.chunk.source, "url": one.chunk.url} for one in answer.nearest
        ],
    }


def passage_json(passage: Passage, *, line: int | None = None) -> dict[str, object]:
    """A passage; `line` is where the first words that were taken from it stand, else where it begins."""
    chunk = passage.chunk
    return {
        "id": chunk.id,
        "documentId": str(chunk.document_id),
        "chunkIndex": chunk.index,
        "source": chunk.source,
        "chapter": chunk.chapter,
        "section": chunk.section,
        "start": chunk.start,
        "end": chunk.end,
        "line": line or chunk.first_line,
        "score": round(passage.score, 4),
        "text": chunk.text,
    }

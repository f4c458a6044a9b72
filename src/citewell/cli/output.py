"""Answers and passages as text for a terminal and as JSON, and progress bars."""

import re
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from citewell.models import Answer, Passage, Piece

if TYPE_CHECKING:  # `citewell --help` should not wait for pydantic
    from citewell.schemas.answer import SupportedSentence

_EMPHASIS = re.compile(r"(\*\*|(?<![\w*])\*)(?=\S)(.+?)(?<=\S)\1")
_MAX_BOLD_CHARACTERS = 400


class AnswerPrinter:
    """Prints an answer while it is streamed: `render` writes each piece as it comes."""

    def __init__(self, *, silent: bool = False) -> None:
        from citewell.answer.reply import NumberedMarkers  # numpy comes with it

        self._markers = NumberedMarkers()
        self._terminal = None if silent else Terminal()

    @property
    def cited(self) -> list[Passage]:
        return self._markers.passages

    def render(self, piece: Piece) -> str:
        text = self._markers.render(piece)
        if self._terminal:
            self._terminal.write(text)
        return text

    def end(self) -> None:
        """Write what is still buffered; the answer is complete."""
        if self._terminal:
            self._terminal.end()

    def sources(self, answer: Answer) -> str:
        """The text under an answer: notice, unsupported sentences, and its sources or else the nearest topics."""
        from citewell.http.rendering import render_support

        parts = [
            part
            for part in (answer.notice, unsupported_sentences(render_support(answer) or (), answer.unsupported))
            if part
        ]
        if self.cited:
            rows = [
                f"  [{number}] {describe_location(passage, answer.line(passage))}"
                for number, passage in enumerate(self.cited, start=1)
            ]
            doubt = ", so check them" if answer.low_confidence else ""
            parts.append("\n".join([f"Sources (confidence {answer.confidence:.0%}{doubt})", *rows]))
        elif answer.nearest:
            parts.append("\n".join(["Nearest topics", *(f"  {_topic(passage)}" for passage in answer.nearest)]))
        return "\n\n".join(["", *parts]) if parts else ""


def unsupported_sentences(support: "Sequence[SupportedSentence]", beside: Sequence[str] = ()) -> str:
    """The sentences of an answer that no source supports, and how many there are beside it; empty without any."""
    rows = [f"  {row.sentence}" for row in support if row.verdict in ("unsupported", "uncited")]
    parts = ["\n".join(["Not supported by the sources:", *rows])] if rows else []
    if beside:
        count = "a sentence" if len(beside) == 1 else f"{len(beside)} sentences"
        parts.append(f"The language model also wrote {count} that the sources do not clearly support; not shown here.")
    return "\n\n".join(parts)


class Progress:
    """A progress bar on a terminal; elsewhere a line for every 10 %."""

    def __init__(self, label: str, *, unit: str, quiet: bool = False) -> None:
        self._label = label
        self._unit = unit
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._bar: Any = None
        self._last_tenth = -1

    def __enter__(self) -> "Progress":
        return self

    def __call__(self, done: int, total: int) -> None:
        if self._quiet or not total:
            return
        if self._terminal:
            if self._bar is None:
                self._bar = click.progressbar(length=total, label=self._label, file=sys.stderr)
            self._bar.update(done - self._bar.pos)
        elif (tenth := done * 10 // total) > self._last_tenth:
            self._last_tenth = tenth
            click.echo(f"{done} of {total} {self._unit}", err=True)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.render_finish()


class Terminal:
    """Writes streamed text; on a terminal it wraps long lines between words."""

    def __init__(self) -> None:
        self._width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
        self._column = 0
        self._buffer = ""

    def write(self, text: str) -> None:
        """Print up to the last complete word, and buffer the rest."""
        self._buffer += text
        cut = max(self._buffer.rfind(blank) for blank in " \n") + 1
        if self._buffer.count("**", 0, cut) % 2 and cut < _MAX_BOLD_CHARACTERS:
            cut = self._buffer.rfind("**", 0, cut)
        self._print(self._buffer[:cut])
        self._buffer = self._buffer[cut:]

    def end(self) -> None:
        self._print(self._buffer)
        self._buffer = ""

    def _print(self, text: str) -> None:
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
    """Print a complete text."""
    terminal = Terminal()
    terminal.write(text)
    terminal.end()


def describe_location(passage: Passage, line: int) -> str:
    """A passage's file, line or page, headings and score, and its URL on a second line."""
    chunk = passage.chunk
    page = f" page {chunk.page}" if chunk.page else f":{line}"
    return f"{chunk.source}{page}  {chunk.label}  (score {passage.cosine:.2f}){_link(passage)}"


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
        "unsupported": list(answer.unsupported),
        "support": [sentence.model_dump() for sentence in render_support(answer) or ()],
        "citations": [passage_json(passage, line=answer.line(passage)) for passage in cited],
        "nearest": [
            {"title": passage.chunk.topic, "source": passage.chunk.source, "url": passage.chunk.url}
            for passage in answer.nearest
        ],
    }


def passage_json(passage: Passage, *, line: int | None = None) -> dict[str, object]:
    """A passage as JSON; `line` is the line of the first words quoted from it, by default its first line."""
    chunk = passage.chunk
    return {
        "id": chunk.public_id,
        "documentId": str(chunk.document_id),
        "chunkIndex": chunk.index,
        "source": chunk.source,
        "chapter": chunk.chapter,
        "section": chunk.section,
        "start": chunk.start,
        "end": chunk.end,
        "line": line or chunk.first_line,
        "score": round(passage.cosine, 4),
        "text": chunk.text,
    }

"""Question sets in a data folder: what is asked of which texts, and where the answers stand.

A data folder holds `retrieval/*/{corpus,queries}.jsonl`, `docs/<site>/` beside `docs/<site>.queries.jsonl`,
`pdf/<set>/` with its `queries.jsonl`, and `offtopic/queries.jsonl`; any of them may be missing. What a set is gets
told by what is in it, never by its name. Each set is ingested through the real flow into a home of its own: the
engine weighs words over everything a home holds, and a set must not score by what lies beside it.
"""

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import pypdfium2  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from citewell import wiring
from citewell.errors import CitewellError, SettingsError
from citewell.ingest.flow import ingest
from citewell.ingest.parse import parse
from citewell.ingest.readers.mdx import plain_markdown
from citewell.ingest.walk import SourceFile, walk
from citewell.models import DEFAULT_PROJECT, IngestResult, Project
from citewell.settings import Settings

PROJECT = Project.named(DEFAULT_PROJECT)
Kind = Literal["retrieval", "docs", "pdf"]
_UNREADABLE_AS_TEXT = (".docx",)


class Span(BaseModel):
    """Where an answer stands, in characters of its document."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    start: int
    end: int


class Question(BaseModel):
    """A line of a `queries.jsonl`; what a set does not say is empty."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    id: str
    text: str
    relevant: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    unanswerable: bool = False
    near: tuple[str, ...] = ()
    lang: str = ""
    grades: dict[str, float] = {}
    spans: tuple[Span, ...] = ()
    relevant_sections: tuple[str, ...] = ()
    keywords_in_file: tuple[str, ...] = ()
    page_verified: bool = False

    @model_validator(mode="before")
    @classmethod
    def _one_heading(cls, line: Any) -> Any:
        """Sets that name one heading say whether it is still there; then it is a section like any other."""
        if not isinstance(line, dict):
            return line
        said = {name: value for name, value in line.items() if value is not None}
        if said.get("heading") and said.get("anchor_still_present"):
            said.setdefault("relevant_sections", [f"{path}#{said['heading']}" for path in said.get("relevant", ())[:1]])
        return said

    @property
    def answerable(self) -> bool:
        return bool(self.relevant) and not self.unanswerable


class Row(BaseModel):
    """A line of a `corpus.jsonl`."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    id: str
    text: str
    title: str | None = None
    lang: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A set that was found and not yet read; `corpus` is a `corpus.jsonl` or a folder of documents."""

    kind: Kind
    name: str
    queries: Path
    corpus: Path

    @property
    def label(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Text:
    """Raw words of a document, or of one page of it, as someone would read them without any reader of ours.

    `file` is what `relevant` calls it. `outline` has the offset of each heading and the path of headings it opens.
    """

    file: str
    text: str
    title: str = ""
    language: str = ""
    page: int | None = None
    outline: tuple[tuple[int, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A row as the Markdown file it was written to: its id, and what the file has that the row has not."""

    id: str
    head: int
    added: tuple[int, ...]

    def offset(self, position: int) -> int:
        """Where in the row's text a position of the ingested document stands."""
        return max(0, position - self.head - bisect_left(self.added, position - self.head))


@dataclass(frozen=True, slots=True)
class Set:
    """A set, read: its questions, its texts, and the folder that is ingested."""

    source: Source
    questions: tuple[Question, ...]
    texts: tuple[Text, ...]
    folder: Path
    written: Mapping[str, Written]
    home: Path

    @property
    def covered(self) -> tuple[Question, ...]:
        return tuple(question for question in self.questions if question.answerable)

    def named(self, path: str) -> str:
        """What `relevant` calls the document at this path."""
        return self.written[path].id if path in self.written else path

    def missing(self) -> list[str]:
        """What questions call relevant and the set does not hold."""
        held = {text.file for text in self.texts}
        held |= {f"{text.file}#page={text.page}" for text in self.texts}
        return sorted({one for question in self.covered for one in question.relevant} - held)


def find_sets(data: Path) -> tuple[list[Source], list[str]]:
    """Every set with texts and questions, in order, and a line for each thing that is skipped."""
    if not data.is_dir():
        raise SettingsError(f"{data}: no such folder; name one with retrieval/, docs/, pdf/ and offtopic/ in it")
    found: list[Source] = []
    for folder in _folders(data / "retrieval"):
        found.append(Source("retrieval", folder.name, folder / "queries.jsonl", folder / "corpus.jsonl"))
    sites = {folder.name for folder in _folders(data / "docs")}
    sites |= {path.name.removesuffix(".queries.jsonl") for path in (data / "docs").glob("*.queries.jsonl")}
    for name in sorted(sites):
        found.append(Source("docs", name, data / "docs" / f"{name}.queries.jsonl", data / "docs" / name))
    for folder in _folders(data / "pdf"):
        found.append(Source("pdf", folder.name, folder / "queries.jsonl", folder))
    skipped = [f"{name}/: not in {data}" for name in ("retrieval", "docs", "pdf") if not (data / name).is_dir()]
    for source in found:
        gone = [path.relative_to(data) for path in (source.queries, source.corpus) if not path.exists()]
        skipped += [f"{source.label}: no {gone[0]}"] if gone else []
    if not (data / "offtopic" / "queries.jsonl").is_file():
        skipped.append("offtopic/queries.jsonl: not there, so nothing off topic is asked")
    return [one for one in found if one.queries.is_file() and one.corpus.exists()], skipped


def off_topic(data: Path) -> list[Question]:
    """Questions that no set of documents here answers."""
    path = data / "offtopic" / "queries.jsonl"
    return _read(path, Question) if path.is_file() else []


def read_set(source: Source, home: Path) -> Set:
    """The set with its texts; rows of a corpus are written as files below its home."""
    own = home / source.kind / source.name
    questions = tuple(_read(source.queries, Question))
    match source.kind:
        case "retrieval":
            rows = _read(source.corpus, Row)
            folder = own / "files"
            texts = [Text(row.id, row.text, title=row.title or "", language=row.lang or "") for row in rows]
            return Set(source, questions, tuple(texts), folder, _write(rows, folder), own)
        case "docs" | "pdf":
            files, _ = walk([source.corpus])
            found = [text for file in files for text in _texts(file)]
            return Set(source, questions, tuple(found), source.corpus, {}, own)


def settings_for(home: Path) -> Settings:
    """The settings in force, in a set's own home."""
    return Settings.model_validate({"home": home})


async def take_in(one: Set) -> IngestResult:
    """Bring the set's home up to date; a second time nothing is embedded."""
    settings = settings_for(one.home)
    async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
        return await ingest(
            [one.folder],
            project=PROJECT,
            engines=engines,
            recipe=wiring.ingest_recipe(settings),
            prune=True,
            progress=lambda *_: None,
        )


def escaped(text: str) -> tuple[str, tuple[int, ...]]:
    r"""The text with a backslash wherever Markdown would leave something of it out, and where those went.

    escaped("a List<T> here") -> ("a List\\<T> here", (6,))
    """
    added: list[int] = []
    while (place := _difference(text, plain_markdown(text))) is not None:
        options = dict.fromkeys((place, max(0, place - 1), text.rfind("\n", 0, place) + 1))
        for option in options:
            tried = f"{text[:option]}\\{text[option:]}"
            further = _difference(tried, plain_markdown(tried))
            if further is None or further > place + 1:
                break
        else:
            break  # nothing that an escape would help
        text = tried
        added = [*(one + (one >= option) for one in added), option]
    return text, tuple(sorted(added))


def _difference(first: str, second: str) -> int | None:
    """Where two texts part."""
    if first == second:
        return None
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[low:middle] == second[low:middle] else (low, middle - 1)
    return low


def _write(rows: Sequence[Row], folder: Path) -> dict[str, Written]:
    """A Markdown file per row, with its title in frontmatter; gives what stands at each path."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for number, row in enumerate(rows):
        # One character for another: spans count characters, and a file's line ends are read as one.
        text, added = escaped(row.text.replace("\r", " ").replace("\0", " "))
        title = json.dumps(row.title or "Untitled", ensure_ascii=False)
        path = folder / f"{number:06d}.md"
        content = f"---\ntitle: {title}\n---\n{text}\n".encode()
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
        written[path.name] = Written(row.id, 3, added)  # of the frontmatter, three line ends are left
    for path in folder.glob("*.md"):
        if path.name not in written:
            path.unlink()
    return written


def _texts(file: SourceFile) -> list[Text]:
    content = file.location.read_bytes()
    suffix = file.location.suffix.lower()
    if suffix == ".pdf":
        with pypdfium2.PdfDocument(content) as document:
            pages = [page.get_textpage().get_text_range() for page in document]
        return [Text(file.path, text, page=number) for number, text in enumerate(pages, start=1)]
    try:
        manuscript = parse(file.path, content)
    except CitewellError:
        return []
    if suffix in _UNREADABLE_AS_TEXT:
        return [Text(file.path, manuscript.text)]
    raw = content.decode("utf-8", "replace").replace("\r\n", "\n")
    starts = [0, *(place + 1 for place, mark in enumerate(raw) if mark == "\n")]
    outline: list[tuple[int, tuple[str, ...]]] = []
    above: list[tuple[int, str]] = []
    for block in manuscript.blocks:
        if block.kind == "heading" and block.level:
            line = manuscript.text.count("\n", 0, block.start)
            line = manuscript.lines[line] - 1 if manuscript.lines else line
            above = [*(one for one in above if one[0] < block.level), (block.level, block.title)]
            outline.append((starts[min(line, len(starts) - 1)], tuple(title for _, title in above)))
    return [Text(file.path, raw, outline=tuple(outline))]


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []


_Line = TypeVar("_Line", Question, Row)


def _read(path: Path, line_type: type[_Line]) -> list[_Line]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found.append(line_type.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise SettingsError(f"{path}:{number}: {field + ': ' if field else ''}{first['msg']}") from error
    return found

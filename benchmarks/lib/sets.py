"""Question sets in a data folder: questions, the documents to search, and which of them are relevant.

A data folder has `retrieval/*/{corpus,queries}.jsonl`, `docs/<site>/` beside `docs/<site>.queries.jsonl`,
`pdf/<set>/` with its `queries.jsonl`, `answers/answers.jsonl` with more questions about these sites, and
`offtopic/queries.jsonl`; any of them may be missing. Each folder of documents is ingested into a home folder of its
own: word weights depend on everything in a home, and one set must not change the scores of another.
"""

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar

import pypdfium2  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from citewell import wiring
from citewell.errors import CitewellError, SettingsError
from citewell.ingest.flow import ingest
from citewell.ingest.parse import parse
from citewell.ingest.readers.markdown import plain_markdown
from citewell.ingest.walk import SourceFile, walk
from citewell.models import DEFAULT_PROJECT, IngestResult, Project
from citewell.settings import Settings

PROJECT = Project.named(DEFAULT_PROJECT)
Kind = Literal["retrieval", "docs", "pdf", "answers"]
_BINARY_FORMATS = (".docx",)


class Span(BaseModel):
    """The position of an answer in its document, in characters."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    start: int
    end: int


class Question(BaseModel):
    """A line of a `queries.jsonl`; missing fields are empty."""

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
    def _heading_as_section(cls, line: Any) -> Any:
        """Turn the single heading that some sets name into a relevant section, if the heading still exists."""
        if not isinstance(line, dict):
            return line
        fields = {name: value for name, value in line.items() if value is not None}
        if fields.get("heading") and fields.get("anchor_still_present"):
            fields.setdefault(
                "relevant_sections", [f"{path}#{fields['heading']}" for path in fields.get("relevant", ())[:1]]
            )
        return fields

    @property
    def answerable(self) -> bool:
        return bool(self.relevant) and not self.unanswerable


class GoldQuote(BaseModel):
    """Where an answer is: a file of the site."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    file: str


class AnswerRow(BaseModel):
    """A line of `answers.jsonl`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    site: str
    question: str
    answerable: bool
    gold: tuple[GoldQuote, ...] = ()


class CorpusRow(BaseModel):
    """A line of a `corpus.jsonl`."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    id: str
    text: str
    title: str | None = None
    lang: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a set that is not read yet; `corpus` is a `corpus.jsonl` or a folder of documents."""

    kind: Kind
    name: str
    queries: Path
    corpus: Path

    @property
    def label(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def home(self) -> str:
        """Where it is indexed, below the home of all sets: one index for each folder of documents."""
        return self.label if self.kind == "retrieval" else f"{self.corpus.parent.name}/{self.corpus.name}"


@dataclass(frozen=True, slots=True)
class RawText:
    """The raw text of a document, or of a page of it, read without Citewell's parsers.

    `file` is its name in `relevant`. `outline` has the offset of each heading and its path of headings.
    """

    file: str
    text: str
    title: str = ""
    language: str = ""
    page: int | None = None
    outline: tuple[tuple[int, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenRow:
    """A row of a corpus that was written to a Markdown file: its id, and what was added to its text."""

    id: str
    head: int
    added: tuple[int, ...]

    def offset(self, position: int) -> int:
        """The offset in the row's text of a position in the ingested document."""
        return max(0, position - self.head - bisect_left(self.added, position - self.head))


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A set: its questions, its texts, and the folder to ingest."""

    source: Source
    questions: tuple[Question, ...]
    texts: tuple[RawText, ...]
    folder: Path
    written: Mapping[str, WrittenRow]
    home: Path

    @property
    def covered(self) -> tuple[Question, ...]:
        return tuple(question for question in self.questions if question.answerable)

    def document_name(self, path: str) -> str:
        """The name in `relevant` of the document at this path."""
        return self.written[path].id if path in self.written else path

    def missing(self) -> list[str]:
        """Relevant documents and pages that the set does not have."""
        known = {text.file for text in self.texts}
        known |= {f"{text.file}#page={text.page}" for text in self.texts}
        return sorted({name for question in self.covered for name in question.relevant} - known)


def find_sets(data: Path) -> tuple[list[Source], list[str]]:
    """All sets that have texts and questions, and a message for each one that is skipped."""
    if not data.is_dir():
        raise SettingsError(f"{data}: no such folder; name one with retrieval/, docs/, pdf/ and offtopic/ in it")
    sources: list[Source] = []
    for folder in _folders(data / "retrieval"):
        sources.append(Source("retrieval", folder.name, folder / "queries.jsonl", folder / "corpus.jsonl"))
    sites = {folder.name for folder in _folders(data / "docs")}
    sites |= {path.name.removesuffix(".queries.jsonl") for path in (data / "docs").glob("*.queries.jsonl")}
    for name in sorted(sites):
        sources.append(Source("docs", name, data / "docs" / f"{name}.queries.jsonl", data / "docs" / name))
    for folder in _folders(data / "pdf"):
        sources.append(Source("pdf", folder.name, folder / "queries.jsonl", folder))
    sources += _answer_sources(data)
    skipped = [
        f"{name}/: not in {data}" for name in ("retrieval", "docs", "pdf", "answers") if not (data / name).is_dir()
    ]
    for source in sources:
        missing = [path.relative_to(data) for path in (source.queries, source.corpus) if not path.exists()]
        skipped += [f"{source.label}: no {missing[0]}"] if missing else []
    if not (data / "offtopic" / "queries.jsonl").is_file():
        skipped.append("offtopic/queries.jsonl: missing, so no off-topic questions are asked")
    return [source for source in sources if source.queries.is_file() and source.corpus.exists()], skipped


def _answer_sources(data: Path) -> list[Source]:
    """The sites that `answers/answers.jsonl` asks about; its site "pdf" is the first folder of PDFs."""
    path = data / "answers" / "answers.jsonl"
    rows = _read_jsonl(path, AnswerRow) if path.is_file() else []
    pdf_folders = _folders(data / "pdf")
    folders = [
        pdf_folders[0] if site == "pdf" and pdf_folders else data / "docs" / site
        for site in dict.fromkeys(row.site for row in rows)
    ]
    return [Source("answers", folder.name, path, folder) for folder in folders]


def _read_answer_questions(source: Source) -> list[Question]:
    """The questions of `answers/answers.jsonl` about this site; relevant are the files with the gold quotes."""
    site = "pdf" if source.corpus.parent.name == "pdf" else source.name
    return [
        Question(
            id=row.id,
            text=row.question,
            relevant=tuple(dict.fromkeys(quote.file for quote in row.gold)),
            unanswerable=not row.answerable,
        )
        for row in _read_jsonl(source.queries, AnswerRow)
        if row.site == site
    ]


def read_off_topic(data: Path) -> list[Question]:
    """Questions that no set's documents answer."""
    path = data / "offtopic" / "queries.jsonl"
    return _read_jsonl(path, Question) if path.is_file() else []


def read_set(source: Source, home: Path) -> QuestionSet:
    """Read a set; the rows of a corpus are written as files below its home."""
    set_home = home / source.home
    questions = _read_answer_questions(source) if source.kind == "answers" else _read_jsonl(source.queries, Question)
    match source.kind:
        case "retrieval":
            rows = _read_jsonl(source.corpus, CorpusRow)
            folder = set_home / "files"
            texts = [RawText(row.id, row.text, title=row.title or "", language=row.lang or "") for row in rows]
            return QuestionSet(source, tuple(questions), tuple(texts), folder, _write_corpus(rows, folder), set_home)
        case "docs" | "pdf" | "answers":
            files = walk([source.corpus]).files
            texts = [text for file in files for text in _read_texts(file)]
            return QuestionSet(source, tuple(questions), tuple(texts), source.corpus, {}, set_home)


def settings_for(home: Path) -> Settings:
    """The current settings with this home folder. On a Qdrant server, each home has a collection of its own."""
    settings = Settings.model_validate({"home": home})
    place = sha256(str(home.resolve()).encode()).hexdigest()[:8]
    return settings.model_copy(update={"qdrant_collection": f"{settings.qdrant_collection}-{place}"})


async def index_set(question_set: QuestionSet) -> IngestResult:
    """Ingest the set into its home; a second run embeds nothing."""
    settings = settings_for(question_set.home)
    async with wiring.open_for_ingest(settings, project=PROJECT.id, wait=True, on_wait=lambda: None) as engines:
        return await ingest(
            [question_set.folder],
            project=PROJECT,
            engines=engines,
            recipe=wiring.ingest_recipe(settings),
            prune=True,
            progress=lambda *_: None,
        )


def escape_markdown(text: str) -> tuple[str, tuple[int, ...]]:
    r"""The text with backslashes where Markdown would drop characters, and the positions of the backslashes.

    escape_markdown("a List<T> here") -> ("a List\\<T> here", (6,))
    """
    added: list[int] = []
    while (place := _first_difference(text, plain_markdown(text))) is not None:
        options = dict.fromkeys((place, max(0, place - 1), text.rfind("\n", 0, place) + 1))
        for option in options:
            tried = f"{text[:option]}\\{text[option:]}"
            further = _first_difference(tried, plain_markdown(tried))
            if further is None or further > place + 1:
                break
        else:
            break  # an escape does not help here
        text = tried
        added = [*(position + (position >= option) for position in added), option]
    return text, tuple(sorted(added))


def _first_difference(first: str, second: str) -> int | None:
    """The first position at which two texts differ; None if they are equal."""
    if first == second:
        return None
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[low:middle] == second[low:middle] else (low, middle - 1)
    return low


def _write_corpus(rows: Sequence[CorpusRow], folder: Path) -> dict[str, WrittenRow]:
    """Write a Markdown file for each row, with its title in the frontmatter; returns the rows by path."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for number, row in enumerate(rows):
        # One character for another: spans count characters, and a file's line ends are read as one.
        text, added = escape_markdown(row.text.replace("\r", " ").replace("\0", " "))
        title = json.dumps(row.title or "Untitled", ensure_ascii=False)
        path = folder / f"{number:06d}.md"
        content = f"---\ntitle: {title}\n---\n{text}\n".encode()
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
        written[path.name] = WrittenRow(row.id, 3, added)  # of the frontmatter, three line ends are left
    for path in folder.glob("*.md"):
        if path.name not in written:
            path.unlink()
    return written


def _read_texts(file: SourceFile) -> list[RawText]:
    content = file.location.read_bytes()
    suffix = file.location.suffix.lower()
    if suffix == ".pdf":
        with pypdfium2.PdfDocument(content) as document:
            pages = [page.get_textpage().get_text_range() for page in document]
        return [RawText(file.path, text, page=number) for number, text in enumerate(pages, start=1)]
    try:
        manuscript = parse(file.path, content)
    except CitewellError:
        return []
    if suffix in _BINARY_FORMATS:
        return [RawText(file.path, manuscript.text)]
    raw = content.decode("utf-8", "replace").replace("\r\n", "\n")
    starts = [0, *(place + 1 for place, mark in enumerate(raw) if mark == "\n")]
    outline: list[tuple[int, tuple[str, ...]]] = []
    above: list[tuple[int, str]] = []
    for block in manuscript.blocks:
        if block.kind == "heading" and block.level:
            line = manuscript.text.count("\n", 0, block.start)
            line = manuscript.lines[line] - 1 if manuscript.lines else line
            above = [*(heading for heading in above if heading[0] < block.level), (block.level, block.title)]
            outline.append((starts[min(line, len(starts) - 1)], tuple(title for _, title in above)))
    return [RawText(file.path, raw, outline=tuple(outline))]


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []


_Line = TypeVar("_Line", Question, CorpusRow, AnswerRow)


def _read_jsonl(path: Path, line_type: type[_Line]) -> list[_Line]:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(line_type.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise SettingsError(f"{path}:{number}: {field + ': ' if field else ''}{first['msg']}") from error
    return rows

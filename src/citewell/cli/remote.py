"""Commands that ask a running server instead of the home folder: `--server URL`, or CITEWELL_SERVER.

What they print is what the same command prints at home, as far as the server tells it.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID, uuid4

import click

from citewell.cli.output import Terminal, describe_location, passage_json, print_text, unsupported_sentences
from citewell.errors import CitewellError
from citewell.models import DEFAULT_PROJECT, Chunk, Filters, Passage, Project

if TYPE_CHECKING:  # `citewell --help` should not wait for an HTTP client
    from citewell.client import Client
    from citewell.schemas.ask import Citation, StreamChunk
    from citewell.schemas.chat import MetadataFilter, SelectedTextCitation, SourceCitation
    from citewell.schemas.v1.chat import Message, Source

T = TypeVar("T")

_MARK = re.compile(r"\[([0-9a-f]{64})\]")


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    key: str | None = field(repr=False)

    def client(self) -> "Client":
        from citewell.client import Client

        return Client(self.url, key=self.key)


def server_options(work: Callable[..., T]) -> Callable[..., T]:
    """Options that name a server; the command gets `server`, None where it works at home."""

    @click.option("--server", "url", metavar="URL", help="Ask a running server [default: CITEWELL_SERVER, if set].")
    @click.option("--key", metavar="KEY", help="The key to show to it [default: CITEWELL_API_KEY, if set].")
    @wraps(work)
    def served(*args: Any, url: str | None, key: str | None, **kwargs: Any) -> T:
        return work(*args, server=_server(url, key), **kwargs)

    return served


def _server(url: str | None, key: str | None) -> Server | None:
    from citewell.settings import read_settings

    try:
        settings = read_settings()
    except CitewellError as error:
        raise click.ClickException(str(error)) from error
    if not (address := url or settings.server):
        if key:
            raise click.UsageError("--key is for a server; say which with --server")
        return None
    return Server(address, key or (settings.api_key.get_secret_value() if settings.api_key else None))


async def ask(server: Server, question: str, *, project: str, top_k: int, where: Filters, as_json: bool) -> None:
    if where:
        raise click.UsageError(
            "a server is asked whole; `citewell chat --server` and `search --server` can be narrowed"
        )
    async with server.client() as client:
        if project == DEFAULT_PROJECT:
            await _ask_default(client, question, top_k=top_k, as_json=as_json)
        else:
            _decides_itself(top_k)
            await _ask_project(client, question, project=project, as_json=as_json)


async def _ask_default(client: "Client", question: str, *, top_k: int, as_json: bool) -> None:
    terminal, said = Terminal(), list[str]()
    async for event in client.ask_stream(question, top_k=top_k):
        said.append(event.content)
        if not as_json:
            terminal.write(event.content)
    if as_json:
        click.echo(json.dumps(_ask_json("".join(said), event), ensure_ascii=False))
        return
    terminal.end()
    for told in (event.notice, unsupported_sentences(event.support or ())):
        if told:
            click.echo(f"\n\n{told}", nl=False)
    if event.citations:
        rows = [f"  [{number}] {_cited(one)}" for number, one in enumerate(event.citations, start=1)]
        click.echo("\n".join(["", "", f"Sources (confidence {event.confidence or 0:.0%})", *rows]))
    elif event.nearest:
        rows = [f"  {one.source_file}  {one.title}{_under(one.url)}" for one in event.nearest]
        click.echo("\n".join(["", "", "Nearest topics", *rows]))
    else:
        click.echo()


async def _ask_project(client: "Client", question: str, *, project: str, as_json: bool) -> None:
    answer = await client.project_chat(question, project=Project.named(project).id)
    text, cited = _numbered(answer.response, answer.sources)
    if as_json:
        shown = [passage_json(one) for one in cited]
        click.echo(json.dumps({"answer": text, "model": answer.model, "citations": shown}, ensure_ascii=False))
        return
    print_text(text)
    click.echo(_sources(cited))


async def search(server: Server, words: str, *, project: str, top_k: int, where: Filters) -> list[Passage]:
    filters = _filters(where)
    async with server.client() as client:
        found = await client.search(words, project=Project.named(project).id, top_k=top_k, filters=filters)
    return [_passage(one) for one in found.results]


class Conversation:
    """Questions one after another: of the default project kept by the server, of another one here."""

    def __init__(self, client: "Client", project: str, where: Filters, *, top_k: int) -> None:
        _decides_itself(top_k)
        self._client = client
        self._project = project
        self._filters = _filters(where)
        self._session = uuid4()
        self._messages: list[Message] = []
        if where and project != DEFAULT_PROJECT:
            raise click.UsageError("over HTTP only the default project's chat can be narrowed")

    async def answer(self, question: str) -> str:
        """Show an answer and give back its text."""
        if self._project == DEFAULT_PROJECT:
            return await self._in_session(question)
        project = Project.named(self._project).id
        answer = await self._client.project_chat(question, project=project, history=self._messages)
        self._messages = answer.messages[-10:]
        text, cited = _numbered(answer.response, answer.sources)
        print_text(text)
        click.echo(f"{_sources(cited)}\n")
        return text

    async def _in_session(self, question: str) -> str:
        terminal = Terminal()
        async for event in self._client.chat_stream(question, session_id=self._session, filters=self._filters):
            terminal.write(event.delta or "")
        response = event.response
        if response is None:
            raise CitewellError("the server ended the answer without a response")
        if response.fallback_message:
            terminal.write(response.fallback_message)
        terminal.end()
        for told in (response.notice, unsupported_sentences(response.support or ())):
            if told:
                click.echo(f"\n\n{told}", nl=False)
        doubt = " (check them)" if response.metadata.low_confidence else ""
        rows = [f"  [{number}] {_told(one)}" for number, one in enumerate(response.sources, start=1)]
        click.echo("\n".join(["", "", f"Sources{doubt}", *rows, ""]) if rows else "\n")
        return response.answer or ""


def _decides_itself(top_k: int) -> None:
    if top_k != 5:
        raise click.UsageError("--top-k: here the server decides how many passages it looks at")


def _filters(where: Filters) -> "MetadataFilter | None":
    from citewell.schemas.chat import MetadataFilter

    if where.chapter or where.path:
        raise click.UsageError("a server narrows by --section and --url-prefix only")
    return MetadataFilter(section=where.section, source_url_prefix=where.source_url_prefix) if where else None


def _numbered(text: str, sources: "list[Source]") -> tuple[str, list[Passage]]:
    """`[<chunk id>]` as `[1]`, and the passages that the numbers count in."""
    numbers = {one.id: number for number, one in enumerate(sources, start=1)}
    text = _MARK.sub(lambda mark: f"[{numbers[mark[1]]}]" if mark[1] in numbers else mark[0], text)
    return text, [_passage(one) for one in sources]


def _passage(source: "Source") -> Passage:
    """A source as the passage it was; of the headings above it, the server tells the last."""
    section = source.section or ""
    line = source.line or 1
    chunk = Chunk(
        id=source.id or "",
        document_id=source.documentId or UUID(int=0),
        content_hash="",
        index=source.chunkIndex or 0,
        source=source.source,
        chapter=source.chapter or source.source,
        section=section,
        headings=(section,) if section else (),
        text=source.chunkText,
        start=source.start or 0,
        end=source.end or 0,
        first_line=line,
        last_line=line + source.chunkText.count("\n"),
        page=source.page,
        url=source.source_url,
    )
    return Passage(chunk, score=0.0 if source.distance is None else 1 - source.distance, windows=())


def _sources(cited: list[Passage]) -> str:
    rows = [f"  [{number}] {describe_location(one, one.chunk.first_line)}" for number, one in enumerate(cited, start=1)]
    return "\n".join(["", "", "Sources", *rows]) if rows else ""


def _cited(one: "Citation") -> str:
    return f"{one.source_file}{_at(one.page, one.line)}  {one.chapter_title}{_under(one.source_url)}"


def _told(one: "SourceCitation | SelectedTextCitation") -> str:
    from citewell.schemas.chat import SelectedTextCitation

    if isinstance(one, SelectedTextCitation):
        return one.relevance_note
    label = " > ".join(dict.fromkeys((one.title, one.section)))
    if one.source_url.startswith("/"):  # no address, but the file's path
        return f"{one.source_url[1:]}{_at(one.page, one.line)}  {label}  (score {one.similarity_score:.2f})"
    return f"{label}  (score {one.similarity_score:.2f}){_under(one.source_url)}"


def _at(page: int | None, line: int | None) -> str:
    return f" page {page}" if page else f":{line}" if line else ""


def _under(url: str | None) -> str:
    return f"\n      {url}" if url else ""


def _ask_json(text: str, last: "StreamChunk") -> dict[str, object]:
    return {
        "answer": text,
        "confidence": last.confidence or 0.0,
        "citations": [
            {
                "id": one.chunk_id,
                "documentId": str(one.document_id),
                "source": one.source_file,
                "chapter": one.chapter_title,
                "start": one.start,
                "end": one.end,
                "line": one.line,
                "excerpt": one.excerpt,
            }
            for one in last.citations or ()
        ],
        "nearest": [{"title": one.title, "source": one.source_file, "url": one.url} for one in last.nearest or ()],
    }

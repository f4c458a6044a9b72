"""`ask`, `search` and `chat` with a running server instead of the home folder: `--server URL`, or CITEWELL_SERVER.

They print what the same command prints without a server, as far as the responses contain it.
"""

import json
import re
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import click

from citewell.cli.options import DEFAULT_TOP_K, Server
from citewell.cli.output import Terminal, describe_location, passage_json, print_text, unsupported_sentences
from citewell.errors import CitewellError
from citewell.models import CITATION_ID, DEFAULT_PROJECT, Chunk, Filters, Passage, Project

if TYPE_CHECKING:  # `citewell --help` should not wait for an HTTP client
    from citewell.client import Client
    from citewell.schemas.ask import Citation, StreamChunk
    from citewell.schemas.chat import MetadataFilter, SelectedTextCitation, SourceCitation
    from citewell.schemas.v1.chat import Message, Source

_CHUNK_MARKER = re.compile(rf"\[({CITATION_ID})\]")


async def ask(server: Server, question: str, *, project: str, top_k: int, filters: Filters, as_json: bool) -> None:
    if filters:
        raise click.UsageError("`ask --server` takes no filters; `chat --server` and `search --server` do")
    async with server.client() as client:
        if project == DEFAULT_PROJECT:
            await _ask_default(client, question, top_k=top_k, as_json=as_json)
        else:
            _reject_top_k(top_k)
            await _ask_project(client, question, project=project, as_json=as_json)


async def _ask_default(client: "Client", question: str, *, top_k: int, as_json: bool) -> None:
    terminal, text = Terminal(), ""
    async for event in client.ask_stream(question, top_k=top_k):
        text += event.content
        if not as_json:
            terminal.write(event.content)
    if as_json:
        click.echo(json.dumps(_ask_json(text, event), ensure_ascii=False))
        return
    terminal.end()
    _print_remarks(event.notice, unsupported_sentences(event.support or (), event.unsupported or ()))
    if event.citations:
        rows = [f"  [{number}] {_citation_line(citation)}" for number, citation in enumerate(event.citations, start=1)]
        click.echo("\n".join(["", "", f"Sources (confidence {event.confidence or 0:.0%})", *rows]))
    elif event.nearest:
        rows = [f"  {topic.source_file}  {topic.title}{_url_line(topic.url)}" for topic in event.nearest]
        click.echo("\n".join(["", "", "Nearest topics", *rows]))
    else:
        click.echo()


async def _ask_project(client: "Client", question: str, *, project: str, as_json: bool) -> None:
    answer = await client.project_chat(question, project=Project.named(project).id)
    text, passages = _number_citations(answer.response, answer.sources)
    if as_json:
        citations = [passage_json(passage) for passage in passages]
        click.echo(json.dumps({"answer": text, "model": answer.model, "citations": citations}, ensure_ascii=False))
        return
    print_text(text)
    click.echo(_sources_text(passages))


async def search(server: Server, words: str, *, project: str, top_k: int, filters: Filters) -> list[Passage]:
    metadata = _metadata_filter(filters)
    async with server.client() as client:
        response = await client.search(words, project=Project.named(project).id, top_k=top_k, filters=metadata)
    return [_passage(source) for source in response.results]


class Conversation:
    """A chat. The server stores the history of the default project's chats; this class stores that of others."""

    def __init__(self, client: "Client", project: str, filters: Filters, *, top_k: int) -> None:
        _reject_top_k(top_k)
        self._client = client
        self._project = project
        self._filters = _metadata_filter(filters)
        self._session = uuid4()
        self._messages: list[Message] = []
        if filters and project != DEFAULT_PROJECT:
            raise click.UsageError("with a server, only the default project's chat takes filters")

    async def answer(self, question: str) -> str:
        """Print an answer and return its text."""
        if self._project == DEFAULT_PROJECT:
            return await self._answer_in_session(question)
        project = Project.named(self._project).id
        answer = await self._client.project_chat(question, project=project, history=self._messages)
        self._messages = answer.messages[-10:]
        text, passages = _number_citations(answer.response, answer.sources)
        print_text(text)
        click.echo(f"{_sources_text(passages)}\n")
        return text

    async def _answer_in_session(self, question: str) -> str:
        terminal = Terminal()
        async for event in self._client.chat_stream(question, session_id=self._session, filters=self._filters):
            terminal.write(event.delta or "")
        response = event.response
        if response is None:
            raise CitewellError("the server ended the answer without a response")
        if response.fallback_message:
            terminal.write(response.fallback_message)
        terminal.end()
        _print_remarks(response.notice, unsupported_sentences(response.support or (), response.unsupported or ()))
        doubt = " (check them)" if response.metadata.low_confidence else ""
        rows = [f"  [{number}] {_source_line(source)}" for number, source in enumerate(response.sources, start=1)]
        click.echo("\n".join(["", "", f"Sources{doubt}", *rows, ""]) if rows else "\n")
        return response.answer or ""


def _reject_top_k(top_k: int) -> None:
    if top_k != DEFAULT_TOP_K:
        raise click.UsageError("--top-k: the server decides how many passages this retrieves")


def _metadata_filter(filters: Filters) -> "MetadataFilter | None":
    from citewell.schemas.chat import MetadataFilter

    if filters.chapter or filters.path:
        raise click.UsageError("with a server, use --section and --url-prefix only")
    return MetadataFilter(section=filters.section, source_url_prefix=filters.source_url_prefix) if filters else None


def _number_citations(text: str, sources: "list[Source]") -> tuple[str, list[Passage]]:
    """The text with `[<chunk id>]` or `[<document id>]` replaced by `[1]`, and the passages by number."""
    numbers = {source.id or str(source.documentId): number for number, source in enumerate(sources, start=1)}
    text = _CHUNK_MARKER.sub(lambda marker: f"[{numbers[marker[1]]}]" if marker[1] in numbers else marker[0], text)
    return text, [_passage(source) for source in sources]


def _passage(source: "Source") -> Passage:
    """A source as a passage; the server sends only the last of its headings."""
    section = source.section or ""
    line = source.line or 1
    chunk = Chunk(
        id=source.id or "",
        document_id=source.documentId or UUID(int=0),
        content_hash="",
        index=source.chunkIndex,
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
    cosine = 0.0 if source.distance is None else 1 - source.distance
    return Passage(chunk, score=cosine, windows=(), cosine=cosine)


def _sources_text(passages: list[Passage]) -> str:
    rows = [
        f"  [{number}] {describe_location(passage, passage.chunk.first_line)}"
        for number, passage in enumerate(passages, start=1)
    ]
    return "\n".join(["", "", "Sources", *rows]) if rows else ""


def _citation_line(citation: "Citation") -> str:
    place = _page_or_line(citation.page, citation.line)
    return f"{citation.source_file}{place}  {citation.chapter_title}{_url_line(citation.source_url)}"


def _source_line(source: "SourceCitation | SelectedTextCitation") -> str:
    from citewell.schemas.chat import SelectedTextCitation

    if isinstance(source, SelectedTextCitation):
        return source.relevance_note
    label = " > ".join(dict.fromkeys((source.title, source.section)))
    score = f"(score {source.similarity_score:.2f})"
    if source.source_url.startswith("/"):  # no URL, but the file's path
        return f"{source.source_url[1:]}{_page_or_line(source.page, source.line)}  {label}  {score}"
    return f"{label}  {score}{_url_line(source.source_url)}"


def _print_remarks(*remarks: str | None) -> None:
    """Print the remarks that are not empty under an answer."""
    for remark in filter(None, remarks):
        click.echo(f"\n\n{remark}", nl=False)


def _page_or_line(page: int | None, line: int | None) -> str:
    return f" page {page}" if page else f":{line}" if line else ""


def _url_line(url: str | None) -> str:
    return f"\n      {url}" if url else ""


def _ask_json(text: str, last: "StreamChunk") -> dict[str, object]:
    return {
        "answer": text,
        "confidence": last.confidence or 0.0,
        "citations": [
            {
                "id": citation.chunk_id,
                "documentId": str(citation.document_id),
                "source": citation.source_file,
                "chapter": citation.chapter_title,
                "start": citation.start,
                "end": citation.end,
                "line": citation.line,
                "excerpt": citation.excerpt,
            }
            for citation in last.citations or ()
        ],
        "nearest": [
            {"title": topic.title, "source": topic.source_file, "url": topic.url} for topic in last.nearest or ()
        ],
    }

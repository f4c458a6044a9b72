"""`citewell documents`: what a project holds, at home or on a server."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from citewell.cli.options import command, json_option, project_option
from citewell.cli.remote import Server, server_options
from citewell.errors import CitewellError
from citewell.models import Chunk, DocumentSummary, Project

if TYPE_CHECKING:
    from citewell.client import Client
    from citewell.schemas.v1.documents import ChunkPlace, Document

T = TypeVar("T", "DocumentSummary", "Document")


@click.group()
def documents() -> None:
    """List, show, upload and delete what a project holds."""


@documents.command(name="list")
@project_option
@server_options
@json_option
@command
async def list_documents(project: str, server: Server | None, as_json: bool) -> None:
    """Every document of the project, in order of its path."""
    from citewell import wiring
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            told = await client.documents(project=Project.named(project).id)
        shown = [_document_json(one) for one in told]
    else:
        async with wiring.open_for_answers(read_settings()) as reading:
            held = await reading.library.documents(Project.named(project))
        shown = [_entered_json(one) for one in held]
    if as_json:
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    for one in shown:
        click.echo(_row(one))
    click.echo(f"{len(shown)} documents, {sum(one['chunks'] for one in shown)} chunks")


@documents.command(name="show")
@click.argument("document", metavar="PATH|ID")
@project_option
@server_options
@json_option
@command
async def show_document(document: str, project: str, server: Server | None, as_json: bool) -> None:
    """One document: where it stands, and its chunks with their ids."""
    from citewell import wiring
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            named = _named(document, await client.documents(project=Project.named(project).id))
            detail = await client.document(named.documentId)
        shown, chunks = _document_json(detail), [_place_json(chunk) for chunk in detail.chunks]
        labels = [chunk.section for chunk in detail.chunks]
    else:
        async with wiring.open_for_answers(read_settings()) as reading:
            one = _named(document, await reading.library.documents(Project.named(project)))
            held = [chunk async for batch in reading.library.chunks(one.id) for _, chunk in batch]
        shown, chunks = _entered_json(one), [_chunk_json(chunk) for chunk in held]
        labels = [chunk.label for chunk in held]
    if as_json:
        click.echo(json.dumps({**shown, "chunks": chunks}, ensure_ascii=False))
        return
    for name, value in shown.items():
        click.echo(f"{name:12} {value}")
    for chunk, label in zip(chunks, labels, strict=True):
        page = f" page {chunk['page']}" if chunk["page"] else ""
        click.echo(f"{chunk['index']:4}  {chunk['id']}  line {chunk['line']}{page}  {label}")


@documents.command(name="delete")
@click.argument("names", nargs=-1, required=True, metavar="PATH|ID…")
@project_option
@server_options
@command
async def delete_documents(names: tuple[str, ...], project: str, server: Server | None) -> None:
    """Remove documents from the project, its answers and its index. The files themselves are not touched."""
    from citewell import wiring
    from citewell.ingest.flow import remove_documents
    from citewell.settings import read_settings

    named = Project.named(project)
    if server:
        async with server.client() as client:
            told = await client.documents(project=named.id)
            for one in [_named(name, told) for name in names]:
                done = await client.delete_document(one.documentId, project=named.id)
                wait = "" if done else ", once the ingest that is running is done"
                click.echo(f"deleted {one.filename} ({one.chunkCount} chunks){wait}")
        return
    async with wiring.open_for_ingest(read_settings(), wait=True, on_wait=lambda: None) as engines:
        held = await engines.library.documents(named)
        gone = [_named(name, held) for name in names]
        await remove_documents([one.id for one in gone], engines=engines)
    for entered in gone:
        click.echo(f"deleted {entered.path} ({entered.chunks} chunks)")


@documents.command(name="upload")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE…"
)
@project_option
@server_options
@json_option
@command
async def upload_documents(paths: tuple[Path, ...], project: str, server: Server | None, as_json: bool) -> None:
    """Send documents to a server and wait until it has read them. A project that is not there is made.

    Each is known by its file's name; the same name again replaces it. Exit code 1: some could not be read.
    """
    if server is None:
        raise click.UsageError("say which server with --server; at home, `citewell ingest` takes documents in")
    shown = []
    async with server.client() as client:
        for path in paths:
            one = _document_json(await _upload(client, path, Project.named(project)))
            shown.append(one)
            if not as_json:
                click.echo(_row(one))
    if as_json:
        click.echo(json.dumps(shown, ensure_ascii=False))
    sys.exit(1 if any(one["status"] == "FAILED" for one in shown) else 0)


async def _upload(client: "Client", path: Path, project: Project) -> "Document":
    from citewell.client import RequestFailed

    content = await asyncio.to_thread(path.read_bytes)
    try:
        return await client.upload(path.name, content, project=project.id)
    except RequestFailed as error:
        if error.problem.error_code != "NOT_FOUND":
            raise
    await client.create_project(project.name)
    return await client.upload(path.name, content, project=project.id)


def _named(name: str, held: list[T]) -> T:
    for one in held:
        path, identity = (one.path, one.id) if isinstance(one, DocumentSummary) else (one.filename, one.documentId)
        if name in (path, str(identity)):
            return one
    raise CitewellError(f"no document {name!r} in this project; `citewell documents list` shows what there is")


def _row(shown: dict[str, Any]) -> str:
    """A document in one line; of one on a server also how it is, unless all is well."""
    status, error = shown.get("status", "COMPLETED"), shown.get("error")
    state = "" if status == "COMPLETED" else f"{status}: {error}" if error else status
    parts = [shown["id"], f"{shown['chunks']:4} chunks", shown["path"], shown["title"], state]
    return "  ".join(part for part in parts if part)


def _entered_json(one: DocumentSummary) -> dict[str, Any]:
    return {
        "id": str(one.id),
        "path": one.path,
        "title": one.title,
        "part": one.part,
        "url": one.url,
        "chunks": one.chunks,
        "characters": one.characters,
        "ingested_at": one.ingested_at.isoformat(),
    }


def _document_json(one: "Document") -> dict[str, Any]:
    """The same of a document on a server, with how it is there."""
    return {
        "id": str(one.documentId),
        "path": one.filename,
        "title": one.title,
        "url": one.url,
        "chunks": one.chunkCount,
        "characters": one.characters,
        "ingested_at": one.updatedAt.isoformat(),
        "status": one.status,
        "error": one.error,
    }


def _chunk_json(chunk: Chunk) -> dict[str, Any]:
    return {
        "id": chunk.id,
        "index": chunk.index,
        "section": chunk.section,
        "start": chunk.start,
        "end": chunk.end,
        "line": chunk.first_line,
        "page": chunk.page,
        "url": chunk.url,
    }


def _place_json(chunk: "ChunkPlace") -> dict[str, Any]:
    return {
        "id": chunk.id,
        "index": chunk.chunkIndex,
        "section": chunk.section,
        "start": chunk.start,
        "end": chunk.end,
        "line": chunk.line,
        "page": chunk.page,
    }

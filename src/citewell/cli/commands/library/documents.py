"""`citewell documents`: the indexed documents, in the home folder or on a server."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from citewell.cli.options import Server, command, json_option, project_option, server_options
from citewell.errors import CitewellError
from citewell.models import Chunk, DocumentSummary, Project

if TYPE_CHECKING:
    from citewell.client import Client
    from citewell.schemas.v1.documents import ChunkPlace, Document

T = TypeVar("T", "DocumentSummary", "Document")


@click.group()
def documents() -> None:
    """List, show, upload and delete the documents of a project."""


@documents.command(name="list")
@project_option
@server_options
@json_option
@command
async def list_documents(project: str, server: Server | None, as_json: bool) -> None:
    """List the documents of a project by path."""
    from citewell import wiring
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            listed = await client.documents(project=Project.named(project).id)
        rows = [_server_document_json(document) for document in listed]
    else:
        async with wiring.open_for_answers(read_settings()) as resources:
            summaries = await resources.library.documents(Project.named(project))
        rows = [_document_json(summary) for summary in summaries]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        click.echo(_document_line(row))
    click.echo(f"{len(rows)} documents, {sum(row['chunks'] for row in rows)} chunks")


@documents.command(name="show")
@click.argument("document", metavar="PATH|ID")
@project_option
@server_options
@json_option
@command
async def show_document(document: str, project: str, server: Server | None, as_json: bool) -> None:
    """Show a document and its chunks with their ids."""
    from citewell import wiring
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            listed = _find_document(document, await client.documents(project=Project.named(project).id))
            detail = await client.document(listed.documentId)
        row, chunks = _server_document_json(detail), [_server_chunk_json(chunk) for chunk in detail.chunks]
        labels = [chunk.section for chunk in detail.chunks]
    else:
        async with wiring.open_for_answers(read_settings()) as resources:
            summary = _find_document(document, await resources.library.documents(Project.named(project)))
            stored = [chunk async for batch in resources.library.chunks(summary.id) for _, chunk in batch]
        row, chunks = _document_json(summary), [_chunk_json(chunk) for chunk in stored]
        labels = [chunk.label for chunk in stored]
    if as_json:
        click.echo(json.dumps({**row, "chunks": chunks}, ensure_ascii=False))
        return
    for name, value in row.items():
        click.echo(f"{name:12} {value}")
    for chunk, label in zip(chunks, labels, strict=True):
        page = f" page {chunk['page']}" if chunk["page"] else ""
        number = "stored whole" if chunk["index"] is None else f"{chunk['index']:4}  {chunk['id']}"
        click.echo(f"{number}  line {chunk['line']}{page}  {label}")


@documents.command(name="delete")
@click.argument("names", nargs=-1, required=True, metavar="PATH|ID…")
@project_option
@server_options
@command
async def delete_documents(names: tuple[str, ...], project: str, server: Server | None) -> None:
    """Delete documents from a project and its index. Your files stay."""
    from citewell import wiring
    from citewell.ingest.flow import remove_documents
    from citewell.settings import read_settings

    target = Project.named(project)
    if server:
        async with server.client() as client:
            listed = await client.documents(project=target.id)
            for document in [_find_document(name, listed) for name in names]:
                done = await client.delete_document(document.documentId, project=target.id)
                wait = "" if done else ", as soon as the running ingest ends"
                click.echo(f"deleted {document.filename} ({document.chunkCount} chunks){wait}")
        return
    async with wiring.open_for_ingest(read_settings(), project=target.id, wait=True, on_wait=lambda: None) as engines:
        stored = await engines.library.documents(target)
        deleted = [_find_document(name, stored) for name in names]
        await remove_documents([summary.id for summary in deleted], engines=engines)
    for summary in deleted:
        click.echo(f"deleted {summary.path} ({summary.chunks} chunks)")


@documents.command(name="upload")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE…"
)
@project_option
@server_options
@json_option
@command
async def upload_documents(paths: tuple[Path, ...], project: str, server: Server | None, as_json: bool) -> None:
    """Upload documents to a server and wait until they are indexed. Creates the project if it does not exist.

    A document's path is the name of its file; the same name again replaces it. Exit code 1: some could not be read.
    """
    if server is None:
        raise click.UsageError("name a server with --server; without one, `citewell ingest` indexes documents")
    rows = []
    async with server.client() as client:
        for path in paths:
            row = _server_document_json(await _upload(client, path, Project.named(project)))
            rows.append(row)
            if not as_json:
                click.echo(_document_line(row))
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
    sys.exit(1 if any(row["status"] == "FAILED" for row in rows) else 0)


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


def _find_document(name: str, documents: list[T]) -> T:
    """The document with this path or id."""
    for document in documents:
        if isinstance(document, DocumentSummary):
            path, identity = document.path, document.id
        else:
            path, identity = document.filename, document.documentId
        if name in (path, str(identity)):
            return document
    raise CitewellError(f"no document {name!r} in this project; `citewell documents list` shows what there is")


def _document_line(row: dict[str, Any]) -> str:
    """A document on one line, with its status on a server unless that is COMPLETED."""
    status, error = row.get("status", "COMPLETED"), row.get("error")
    state = "" if status == "COMPLETED" else f"{status}: {error}" if error else status
    parts = [row["id"], f"{row['chunks']:4} chunks", row["path"], row["title"], state]
    return "  ".join(part for part in parts if part)


def _document_json(summary: DocumentSummary) -> dict[str, Any]:
    return {
        "id": str(summary.id),
        "path": summary.path,
        "title": summary.title,
        "part": summary.part,
        "url": summary.url,
        "chunks": summary.chunks,
        "characters": summary.characters,
        "ingested_at": summary.ingested_at.isoformat(),
    }


def _server_document_json(document: "Document") -> dict[str, Any]:
    """The same for a document on a server, with its status there."""
    return {
        "id": str(document.documentId),
        "path": document.filename,
        "title": document.title,
        "url": document.url,
        "chunks": document.chunkCount,
        "characters": document.characters,
        "ingested_at": document.updatedAt.isoformat(),
        "status": document.status,
        "error": document.error,
    }


def _chunk_json(chunk: Chunk) -> dict[str, Any]:
    return {
        "id": chunk.public_id,
        "index": chunk.index,
        "section": chunk.section,
        "start": chunk.start,
        "end": chunk.end,
        "line": chunk.first_line,
        "page": chunk.page,
        "url": chunk.url,
    }


def _server_chunk_json(chunk: "ChunkPlace") -> dict[str, Any]:
    return {
        "id": chunk.id,
        "index": chunk.chunkIndex,
        "section": chunk.section,
        "start": chunk.start,
        "end": chunk.end,
        "line": chunk.line,
        "page": chunk.page,
    }

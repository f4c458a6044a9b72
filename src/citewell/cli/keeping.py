"""Commands that keep the library: documents, doctor."""

import json
import sys

import click

from citewell.cli.running import command, json_option, project_option
from citewell.errors import CitewellError
from citewell.models import Chunk, Entered, Project


@click.group()
def documents() -> None:
    """List, show and delete what a project holds."""


@documents.command(name="list")
@project_option
@json_option
@command
async def list_documents(project: str, as_json: bool) -> None:
    """Every document of the project, in order of its path."""
    from citewell import wiring
    from citewell.settings import read_settings

    async with wiring.reading(read_settings()) as reading:
        held = await reading.library.documents(Project.named(project))
    if as_json:
        click.echo(json.dumps([_entered_json(one) for one in held], ensure_ascii=False))
        return
    for one in held:
        click.echo(f"{one.id}  {one.chunks:4} chunks  {one.path}  {one.title}")
    click.echo(f"{len(held)} documents, {sum(one.chunks for one in held)} chunks")


@documents.command(name="show")
@click.argument("document", metavar="PATH|ID")
@project_option
@json_option
@command
async def show_document(document: str, project: str, as_json: bool) -> None:
    """One document: where it stands, and its chunks with their ids."""
    from citewell import wiring
    from citewell.settings import read_settings

    async with wiring.reading(read_settings()) as reading:
        one = _named(document, await reading.library.documents(Project.named(project)))
        chunks = [chunk async for batch in reading.library.chunks(one.id) for _, chunk in batch]
    if as_json:
        body = {**_entered_json(one), "chunks": [_chunk_json(chunk) for chunk in chunks]}
        click.echo(json.dumps(body, ensure_ascii=False))
        return
    for name, value in _entered_json(one).items():
        click.echo(f"{name:12} {value}")
    for chunk in chunks:
        page = f" page {chunk.page}" if chunk.page else ""
        click.echo(f"{chunk.index:4}  {chunk.id}  line {chunk.first_line}{page}  {chunk.label}")


@documents.command(name="delete")
@click.argument("names", nargs=-1, required=True, metavar="PATH|ID…")
@project_option
@command
async def delete_documents(names: tuple[str, ...], project: str) -> None:
    """Remove documents from the project, its answers and its index. The files themselves are not touched."""
    from citewell import wiring
    from citewell.ingest.flow import forget
    from citewell.settings import read_settings

    async with wiring.writing(read_settings(), wait=True, on_wait=lambda: None) as engines:
        held = await engines.library.documents(Project.named(project))
        gone = [_named(name, held) for name in names]
        await forget([one.id for one in gone], engines=engines)
    for one in gone:
        click.echo(f"deleted {one.path} ({one.chunks} chunks)")


@click.command()
@click.option("--fix", is_flag=True, help="Mend what is wrong; the documents in the library are the truth.")
@click.option("--vacuum", is_flag=True, help="Also leave no byte of deleted text on disk.")
@command
async def doctor(fix: bool, vacuum: bool) -> None:
    """Prove that library and index agree and that nothing is left of what was deleted.

    Exit code 0: all is well. 1: something is wrong. 3: something was wrong and has been mended.
    """
    from citewell import wiring
    from citewell.ingest.doctor import examine, mend
    from citewell.ingest.flow import rebuild
    from citewell.settings import read_settings

    async with wiring.writing(read_settings(), wait=True, on_wait=lambda: None) as engines:
        faults = await examine(engines)
        for fault in faults:
            click.echo(fault)
        if faults and fix:
            await mend(engines)
            remaining = await examine(engines)
            for fault in remaining:
                click.echo(f"could not be mended: {fault}")
        if vacuum:
            await rebuild(engines)  # the engine marks points as deleted but keeps their bytes
            await engines.audit.vacuum()
    if not faults:
        click.echo("All is well.")
        sys.exit(0)
    if not fix:
        click.echo("Run `citewell doctor --fix` to mend this.")
        sys.exit(1)
    click.echo("Mended." if not remaining else "Not everything could be mended.")
    sys.exit(1 if remaining else 3)


def _named(name: str, held: list[Entered]) -> Entered:
    for one in held:
        if name in (one.path, str(one.id)):
            return one
    raise CitewellError(f"no document {name!r} in this project; `citewell documents list` shows what there is")


def _entered_json(one: Entered) -> dict[str, object]:
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


def _chunk_json(chunk: Chunk) -> dict[str, object]:
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

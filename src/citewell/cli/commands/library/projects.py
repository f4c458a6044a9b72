"""`citewell projects`: the projects in the home folder or on a server."""

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from citewell.cli.options import Server, command, json_option, server_options
from citewell.errors import CitewellError
from citewell.models import DEFAULT_PROJECT, Project

if TYPE_CHECKING:
    from citewell.wiring import Stores


@click.group()
def projects() -> None:
    """List, create and delete projects: separate sets of documents."""


@projects.command(name="list")
@server_options
@json_option
@command
async def list_projects(server: Server | None, as_json: bool) -> None:
    """List the projects by name, with the numbers of their documents and chunks."""
    rows = await _list(server)
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        click.echo(f"{row['id']}  {row['documents']:5} documents  {row['chunks']:6} chunks  {row['name']}")


@projects.command(name="create")
@click.argument("name")
@server_options
@json_option
@command
async def create_project(name: str, server: Server | None, as_json: bool) -> None:
    """Create a project. The same name is the same project everywhere; one that exists stays as it is."""
    from citewell import wiring
    from citewell.settings import read_settings

    known = await _list(server)
    project = Project.named(_check_name(name))
    if server:
        async with server.client() as client:
            await client.create_project(project.name)
    else:
        async with wiring.open_stores(read_settings()) as stores:
            await stores.projects.create(project)
    existed = any(row["id"] == str(project.id) for row in known)
    if as_json:
        click.echo(json.dumps({"id": str(project.id), "name": project.name, "created": not existed}))
    else:
        click.echo(f"{project.id}  {project.name}{' existed already' if existed else ''}")


@projects.command(name="delete")
@click.argument("name", metavar="NAME|ID")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@server_options
@json_option
@command
async def delete_project(name: str, yes: bool, server: Server | None, as_json: bool) -> None:
    """Delete a project with its documents, conversations and API keys. Your files stay."""
    row = _find(name, await _list(server))
    project = Project(UUID(row["id"]), row["name"])
    if project.name == DEFAULT_PROJECT:
        raise CitewellError(
            "the default project cannot be deleted; `citewell documents delete` removes documents from it"
        )
    contents = f"{_count(row['documents'], 'document')} ({_count(row['chunks'], 'chunk')})"
    if not yes:
        _confirm(f"Delete the project {project.name}: {contents}, all its conversations and API keys?")
    done = await _delete(project, server)
    if as_json:
        click.echo(json.dumps({**row, "deleted": done}, ensure_ascii=False))
        return
    when = "deleted" if done else "will delete, as soon as the running ingest ends,"
    click.echo(
        f"{when} the project {project.name}: {contents}, its conversations, unanswered questions and evaluations; "
        "its API keys are revoked"
    )


async def _delete(project: Project, server: Server | None) -> bool:
    """Delete a project; False if that waits for an ingest that is running on the server."""
    from citewell import wiring
    from citewell.ingest.flow import remove_project
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            return await client.delete_project(project.id)
    settings = read_settings()
    async with (
        wiring.open_for_ingest(settings, project=project.id, wait=True, on_wait=_print_waiting) as engines,
        wiring.open_stores(settings) as stores,
    ):
        await remove_project(project, projects=stores.projects, engines=engines)
    return True


async def _list(server: Server | None) -> list[dict[str, Any]]:
    from citewell import wiring
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            return [project.model_dump(mode="json") for project in await client.projects()]
    async with wiring.open_stores(read_settings()) as stores:
        return [await _stored_json(project, stores) for project, _ in await stores.projects.projects()]


async def _stored_json(project: Project, stores: "Stores") -> dict[str, Any]:
    """The fields of a project as the server sends them."""
    documents = await stores.library.documents(project)
    row = await stores.projects.project(project.id)
    return {
        "id": str(project.id),
        "name": project.name,
        "createdAt": row[1].isoformat() if row else None,
        "documents": len(documents),
        "chunks": sum(document.chunks for document in documents),
    }


def _find(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The project with this name or id."""
    for row in rows:
        if name in (row["name"], row["id"]):
            return row
    raise CitewellError(f"no project {name!r}; `citewell projects list` shows what there is")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _check_name(name: str) -> str:
    """The name as the API stores it; raises a usage error for one that the API would refuse."""
    from pydantic import ValidationError

    from citewell.schemas.v1.projects import ProjectRequest

    try:
        return ProjectRequest(name=name).name
    except ValidationError as error:
        raise click.UsageError(
            f"NAME {name!r} should be one line of 1 to 100 characters, without a space at its ends"
        ) from error


def _confirm(question: str) -> None:
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as error:
        raise CitewellError("nothing was deleted; answer y, or use --yes") from error


def _print_waiting() -> None:
    click.echo("Another ingest is running; waiting for it to finish.", err=True)

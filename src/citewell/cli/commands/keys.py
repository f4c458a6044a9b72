"""`citewell keys`: API keys for the HTTP server."""

import json
from datetime import UTC, datetime
from typing import get_args
from uuid import UUID

import click

from citewell.cli.options import command, json_option
from citewell.errors import NotFound
from citewell.models import Key, Project, Scope


@click.group()
def keys() -> None:
    """Create, list and revoke API keys."""


@keys.command()
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice(get_args(Scope)),
    default="ask",
    show_default=True,
    help="ask: ask questions. admin: also read and change projects, documents and sessions.",
)
@click.option("--project", metavar="NAME", help="The only project the key is for [default: every project].")
@click.option(
    "--per-minute", type=click.IntRange(min=1), metavar="N", help="Requests per minute [default: as in settings]."
)
@command
async def create(name: str, scope: Scope, project: str | None, per_minute: int | None) -> None:
    """Create a key. NAME is a label for the list of keys."""
    from citewell import wiring
    from citewell.api_keys import create_key
    from citewell.settings import read_settings

    if not name.strip():
        raise click.UsageError("NAME is empty; give the key a name")
    new = create_key()
    async with wiring.open_stores(read_settings()) as stores:
        known = [stored for stored, _ in await stores.projects.projects()]
        only = None if project is None else _project_id(project, known)
        key = Key(new.id, name.strip(), scope, datetime.now(UTC), only, per_minute)
        await stores.keys.add(key, digest=new.digest)
    click.echo(new.text)
    click.echo("This is the only time the key is shown: store it now.", err=True)


@keys.command(name="list")
@json_option
@command
async def list_keys(as_json: bool) -> None:
    """List all keys, revoked ones too, oldest first. Secrets are never shown."""
    from citewell import wiring
    from citewell.settings import read_settings

    async with wiring.open_stores(read_settings()) as stores:
        stored = await stores.keys.keys()
        names = {project.id: project.name for project, _ in await stores.projects.projects()}
    rows = [_key_json(key, names) for key in stored]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        rate = f"  {row['per_minute']} a minute" if row["per_minute"] else ""
        revoked = f"  revoked {str(row['revoked_at'])[:10]}" if row["revoked_at"] else ""
        project = row["project"] or "every project"
        click.echo(f"{row['id']}  {row['scope']:5}  {project}  {row['name']}{rate}{revoked}")
    click.echo(f"{sum(key.revoked_at is None for key in stored)} of {len(stored)} in use")


@keys.command()
@click.argument("identity", metavar="ID")
@command
async def revoke(identity: str) -> None:
    """Revoke a key, from its next request on. ID is as in `citewell keys list`."""
    from citewell import wiring
    from citewell.api_keys import key_id
    from citewell.settings import read_settings

    identifier = key_id(identity) or identity  # the whole key works too
    async with wiring.open_stores(read_settings()) as stores:
        revoked_now = await stores.keys.revoke(identifier)
        stored = await stores.keys.find(identifier)
    if stored is None:
        raise NotFound("there is no key with this id; `citewell keys list` shows all keys")
    key, _ = stored
    click.echo(f"{'revoked' if revoked_now else 'was revoked already:'} {key.id} ({key.name})")


def _project_id(name: str, projects: list[Project]) -> UUID:
    for project in projects:
        if project.name == name:
            return project.id
    raise NotFound(f"there is no project {name!r}; there are {', '.join(project.name for project in projects)}")


def _key_json(key: Key, projects: dict[UUID, str]) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "scope": key.scope,
        "project": None if key.project is None else projects.get(key.project, str(key.project)),
        "per_minute": key.per_minute,
        "created_at": key.created_at.isoformat(),
        "revoked_at": key.revoked_at and key.revoked_at.isoformat(),
    }

"""`citewell keys`: who may ask over HTTP, and who may also change what there is."""

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
    """Make, list and revoke API keys."""


@keys.command()
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice(get_args(Scope)),
    default="ask",
    show_default=True,
    help="What it may do: ask questions, or also see and change projects, documents and sessions.",
)
@click.option("--project", metavar="NAME", help="The only project it opens; every one unless said.")
@click.option("--per-minute", type=click.IntRange(min=1), metavar="N", help="Requests a minute; else as in settings.")
@command
async def create(name: str, scope: Scope, project: str | None, per_minute: int | None) -> None:
    """Make a key. NAME is for you, to know it by in the list."""
    from citewell import wiring
    from citewell.api_keys import create_key
    from citewell.settings import read_settings

    if not name.strip():
        raise click.UsageError("NAME is empty; say what the key is for")
    minted = create_key()
    async with wiring.open_stores(read_settings()) as kept:
        only = None if project is None else _named(project, [one for one, _ in await kept.projects.projects()])
        key = Key(minted.id, name.strip(), scope, datetime.now(UTC), only, per_minute)
        await kept.keys.add(key, digest=minted.digest)
    click.echo(minted.text)
    click.echo("This is the only time the key is shown: keep it where its user finds it.", err=True)


@keys.command(name="list")
@json_option
@command
async def list_keys(as_json: bool) -> None:
    """Every key there ever was, oldest first; never its secret."""
    from citewell import wiring
    from citewell.settings import read_settings

    async with wiring.open_stores(read_settings()) as kept:
        held = await kept.keys.keys()
        names = {one.id: one.name for one, _ in await kept.projects.projects()}
    shown = [_key_json(one, names) for one in held]
    if as_json:
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    for one in shown:
        rate = f"  {one['per_minute']} a minute" if one["per_minute"] else ""
        revoked = f"  revoked {str(one['revoked_at'])[:10]}" if one["revoked_at"] else ""
        opens = one["project"] or "every project"
        click.echo(f"{one['id']}  {one['scope']:5}  {opens}  {one['name']}{rate}{revoked}")
    click.echo(f"{sum(one.revoked_at is None for one in held)} of {len(held)} in use")


@keys.command()
@click.argument("identity", metavar="ID")
@command
async def revoke(identity: str) -> None:
    """Shut a key out, from its next request on. ID is as `citewell keys list` shows it."""
    from citewell import wiring
    from citewell.api_keys import key_id
    from citewell.settings import read_settings

    wanted = key_id(identity) or identity  # the whole key is at hand more often than its id
    async with wiring.open_stores(read_settings()) as kept:
        done = await kept.keys.revoke(wanted)
        found = await kept.keys.find(wanted)
    if found is None:
        raise NotFound("there is no key of this id; `citewell keys list` shows those there are")
    key, _ = found
    click.echo(f"{'revoked' if done else 'was revoked already:'} {key.id} ({key.name})")


def _named(name: str, projects: list[Project]) -> UUID:
    for one in projects:
        if one.name == name:
            return one.id
    raise NotFound(f"there is no project {name!r}; there are {', '.join(one.name for one in projects)}")


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

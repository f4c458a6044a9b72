"""`citewell backup`: writes everything to one file, also while a server runs."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from citewell.cli.options import command, json_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@json_option
@command
async def backup(file: Path, force: bool, as_json: bool) -> None:
    """Write documents, embeddings, conversations, keys and waiting uploads to FILE, and check it.

    Servers and ingests may run meanwhile. The index is not part of it: `citewell restore` builds it from the documents,
    without embedding anything again. With PostgreSQL, use pg_dump.
    """
    from citewell import home
    from citewell.settings import read_settings

    contents = await home.back_up(read_settings(), file, overwrite=force)
    if as_json:
        click.echo(json.dumps(asdict(contents) | {"file": str(file)}, ensure_ascii=False))
    else:
        click.echo(f"{file}: {contents}; checked.")

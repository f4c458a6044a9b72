"""What commands share: how they run, fail and take their options."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click

from citewell.errors import BadFilter, CitewellError
from citewell.models import DEFAULT_PROJECT, Filters

P = ParamSpec("P")
T = TypeVar("T")

project_option = click.option(
    "--project", default=DEFAULT_PROJECT, show_default=True, metavar="NAME", help="The project to work in."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
top_k_option = click.option(
    "--top-k", type=click.IntRange(1, 20), default=5, show_default=True, help="Passages to look at."
)


def filter_options(work: Callable[..., T]) -> Callable[..., T]:
    """Options that narrow a search; the command gets them as one `where`."""

    @click.option("--section", help="Only sections with exactly this heading.")
    @click.option("--chapter", help="Only documents with exactly this title.")
    @click.option("--path", metavar="FILE|FOLDER/", help="Only this file, or with a / at its end this folder.")
    @click.option("--url-prefix", metavar="URL", help="Only pages whose address, or its path from /, begins like this.")
    @wraps(work)
    def narrowed(
        *args: Any, section: str | None, chapter: str | None, path: str | None, url_prefix: str | None, **kwargs: Any
    ) -> T:
        try:
            where = Filters(section=section, chapter=chapter, path=path, source_url_prefix=url_prefix)
        except BadFilter as error:
            raise click.UsageError(str(error)) from error
        return work(*args, where=where, **kwargs)

    return narrowed


def command(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Run an async command; what we raise on purpose becomes one line and exit code 1."""

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return asyncio.run(work(*args, **kwargs))
        except CitewellError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            click.echo("\nInterrupted; nothing was changed.", err=True)
            sys.exit(130)
        except BrokenPipeError:  # `citewell search … | head`
            sys.stderr.close()
            sys.exit(1)

    return run

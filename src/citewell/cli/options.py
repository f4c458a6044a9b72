"""What commands share: their options, how they run, and how they fail."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from citewell.errors import BadFilter, CitewellError
from citewell.models import DEFAULT_PROJECT, Filters

if TYPE_CHECKING:  # `citewell --help` should not wait for an HTTP client
    from citewell.client import Client

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_TOP_K = 5

project_option = click.option(
    "--project", default=DEFAULT_PROJECT, show_default=True, metavar="NAME", help="The project to use."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
top_k_option = click.option(
    "--top-k",
    type=click.IntRange(1, 20),
    default=DEFAULT_TOP_K,
    show_default=True,
    help="Number of passages to retrieve.",
)


@dataclass(frozen=True, slots=True)
class Server:
    """A running Citewell server: its URL and the API key for it."""

    url: str
    key: str | None = field(repr=False)

    def client(self) -> "Client":
        from citewell.client import Client

        return Client(self.url, key=self.key)


def filter_options(function: Callable[..., T]) -> Callable[..., T]:
    """Add the options that filter a search; the command gets them as `filters`."""

    @click.option("--section", help="Only sections with exactly this heading.")
    @click.option("--chapter", help="Only documents with exactly this title.")
    @click.option("--path", metavar="FILE|FOLDER/", help="Only this file; with a / at the end, only this folder.")
    @click.option("--url-prefix", metavar="URL", help="Only pages whose URL, or its path from /, starts with this.")
    @wraps(function)
    def with_filters(
        *args: Any, section: str | None, chapter: str | None, path: str | None, url_prefix: str | None, **kwargs: Any
    ) -> T:
        try:
            filters = Filters(section=section, chapter=chapter, path=path, source_url_prefix=url_prefix)
        except BadFilter as error:
            raise click.UsageError(str(error)) from error
        return function(*args, filters=filters, **kwargs)

    return with_filters


def server_options(function: Callable[..., T]) -> Callable[..., T]:
    """Add the options that name a server; the command gets `server`, None if it should use the home folder."""

    @click.option("--server", "url", metavar="URL", help="Use a running server [default: CITEWELL_SERVER, if set].")
    @click.option("--key", metavar="KEY", help="The API key for the server [default: CITEWELL_API_KEY, if set].")
    @wraps(function)
    def with_server(*args: Any, url: str | None, key: str | None, **kwargs: Any) -> T:
        return function(*args, server=_read_server(url, key), **kwargs)

    return with_server


def search_options(function: Callable[..., T]) -> Callable[..., T]:
    """Add the options of every command that searches: project, number of passages, filters and server."""
    return project_option(top_k_option(filter_options(server_options(function))))


def command(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Run an async command. A CitewellError becomes a one-line message and exit code 1."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return asyncio.run(function(*args, **kwargs))
        except CitewellError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            click.echo("\nInterrupted; nothing was changed.", err=True)
            sys.exit(130)
        except BrokenPipeError:  # `citewell search … | head`
            sys.stderr.close()
            sys.exit(1)

    return run


def _read_server(url: str | None, key: str | None) -> Server | None:
    """The server that the options or the settings name; None if neither does."""
    from citewell.settings import read_settings

    try:
        settings = read_settings()
    except CitewellError as error:
        raise click.ClickException(str(error)) from error
    if not (address := url or settings.server):
        if key:
            raise click.UsageError("--key needs a server; name it with --server")
        return None
    return Server(address, key or (settings.api_key.get_secret_value() if settings.api_key else None))

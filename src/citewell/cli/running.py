"""What commands share: how they run, fail and take their options."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click

from citewell.errors import CitewellError
from citewell.models import DEFAULT_PROJECT

P = ParamSpec("P")
T = TypeVar("T")

project_option = click.option(
    "--project", default=DEFAULT_PROJECT, show_default=True, metavar="NAME", help="The project to work in."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


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

"""`citewell serve`: the HTTP server."""

import click

from citewell.errors import CitewellError


@click.command()
@click.option("--host", help="The address to listen on [default: CITEWELL_HOST or 127.0.0.1].")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on [default: CITEWELL_PORT or 8000].")
@click.option("--no-worker", is_flag=True, help="Leave uploads to `citewell worker --forever`.")
def serve(host: str | None, port: int | None, no_worker: bool) -> None:
    """Start the HTTP server with the chat page and the API."""
    from citewell.http.server import run
    from citewell.settings import read_settings

    try:
        settings = read_settings()
        if no_worker:
            settings = settings.model_copy(update={"worker": False})
        run(settings, host=host or settings.host, port=settings.port if port is None else port)
    except CitewellError as error:
        raise click.ClickException(str(error)) from error

"""A small docs site of another origin, with the widget's script tag on its pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from playwright.sync_api import Locator, Page

_PAGE = """<!doctype html>
<html lang="{lang}"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/style.css">{head}</head>
<body><main><h1>{title}</h1>
<p id="text">A gyroscope measures rate of turn. Its bias wanders with temperature, and what it adds up drifts away.</p>
<p><a href="/gyroscopes.html">Gyroscopes</a> <a href="/feet.html">Feet</a></p></main>
{tag}
</body></html>"""
_TAG = '<script src="{server}/widget.js" {attributes}></script>'
_STYLE = """body { font: 17px/1.6 Georgia, serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }
body { color: #222; background: #fff; }
"""


@dataclass
class Host:
    """`server` is where the widget comes from; all that follows is what a site might add."""

    address: str
    server: str = ""
    attributes: str = ""
    lang: str = "en"
    head: str = ""
    style: str = ""
    policy: str = ""
    tag: str = ""
    """The script tag as it is; made of the server and the attributes where it is left out."""

    def page(self, path: str) -> str:
        title = path.strip("/").removesuffix(".html").title()
        tag = self.tag or _TAG.format(**vars(self))
        return _PAGE.format(**{**vars(self), "title": title, "tag": tag})


@contextmanager
def hosting() -> Iterator[Host]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith(".html"):
                self._send(host.page(self.path), "text/html")
            elif self.path.endswith(".css"):
                self._send(_STYLE + host.style, "text/css")
            else:
                self.send_response(204)  # no icon
                self.end_headers()

        def _send(self, text: str, media_type: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("content-type", f"{media_type}; charset=utf-8")
            self.send_header("cache-control", "no-store")
            if host.policy:
                self.send_header("content-security-policy", host.policy)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host = Host(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def strict(server: str) -> str:
    """A policy that lets nothing in but the widget's server."""
    return (
        f"default-src 'none'; script-src {server}; connect-src {server}; style-src 'self'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def bubble_of(page: Page) -> Locator:
    return page.locator(".bubble-button")


def frame_of(page: Page) -> Locator:
    return page.locator(".frame")


def field_of(page: Page) -> Locator:
    return page.get_by_label("Your question")


def style_of(locator: Locator, name: str) -> str:
    value: str = locator.evaluate("(one, name) => getComputedStyle(one).getPropertyValue(name)", name)
    return value

"""A small docs site of another origin, with the widget's script tag on its pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
  body {{ font: 17px/1.6 Georgia, serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }}
  body {{ color: #222; background: #fff; }}
  {style}
</style></head>
<body><main><h1>{title}</h1>
<p id="text">A gyroscope measures rate of turn. Its bias wanders with temperature, and what it adds up drifts away.</p>
<p><a href="/gyroscopes.html">Gyroscopes</a> <a href="/feet.html">Feet</a></p></main>
<script src="{server}/widget.js" {attributes}></script>
</body></html>"""


class Host:
    """`server` is where the widget comes from; `attributes`, `style` and `policy` are what a site might add."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.server = ""
        self.attributes = ""
        self.style = ""
        self.policy = ""

    def page(self, path: str) -> str:
        title = path.strip("/").removesuffix(".html").title()
        return _PAGE.format(title=title, server=self.server, attributes=self.attributes, style=self.style)


@contextmanager
def hosting() -> Iterator[Host]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.endswith(".html"):
                self.send_response(204)  # no icon
                self.end_headers()
                return
            body = host.page(self.path).encode()
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
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

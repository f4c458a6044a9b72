"""`GET /chat`, `/library` and `/widget.js`: the pages and scripts in the package's folder `web`.

Their source is `widget/`. A page loads no font, image or script from other servers.
"""

import gzip
import hashlib
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from citewell.errors import NotFound
from citewell.http.route import OPEN, GuardedRoute

router = APIRouter(tags=["page"], route_class=GuardedRoute)

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}
# Nothing from other servers, nothing inline: an answer can run no script and load no image.
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


@cache
def _read_file(name: str) -> tuple[bytes, bytes, str]:
    """A file of the package, the same compressed, and its ETag."""
    content = files("citewell").joinpath("web", name).read_bytes()
    return content, gzip.compress(content, 9, mtime=0), f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _serve(name: str, request: Request) -> Response:
    """A file; a browser that has it gets 304. Browsers revalidate each time, so that they see an update at once."""
    content, compressed, etag = _read_file(name)
    headers = {"Cache-Control": "no-cache", "ETag": etag, "Vary": "Accept-Encoding"}
    if name.endswith(".html"):
        headers["Content-Security-Policy"] = _CONTENT_SECURITY_POLICY
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = compressed, "gzip"
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)


@router.get("/", openapi_extra=OPEN, include_in_schema=False)
async def root() -> RedirectResponse:
    return RedirectResponse("/chat")


@router.get("/chat", openapi_extra=OPEN, response_class=HTMLResponse)
async def chat_page(request: Request) -> Response:
    """The chat page."""
    return _serve("chat.html", request)


@router.get("/library", openapi_extra=OPEN, response_class=HTMLResponse)
async def library_page(request: Request) -> Response:
    """The authors' page: documents, failed uploads, unanswered questions."""
    return _serve("library.html", request)


@router.get("/widget.js", openapi_extra=OPEN, include_in_schema=False)
async def widget(request: Request) -> Response:
    """The chat for any page: `<script src="…/widget.js" async></script>`."""
    return _serve("widget.js", request)


@router.get("/widget/math.js", openapi_extra=OPEN, include_in_schema=False)
async def math_script(request: Request) -> Response:
    """Renders formulas; loaded with the first one."""
    return _serve("math.js", request)


@router.get("/widget/{language}.json", openapi_extra=OPEN, include_in_schema=False)
async def language(language: str, request: Request) -> Response:
    name = f"languages/{language}.json"
    if not language.isalpha() or not files("citewell").joinpath("web", name).is_file():
        raise NotFound("there is no translation of the interface into this language")
    return _serve(name, request)


def _add_asset(name: str) -> None:
    async def serve(request: Request) -> Response:
        return _serve(name, request)

    router.add_api_route(f"/{name}", serve, name=name, openapi_extra=OPEN, include_in_schema=False)


for _name in ("chat.js", "library.js", "page.css", "docs.css", "icon.svg"):
    _add_asset(_name)

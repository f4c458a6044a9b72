"""`GET /chat`, `/library`, `/widget.js` and `/logo`: the pages and scripts in the package's folder `web`, and a logo.

Their source is `widget/`. A page loads no font, image or script from other servers.
"""

import gzip
import hashlib
import html
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from citewell.errors import NotFound, SettingsError
from citewell.http.route import OPEN, GuardedRoute
from citewell.http.state import state_of

router = APIRouter(tags=["page"], route_class=GuardedRoute)

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
}
_LOGO_TYPES = ("svg", "png", "jpg", "jpeg", "webp", "gif")
_MAX_LOGO_BYTES = 1_000_000
# Nothing from other servers, nothing inline: an answer can run no script and load no image.
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
# An SVG that is opened by itself is a document: it may have styles, but runs no script and loads nothing.
_LOGO_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"


@dataclass(frozen=True, slots=True)
class _Asset:
    """What is sent: the bytes, the same compressed, their type and their ETag."""

    content: bytes
    compressed: bytes
    media_type: str
    etag: str


def _asset(content: bytes, suffix: str) -> _Asset:
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return _Asset(content, gzip.compress(content, 9, mtime=0), _TYPES[suffix], etag)


@cache
def _read_file(name: str) -> _Asset:
    """A file of the package."""
    return _asset(files("citewell").joinpath("web", name).read_bytes(), name.rpartition(".")[2])


@cache
def _chat_page(title: str | None, welcome: str | None, *, has_logo: bool) -> _Asset:
    """The chat page with the title, the welcome and the icon that the settings name: known before the first request."""
    page = _read_file("chat.html").content.decode()
    if title:
        text = html.escape(title)
        named = f'<title>{text}</title>\n<meta name="application-name" content="{text}">'
        page = page.replace("<title>Ask the documents</title>", named)
    if welcome:
        page = page.replace("</head>", f'<meta name="description" content="{html.escape(welcome)}">\n</head>')
    if has_logo:
        page = page.replace('<link rel="icon" href="/icon.svg" type="image/svg+xml">', '<link rel="icon" href="/logo">')
    return _asset(page.encode(), "html")


@cache
def read_logo(path: Path) -> _Asset:
    """The image that `CITEWELL_LOGO` names, read once; raises SettingsError."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in _LOGO_TYPES:
        raise SettingsError(f"CITEWELL_LOGO={str(path)!r}: should end in .{', .'.join(_LOGO_TYPES)}")
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_LOGO_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"CITEWELL_LOGO={str(path)!r}: cannot be read ({error.strerror})") from error
    if len(content) > _MAX_LOGO_BYTES:
        raise SettingsError(f"CITEWELL_LOGO={str(path)!r}: should have at most {_MAX_LOGO_BYTES:,} bytes")
    return _asset(content, suffix)


def _serve(name: str, request: Request) -> Response:
    """A file of the package."""
    return _send(_read_file(name), request, policy=_CONTENT_SECURITY_POLICY if name.endswith(".html") else None)


def _send(asset: _Asset, request: Request, *, policy: str | None) -> Response:
    """The asset; a browser that has it gets 304. Browsers revalidate each time, so that they see an update at once."""
    headers = {"Cache-Control": "no-cache", "ETag": asset.etag, "Vary": "Accept-Encoding"}
    if policy:
        headers["Content-Security-Policy"] = policy
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    content = asset.content
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = asset.compressed, "gzip"
    return Response(content, media_type=asset.media_type, headers=headers)


@router.get("/", openapi_extra=OPEN, include_in_schema=False)
async def root() -> RedirectResponse:
    return RedirectResponse("/chat")


@router.get("/chat", openapi_extra=OPEN, response_class=HTMLResponse)
async def chat_page(request: Request) -> Response:
    """The chat page."""
    settings = state_of(request).settings
    page = _chat_page(settings.title, settings.welcome, has_logo=settings.logo is not None)
    return _send(page, request, policy=_CONTENT_SECURITY_POLICY)


@router.get("/library", openapi_extra=OPEN, response_class=HTMLResponse)
async def library_page(request: Request) -> Response:
    """The authors' page: documents, failed uploads, unanswered questions."""
    return _serve("library.html", request)


@router.get("/logo", openapi_extra=OPEN, include_in_schema=False)
async def logo(request: Request) -> Response:
    """The image that `CITEWELL_LOGO` names. Widgets on other sites show it, too."""
    path = state_of(request).settings.logo
    if path is None:
        raise NotFound("no logo is configured; set CITEWELL_LOGO")
    response = _send(read_logo(path), request, policy=_LOGO_SECURITY_POLICY)
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


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

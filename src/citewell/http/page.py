"""`GET /chat`: a page that asks and shows the answer as it comes, with its sources."""

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from citewell.http.gate import OPEN, Door

router = APIRouter(tags=["page"], route_class=Door)

_FILES = {"chat.html": "text/html", "chat.js": "text/javascript", "chat.css": "text/css"}
# Nothing from elsewhere, nothing inline: an answer can show no script and load no image.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


def _serve(name: str) -> Response:
    content = files("citewell").joinpath("web", name).read_bytes()
    return Response(content, media_type=f"{_FILES[name]}; charset=utf-8", headers=_HEADERS)


@router.get("/", openapi_extra=OPEN, include_in_schema=False)
async def root() -> RedirectResponse:
    return RedirectResponse("/chat")


@router.get("/chat", openapi_extra=OPEN, response_class=HTMLResponse)
async def chat_page() -> Response:
    """The page on which a reader asks."""
    return _serve("chat.html")


@router.get("/chat.js", openapi_extra=OPEN, include_in_schema=False)
async def script() -> Response:
    return _serve("chat.js")


@router.get("/chat.css", openapi_extra=OPEN, include_in_schema=False)
async def style() -> Response:
    return _serve("chat.css")

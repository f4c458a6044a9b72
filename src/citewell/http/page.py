"""`GET /chat`: a page that asks and shows the answer as it comes, with its sources."""

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

router = APIRouter(include_in_schema=False)

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


@router.get("/")
async def root() -> RedirectResponse:
    return RedirectResponse("/chat")


@router.get("/chat")
async def chat() -> Response:
    return _serve("chat.html")


@router.get("/chat.js")
async def script() -> Response:
    return _serve("chat.js")


@router.get("/chat.css")
async def style() -> Response:
    return _serve("chat.css")

"""`GET /openapi.json` and `/docs`: the API reference, for programs and for people, without a network or a script."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse

from citewell.http.reference.page import render
from citewell.http.route import OPEN, GuardedRoute

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}


@router.get("/openapi.json", openapi_extra=OPEN)
async def openapi(request: Request) -> JSONResponse:
    return JSONResponse(request.app.openapi())


@router.get("/docs", openapi_extra=OPEN)
async def docs(request: Request) -> HTMLResponse:
    return HTMLResponse(render(request.app.openapi()), headers=_HEADERS)

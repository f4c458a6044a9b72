"""`GET /openapi.json` and `/docs`: the doors described, for programs and for people, without a network."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from citewell.http.gate import OPEN, Door

router = APIRouter(route_class=Door, include_in_schema=False)


@router.get("/openapi.json", openapi_extra=OPEN)
async def openapi(request: Request) -> JSONResponse:
    return JSONResponse(request.app.openapi())

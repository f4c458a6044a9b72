"""One table from what went wrong to what a client is told. No trace, path or key ever leaves here."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException

from citewell.errors import (
    BadRequest,
    CitewellError,
    EmptyKnowledgeBase,
    IndexMismatch,
    IndexUnavailable,
    ModelError,
    NotFound,
    Refused,
    StoreUnavailable,
    TooBusy,
    WriterUnavailable,
)
from citewell.logs import request_id
from citewell.schemas.errors import ErrorCode, ErrorResponse

_log = logging.getLogger("citewell.http")

_BY_ERROR: dict[type[CitewellError], tuple[int, ErrorCode]] = {
    BadRequest: (400, "VALIDATION_ERROR"),
    Refused: (401, "UNAUTHORIZED"),
    NotFound: (404, "NOT_FOUND"),
    TooBusy: (429, "RATE_LIMITED"),
    EmptyKnowledgeBase: (503, "EMPTY_KNOWLEDGE_BASE"),
    IndexMismatch: (503, "SERVICE_UNAVAILABLE"),
    ModelError: (503, "SERVICE_UNAVAILABLE"),
    IndexUnavailable: (503, "QDRANT_UNAVAILABLE"),
    StoreUnavailable: (503, "SERVICE_UNAVAILABLE"),
    WriterUnavailable: (503, "GEMINI_UNAVAILABLE"),
}
_BY_STATUS: dict[int, ErrorCode] = {
    401: "UNAUTHORIZED",
    404: "NOT_FOUND",
    413: "PAYLOAD_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA",
    429: "RATE_LIMITED",
}
_QUESTIONS = frozenset({"question", "query", "message"})

DOCUMENTED: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": says}
    for status, says in {
        400: "The request is not what the door takes; `message` says what is wrong.",
        401: "A key is missing, wrong, revoked or not for this.",
        404: "There is no such thing, or not for this key.",
        413: "More than the door takes.",
        415: "Not the kind of content the door takes.",
        429: "Too much at once; come back after `Retry-After` seconds.",
        500: "Our mistake; the request id finds it in the server's log.",
        503: "Something it needs does not answer, or nothing was ingested yet.",
    }.items()
}
"""What any door may answer beside what it promises."""


def problem(error: Exception) -> tuple[int, ErrorResponse, dict[str, str]]:
    """Status, body and headers for anything that was raised; what we did not foresee stays in the log."""
    for kind, (status, code) in _BY_ERROR.items():
        if isinstance(error, kind):
            headers = {"Retry-After": str(error.retry_after_seconds)} if isinstance(error, TooBusy) else {}
            if status == 401:
                headers["WWW-Authenticate"] = "Bearer"
            return status, _body(code, str(error)), headers
    _log.error("unforeseen", exc_info=error)
    message = "something went wrong here; the request id finds it in the server's log"
    return 500, _body("INTERNAL_ERROR", message), {}


def problem_response(error: Exception) -> JSONResponse:
    status, body, headers = problem(error)
    return JSONResponse(body.model_dump(), status_code=status, headers=headers)


def install(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        broken = first["type"] == "json_invalid"  # its place is a byte, not a field
        field = "" if broken else ".".join(str(part) for part in first["loc"][1:])
        body = _body(
            _validation_code(field, first["type"]),
            f"{field or 'body'}: {first['msg'].removeprefix('Input ')}",
            details={"field": field} if field else None,
        )
        return JSONResponse(body.model_dump(), status_code=400)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        code = _BY_STATUS.get(error.status_code, "VALIDATION_ERROR" if error.status_code < 500 else "INTERNAL_ERROR")
        message = error.detail if error.detail != HTTPStatus(error.status_code).phrase else error.detail.lower()
        body = _body(code, message)
        headers = dict(error.headers or {}) | ({"Allow": _allowed(request)} if error.status_code == 405 else {})
        return JSONResponse(body.model_dump(), status_code=error.status_code, headers=headers)

    @app.exception_handler(CitewellError)
    async def foreseen(request: Request, error: CitewellError) -> JSONResponse:
        status, body, headers = problem(error)
        request.state.error = body.error_code  # for the line in the log
        return JSONResponse(body.model_dump(), status_code=status, headers=headers)


def _allowed(request: Request) -> str:
    """Every method of an address; the router knows only those of the first door that has it."""
    path = request.scope["path"]
    doors = [one for one in iter_route_contexts(request.app.routes) if one.path_regex and one.path_regex.match(path)]
    to_the_letter = [one for one in doors if one.path == path]  # what others have there is a name of something
    return ", ".join(sorted({method for one in to_the_letter or doors for method in one.methods or ()}))


def _body(code: ErrorCode, message: str, *, details: dict[str, Any] | None = None) -> ErrorResponse:
    return ErrorResponse(error_code=code, message=message, request_id=request_id.get() or "", details=details)


def _validation_code(field: str, kind: str) -> ErrorCode:
    """What a door's field means when it is empty or too long."""
    match kind:
        case "empty" if field in _QUESTIONS:
            return "EMPTY_QUERY"
        case "too_long" | "string_too_long" if field in _QUESTIONS:
            return "QUERY_TOO_LONG"
        case "too_long" | "string_too_long" if field == "selected_text":
            return "SELECTION_TOO_LONG"
        case _:
            return "INVALID_SESSION_ID" if field == "session_id" else "VALIDATION_ERROR"

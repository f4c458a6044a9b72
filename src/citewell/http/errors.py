"""One table from exceptions to error responses. No stack trace, path or key ever leaves here."""

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
_QUESTION_FIELDS = frozenset({"question", "query", "message"})

DOCUMENTED: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "The request is invalid; `message` says why.",
        401: "The key is missing, wrong, revoked, or may not do this.",
        404: "It does not exist, or this key may not see it.",
        413: "The body is larger than the endpoint accepts.",
        415: "The endpoint does not accept this content type.",
        429: "Too many requests; try again after `Retry-After` seconds.",
        500: "An error of the server; find it in the log by the request id.",
        503: "A service it depends on does not answer, or nothing was ingested yet.",
    }.items()
}
"""Error responses that any endpoint may give."""


def describe_error(error: Exception) -> tuple[int, ErrorResponse, dict[str, str]]:
    """Status, body and headers for any exception; an unforeseen one is shown in the log only."""
    for error_type, (status, code) in _BY_ERROR.items():
        if isinstance(error, error_type):
            headers = {"Retry-After": str(error.retry_after_seconds)} if isinstance(error, TooBusy) else {}
            if status == 401:
                headers["WWW-Authenticate"] = "Bearer"
            return status, _body(code, str(error)), headers
    _log.error("unforeseen", exc_info=error)
    message = "something went wrong here; the request id finds it in the server's log"
    return 500, _body("INTERNAL_ERROR", message), {}


def error_response(error: Exception) -> JSONResponse:
    """The same as a response."""
    status, body, headers = describe_error(error)
    return JSONResponse(body.model_dump(), status_code=status, headers=headers)


def install_error_handlers(app: FastAPI) -> None:
    """Make the application answer every error in the one shape of `ErrorResponse`."""

    @app.exception_handler(RequestValidationError)
    async def handle_invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        not_json = first["type"] == "json_invalid"  # its location is a byte, not a field
        field = "" if not_json else ".".join(str(part) for part in first["loc"][1:])
        body = _body(
            _validation_code(field, first["type"]),
            f"{field or 'body'}: {first['msg'].removeprefix('Input ')}",
            details={"field": field} if field else None,
        )
        return JSONResponse(body.model_dump(), status_code=400)

    @app.exception_handler(HTTPException)
    async def handle_http(request: Request, error: HTTPException) -> JSONResponse:
        code = _BY_STATUS.get(error.status_code, "VALIDATION_ERROR" if error.status_code < 500 else "INTERNAL_ERROR")
        message = error.detail if error.detail != HTTPStatus(error.status_code).phrase else error.detail.lower()
        body = _body(code, message)
        headers = dict(error.headers or {}) | ({"Allow": _allowed(request)} if error.status_code == 405 else {})
        return JSONResponse(body.model_dump(), status_code=error.status_code, headers=headers)

    @app.exception_handler(CitewellError)
    async def handle_known(request: Request, error: CitewellError) -> JSONResponse:
        status, body, headers = describe_error(error)
        request.state.error = body.error_code  # for the line in the log
        return JSONResponse(body.model_dump(), status_code=status, headers=headers)


def _allowed(request: Request) -> str:
    """Every method of a path; the router knows only those of the first route that matches."""
    path = request.scope["path"]
    contexts = iter_route_contexts(request.app.routes)
    routes = [route for route in contexts if route.path_regex and route.path_regex.match(path)]
    literal = [route for route in routes if route.path == path]  # in the others a part of the path is a parameter
    return ", ".join(sorted({method for route in literal or routes for method in route.methods or ()}))


def _body(code: ErrorCode, message: str, *, details: dict[str, Any] | None = None) -> ErrorResponse:
    return ErrorResponse(error_code=code, message=message, request_id=request_id.get() or "", details=details)


def _validation_code(field: str, error_type: str) -> ErrorCode:
    """The code of a field that is empty, too long or otherwise invalid."""
    match error_type:
        case "empty" if field in _QUESTION_FIELDS:
            return "EMPTY_QUERY"
        case "too_long" | "string_too_long" if field in _QUESTION_FIELDS:
            return "QUERY_TOO_LONG"
        case "too_long" | "string_too_long" if field == "selected_text":
            return "SELECTION_TOO_LONG"
        case _:
            return "INVALID_SESSION_ID" if field == "session_id" else "VALIDATION_ERROR"

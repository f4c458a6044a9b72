"""One table from exceptions to error responses. No stack trace, path or key ever leaves here."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException

from citewell.errors import (
    BadRequest,
    CitewellError,
    EmptyKnowledgeBase,
    IdempotencyConflict,
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
from citewell.schemas.request import explain

_log = logging.getLogger("citewell.http")

_BY_ERROR: dict[type[CitewellError], tuple[int, ErrorCode]] = {
    BadRequest: (400, "VALIDATION_ERROR"),
    Refused: (401, "UNAUTHORIZED"),
    NotFound: (404, "NOT_FOUND"),
    IdempotencyConflict: (422, "IDEMPOTENCY_CONFLICT"),
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
    405: "METHOD_NOT_ALLOWED",
    413: "PAYLOAD_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA",
    429: "RATE_LIMITED",
}
_UNREADABLE_BODY = "There was an error parsing the body"  # FastAPI's words for what is neither JSON nor almost JSON
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

CONFLICT: dict[int | str, dict[str, Any]] = {
    422: {"model": ErrorResponse, "description": "The `Idempotency-Key` was used for another request."}
}
"""The error response of endpoints with an Idempotency-Key."""


def describe_error(error: Exception) -> tuple[int, ErrorResponse, dict[str, str]]:
    """Status, body and headers for any exception; an unforeseen one is shown in the log only."""
    for error_type, (status, code) in _BY_ERROR.items():
        if isinstance(error, error_type):
            headers = {"Retry-After": str(error.retry_after_seconds)} if isinstance(error, TooBusy) else {}
            if status == 401:
                headers["WWW-Authenticate"] = "Bearer"
            field = "Idempotency-Key" if isinstance(error, IdempotencyConflict) else getattr(error, "field", None)
            details = {"field": field} if field else None
            return status, _body(code, str(error), details=details), headers
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
        return JSONResponse(_describe_invalid(error).model_dump(), status_code=400)

    @app.exception_handler(HTTPException)
    async def handle_http(request: Request, error: HTTPException) -> JSONResponse:
        code = _BY_STATUS.get(error.status_code, "VALIDATION_ERROR" if error.status_code < 500 else "INTERNAL_ERROR")
        message, headers = error.detail, dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = _allowed(request)
            message = f"{request.method} is not possible here; possible are {headers['Allow']}"
        elif message == _UNREADABLE_BODY:
            message = "body: cannot be read; send JSON in UTF-8"
        elif message == HTTPStatus(error.status_code).phrase:
            message = message.lower()
        body = _body(code, message, details={"field": "body"} if code == "VALIDATION_ERROR" else None)
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
    methods = {method for route in literal or routes for method in route.methods or ()}
    return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))


def _body(code: ErrorCode, message: str, *, details: dict[str, Any] | None = None) -> ErrorResponse:
    return ErrorResponse(error_code=code, message=message, request_id=request_id.get() or "", details=details)


def _describe_invalid(error: RequestValidationError) -> ErrorResponse:
    """What is wrong with the first field that is invalid; of what is not JSON, where it ends to be."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        before = str(error.body)[: first["loc"][1]]  # FastAPI has only the place in the text
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        reason = _lower_first(first["ctx"]["error"]).removesuffix(" starting at").removesuffix(" at")
        message = f"body: is not JSON at line {line:,}, column {column:,}: {reason}"
        return _body("VALIDATION_ERROR", message, details={"field": "body", "line": line, "column": column})
    field, message = explain(first, tuple(first["loc"][1:]))
    return _body(_validation_code(field, first), message, details={"field": field})


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _validation_code(field: str, error: ErrorDetails) -> ErrorCode:
    """The code of a field that is missing, empty, too long or otherwise invalid."""
    missing = error["type"] in ("missing", "empty") or error["input"] is None
    match error["type"]:
        case _ if missing and field in _QUESTION_FIELDS:
            return "EMPTY_QUERY"
        case "text_too_long" if field in _QUESTION_FIELDS:
            return "QUERY_TOO_LONG"
        case "text_too_long" if field == "selected_text":
            return "SELECTION_TOO_LONG"
        case _:
            return "INVALID_SESSION_ID" if field == "session_id" else "VALIDATION_ERROR"

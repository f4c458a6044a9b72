"""One table from what went wrong to what a client is told. No trace, path or key ever leaves here."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from citewell.errors import (
    BadFilter,
    CitewellError,
    EmptyKnowledgeBase,
    IndexMismatch,
    ModelError,
    StoreUnavailable,
)
from citewell.logs import request_id

_log = logging.getLogger("citewell.http")

_BY_ERROR: dict[type[CitewellError], tuple[int, str]] = {
    BadFilter: (400, "VALIDATION_ERROR"),
    EmptyKnowledgeBase: (503, "EMPTY_KNOWLEDGE_BASE"),
    IndexMismatch: (503, "SERVICE_UNAVAILABLE"),
    ModelError: (503, "SERVICE_UNAVAILABLE"),
    StoreUnavailable: (503, "SERVICE_UNAVAILABLE"),
}
_BY_STATUS = {
    401: "UNAUTHORIZED",
    404: "NOT_FOUND",
    405: "VALIDATION_ERROR",
    413: "PAYLOAD_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA",
    429: "RATE_LIMITED",
}
# What a door's field means when it is empty or too long.
_EMPTY_QUERY, _QUERY_TOO_LONG = "EMPTY_QUERY", "QUERY_TOO_LONG"


class ErrorResponse(BaseModel):
    """What every door answers when it cannot do what was asked."""

    error_code: str
    message: str
    request_id: str
    details: dict[str, Any] | None = None


def error_response(
    status: int,
    code: str,
    message: str,
    *,
    details: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    body = ErrorResponse(error_code=code, message=message, request_id=request_id.get() or "", details=details)
    return JSONResponse(body.model_dump(exclude_none=True), status_code=status, headers=headers)


def describe(error: Exception) -> tuple[int, str, str]:
    """Status, code and message for anything that was raised; what we did not foresee stays in the log."""
    for kind, (status, code) in _BY_ERROR.items():
        if isinstance(error, kind):
            return status, code, str(error)
    _log.error("unforeseen", exc_info=error)
    return 500, "INTERNAL_ERROR", "something went wrong here; the request id finds it in the server's log"


def install(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        broken = first["type"] == "json_invalid"  # its place is a byte, not a field
        field = "" if broken else ".".join(str(part) for part in first["loc"][1:])
        code = _validation_code(field, first)
        details = {"field": field} if field else None
        return error_response(400, code, f"{field or 'body'}: {first['msg']}", details=details)

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> JSONResponse:
        code = _BY_STATUS.get(error.status_code, "VALIDATION_ERROR" if error.status_code < 500 else "INTERNAL_ERROR")
        message = error.detail if error.detail != HTTPStatus(error.status_code).phrase else error.detail.lower()
        return error_response(error.status_code, code, message, headers=dict(error.headers or {}))

    @app.exception_handler(CitewellError)
    async def foreseen(_: Request, error: CitewellError) -> JSONResponse:
        status, code, message = describe(error)
        return error_response(status, code, message)


def _validation_code(field: str, error: Any) -> str:
    if field != "question":
        return "VALIDATION_ERROR"
    match error["type"]:
        case "string_too_long":
            return _QUERY_TOO_LONG
        case "string_too_short" if not str(error["input"]).strip():
            return _EMPTY_QUERY
        case _:
            return "VALIDATION_ERROR"

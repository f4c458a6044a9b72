"""The body of every error response."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from citewell.schemas.fields import is_none

ErrorCode = Literal[
    "EMPTY_QUERY", "QUERY_TOO_LONG", "SELECTION_TOO_LONG", "INVALID_SESSION_ID", "VALIDATION_ERROR",
    "UNAUTHORIZED", "NOT_FOUND", "METHOD_NOT_ALLOWED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA",
    "IDEMPOTENCY_CONFLICT", "RATE_LIMITED",
    "QDRANT_UNAVAILABLE", "SERVICE_UNAVAILABLE", "GEMINI_UNAVAILABLE", "EMPTY_KNOWLEDGE_BASE", "INTERNAL_ERROR",
]  # fmt: skip


class ErrorResponse(BaseModel):
    """`message` is for people, `error_code` for programs; `request_id` finds the request in the server's log."""

    error_code: ErrorCode = Field(examples=["VALIDATION_ERROR"])
    message: str = Field(examples=["top_k: should be at most 20"])
    request_id: str = Field(examples=["5b0c5d4e-6f0a-4a53-9d3b-0d6d4a2f9c11"])
    details: dict[str, Any] | None = Field(None, exclude_if=is_none, examples=[{"field": "top_k"}])

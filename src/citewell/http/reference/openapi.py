"""The OpenAPI document: what FastAPI generates, corrected, with readable names and real examples.

Corrections: invalid requests get 400, not FastAPI's 422; the errors of a stream are JSON; an endpoint without a body
has no errors about bodies.
"""

import json
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from citewell.http.reference.examples import Example, examples
from citewell.schemas.errors import ErrorCode

Described = dict[str, Any]

_TAGS = {
    "ask": "One question, one answer, from the default project.",
    "query": "Ask about a passage that a reader selected.",
    "chat": "Conversations that the server stores: follow-up questions are understood.",
    "projects": "Any project: ask, search, create, delete.",
    "citations": "Whether citations are still valid.",
    "documents": "The documents of a project, and uploads.",
    "authors": "Reports for authors: unanswered questions, votes, ingests, answer quality.",
    "operating": "Health and metrics, for whoever runs the server.",
    "page": "Pages for a browser.",
}
_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key from `citewell keys create NAME`."},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key in a header."},
}
_REQUEST_ID_HEADER: Described = {
    "schema": {"type": "string", "format": "uuid"},
    "description": "Finds the request in the server's log.",
}
_RETRY_AFTER: Described = {
    "schema": {"type": "integer", "minimum": 1},
    "description": "Seconds to wait before the next try.",
}
_CHALLENGE: Described = {"schema": {"type": "string"}, "description": "`Bearer`."}
_ERROR_HEADERS = {"429": {"Retry-After": _RETRY_AFTER}, "401": {"WWW-Authenticate": _CHALLENGE}}
_SCHEMA_NAMES = {
    "citewell__schemas__v1__chat__Source": "Source",
    "citewell__schemas__v1__chat__": "V1",
    "citewell__schemas__query__": "Query",
    "citewell__schemas__chat__": "",
    "Body_upload_document": "Upload",
}
_ERROR_CODES: dict[str, tuple[ErrorCode, ...]] = {
    "400": ("EMPTY_QUERY", "QUERY_TOO_LONG", "SELECTION_TOO_LONG", "INVALID_SESSION_ID", "VALIDATION_ERROR"),
    "401": ("UNAUTHORIZED",),
    "404": ("NOT_FOUND",),
    "405": ("METHOD_NOT_ALLOWED",),
    "413": ("PAYLOAD_TOO_LARGE",),
    "415": ("UNSUPPORTED_MEDIA",),
    "422": ("IDEMPOTENCY_CONFLICT",),
    "429": ("RATE_LIMITED",),
    "500": ("INTERNAL_ERROR",),
    "503": ("EMPTY_KNOWLEDGE_BASE", "QDRANT_UNAVAILABLE", "SERVICE_UNAVAILABLE", "GEMINI_UNAVAILABLE"),
}
_SUCCESS = {"200": "The answer.", "201": "Created.", "202": "Accepted; it is being indexed.", "204": "Done."}
_ERROR_SCHEMA = {"$ref": "#/components/schemas/ErrorResponse"}
_BODY_ERRORS = ("413", "415")


def describe(app: FastAPI) -> Described:
    """The whole document; generated once."""
    if app.openapi_schema is None:
        tags = [{"name": name, "description": description} for name, description in _TAGS.items()]
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=tags
        )
        app.openapi_schema = _complete(_rename_schemas(document))
    return app.openapi_schema


def operations(document: Described) -> Iterator[tuple[str, str, Described]]:
    """Method, path and description of every endpoint."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _rename_schemas(document: Described) -> Described:
    """Two modules each have a `ChatRequest`: FastAPI names them by module; readers get short names."""
    text = json.dumps(document)
    for generated, short in _SCHEMA_NAMES.items():
        text = text.replace(generated, short)
    renamed: Described = json.loads(text)
    for name, schema in renamed["components"]["schemas"].items():
        schema["title"] = name
    return renamed


def _complete(document: Described) -> Described:
    """The document with examples, headers, error codes and shared error responses."""
    recorded = examples()
    shared: dict[str, Described] = {}
    for _, path, operation in operations(document):
        _correct(operation, streams=path.endswith("/stream"))
        if example := recorded.endpoints.get(operation["operationId"]):
            _add_example(operation, example)
        for status, response in operation["responses"].items():
            response.setdefault("headers", {}).update(
                {"X-Request-ID": _REQUEST_ID_HEADER, **_ERROR_HEADERS.get(status, {})}
            )
            if _schema(response) == _ERROR_SCHEMA:
                response["x-codes"] = list(_ERROR_CODES.get(status, ()))
                errors = {code: {"value": value} for code, value in recorded.errors.get(status, {}).items()}
                response["content"]["application/json"].update({"examples": errors} if errors else {})
                if shared.setdefault(status, response) == response:
                    operation["responses"][status] = {"$ref": f"#/components/responses/{status}"}
    shared["405"] = _wrong_method(recorded.errors.get("405", {}))
    components = document["components"]
    components["responses"] = dict(sorted(shared.items()))
    components["securitySchemes"] = _SECURITY_SCHEMES
    components["schemas"]["Upload"]["additionalProperties"] = False  # as all requests; FastAPI makes this one
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    return document


def _wrong_method(recorded: Described) -> Described:
    """The error of no endpoint, but of a method that none has at this path."""
    allow = {"schema": {"type": "string"}, "description": "The methods that are possible."}
    examples = {code: {"value": value} for code, value in recorded.items()}
    return {
        "description": "The path exists, but not with this method; `Allow` says with which.",
        "headers": {"X-Request-ID": _REQUEST_ID_HEADER, "Allow": allow},
        "content": {"application/json": {"schema": _ERROR_SCHEMA, **({"examples": examples} if examples else {})}},
        "x-codes": list(_ERROR_CODES["405"]),
    }


def _correct(operation: Described, *, streams: bool) -> None:
    summary, _, rest = operation.get("description", "").partition("\n\n")
    operation["summary"] = " ".join(summary.split())
    operation.pop("description", None)
    if rest:
        operation["description"] = rest
    responses = operation["responses"]
    if _schema(responses.get("422", {})) != _ERROR_SCHEMA:
        responses.pop("422", None)
    if "requestBody" not in operation:
        for status in _BODY_ERRORS:
            responses.pop(status, None)
    for status, response in responses.items():
        if response["description"] == "Successful Response":
            response["description"] = _SUCCESS[status]
        if streams and status == "200":
            event = {"$ref": _schema(response)["$ref"]}
            response["content"] = {"text/event-stream": _stream(event)}
        elif _schema(response) == _ERROR_SCHEMA:  # whatever content type its success has
            response["content"] = {"application/json": {"schema": _ERROR_SCHEMA}}
    operation["responses"] = dict(sorted(responses.items()))


def _stream(event: Described) -> Described:
    """A stream of events. `itemSchema` is of OpenAPI 3.2; tools for 3.1 ignore it."""
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": event}
    item = {"type": "object", "required": ["data"], "properties": {"data": data}}
    return {"itemSchema": item, "x-event": event}


def _schema(response: Described) -> Described:
    content: Described = next(iter(response.get("content", {}).values()), {})
    schema: Described = content.get("schema", {})
    return schema


def _add_example(operation: Described, example: Example) -> None:
    request = example.request
    values: dict[str, Described] = {
        "path": {**request.path},
        "query": {**request.query},
        "header": {**request.headers},
    }
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in values[parameter["in"]]:
            parameter["examples"] = {"asked": {"value": values[parameter["in"]][parameter["name"]]}}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        if request.body is not None:
            content["examples"] = {"asked": {"value": request.body}}
    for content in operation["responses"][str(example.status)].get("content", {}).values():
        if example.response is not None:
            content["examples"] = {"answered": {"value": example.response}}

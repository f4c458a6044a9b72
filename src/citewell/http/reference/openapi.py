"""The OpenAPI document: what FastAPI reads off the doors, made true and readable, with real examples.

What it would say wrongly is put right here: we answer 400 where it promises 422, a stream's errors are JSON, and a
door that reads no body refuses none.
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
    "ask": "One question, one answer, from the default project: what the chat page asks.",
    "query": "Ask about a passage that a reader marked.",
    "chat": "Conversations that the server keeps: follow-up questions are understood.",
    "projects": "Any project: ask it, search it, make it, delete it.",
    "citations": "Whether what was cited still stands.",
    "documents": "What a project holds, and what is on its way in.",
    "authors": "What readers asked and thought, how ingests went, how good the answers are.",
    "operating": "For whoever runs the server.",
    "page": "For readers, in a browser.",
}
_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key from `citewell keys create NAME`."},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key in a header."},
}
_REQUEST_ID: Described = {
    "schema": {"type": "string", "format": "uuid"},
    "description": "Finds the request in the server's log.",
}
_WAIT: Described = {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds after which to come back."}
_CHALLENGE: Described = {"schema": {"type": "string"}, "description": "`Bearer`."}
_HEADERS = {"429": {"Retry-After": _WAIT}, "401": {"WWW-Authenticate": _CHALLENGE}}
_NAMES = {
    "citewell__schemas__v1__chat__Source": "Source",
    "citewell__schemas__v1__chat__": "V1",
    "citewell__schemas__query__": "Query",
    "citewell__schemas__chat__": "",
    "Body_upload_document": "Upload",
}
_CODES: dict[str, tuple[ErrorCode, ...]] = {
    "400": ("EMPTY_QUERY", "QUERY_TOO_LONG", "SELECTION_TOO_LONG", "INVALID_SESSION_ID", "VALIDATION_ERROR"),
    "401": ("UNAUTHORIZED",),
    "404": ("NOT_FOUND",),
    "413": ("PAYLOAD_TOO_LARGE",),
    "415": ("UNSUPPORTED_MEDIA",),
    "429": ("RATE_LIMITED",),
    "500": ("INTERNAL_ERROR",),
    "503": ("EMPTY_KNOWLEDGE_BASE", "QDRANT_UNAVAILABLE", "SERVICE_UNAVAILABLE", "GEMINI_UNAVAILABLE"),
}
_FINE = {"200": "The answer.", "201": "Made.", "202": "Taken in; it is being read.", "204": "Done."}
_PROBLEM = {"$ref": "#/components/schemas/ErrorResponse"}
_OF_BODIES = ("413", "415")


def describe(app: FastAPI) -> Described:
    """The whole document; made once."""
    if app.openapi_schema is None:
        tags = [{"name": name, "description": says} for name, says in _TAGS.items()]
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=tags
        )
        app.openapi_schema = _told(_renamed(found))
    return app.openapi_schema


def operations(document: Described) -> Iterator[tuple[str, str, Described]]:
    """Method, path and description of every door."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _renamed(document: Described) -> Described:
    """Two doors may each have a `ChatRequest`; FastAPI tells them apart by module, a reader by door."""
    text = json.dumps(document)
    for long, short in _NAMES.items():
        text = text.replace(long, short)
    renamed: Described = json.loads(text)
    for name, schema in renamed["components"]["schemas"].items():
        schema["title"] = name
    return renamed


def _told(document: Described) -> Described:
    kept = examples()
    shared: dict[str, Described] = {}
    for _, path, operation in operations(document):
        _put_right(operation, streams=path.endswith("/stream"))
        if example := kept.doors.get(operation["operationId"]):
            _exemplify(operation, example)
        for status, response in operation["responses"].items():
            response.setdefault("headers", {}).update({"X-Request-ID": _REQUEST_ID, **_HEADERS.get(status, {})})
            if _schema(response) == _PROBLEM:
                response["x-codes"] = list(_CODES.get(status, ()))
                told = {code: {"value": value} for code, value in kept.errors.get(status, {}).items()}
                response["content"]["application/json"].update({"examples": told} if told else {})
                if shared.setdefault(status, response) == response:
                    operation["responses"][status] = {"$ref": f"#/components/responses/{status}"}
    components = document["components"]
    components["responses"] = dict(sorted(shared.items()))
    components["securitySchemes"] = _SCHEMES
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    return document


def _put_right(operation: Described, *, streams: bool) -> None:
    summary, _, rest = operation.get("description", "").partition("\n\n")
    operation["summary"] = " ".join(summary.split())
    operation.pop("description", None)
    if rest:
        operation["description"] = rest
    responses = operation["responses"]
    responses.pop("422", None)
    if "requestBody" not in operation:
        for status in _OF_BODIES:
            responses.pop(status, None)
    for status, response in responses.items():
        if response["description"] == "Successful Response":
            response["description"] = _FINE[status]
        if streams and status == "200":
            event = {"$ref": _schema(response)["$ref"]}
            response["content"] = {"text/event-stream": _stream(event)}
        elif _schema(response) == _PROBLEM:  # whatever the door answers when all is well
            response["content"] = {"application/json": {"schema": _PROBLEM}}
    operation["responses"] = dict(sorted(responses.items()))


def _stream(event: Described) -> Described:
    """A stream of events. `itemSchema` is OpenAPI 3.2's word for one of them; tools of 3.1 know it or leave it."""
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": event}
    item = {"type": "object", "required": ["data"], "properties": {"data": data}}
    return {"itemSchema": item, "x-event": event}


def _schema(response: Described) -> Described:
    content: Described = next(iter(response.get("content", {}).values()), {})
    found: Described = content.get("schema", {})
    return found


def _exemplify(operation: Described, example: Example) -> None:
    sent = example.sent
    given: dict[str, Described] = {"path": {**sent.path}, "query": {**sent.query}, "header": {**sent.headers}}
    for one in operation.get("parameters", ()):
        if one["name"] in given[one["in"]]:
            one["examples"] = {"asked": {"value": given[one["in"]][one["name"]]}}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        if sent.body is not None:
            content["examples"] = {"asked": {"value": sent.body}}
    answered = example.answered
    for content in operation["responses"][str(example.status)].get("content", {}).values():
        if answered is not None:
            content["examples"] = {"answered": {"value": answered}}

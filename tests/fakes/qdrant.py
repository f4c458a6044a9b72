"""A small Qdrant on loopback: it speaks the REST API over what qdrant-client's local mode holds in memory.

Like Qdrant Cloud it is strict: it refuses filters on fields that have no payload index.
"""

import json
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError
from qdrant_client import QdrantClient, models

from tests.fakes.vendor import Loopback, Reply, sent

KEY = "qd-very-secret-key"
VERSION = "1.19.2"
MAX_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """A request, and the fields of the state that it publishes, if it does."""

    method: str
    path: str
    query: str
    body: Any

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def writes_state(self) -> dict[str, Any] | None:
        if self.method != "PUT" or not self.path.endswith("/points"):
            return None
        payload: dict[str, Any] = self.body["points"][0]["payload"]
        return payload if "state_of" in payload else None


@dataclass
class Fault:
    """What the next calls get whose "METHOD /path" matches a pattern, instead of an answer."""

    pattern: str
    reply: Reply
    times: int = 1_000_000
    applied: bool = False
    """Whether the server does what it was asked to before it fails."""


@dataclass
class Qdrant(Loopback):
    """`with Qdrant() as server:` then `server.url`, which may end with a path, as behind a proxy."""

    key: str | None = KEY
    prefix: str = ""
    version: str = VERSION
    faults: list[Fault] = field(default_factory=list)
    on_call: Callable[[Call], None] = lambda _: None
    requests: list[Call] = field(default_factory=list)
    sent_headers: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.url += self.prefix
        with warnings.catch_warnings(action="ignore"):
            self.local = QdrantClient(":memory:")
        self.schemas: dict[str, dict[str, Any]] = {}
        self.configs: dict[str, dict[str, Any]] = {}

    def reply(self, call: Call, headers: dict[str, str], size: int) -> Reply:
        with self._lock:
            self.requests.append(call)
            self.sent_headers.append(headers)
        self.on_call(call)
        if self.key and headers.get("api-key") != self.key:
            return Reply(401, b"Invalid API key or JWT", {"content-type": "text/plain"})
        if size > MAX_BYTES:
            return _problem(413, f"JSON payload ({size} bytes) is larger than allowed (limit: {MAX_BYTES} bytes).")
        fault = next((fault for fault in self.faults if fault.times and re.search(fault.pattern, str(call))), None)
        if fault is None or fault.applied:
            answer = self._answer(call)
        if fault is None:
            return answer
        fault.times -= 1
        return fault.reply

    def _answer(self, call: Call) -> Reply:
        if not call.path.startswith(self.prefix):
            return Reply(404, b"")
        path = call.path.removeprefix(self.prefix)
        with self._lock, warnings.catch_warnings(action="ignore"):
            try:
                return self._handle(call.method, path, call.body)
            except ValidationError as error:
                return _problem(400, f"Format error in JSON body: {error.errors()[0]['msg']}")
            except _Refused as error:
                return _problem(400, f"Bad request: {error}")
            except ValueError as error:
                if name := re.fullmatch(r"Collection (.+) not found", str(error)):
                    return _problem(404, f"Not found: Collection `{name[1]}` doesn't exist!")
                status = 409 if "already exists" in str(error) else 400
                return _problem(status, f"Wrong input: {error}")

    def _handle(self, method: str, path: str, body: Any) -> Reply:
        match method, *path.strip("/").split("/"):
            case "GET", "":
                return sent({"title": "qdrant - vector search engine", "version": self.version, "commit": "0" * 40})
            case "GET", "collections":
                return _ok(self.local.get_collections())
            case "GET", "aliases":
                return _ok(self.local.get_aliases())
            case "POST", "collections", "aliases":
                changes = models.ChangeAliasesOperation.model_validate(body)
                return _ok(self.local.update_collection_aliases(changes.actions))
            case _, "collections", name, *rest:
                return self._of_collection(method, unquote(name), "/".join(rest), body)
        return Reply(404, b"")

    def _of_collection(self, method: str, name: str, rest: str, body: Any) -> Reply:
        match method, rest:
            case "PUT", "":
                wanted = models.CreateCollection.model_validate(body)
                vectors: Any = wanted.vectors
                self.local.create_collection(name, vectors, sparse_vectors_config=wanted.sparse_vectors)
                self.schemas[name], self.configs[name] = {}, body
                return _ok(True)
            case "GET", "":
                return self._info(name)
            case "PATCH", "":
                self.configs[name] |= models.UpdateCollection.model_validate(body).model_dump(exclude_none=True)
                return _ok(True)
            case "DELETE", "":
                return _ok(self.local.delete_collection(name))
            case "PUT", "index":
                index = models.CreateFieldIndex.model_validate(body)
                self.local.get_collection(name)
                self.schemas[name][index.field_name] = body["field_schema"]
                return _ok({"operation_id": 1, "status": "completed"})
            case "PUT", "points":
                points = models.PointsList.model_validate(body)
                return _ok(self.local.upsert(name, points.points))
            case "POST", points if points.partition("/")[0] == "points":
                return self._points(name, points.removeprefix("points").lstrip("/"), body)
        return Reply(404, b"")

    def _info(self, name: str) -> Reply:
        info = self.local.get_collection(name).model_dump(mode="json", exclude_none=True)
        info["payload_schema"] = {
            field: {"data_type": schema["type"], "params": schema, "points": info["points_count"]}
            for field, schema in self.schemas[name].items()
        }
        if quantization := self.configs[name].get("quantization_config"):
            info["config"]["quantization_config"] = quantization
        return _ok(info)

    def _points(self, name: str, action: str, body: Any) -> Reply:
        self.local.get_collection(name)  # that it is missing comes before what is wrong with the request
        for key in _filtered_fields(body):
            if key not in self.schemas[name]:
                raise _Refused(f'Index required but not found for "{key}"')
        match action:
            case "":
                wanted = models.PointRequest.model_validate(body)
                return _ok(
                    self.local.retrieve(name, wanted.ids, wanted.with_payload or True, wanted.with_vector or False)
                )
            case "query":
                query = models.QueryRequest.model_validate(body)
                found = self.local.query_points(
                    name,
                    query=query.query,
                    prefetch=query.prefetch,
                    query_filter=query.filter,
                    limit=query.limit or 10,
                    with_payload=query.with_payload or False,
                    with_vectors=query.with_vector or False,
                )
                return _ok(found)
            case "scroll":
                page = models.ScrollRequest.model_validate(body)
                records, offset = self.local.scroll(
                    name,
                    scroll_filter=page.filter,
                    limit=page.limit or 10,
                    offset=page.offset,
                    with_payload=page.with_payload if page.with_payload is not None else True,
                    with_vectors=page.with_vector or False,
                )
                return _ok(
                    {"points": [record.model_dump(mode="json") for record in records], "next_page_offset": offset}
                )
            case "count":
                return _ok(self.local.count(name, models.CountRequest.model_validate(body).filter))
            case "delete":
                return _ok(self.local.delete(name, TypeAdapter(models.PointsSelector).validate_python(body)))
            case "payload":
                change = models.SetPayload.model_validate(body)
                return _ok(self.local.set_payload(name, change.payload, _selected(change)))
            case "payload/delete":
                removal = models.DeletePayload.model_validate(body)
                return _ok(self.local.delete_payload(name, removal.keys, _selected(removal)))
        return Reply(404, b"")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                content = self.rfile.read(size)
                url = urlsplit(self.path)
                call = Call(self.command, url.path, url.query, json.loads(content) if content else None)
                reply = server.reply(call, {name.lower(): value for name, value in self.headers.items()}, size)
                self.close_connection = reply.hang or reply.cut
                if reply.hang:
                    server._closing.wait(20)
                    return
                body = reply.body or b""
                self.send_response(reply.status)
                for name, value in ({"content-type": "application/json"} | reply.headers).items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body) + reply.cut))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class _Refused(Exception):
    """What strict mode does not allow."""


def _ok(result: object) -> Reply:
    if isinstance(result, BaseModel):
        result = result.model_dump(mode="json")
    elif isinstance(result, list):
        result = [row.model_dump(mode="json") for row in result]
    return sent({"usage": None, "result": result, "status": "ok", "time": 0.000012})


def _problem(status: int, message: str) -> Reply:
    return sent({"status": {"error": message}, "time": 0.000012}, status)


def _selected(change: models.SetPayload | models.DeletePayload) -> Any:
    return (
        change.points if change.points is not None else models.FilterSelector(filter=change.filter or models.Filter())
    )


def _filtered_fields(body: Any) -> Iterator[str]:
    """Every field that a request has a condition on."""
    if isinstance(body, dict):
        if isinstance(body.get("key"), str) and body.keys() & {"match", "range"}:
            yield body["key"]
        elif isinstance(body.get("is_empty"), dict):
            yield body["is_empty"]["key"]
        else:
            for value in body.values():
                yield from _filtered_fields(value)
    elif isinstance(body, list) and not (body and isinstance(body[0], float)):
        for value in body:
            yield from _filtered_fields(value)

"""An OpenTelemetry collector on loopback: it receives OTLP over HTTP, in protobuf, and decodes what it was sent."""

import gzip
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from tests.fakes.vendor import Loopback

Value = str | bool | int | float


@dataclass(frozen=True, slots=True)
class SpanSent:
    """A span as it arrived."""

    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Value]
    failed: bool
    kind: int
    start: int
    end: int


class Collector(Loopback):
    """`with Collector() as collector:` then `collector.url`. It answers each call with `status`, or hangs."""

    def __init__(self, *, status: int = 200, hang: bool = False) -> None:
        super().__init__()
        self.spans: list[SpanSent] = []
        self.resource: dict[str, Value] = {}
        self.bodies: list[bytes] = []
        self._status, self._hang = status, hang

    def named(self, name: str) -> list[SpanSent]:
        return [span for span in self.spans if span.name == name]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
                collector._receive(body, dict(self.headers))
                if collector._hang:
                    collector._closing.wait(30)
                    self.close_connection = True
                    return
                self.send_response(collector._status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _receive(self, body: bytes, headers: dict[str, str]) -> None:
        self.headers.append({name.lower(): value for name, value in headers.items()})
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource = {one.key: _value(one.value) for one in resource.resource.attributes}
            self.spans += [_decode(span) for scope in resource.scope_spans for span in scope.spans]


def _decode(span: trace_pb2.Span) -> SpanSent:
    attributes: list[KeyValue] = list(span.attributes)
    return SpanSent(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        attributes={one.key: _value(one.value) for one in attributes},
        failed=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        kind=span.kind,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
    )


def _value(value: AnyValue) -> Value:
    given: Value = getattr(value, str(value.WhichOneof("value")))
    return given

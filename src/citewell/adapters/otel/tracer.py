"""Sends spans to an OpenTelemetry collector by OTLP over HTTP, from a thread that no request waits for.

Where to, how many and how often say the `OTEL_*` environment variables, which the SDK reads itself. A collector that
does not answer costs nothing but its spans: at most 2,048 wait, and the rest is dropped.
"""

import asyncio
import logging
from collections.abc import Mapping
from threading import Thread
from time import monotonic

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

from citewell import __version__
from citewell.errors import SettingsError
from citewell.tracing import Attributes, Span

_log = logging.getLogger("citewell.adapters")

_CLOSE_SECONDS = 3.0
_SECONDS_BETWEEN_WARNINGS = 60.0


class OtlpTracer:
    """Starts a span for each request."""

    def __init__(self) -> None:
        """Raises SettingsError for a value in an `OTEL_*` variable that the SDK cannot read."""
        sdk_log = logging.getLogger("opentelemetry")
        sdk_log.handlers, sdk_log.propagate = [_RareWarnings()], False
        named = {"service.name": "citewell", "service.version": __version__}
        try:
            # What the environment says about the service wins; the SDK itself would let the code win.
            resource = Resource.create({**named, **OTELResourceDetector().detect().attributes})
            self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
            self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        except (ValueError, OSError) as error:
            raise SettingsError(f"CITEWELL_TRACING=otlp: a variable OTEL_… is invalid: {error}") from error
        self._tracer = self._provider.get_tracer("citewell", __version__)

    def start(self, name: str, *, request_id: str, headers: Mapping[str, str]) -> Span:
        own = {"citewell.request_id": request_id}
        started = self._tracer.start_span(name, extract(headers), SpanKind.SERVER, own)
        return _OtelSpan(self._tracer, started, own)

    async def close(self) -> None:
        # The SDK would wait for a collector that hangs for half a minute.
        sending = Thread(target=self._provider.shutdown, daemon=True)
        sending.start()
        await asyncio.to_thread(sending.join, _CLOSE_SECONDS)


class _OtelSpan:
    """A span of the SDK. Its parent is given, not looked up: streams run in more than one task."""

    def __init__(self, tracer: trace.Tracer, started: trace.Span, own: Attributes) -> None:
        self._tracer, self._span, self._own = tracer, started, own

    def child(self, name: str) -> Span:
        around = trace.set_span_in_context(self._span)
        return _OtelSpan(self._tracer, self._tracer.start_span(name, around, attributes=dict(self._own)), self._own)

    def set(self, attributes: Attributes) -> None:
        self._span.set_attributes(dict(attributes))

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, kind: str) -> None:
        self._span.set_status(Status(StatusCode.ERROR))
        self._span.set_attribute("error.type", kind)

    def end(self) -> None:
        self._span.end()


class _RareWarnings(logging.Handler):
    """Passes on at most one message of the SDK a minute: without a collector, it has several for each attempt."""

    _silent_until = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        if monotonic() >= self._silent_until:
            self._silent_until = monotonic() + _SECONDS_BETWEEN_WARNINGS
            _log.warning("tracing: %s", record.getMessage())

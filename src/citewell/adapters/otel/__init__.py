"""Tracing by OpenTelemetry."""

from citewell.adapters.otel.tracer import OtlpTracer

__all__ = ["OtlpTracer"]

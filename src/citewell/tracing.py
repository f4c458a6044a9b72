"""Spans: what a request spends its time on, where tracing is on. Knows no SDK and no request.

    with span("retrieve") as retrieving:
        passages = await …
        retrieving.set({"citewell.passages": len(passages)})

A span is a child of the one around it. If there is none around it, as always while tracing is off, it does nothing.
Attributes are names, kinds and numbers: never the words of a question, an answer or a document.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Protocol, TypeAlias

Attributes: TypeAlias = Mapping[str, str | bool | int | float]


class Span(Protocol):
    """A piece of work with a name, a start and an end."""

    def child(self, name: str) -> "Span":
        """Start a span inside this one."""

    def set(self, attributes: Attributes) -> None:
        """Add attributes, or replace those of the same names."""

    def rename(self, name: str) -> None:
        """Give it another name, if the best one is known only later."""

    def fail(self, kind: str) -> None:
        """Mark it as failed, with the kind of the error and without its message, which may have words of a reader."""

    def end(self) -> None:
        """End it now. What is set afterwards is lost."""


class Tracer(Protocol):
    """Starts the span of each request, and sends what has ended somewhere."""

    def start(self, name: str, *, request_id: str, headers: Mapping[str, str]) -> Span:
        """Start the span of a request. Every span inside it has its id, too.

        It continues the trace that the request's headers name, if they do.
        """

    async def close(self) -> None:
        """Send what has not been sent, within a few seconds."""


class _NoSpan:
    """A span that does nothing."""

    def child(self, name: str) -> Span:  # noqa: ARG002
        return self

    def set(self, attributes: Attributes) -> None:
        pass

    def rename(self, name: str) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass

    def end(self) -> None:
        pass


class NoTracer:
    """Tracing is off."""

    def start(self, name: str, *, request_id: str, headers: Mapping[str, str]) -> Span:  # noqa: ARG002
        return NO_SPAN

    async def close(self) -> None:
        pass


NO_SPAN: Span = _NoSpan()

_current: ContextVar[Span] = ContextVar("span", default=NO_SPAN)


def current_span() -> Span:
    """The innermost span that has not ended."""
    return _current.get()


@contextmanager
def within(outer: Span) -> Iterator[Span]:
    """Make a span the current one until the context ends, and end it then. An exception marks it as failed."""
    token = _current.set(outer)
    try:
        yield outer
    except BaseException as error:
        outer.fail(type(error).__name__)
        raise
    finally:
        outer.end()
        with suppress(ValueError):  # a generator may be closed in another task: then its own context is gone, too
            _current.reset(token)


@contextmanager
def span(name: str, attributes: Attributes | None = None) -> Iterator[Span]:
    """A span inside the current one, until the context ends."""
    with within(_current.get().child(name)) as inner:
        inner.set(attributes or {})
        yield inner

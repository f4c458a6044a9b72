"""A small LLM server on loopback: it speaks OpenAI's `POST /v1/chat/completions`, well or badly, as it is told."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeAlias

from tests.fakes.vendor import Loopback

KEY = "sk-very-secret-key"
MODEL = "loopback-1"


@dataclass(frozen=True, slots=True)
class Says:
    """Words, streamed in pieces of a few characters; a call of a tool instead, where one is named."""

    text: str = ""
    tool: str = ""
    arguments: str = ""
    piece: int = 4
    cut: bool = False
    """Whether the connection breaks after the last piece."""
    hang: bool = False
    """Whether nothing more comes after the last piece."""
    error: str = ""
    """What an error event in the stream says, after the last piece."""
    usage: bool = True
    first_seconds: float = 0.0
    """How long nothing comes at all."""
    refusal: str = ""
    """What the model says instead of an answer, where its vendor has a field for that."""
    finish: str = "stop"
    written: int = 45
    """Tokens that it says it wrote."""


@dataclass(frozen=True, slots=True)
class Fails:
    """An error as OpenAI words it. `hang` never sends a byte."""

    status: int = 500
    message: str = "it broke"
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes that are no chat completion at all."""

    body: bytes
    content_type: str = "text/event-stream"


Reply: TypeAlias = Says | Fails | Raw
Mind: TypeAlias = Callable[[dict[str, Any]], Reply]


class LLM(Loopback):
    """`with LLM(Says("…")) as llm:` then `llm.url`. Each call gets the next reply, then the last for ever.

    A reply may be a function of the request: a model that reads.
    """

    def __init__(self, *replies: Reply | Mind) -> None:
        self.replies: list[Reply | Mind] = list(replies) or [Says("Yes.")]
        self.open = 0
        super().__init__()
        self.url += "/v1"

    def prompt(self, call: int = -1) -> str:
        """Everything that one call was told, as text."""
        return "\n".join(str(message.get("content") or "") for message in self.calls[call]["messages"])

    def _next(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            self.calls.append(request)
            self.headers.append(headers)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if headers.get("authorization") != f"Bearer {KEY}":
            return Fails(401, "Incorrect API key provided.", "invalid_api_key")
        return reply(request) if callable(reply) else reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        llm = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                known = self.path == "/v1/models"
                self._whole(200 if known else 404, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                reply = llm._next(request, {name.lower(): value for name, value in self.headers.items()})
                with llm._lock:
                    llm.open += 1
                try:
                    self._answer(request, reply)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True
                finally:
                    with llm._lock:
                        llm.open -= 1

            def _answer(self, request: dict[str, Any], reply: Reply) -> None:
                match reply:
                    case Fails(hang=True):
                        self.close_connection = True
                        llm._closing.wait(20)
                    case Fails():
                        told = {"message": reply.message, "type": "error", "param": None, "code": reply.code}
                        self._whole(reply.status, {"error": told}, reply.headers)
                    case Raw():
                        self._begin(200, reply.content_type, len(reply.body))
                        self.wfile.write(reply.body)
                    case Says() if request.get("stream"):
                        self._stream(request, reply)
                    case Says():
                        self._whole(200, _completion(reply))

            def _stream(self, request: dict[str, Any], reply: Says) -> None:
                self.close_connection = True
                llm._closing.wait(reply.first_seconds)
                self._begin(200, "text/event-stream", None)
                for chunk in _chunks(reply, usage=(request.get("stream_options") or {}).get("include_usage", False)):
                    self._event(json.dumps(chunk))
                if reply.error:
                    self._event(json.dumps({"error": {"message": reply.error, "type": "server_error", "code": None}}))
                if reply.hang:
                    llm._closing.wait(20)
                if not reply.cut:
                    self._event("[DONE]")
                    self.wfile.write(b"0\r\n\r\n")

            def _event(self, data: str) -> None:
                sent = f"data: {data}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(sent), sent))
                self.wfile.flush()

            def _whole(self, status: int, told: dict[str, Any], headers: dict[str, str] | None = None) -> None:
                body = json.dumps(told).encode()
                self._begin(status, "application/json", len(body), headers)
                self.wfile.write(body)

            def _begin(self, status: int, kind: str, length: int | None, headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("content-type", kind)
                if length is None:
                    self.send_header("transfer-encoding", "chunked")
                else:
                    self.send_header("content-length", str(length))
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler


_USAGE = {"prompt_tokens": 321, "completion_tokens": 45, "total_tokens": 366}


def _completion(reply: Says) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], "usage": _USAGE}


def _chunks(reply: Says, *, usage: bool) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices}

    yield chunk({"role": "assistant", "content": ""})
    if reply.refusal:
        yield chunk({"refusal": reply.refusal})
    for start in range(0, len(reply.text), reply.piece):
        yield chunk({"content": reply.text[start : start + reply.piece]})
    if reply.tool:
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": reply.tool, "arguments": ""}}
        yield chunk({"tool_calls": [call]})
        for start in range(0, len(reply.arguments), reply.piece):
            part = {"index": 0, "function": {"arguments": reply.arguments[start : start + reply.piece]}}
            yield chunk({"tool_calls": [part]})
    if reply.cut or reply.hang or reply.error:
        return
    yield chunk({}, "tool_calls" if reply.tool else reply.finish)
    if usage and reply.usage:
        yield {**chunk({}), "choices": [], "usage": _USAGE | {"completion_tokens": reply.written}}

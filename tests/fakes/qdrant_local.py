"""qdrant-client's local mode, with the errors of a server."""

import json
import warnings
from collections.abc import Callable
from typing import Any, cast

import httpx
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse


class LocalQdrant:
    """A Qdrant in memory. It stays open for everybody who shares it."""

    def __init__(self) -> None:
        self._client = AsyncQdrantClient(":memory:")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            with warnings.catch_warnings(action="ignore"):  # it has neither payload indexes nor approximate search
                try:
                    return await method(*arguments, **named)
                except ValueError as error:
                    raise _as_server(error) from error

        return call

    async def close(self) -> None:
        pass


def local_client() -> AsyncQdrantClient:
    return cast("AsyncQdrantClient", LocalQdrant())


def _as_server(error: ValueError) -> Exception:
    status = 404 if "not found" in str(error) else 409 if "already exists" in str(error) else 400
    body = json.dumps({"status": {"error": str(error)}, "time": 0.0}).encode()
    return UnexpectedResponse(status, "", body, httpx.Headers())

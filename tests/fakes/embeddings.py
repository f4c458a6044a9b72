"""A small server on loopback that speaks OpenAI's `POST /v1/embeddings`, well or badly, as it is told."""

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tests.fakes.vendor import WELL, Reply, Rows, Vendor, hashed, sent

__all__ = ["KEY", "WELL", "EmbeddingServer", "Reply", "listed", "problem"]

KEY = "sk-very-secret-key"
_OWN = {"text-embedding-3-small": 1536, "gemini-embedding-001": 3072, "nomic-embed-text": 768}
_MOST_TOKENS, _LONGEST = 300_000, 8192


def problem(status: int, message: str = "it broke", *, code: str | None = None, **headers: str) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return sent({"error": error}, status, **headers)


def listed(rows: list[Any]) -> Reply:
    """An answer with these as its vectors."""
    return sent({"object": "list", "model": "x", "usage": {"prompt_tokens": 1, "total_tokens": 1}, "data": [
        row if isinstance(row, dict) else {"object": "embedding", "index": place, "embedding": row}
        for place, row in enumerate(rows)
    ]})  # fmt: skip


class EmbeddingServer(Vendor):
    """`most` is how many texts it takes in a call: OpenAI 2048, Gemini 100."""

    doors: ClassVar[Mapping[str, str]] = {"/v1/embeddings": "embed"}

    def __init__(
        self,
        *replies: Reply,
        shut_seconds: int = 0,
        rows: Rows = hashed,
        most: int = 2048,
        key: str | None = KEY,
        dimensions: int = 64,
    ) -> None:
        super().__init__(*replies, shut_seconds=shut_seconds)
        self._rows, self._most, self._key, self._dimensions = rows, most, key, dimensions
        self.url += "/v1"

    @property
    def texts(self) -> list[str]:
        """Everything it was ever sent."""
        return [text for call in self.calls for text in call["input"]]

    def refuses(self, status: int, message: str, **headers: str) -> Reply:
        return problem(status, message, **headers)

    def embed(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        if headers.get("authorization") != (f"Bearer {self._key}" if self._key else None):
            return problem(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key")
        texts, model = request.get("input"), request.get("model")
        texts = [texts] if isinstance(texts, str) else texts
        if not model or not isinstance(texts, list) or not texts or not all(isinstance(one, str) for one in texts):
            return problem(400, "'model' and 'input' are required")
        if not all(texts):
            return problem(400, "'$.input' is invalid: an empty string")
        if len(texts) > self._most:
            return problem(400, f"at most {self._most} requests can be in one batch")
        tokens = [len(one.encode()) // 3 for one in texts]
        if max(tokens) > _LONGEST or sum(tokens) > _MOST_TOKENS:
            return problem(400, f"maximum context length is {_LONGEST} tokens, {_MOST_TOKENS} in all")
        rows = self._rows(texts, request.get("dimensions") or _OWN.get(model.partition(":")[0], self._dimensions))
        if request.get("encoding_format", "float") == "base64":
            return listed([base64.b64encode(np.array(row, dtype="<f4").tobytes()).decode() for row in rows])
        return listed(rows)

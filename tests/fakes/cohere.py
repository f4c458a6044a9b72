"""A small Cohere on loopback: it speaks `POST /v2/rerank` and `/v2/embed`, well or badly, as it is told."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.vendor import WELL, Reply, Rows, hashed, sent
from tests.fakes.vendor import Vendor as AnyVendor

__all__ = ["KEY", "WELL", "Reply", "Vendor", "answer", "embeddings", "problem"]

KEY = "co-very-secret-key"
MOST = 96  # texts that an embed call takes


def problem(status: int, message: str = "it broke", **headers: str) -> Reply:
    return sent({"id": "x", "message": message}, status, **headers)


def answer(results: object) -> Reply:
    return sent({"id": "x", "results": results, "meta": {}})


def embeddings(rows: object) -> Reply:
    return sent({"id": "x", "embeddings": {"float": rows}, "texts": [], "response_type": "embeddings_by_type"})


class Vendor(AnyVendor):
    """It likes long texts."""

    doors: ClassVar[Mapping[str, str]] = {"/v2/rerank": "rerank", "/v2/embed": "embed"}

    def __init__(self, *replies: Reply, shut_seconds: int = 0, rows: Rows = hashed) -> None:
        super().__init__(*replies, shut_seconds=shut_seconds)
        self._rows = rows

    def refuses(self, status: int, message: str, **headers: str) -> Reply:
        return problem(status, message, **headers)

    def rerank(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        if headers.get("authorization") != f"Bearer {KEY}":
            return problem(401, "invalid api token")
        if not _texts(request.get("documents")) or not request.get("query") or not request.get("model"):
            return problem(400, "invalid request: model, query and documents are required")
        rows = [{"index": n, "relevance_score": len(one) / 1e6} for n, one in enumerate(request["documents"])]
        return answer(sorted(rows, key=lambda row: -row["relevance_score"])[: request.get("top_n")])

    def embed(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        if headers.get("authorization") != f"Bearer {KEY}":
            return problem(401, "invalid api token")
        texts: Any = request.get("texts")
        if not _texts(texts) or not request.get("model"):
            return problem(400, "invalid request: model and texts are required, and no text may be empty")
        if len(texts) > MOST:
            return problem(400, f"invalid request: total number of texts must be at most {MOST}, got {len(texts)}")
        if request.get("input_type") not in ("search_document", "search_query"):
            return problem(400, "invalid request: valid input_type must be provided with the provided model")
        if request.get("embedding_types") != ["float"]:
            return problem(400, "invalid request: embedding_types")
        if "output_dimension" in request and "v3" in request["model"]:
            return problem(400, "invalid request: output_dimension is not supported for this model")
        return embeddings(self._rows(texts, request.get("output_dimension") or 1024))


def _texts(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(isinstance(one, str) and one for one in given)

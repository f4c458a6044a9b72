"""Generate docs/settings.md, docs/openapi.json and the examples on the page `/docs`.

`make docs` runs this. The examples are real requests to the endpoints, answered from the example book. An example that
only differs in times and ids stays as it was, so that a diff shows real changes. `--keep-examples` sends no requests:
use it if only descriptions changed.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from citewell import api_keys, wiring
from citewell.evaluate.questions import read_questions
from citewell.evaluate.run import run_questions
from citewell.evaluate.scores import score
from citewell.http.app import create_app
from citewell.http.reference.examples import Example, Examples, Sent, examples
from citewell.http.reference.openapi import operations
from citewell.ingest.flow import ingest
from citewell.models import DEFAULT_PROJECT, Evaluation, Key, Project, document_id
from citewell.settings import Settings, as_markdown

ROOT = Path(__file__).parents[1]
EXAMPLES_FILE = ROOT / "src" / "citewell" / "http" / "reference" / "examples.json"
BOOK = ROOT / "examples" / "robotics-book"

SESSION = "9f3b1c52-6d0e-4d7a-8a55-2f1c0b7e4a90"
ASKED = "c67dbae4-1f0b-4a53-9d52-7b8c6e0a4f13"
QUESTION = "Why do gyroscopes drift?"
PUMPS = "# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nFill the casing with water before the first start.\n"
DEFAULT = Project.named(DEFAULT_PROJECT)
HANDBOOK = Project.named("handbook")
PUMPS_ID = str(document_id(HANDBOOK, "pumps.md"))
_CHANGING_FIELDS = {
    "timestamp", "createdAt", "updatedAt", "lastAskedAt", "startedAt", "finishedAt", "at",
    "query_time_ms", "latency_ms", "totalDuration", "request_id",
}  # fmt: skip


class Asking:
    """Sends requests to endpoints by operation id, and records the responses."""

    def __init__(self, client: httpx2.AsyncClient, document: dict[str, Any]) -> None:
        self._client = client
        self._doors = {one["operationId"]: (method, path) for method, path, one in operations(document)}
        self.kept = Examples()

    async def door(self, name: str, sent: Sent | None = None) -> Any:
        sent = sent or Sent()
        response = await self._send(name, sent)
        response.raise_for_status()
        answered = _response_body(response)
        self.kept.doors[name] = Example(sent=sent, status=response.status_code, answered=answered)
        return answered

    async def error(self, name: str, sent: Sent | None = None) -> None:
        response = await self._send(name, sent or Sent())
        if response.is_success:
            return
        problem = response.json()
        self.kept.errors.setdefault(str(response.status_code), {})[problem["error_code"]] = problem

    async def _send(self, name: str, sent: Sent) -> httpx2.Response:
        method, path = self._doors[name]
        files = [("file", (file, text.encode())) for file, text in (sent.file or {}).items()]
        return await self._client.request(
            method, sent.address(path), json=sent.body, files=files or None, headers=sent.headers
        )


def _response_body(response: httpx2.Response) -> Any:
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind == "application/json":
        return response.json()
    if kind == "text/plain":  # a few of the metrics are enough
        lines = response.text.splitlines(keepends=True)
        return "".join(line for line in lines if line.startswith("citewell_") and "_total{" in line)
    return response.text if kind == "text/event-stream" else None


@asynccontextmanager
async def open_recorder(settings: Settings) -> AsyncIterator[Asking]:
    app = create_app(settings)
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client,
    ):
        yield Asking(client, app.openapi())


async def record_examples(home: Path) -> Examples:
    settings = Settings.model_validate({"home": home, "database_url": None})
    async with open_recorder(settings) as asking:
        await asking.error("ask", Sent(body={"question": QUESTION}))  # nothing is indexed yet
        before_ingest = asking.kept
    async with wiring.open_for_ingest(settings, wait=False, on_wait=lambda: None) as engines:
        recipe = wiring.ingest_recipe(settings, base_url="https://book.example.org")
        await ingest([BOOK], project=DEFAULT, engines=engines, recipe=recipe, prune=False, progress=lambda *_: None)
    async with open_recorder(settings) as asking:
        await _record_answers(asking)
        await _record_evaluation(asking, settings)
        await _record_documents(asking)
        await _record_operations(asking)
        await _record_errors(asking, settings)
    asking.kept.errors.setdefault("503", {}).update(before_ingest.errors["503"])
    return asking.kept


async def _record_answers(asking: Asking) -> None:
    await asking.door("ask", Sent(body={"question": QUESTION, "top_k": 5}))
    await asking.door("ask_stream", Sent(body={"question": QUESTION}))
    marked = "Integrating a bias makes the result drift."
    await asking.door("query", Sent(body={"query": "What helps against this?", "selected_text": marked}))
    once = {"Idempotency-Key": "question-1", "X-Request-ID": ASKED}
    await asking.door("chat", Sent(headers=once, body={"query": QUESTION, "session_id": SESSION}))
    await asking.door("chat_stream", Sent(body={"query": "Tell me more", "session_id": SESSION}))
    vote = {"session_id": SESSION, "request_id": ASKED, "vote": "up"}
    await asking.door("feedback", Sent(body=vote))
    await asking.door("list_feedback", Sent(path={"project_id": str(DEFAULT.id)}, query={"limit": 1}))
    await asking.door("history", Sent(path={"session_id": SESSION}, query={"limit": 1}))
    await asking.door("forget", Sent(path={"session_id": SESSION}))
    told = {"projectId": str(DEFAULT.id), "message": QUESTION}
    answer = await asking.door("v1_chat", Sent(body=told))
    await asking.door("v1_chat_stream", Sent(body=told))
    for question in ("How long does a chicken roast?", "Who composed the opera Aida?"):
        await asking.error("ask", Sent(body={"question": question}))
    gaps = Sent(path={"project_id": str(DEFAULT.id)}, query={"limit": 2})
    for _ in range(300):  # they are recorded after the answer is sent
        if len((await asking.door("list_gaps", gaps))["gaps"]) == 2:
            break
        await asyncio.sleep(0.1)
    await asking.door("forget_gaps", Sent(path={"project_id": str(DEFAULT.id)}))
    await asking.door("search", Sent(body={"query": "gyroscope drift", "top_k": 1}))
    cited = answer["sources"][0]["id"]
    await asking.door("verify", Sent(body={"ids": [cited, "0" * 64]}))
    for _ in range(2):  # the first response may come without questions
        await asking.door("welcome")
        await asyncio.sleep(2)
    await asking.door("get_citation", Sent(path={"chunk_id": cited}))


async def _record_evaluation(asking: Asking, settings: Settings) -> None:
    golden = [question for question in read_questions(BOOK / "golden.jsonl") if not question.unanswerable][:10]
    async with wiring.open_for_answers(settings) as resources:
        outcomes = await run_questions(golden, project=DEFAULT, engines=resources.engines, library=resources.library)
    selected = {
        name: result for name, result in score(outcomes).items() if name in ("hit@5", "key_answer", "citations_resolve")
    }
    scores: dict[str, object] = {
        name: {"value": result.value, "low": round(result.low, 4), "high": round(result.high, 4), "n": result.count}
        for name, result in selected.items()
    }
    async with wiring.open_stores(settings) as stores:
        await stores.evaluations.save(DEFAULT.id, Evaluation(datetime.now(UTC), len(outcomes), scores))
    await asking.door("get_evaluation", Sent(path={"project_id": str(DEFAULT.id)}))


async def _record_documents(asking: Asking) -> None:
    project = {"project_id": str(HANDBOOK.id)}
    await asking.door("create_project", Sent(body={"name": HANDBOOK.name}))
    await asking.door("upload_document", Sent(path=dict(project), file={"pumps.md": PUMPS}))
    for _ in range(300):
        listed = await asking.door("list_documents", Sent(path=dict(project)))
        if listed["documents"][0]["status"] == "COMPLETED":
            break
        await asyncio.sleep(0.2)
    for _ in range(300):
        ingests = await asking.door("list_ingests", Sent(path=dict(project)))
        if ingests["ingests"][0]["state"] == "done":
            break
        await asyncio.sleep(0.2)
    await asking.door("get_document", Sent(path={"document_id": PUMPS_ID}, query={"text": True}))
    await asking.door("get_chunk", Sent(path={"document_id": PUMPS_ID, "index": 0}))
    await asking.door("list_projects")
    await asking.door("get_project", Sent(path=dict(project)))
    await asking.door("delete_document", Sent(path={**project, "document_id": PUMPS_ID}))
    await asking.door("delete_project", Sent(path=dict(project)))


async def _record_operations(asking: Asking) -> None:
    await asking.door("chat_page")
    await asking.door("library_page")
    for name in ("health", "ready", "metrics"):
        await asking.door(name)


async def _record_errors(asking: Asking, settings: Settings) -> None:
    await asking.error("ask", Sent(body={"question": "   "}))
    await asking.error("ask", Sent(body={"question": "why? " * 250}))
    await asking.error("ask", Sent(body={"question": QUESTION, "top_k": 50}))
    await asking.error("query", Sent(body={"query": QUESTION, "selected_text": "drift " * 201}))
    await asking.error("chat", Sent(body={"query": QUESTION, "session_id": "mine"}))
    await asking.error("get_document", Sent(path={"document_id": PUMPS_ID}))
    await asking.error("ask", Sent(body={"question": "x" * 2_000_000}))
    await asking.error("upload_document", Sent(path={"project_id": str(DEFAULT.id)}, file={"pumps.exe": "MZ"}))
    new_key = api_keys.create_key()
    async with wiring.open_stores(settings) as stores:
        key = Key(new_key.id, "a slow one", "ask", datetime.now(UTC), per_minute=1)
        await stores.keys.add(key, digest=new_key.digest)
    await asyncio.sleep(1.1)  # the server caches for one second that no key exists
    await asking.error("ask", Sent(body={"question": QUESTION}))
    for _ in range(2):  # the first is allowed
        await asking.error("history", Sent(path={"session_id": SESSION}, headers={"X-API-Key": new_key.text}))


def without_changing_fields(value: Any) -> Any:
    """The value without fields that differ in every run."""
    if isinstance(value, dict):
        return {name: without_changing_fields(part) for name, part in value.items() if name not in _CHANGING_FIELDS}
    if isinstance(value, list):
        return [without_changing_fields(part) for part in value]
    if isinstance(value, str) and value.startswith("data: "):
        return [
            without_changing_fields(json.loads(line[6:])) for line in value.splitlines() if line.startswith("data: ")
        ]
    return value


def settled(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    return {
        name: old[name] if without_changing_fields(old.get(name)) == without_changing_fields(value) else value
        for name, value in new.items()
    }


def write_examples() -> None:
    before = examples().model_dump(mode="json", exclude_defaults=True)
    with tempfile.TemporaryDirectory() as home:
        asked = asyncio.run(record_examples(Path(home))).model_dump(mode="json", exclude_defaults=True)
    doors = settled(asked["doors"], before.get("doors", {}))
    for name in ("metrics", "list_ingests"):  # metrics and ids differ in every run
        doors[name] = before.get("doors", {}).get(name, doors[name])
    errors = {
        status: settled(problems, before.get("errors", {}).get(status, {}))
        for status, problems in asked["errors"].items()
    }
    _write_json(EXAMPLES_FILE, {"doors": doors, "errors": dict(sorted(errors.items()))})
    examples.cache_clear()


def _write_json(path: Path, value: object) -> None:
    path.write_text(f"{json.dumps(value, indent=1, ensure_ascii=False)}\n", encoding="utf-8")


def main() -> None:
    (ROOT / "docs" / "settings.md").write_text(as_markdown(), encoding="utf-8")
    if "--keep-examples" not in sys.argv:
        write_examples()
    _write_json(ROOT / "docs" / "openapi.json", create_app(Settings.model_validate({"database_url": None})).openapi())


if __name__ == "__main__":
    main()

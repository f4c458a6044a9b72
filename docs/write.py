"""Write what is generated: docs/settings.md, docs/openapi.json and the examples that `/docs` shows.

`make docs` runs this. The examples are recorded by calling the endpoints with the example book. One that has
not changed is left as it was, times included, so that a diff shows what really changed. `--keep-examples` records
nothing: for a change of descriptions alone.
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
from citewell.http.reference.examples import Example, ExampleRequest, Examples, examples
from citewell.http.reference.openapi import operations
from citewell.ingest.flow import ingest
from citewell.models import DEFAULT_PROJECT, Evaluation, Key, Project, document_id
from citewell.settings import Settings, as_markdown

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "src" / "citewell" / "http" / "reference" / "examples.json"
BOOK = ROOT / "examples" / "robotics-book"

SESSION = "9f3b1c52-6d0e-4d7a-8a55-2f1c0b7e4a90"
ASKED = "c67dbae4-1f0b-4a53-9d52-7b8c6e0a4f13"
QUESTION = "Why do gyroscopes drift?"
PUMPS = "# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nFill the casing with water before the first start.\n"
DEFAULT = Project.named(DEFAULT_PROJECT)
HANDBOOK = Project.named("handbook")
PUMPS_ID = str(document_id(HANDBOOK, "pumps.md"))
_PASSING = {
    "timestamp", "createdAt", "updatedAt", "lastAskedAt", "startedAt", "finishedAt", "at",
    "query_time_ms", "latency_ms", "totalDuration", "request_id",
}  # fmt: skip


class ExampleRecorder:
    """Calls endpoints by their operation ids and records requests and responses."""

    def __init__(self, client: httpx2.AsyncClient, document: dict[str, Any]) -> None:
        self._client = client
        self._endpoints = {one["operationId"]: (method, path) for method, path, one in operations(document)}
        self.examples = Examples()

    async def call(self, name: str, request: ExampleRequest | None = None) -> Any:
        request = request or ExampleRequest()
        response = await self._send(name, request)
        response.raise_for_status()
        content = _content(response)
        self.examples.endpoints[name] = Example(request=request, status=response.status_code, response=content)
        return content

    async def call_failing(self, name: str, request: ExampleRequest | None = None) -> None:
        response = await self._send(name, request or ExampleRequest())
        if response.is_success:
            return
        problem = response.json()
        self.examples.errors.setdefault(str(response.status_code), {})[problem["error_code"]] = problem

    async def call_wrongly(self, method: str, path: str) -> None:
        """Call a path with a method that it does not have."""
        problem = (await self._client.request(method, path)).json()
        self.examples.errors.setdefault("405", {})[problem["error_code"]] = problem

    async def _send(self, name: str, request: ExampleRequest) -> httpx2.Response:
        method, path = self._endpoints[name]
        files = [("file", (file, text.encode())) for file, text in (request.file or {}).items()]
        return await self._client.request(
            method, request.address(path), json=request.body, files=files or None, headers=request.headers
        )


def _content(response: httpx2.Response) -> Any:
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind == "application/json":
        return response.json()
    if kind == "text/plain":  # a few of the numbers show what they look like
        lines = response.text.splitlines(keepends=True)
        return "".join(line for line in lines if line.startswith("citewell_") and "_total{" in line)
    return response.text if kind == "text/event-stream" else None


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[ExampleRecorder]:
    app = create_app(settings)
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client,
    ):
        yield ExampleRecorder(client, app.openapi())


async def ask_everything(home: Path) -> Examples:
    settings = Settings.model_validate({"home": home, "database_url": None})
    async with serving(settings) as recorder:
        await recorder.call_failing("ask", ExampleRequest(body={"question": QUESTION}))  # nothing is there yet
        nothing_yet = recorder.examples
    async with wiring.open_for_ingest(settings, wait=False, on_wait=lambda: None) as engines:
        recipe = wiring.ingest_recipe(settings, base_url="https://book.example.org")
        await ingest([BOOK], project=DEFAULT, engines=engines, recipe=recipe, prune=False, progress=lambda *_: None)
    async with serving(settings) as recorder:
        await _ask_the_book(recorder)
        await _evaluate(recorder, settings)
        await _keep_a_handbook(recorder)
        await _operate(recorder)
        await _go_wrong(recorder, settings)
    recorder.examples.errors.setdefault("503", {}).update(nothing_yet.errors["503"])
    return recorder.examples


async def _ask_the_book(recorder: ExampleRecorder) -> None:
    await recorder.call("ask", ExampleRequest(body={"question": QUESTION, "top_k": 5}))
    await recorder.call("ask_stream", ExampleRequest(body={"question": QUESTION}))
    marked = "Integrating a bias makes the result drift."
    await recorder.call("query", ExampleRequest(body={"query": "What helps against this?", "selected_text": marked}))
    once = {"Idempotency-Key": "question-1", "X-Request-ID": ASKED}
    await recorder.call("chat", ExampleRequest(headers=once, body={"query": QUESTION, "session_id": SESSION}))
    await recorder.call("chat_stream", ExampleRequest(body={"query": "Tell me more", "session_id": SESSION}))
    vote = {"session_id": SESSION, "request_id": ASKED, "vote": "up"}
    await recorder.call("feedback", ExampleRequest(body=vote))
    await recorder.call("list_feedback", ExampleRequest(path={"project_id": str(DEFAULT.id)}, query={"limit": 1}))
    await recorder.call("history", ExampleRequest(path={"session_id": SESSION}, query={"limit": 1}))
    await recorder.call("forget", ExampleRequest(path={"session_id": SESSION}))
    told = {"projectId": str(DEFAULT.id), "message": QUESTION}
    answer = await recorder.call("v1_chat", ExampleRequest(body=told))
    await recorder.call("v1_chat_stream", ExampleRequest(body=told))
    for question in ("How long does a chicken roast?", "Who composed the opera Aida?"):
        await recorder.call_failing("ask", ExampleRequest(body={"question": question}))
    gaps = ExampleRequest(path={"project_id": str(DEFAULT.id)}, query={"limit": 2})
    for _ in range(300):  # they are noted after the answer is told
        if len((await recorder.call("list_gaps", gaps))["gaps"]) == 2:
            break
        await asyncio.sleep(0.1)
    await recorder.call("forget_gaps", ExampleRequest(path={"project_id": str(DEFAULT.id)}))
    await recorder.call("search", ExampleRequest(body={"query": "gyroscope drift", "top_k": 1}))
    cited = answer["sources"][0]["id"]
    await recorder.call("verify", ExampleRequest(body={"ids": [cited, "0" * 64]}))
    for _ in range(300):  # the first may not wait for its questions
        if (await recorder.call("welcome"))["questions"]:
            break
        await asyncio.sleep(0.2)
    await recorder.call("get_citation", ExampleRequest(path={"chunk_id": cited}))


async def _evaluate(recorder: ExampleRecorder, settings: Settings) -> None:
    golden = [one for one in read_questions(BOOK / "golden.jsonl") if not one.unanswerable][:10]
    async with wiring.open_for_answers(settings) as reading:
        outcomes = await run_questions(golden, project=DEFAULT, engines=reading.engines, library=reading.library)
    shown = {name: one for name, one in score(outcomes).items() if name in ("hit@5", "key_answer", "citations_resolve")}
    scores: dict[str, object] = {
        name: {"value": one.value, "low": round(one.low, 4), "high": round(one.high, 4), "n": one.count}
        for name, one in shown.items()
    }
    async with wiring.open_stores(settings) as keeping:
        await keeping.evaluations.save(DEFAULT.id, Evaluation(datetime.now(UTC), len(outcomes), scores))
    await recorder.call("get_evaluation", ExampleRequest(path={"project_id": str(DEFAULT.id)}))


async def _keep_a_handbook(recorder: ExampleRecorder) -> None:
    project = {"project_id": str(HANDBOOK.id)}
    await recorder.call("create_project", ExampleRequest(body={"name": HANDBOOK.name}))
    await recorder.call("upload_document", ExampleRequest(path=dict(project), file={"pumps.md": PUMPS}))
    for _ in range(300):
        listed = await recorder.call("list_documents", ExampleRequest(path=dict(project)))
        if listed["documents"][0]["status"] == "COMPLETED":
            break
        await asyncio.sleep(0.2)
    for _ in range(300):
        ingests = await recorder.call("list_ingests", ExampleRequest(path=dict(project)))
        if ingests["ingests"][0]["state"] == "done":
            break
        await asyncio.sleep(0.2)
    await recorder.call("get_document", ExampleRequest(path={"document_id": PUMPS_ID}, query={"text": True}))
    await recorder.call("get_chunk", ExampleRequest(path={"document_id": PUMPS_ID, "index": 0}))
    await recorder.call("list_projects")
    await recorder.call("get_project", ExampleRequest(path=dict(project)))
    await recorder.call("delete_document", ExampleRequest(path={**project, "document_id": PUMPS_ID}))
    await recorder.call("delete_project", ExampleRequest(path=dict(project)))


async def _operate(recorder: ExampleRecorder) -> None:
    await recorder.call("chat_page")
    await recorder.call("library_page")
    for name in ("health", "ready", "metrics"):
        await recorder.call(name)


async def _go_wrong(recorder: ExampleRecorder, settings: Settings) -> None:
    await recorder.call_failing("ask", ExampleRequest(body={"question": "   "}))
    await recorder.call_failing("ask", ExampleRequest(body={"question": "why? " * 250}))
    await recorder.call_failing("ask", ExampleRequest(body={"question": QUESTION, "top_k": 50}))
    await recorder.call_failing("query", ExampleRequest(body={"query": QUESTION, "selected_text": "drift " * 201}))
    await recorder.call_failing("chat", ExampleRequest(body={"query": QUESTION, "session_id": "mine"}))
    for question in (QUESTION, "And what else?"):
        once = {"Idempotency-Key": "question-2"}
        await recorder.call_failing("chat", ExampleRequest(headers=once, body={"query": question}))
    await recorder.call_wrongly("PUT", "/api/ask")
    await recorder.call_failing("get_document", ExampleRequest(path={"document_id": PUMPS_ID}))
    await recorder.call_failing("ask", ExampleRequest(body={"question": "x" * 2_000_000}))
    await recorder.call_failing(
        "upload_document", ExampleRequest(path={"project_id": str(DEFAULT.id)}, file={"pumps.exe": "MZ"})
    )
    minted = api_keys.create_key()
    async with wiring.open_stores(settings) as keeping:
        key = Key(minted.id, "a slow one", "ask", datetime.now(UTC), per_minute=1)
        await keeping.keys.add(key, digest=minted.digest)
    await asyncio.sleep(1.1)  # for as long, a server remembers that it was open
    await recorder.call_failing("ask", ExampleRequest(body={"question": QUESTION}))
    for _ in range(2):  # the first is allowed
        await recorder.call_failing(
            "history", ExampleRequest(path={"session_id": SESSION}, headers={"X-API-Key": minted.text})
        )


def lasting(value: Any) -> Any:
    """Without what is different every time."""
    if isinstance(value, dict):
        return {name: lasting(part) for name, part in value.items() if name not in _PASSING}
    if isinstance(value, list):
        return [lasting(part) for part in value]
    if isinstance(value, str) and value.startswith("data: "):
        return [lasting(json.loads(line[6:])) for line in value.splitlines() if line.startswith("data: ")]
    return value


def settled(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    return {name: old[name] if lasting(old.get(name)) == lasting(value) else value for name, value in new.items()}


def write_examples() -> None:
    before = examples().model_dump(mode="json", exclude_defaults=True)
    with tempfile.TemporaryDirectory() as home:
        recorded = asyncio.run(ask_everything(Path(home))).model_dump(mode="json", exclude_defaults=True)
    endpoints = settled(recorded["endpoints"], before.get("endpoints", {}))
    for name in ("metrics", "list_ingests"):  # numbers and ids of the moment
        endpoints[name] = before.get("endpoints", {}).get(name, endpoints[name])
    errors = {
        status: settled(told, before.get("errors", {}).get(status, {})) for status, told in recorded["errors"].items()
    }
    _write(KEPT, {"endpoints": endpoints, "errors": dict(sorted(errors.items()))})
    examples.cache_clear()


def _write(path: Path, value: object) -> None:
    path.write_text(f"{json.dumps(value, indent=1, ensure_ascii=False)}\n", encoding="utf-8")


def main() -> None:
    (ROOT / "docs" / "settings.md").write_text(as_markdown(), encoding="utf-8")
    if "--keep-examples" not in sys.argv:
        write_examples()
    _write(ROOT / "docs" / "openapi.json", create_app(Settings.model_validate({"database_url": None})).openapi())


if __name__ == "__main__":
    main()

"""Traces of requests, as a collector receives them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import httpx2
import pytest

from citewell.errors import SettingsError
from citewell.http.app import create_app
from citewell.tracing import NO_SPAN, current_span, span
from tests.conftest import serving, settings_for
from tests.fakes.cohere import KEY as COHERE_KEY
from tests.fakes.cohere import Reply, Vendor
from tests.fakes.collector import Collector, SpanSent
from tests.fakes.llm import LLM, Fails
from tests.http.conftest import break_answers, events, running
from tests.http.llm.server import ASK, QUESTION, STREAMS, UNCOVERED, WELL, over

pytestmark = pytest.mark.anyio

SERVER = 2  # the kind of a span that answers somebody


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as collector:
        point_at(collector, monkeypatch)
        yield collector


def point_at(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)


def tree(spans: list[SpanSent], parent: SpanSent) -> dict[str, object]:
    """The names of the spans below one, each with those below it; several of a name count as one."""
    below = sorted((one for one in spans if one.parent == parent.id), key=lambda one: one.start)
    return {one.name: tree(spans, one) for one in below}


@pytest.mark.parametrize(("endpoint", "body"), [ASK, *STREAMS])
async def test_a_request_is_one_trace_of_nested_spans(
    collector: Collector, pages: Path, endpoint: str, body: dict[str, object]
) -> None:
    own_id = str(uuid4())
    with LLM(WELL) as llm:
        async with running(over(pages, llm, tracing="otlp", reader="minilm")) as http:
            response = await http.post(endpoint, json=body, headers={"X-Request-ID": own_id})
    assert response.status_code == 200
    (request,) = collector.named(f"POST {endpoint}")
    assert (request.kind, request.parent, request.failed) == (SERVER, "", False)
    assert tree(collector.spans, request) == {
        "index": {},  # whether there are documents at all
        "retrieve": {"embed": {}, "index": {}, "rerank": {}},
        "read": {},
        "write": {"check": {}},
    }
    assert {one.trace for one in collector.spans} == {request.trace}
    assert {one.attributes["citewell.request_id"] for one in collector.spans} == {own_id}
    assert all(request.start <= one.start <= one.end <= request.end for one in collector.spans)
    assert request.attributes["http.route"] == endpoint
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["citewell.covered"] is True
    assert request.attributes["citewell.answer_tokens"] == 45
    assert [one.attributes["citewell.verdict"] for one in collector.named("check")] == ["supported", "supported"]


async def test_no_words_of_the_reader_or_of_the_documents_are_sent(collector: Collector, pages: Path) -> None:
    with LLM(WELL) as llm:
        async with running(over(pages, llm, tracing="otlp")) as http:
            answer = (await http.post(*ASK[:1], json=ASK[1])).json()
            await http.post("/api/ask", json={"question": UNCOVERED})
            await http.post("/api/ask", json={"question": "?" * 5000})
            await http.get("/history/secret-words")
    assert "uphill" in answer["answer"]
    sent = b"".join(collector.bodies)
    words = [*QUESTION.split(), *UNCOVERED.split(), *answer["answer"].split(), "secret-words", "pumps.md", "Pumps"]
    assert [word for word in words if len(word) > 4 and word.strip(".?").encode() in sent] == []


async def test_a_trace_that_somebody_began_goes_on(collector: Collector, pages: Path) -> None:
    async with running(settings_for(pages, embedder="hashing", tracing="otlp")) as http:
        trace, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        await http.post(ASK[0], json=ASK[1], headers={"traceparent": f"00-{trace}-{caller}-01"})
        await http.post(ASK[0], json=ASK[1], headers={"traceparent": "00-nonsense"})
    first, second = collector.named("POST /api/ask")
    assert (first.trace, first.parent) == (trace, caller)
    assert second.trace != trace
    assert second.parent == ""


async def test_requests_at_the_same_time_do_not_mix(collector: Collector, pages: Path) -> None:
    from asyncio import gather

    ids = [str(uuid4()) for _ in range(8)]
    async with running(settings_for(pages, embedder="hashing", tracing="otlp")) as http:
        await gather(*(http.post(*STREAMS[0][:1], json=STREAMS[0][1], headers={"X-Request-ID": one}) for one in ids))
    requests = collector.named("POST /api/ask/stream")
    assert sorted(str(one.attributes["citewell.request_id"]) for one in requests) == sorted(ids)
    for request in requests:
        own = [one for one in collector.spans if one.trace == request.trace]
        assert {one.attributes["citewell.request_id"] for one in own} == {request.attributes["citewell.request_id"]}
        assert tree(own, request)["retrieve"] == {"embed": {}, "index": {}, "rerank": {}}


async def test_the_span_of_what_failed_says_so_without_the_message(collector: Collector, pages: Path) -> None:
    with LLM(Fails(400, "do not repeat me")) as llm, Vendor(Reply(401)) as cohere:
        settings = over(
            pages, llm, tracing="otlp", reranker="cohere", cohere_base_url=cohere.url, cohere_api_key=COHERE_KEY
        )
        async with running(settings) as http:
            answered = await http.post("/api/ask", json=ASK[1])
    assert answered.status_code == 200
    failed = {one.name: one.attributes["error.type"] for one in collector.spans if one.failed}
    assert failed == {"write": "WriterUnavailable", "rerank": "SettingsError"}
    assert b"repeat" not in b"".join(collector.bodies)


async def test_the_request_span_has_the_error_that_the_client_got(collector: Collector, pages: Path) -> None:
    async with running(settings_for(pages, embedder="hashing", tracing="otlp")) as http:
        assert (await http.post("/api/ask", json={"question": " "})).status_code == 400
        assert (await http.get(f"/api/v1/projects/{uuid4()}/documents")).status_code == 404
        break_answers(http)
        assert (await http.post("/api/ask", json=ASK[1])).status_code == 500
    wrong, broken = collector.named("POST /api/ask")
    (missing,) = (one for one in collector.spans if one.name.startswith("GET "))
    assert (wrong.attributes["error.type"], wrong.failed) == ("400", False)
    assert (missing.attributes["error.type"], missing.failed) == ("NOT_FOUND", False)
    assert (broken.attributes["error.type"], broken.failed) == ("500", True)
    assert broken.attributes["http.response.status_code"] == 500


async def test_probes_are_not_traced(collector: Collector, pages: Path) -> None:
    async with running(settings_for(pages, embedder="hashing", tracing="otlp")) as http:
        for path in ("/health", "/ready", "/metrics"):
            assert (await http.get(path)).status_code == 200
    assert collector.spans == []


async def test_nothing_is_sent_by_default(collector: Collector, pages: Path) -> None:
    async with running(settings_for(pages, embedder="hashing")) as http:
        assert (await http.post("/api/ask", json=ASK[1])).status_code == 200
    assert collector.bodies == []


async def test_the_sdk_reads_its_own_variables(
    collector: Collector, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "handbook")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=very-secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    async with running(settings_for(pages, embedder="hashing", tracing="otlp")) as http:
        await http.post("/api/ask", json=ASK[1])
    assert collector.named("POST /api/ask")
    assert collector.resource["service.name"] == "handbook"
    assert collector.resource["deployment.environment.name"] == "staging"
    assert collector.headers[0]["api-key"] == "very-secret"


async def test_the_service_is_called_citewell(collector: Collector, pages: Path) -> None:
    async with running(settings_for(pages, embedder="hashing", tracing="otlp")) as http:
        await http.post("/api/ask", json=ASK[1])
    assert collector.resource["service.name"] == "citewell"


async def test_a_sampler_that_takes_nothing_sends_nothing(
    collector: Collector, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    async with running(settings_for(pages, embedder="hashing", tracing="otlp")) as http:
        assert (await http.post("/api/ask", json=ASK[1])).status_code == 200
    assert collector.bodies == []


def test_a_value_that_the_sdk_cannot_read_is_named_at_the_start(
    collector: Collector, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
    with pytest.raises(SettingsError, match="max_export_batch_size"):
        create_app(settings_for(pages, embedder="hashing", tracing="otlp"))


@pytest.mark.parametrize("collector_is", ["down", "refusing", "broken", "hanging"])
def test_a_collector_that_fails_does_no_harm(pages: Path, monkeypatch: pytest.MonkeyPatch, collector_is: str) -> None:
    """Questions are answered, streams too, one warning is logged, and the server stops when it is told to."""
    with Collector(
        status={"refusing": 401, "broken": 503}.get(collector_is, 200), hang=collector_is == "hanging"
    ) as it:
        if collector_is != "down":
            point_at(it, monkeypatch)
        else:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        server = serving(pages, None, CITEWELL_EMBEDDER="hashing", CITEWELL_TRACING="otlp")
        with server as address:
            for _ in range(5):
                answer = httpx2.post(f"{address}/api/ask", json=ASK[1]).json()
                assert "uphill" in answer["answer"]
            streamed = events(httpx2.post(f"{address}{STREAMS[0][0]}", json=STREAMS[0][1]).text)
            assert streamed[-1]["done"] is True
            assert httpx2.get(f"{address}/ready").json() == {"ready": True}
            os.kill(server.pid, signal.SIGTERM)
            assert server.wait() == 0
        warnings = [line for line in server.log.splitlines() if "tracing:" in line]
        assert len(warnings) == (0 if collector_is == "hanging" else 1), server.log
        assert "Traceback" not in server.log


def test_without_tracing_the_sdk_is_not_loaded(pages: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from citewell.http.app import create_app;"
        "from citewell.settings import Settings; create_app(Settings(home=Path(sys.argv[1])));"
        "import citewell.answer.flow;"
        "print([name for name in sys.modules if name.startswith('opentelemetry.')"
        " and name.split('.')[1] in ('sdk', 'exporter', 'proto')])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(pages)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_package_is_named_with_how_to_install_it(pages: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry.sdk'] = None\n")
    done = subprocess.run(
        [sys.executable, "-m", "citewell", "serve", "--port", "0"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "CITEWELL_HOME": str(pages), "CITEWELL_TRACING": "otlp"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "pip install 'citewell[otel]'" in done.stderr


def test_a_span_without_one_around_it_does_nothing() -> None:
    assert current_span() is NO_SPAN
    with span("retrieve") as inner:
        inner.set({"citewell.passages": 1})
        assert inner is NO_SPAN
    with pytest.raises(KeyError), span("read"):
        raise KeyError
    assert current_span() is NO_SPAN


def test_ids_of_requests_in_logs_and_traces_are_the_same(
    collector: Collector, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(pages, None, CITEWELL_EMBEDDER="hashing", CITEWELL_TRACING="otlp", CITEWELL_LOG_FORMAT="json")
    with server as address:
        response = httpx2.post(f"{address}/api/ask", json=ASK[1])
    own_id = UUID(response.headers["X-Request-ID"])
    logged = {json.loads(line).get("request_id") for line in server.log.splitlines() if line.startswith("{")}
    assert str(own_id) in logged
    (request,) = collector.named("POST /api/ask")
    assert request.attributes["citewell.request_id"] == str(own_id)

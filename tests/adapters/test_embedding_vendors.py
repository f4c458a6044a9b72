"""Embeddings by a vendor: what is sent, what is taken, and what happens when it fails. On loopback, as documented."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, TypeVar

import numpy as np
import pytest

from citewell.adapters.cohere import CohereEmbedder
from citewell.adapters.embeddings_openai import OpenAiCompatibleEmbedder
from citewell.adapters.vendor_embedding import EmbeddingPolicies
from citewell.adapters.vendors import OpenAiCompatible
from citewell.errors import ModelError, SettingsError
from citewell.models import Vector
from citewell.ports import Embeddable, Embedder, Embedding
from citewell.retry import RetryPolicy
from tests.fakes import cohere, embeddings
from tests.fakes.embeddings import EmbeddingServer
from tests.fakes.vendor import WELL, Reply, Vendor, sent
from tests.http.live import until

T = TypeVar("T")

HURRIED = RetryPolicy(attempt_seconds=10.0, total_seconds=30.0, backoff_seconds=0.001, open_seconds=30.0)
BRIEF = replace(HURRIED, attempt_seconds=0.8)
PASSAGES = [Embeddable("Pumps", "A pump moves water."), Embeddable("Valves", "A valve stops it.")]
DIMENSIONS = 1024


@dataclass(frozen=True)
class Wire:
    """A vendor's protocol: its server, its embedder and how it says things."""

    name: str
    key: str
    server: Callable[..., AbstractContextManager[Vendor]]
    problem: Callable[..., Reply]
    answer: Callable[[list[Any]], Reply]

    def embedder(
        self, url: str, *, retry_policy: RetryPolicy = HURRIED, now: Callable[[], float] = lambda: 0.0
    ) -> Embedder:
        policies = EmbeddingPolicies(ingest=retry_policy, question=retry_policy)
        if self.name == "cohere":
            return CohereEmbedder(self.key, base_url=url, policies=policies, now=now)
        return OpenAiCompatibleEmbedder(
            "custom", key=self.key, model="ours", dimensions=DIMENSIONS,
            base_url=url, policies=policies, now=now,
        )  # fmt: skip


def _openai(*replies: Reply, **how: Any) -> EmbeddingServer:
    return EmbeddingServer(*replies, dimensions=DIMENSIONS, **how)


WIRES = [
    Wire("openai", embeddings.KEY, _openai, embeddings.problem, embeddings.listed),
    Wire("cohere", cohere.KEY, cohere.Vendor, cohere.problem, cohere.embeddings),
]


@pytest.fixture(params=WIRES, ids=lambda wire: str(wire.name))
def wire(request: pytest.FixtureRequest) -> Wire:
    made: Wire = request.param
    return made


def using(embedder: Embedder, work: Callable[[Embedder], Awaitable[T]]) -> T:
    async def run() -> T:
        try:
            return await work(embedder)
        finally:
            await embedder.close()

    return asyncio.run(run())


async def both(embedder: Embedder) -> list[Embedding]:
    return await embedder.embed_passages(PASSAGES)


async def a_question(embedder: Embedder) -> Vector:
    return await embedder.embed_query("What moves water?")


AN_HOUR_AGO = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
PASSING: dict[str, Callable[[Wire], Reply]] = {
    "429": lambda wire: wire.problem(429),
    "429 with a number": lambda wire: wire.problem(429, Retry_After="0"),
    "429 with a date": lambda wire: wire.problem(429, Retry_After=AN_HOUR_AGO),
    "500": lambda wire: wire.problem(500),
    "503": lambda wire: wire.problem(503),
    "a proxy's page": lambda _: Reply(502, b"<html>bad gateway</html>"),
    "hung": lambda _: Reply(hang=True),
    "cut off": lambda _: Reply(body=b'{"data": [', cut=True),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_what_passes_is_tried_again(wire: Wire, fault: Callable[[Wire], Reply]) -> None:
    reply = fault(wire)
    with wire.server(reply, WELL) as vendor:
        given = using(wire.embedder(vendor.url, retry_policy=BRIEF if reply.hang else HURRIED), both)
    assert len(given) == 2
    assert len(vendor.calls) == 2
    assert vendor.calls[0] == vendor.calls[1]


LASTING = {name: fault for name, fault in PASSING.items() if not name.startswith("429")}


@pytest.mark.parametrize("fault", LASTING.values(), ids=LASTING.keys())
@pytest.mark.parametrize("work", [both, a_question])
def test_after_three_tries_it_is_a_clear_error(
    wire: Wire, fault: Callable[[Wire], Reply], work: Callable[[Embedder], Awaitable[object]]
) -> None:
    reply = fault(wire)
    with wire.server(reply) as vendor:
        with pytest.raises(ModelError, match=r"gives no embeddings: (status|it )") as failed:
            using(wire.embedder(vendor.url, retry_policy=BRIEF if reply.hang else HURRIED), work)
        until(lambda: len(vendor.calls) >= 3, "each try was heard, the last one maybe late")
    assert len(vendor.calls) == 3
    assert wire.key not in str(failed.value)


def test_an_ingest_sits_out_a_limit_of_rate_however_often_it_is_told_to_wait(wire: Wire) -> None:
    with wire.server(*[wire.problem(429, Retry_After="0")] * 7, WELL) as vendor:
        given = using(wire.embedder(vendor.url), both)
    assert len(given) == 2
    assert len(vendor.calls) == 8


def test_an_ingest_waits_as_long_as_it_is_told(wire: Wire) -> None:
    with wire.server(shut_seconds=1) as vendor:
        using(wire.embedder(vendor.url), both)
    assert len(vendor.calls) == 2


def test_even_an_ingest_does_not_wait_for_ever(wire: Wire) -> None:
    later = wire.problem(429, "slow down", Retry_After="3600")
    with wire.server(later) as vendor, pytest.raises(ModelError, match="status 429: slow down"):
        using(wire.embedder(vendor.url), both)
    assert len(vendor.calls) == 1


def test_a_long_wait_is_said(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    async def briefly(embedder: Embedder) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await embedder.embed_passages(PASSAGES)

    with wire.server(wire.problem(429, Retry_After="20")) as vendor:
        using(wire.embedder(vendor.url), briefly)
    assert [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING] == [
        "the call failed; retrying in 20 s"
    ]


def test_a_question_tries_three_times_under_a_limit_of_rate(wire: Wire) -> None:
    with wire.server(wire.problem(429, Retry_After="0")) as vendor, pytest.raises(ModelError, match="status 429"):
        using(wire.embedder(vendor.url), a_question)
    assert len(vendor.calls) == 3


def test_an_account_that_is_used_up_is_no_limit_of_rate() -> None:
    used_up = embeddings.problem(429, "You exceeded your current quota", code="insufficient_quota")
    with _openai(used_up) as vendor, pytest.raises(ModelError, match="status 429: You exceeded your current quota"):
        using(WIRES[0].embedder(vendor.url), both)
    assert len(vendor.calls) == 1


def row(value: float = 0.5, *, dimensions: int = DIMENSIONS) -> list[float]:
    return [value] * dimensions


SENSELESS: dict[str, Callable[[Wire], Reply]] = {
    "no JSON": lambda _: Reply(body=b"<html>hello</html>"),
    "no text": lambda _: Reply(body=b"\xff\xfe\x00garbage"),
    "nothing": lambda _: Reply(body=b""),
    "a list": lambda _: Reply(body=b"[]"),
    "null": lambda _: Reply(body=b"null"),
    "deep": lambda _: Reply(body=b"[" * 100_000),
    "an object": lambda _: Reply(body=b'{"id": "x"}'),
    "rows of another kind": lambda wire: wire.answer(["AAAA", "AAAA"]),
    "one missing": lambda wire: wire.answer([row()]),
    "one too many": lambda wire: wire.answer([row(), row(), row()]),
    "too short": lambda wire: wire.answer([row(dimensions=512), row(dimensions=512)]),
    "too long": lambda wire: wire.answer([row(), row(dimensions=DIMENSIONS + 1)]),
    "no number": lambda wire: wire.answer([row(), row(float("nan"))]),
    "endless": lambda wire: wire.answer([row(), row(float("inf"))]),
    "beyond a float": lambda wire: wire.answer([row(), row(1e300)]),
    "zeros": lambda wire: wire.answer([row(), row(0.0)]),
    "words": lambda wire: wire.answer([row(), ["high"] * DIMENSIONS]),
}


@pytest.mark.parametrize("fault", SENSELESS.values(), ids=SENSELESS.keys())
def test_an_answer_that_makes_no_sense_is_a_clear_error(wire: Wire, fault: Callable[[Wire], Reply]) -> None:
    with wire.server(fault(wire)) as vendor, pytest.raises(ModelError, match="make no sense: "):
        using(wire.embedder(vendor.url), both)
    assert len(vendor.calls) == 1


def test_vectors_of_another_length_name_the_setting(wire: Wire) -> None:
    says = "of 512 numbers instead of 1024; set CITEWELL_EMBEDDING_DIMENSIONS"
    with wire.server(wire.answer([row(dimensions=512)])) as vendor, pytest.raises(ModelError, match=says):
        using(wire.embedder(vendor.url), a_question)


@pytest.mark.parametrize("rows", [
    [{"index": 0, "embedding": row()}, {"index": 0, "embedding": row()}],
    [{"index": 0, "embedding": row()}, {"index": 2, "embedding": row()}],
    [{"index": -1, "embedding": row()}, {"index": 0, "embedding": row()}],
    [{"index": "first", "embedding": row()}, {"index": 1, "embedding": row()}],
])  # fmt: skip
def test_an_index_that_makes_no_sense_is_an_error(rows: list[Any]) -> None:
    with _openai(embeddings.listed(rows)) as vendor, pytest.raises(ModelError, match="make no sense"):
        using(WIRES[0].embedder(vendor.url), both)


def test_rows_are_matched_by_index_in_whatever_order_they_come() -> None:
    first, second = row(), [1.0, *row(0.0, dimensions=DIMENSIONS - 1)]
    swapped = [{"index": 1, "embedding": second}, {"index": 0, "embedding": first}]
    with _openai(embeddings.listed(swapped)) as vendor:
        given = using(WIRES[0].embedder(vendor.url), both)
    assert given[1].vectors[0][0] == 1.0
    assert np.allclose(given[0].vectors[0], DIMENSIONS**-0.5)


def test_a_vendor_that_leaves_out_the_index_answers_in_order() -> None:
    with _openai(embeddings.listed([{"embedding": row()}, {"embedding": row()}])) as vendor:
        assert len(using(WIRES[0].embedder(vendor.url), both)) == 2


def test_a_vendor_that_nobody_reaches_is_a_clear_error(wire: Wire) -> None:
    with wire.server() as vendor:
        pass
    with pytest.raises(ModelError, match="it cannot be reached"):
        using(wire.embedder(vendor.url), both)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_names_the_setting_and_not_the_key(wire: Wire, status: int) -> None:
    says = r"refuses the key in C[A-Z_]+_API_KEY"
    refused = wire.problem(status, f"invalid: {wire.key}")
    with wire.server(refused) as vendor, pytest.raises(ModelError, match=says) as failed:
        using(wire.embedder(vendor.url), both)
    assert len(vendor.calls) == 1
    assert wire.key not in str(failed.value)


def test_what_the_vendor_says_of_a_wrong_request_is_told_without_the_key(wire: Wire) -> None:
    wrong = wire.problem(404, f"model 'x' not found\nfor {wire.key}")
    with wire.server(wrong) as vendor, pytest.raises(ModelError, match="status 404: model 'x' not found for …"):
        using(wire.embedder(vendor.url), both)
    assert len(vendor.calls) == 1


def test_gemini_wraps_its_errors_in_a_list() -> None:
    wrapped = sent([{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}], 400)
    with _openai(wrapped) as vendor, pytest.raises(ModelError, match="status 400: API key not valid"):
        using(WIRES[0].embedder(vendor.url), both)


def test_after_a_failure_questions_do_not_wait_for_a_while(wire: Wire) -> None:
    clock = [0.0]

    async def work(embedder: Embedder) -> None:
        for _ in range(3):
            with pytest.raises(ModelError, match="status 500"):
                await embedder.embed_query("What?")
        clock[0] += 31
        await embedder.embed_query("What?")
        await embedder.embed_query("What?")

    with wire.server(*[wire.problem(500)] * 3, WELL) as vendor:
        using(wire.embedder(vendor.url, now=lambda: clock[0]), work)
    assert len(vendor.calls) == 3 + 0 + 0 + 1 + 1


def test_a_question_that_the_vendor_refuses_shuts_out_no_other(wire: Wire) -> None:
    async def work(embedder: Embedder) -> None:
        with pytest.raises(ModelError, match="status 400"):
            await embedder.embed_query("What?")
        await embedder.embed_query("What else?")

    with wire.server(wire.problem(400), WELL) as vendor:
        using(wire.embedder(vendor.url), work)


MANY = [Embeddable("", f"Valve {n}.") for n in range(250)]


@pytest.mark.parametrize(
    ("provider", "takes", "most"), [("openai", 2048, 128), ("gemini", 100, 100), ("ollama", 32, 8)]
)
def test_a_call_brings_no_more_texts_than_the_vendor_takes(provider: OpenAiCompatible, takes: int, most: int) -> None:
    with EmbeddingServer(most=takes) as vendor:
        embedder = OpenAiCompatibleEmbedder(provider, key=embeddings.KEY, base_url=vendor.url)
        given = using(embedder, lambda one: one.embed_passages(MANY))
    assert len(given) == 250
    assert [len(call["input"]) for call in vendor.calls] == [most] * (250 // most) + [250 % most]


def test_cohere_takes_96_texts_in_a_call() -> None:
    with cohere.Vendor() as vendor:
        using(CohereEmbedder(cohere.KEY, base_url=vendor.url), lambda one: one.embed_passages(MANY))
    assert [len(call["texts"]) for call in vendor.calls] == [96, 96, 58]


def test_a_call_brings_no_more_words_than_a_vendor_takes() -> None:
    dense = [Embeddable("", "漢" * 4000) for _ in range(20)]
    with EmbeddingServer(most=100) as vendor:
        embedder = OpenAiCompatibleEmbedder("gemini", key=embeddings.KEY, base_url=vendor.url)
        given = using(embedder, lambda one: one.embed_passages(dense))
    assert all(len(one.vectors) == 10 for one in given)
    assert len(vendor.calls) > 2
    assert max(sum(map(len, call["input"])) for call in vendor.calls) <= 30_000


def test_openai_is_sent_what_its_protocol_says() -> None:
    with EmbeddingServer() as vendor:
        given = using(OpenAiCompatibleEmbedder("openai", key=embeddings.KEY, base_url=vendor.url), both)
    assert vendor.calls == [{
        "model": "text-embedding-3-small",
        "input": ["Pumps\nA pump moves water.", "Valves\nA valve stops it."],
        "encoding_format": "float",
    }]  # fmt: skip
    assert given[0].vectors.shape == (1, 1536)


def test_gemini_is_asked_for_768_dimensions_and_they_are_brought_to_unit_length() -> None:
    with EmbeddingServer(most=100) as vendor:
        embedder = OpenAiCompatibleEmbedder("gemini", key=embeddings.KEY, base_url=vendor.url)
        vector = using(embedder, a_question)
    assert vendor.calls[0]["model"] == "gemini-embedding-001"
    assert vendor.calls[0]["dimensions"] == 768
    assert vector.shape == (768,)
    assert np.isclose(np.linalg.norm(vector), 1, atol=1e-5)
    assert embedder.model == "gemini/gemini-embedding-001/768"


def test_a_model_that_wants_to_know_what_it_reads_is_told() -> None:
    async def work(embedder: Embedder) -> None:
        await embedder.embed_passages(PASSAGES[:1])
        await embedder.embed_query("What moves water?")

    with EmbeddingServer(key=None) as vendor:
        embedder = OpenAiCompatibleEmbedder("ollama", key=None, model="nomic-embed-text:latest", base_url=vendor.url)
        using(embedder, work)
    assert vendor.texts == ["search_document: Pumps\nA pump moves water.", "search_query: What moves water?"]


def test_cohere_is_told_what_is_a_passage_and_what_a_question() -> None:
    async def work(embedder: Embedder) -> None:
        await embedder.embed_passages(PASSAGES)
        await embedder.embed_query("What moves water?")

    with cohere.Vendor() as vendor:
        using(CohereEmbedder(cohere.KEY, base_url=vendor.url), work)
    same = {"model": "embed-english-v3.0", "embedding_types": ["float"]}
    assert vendor.calls == [
        {**same, "input_type": "search_document", "texts": ["Pumps\nA pump moves water.", "Valves\nA valve stops it."]},
        {**same, "input_type": "search_query", "texts": ["What moves water?"]},
    ]


def test_cohere_is_asked_for_fewer_dimensions_only_where_its_model_has_more() -> None:
    with cohere.Vendor() as vendor:
        embedder = CohereEmbedder(cohere.KEY, base_url=vendor.url, model="embed-v4.0", dimensions=512)
        assert using(embedder, a_question).shape == (512,)
    assert vendor.calls[0]["output_dimension"] == 512


def test_a_server_of_one_s_own_is_not_asked_for_dimensions_it_may_not_know() -> None:
    with _openai() as vendor:
        using(WIRES[0].embedder(vendor.url), a_question)
    assert "dimensions" not in vendor.calls[0]


def test_the_vendor_is_not_told_what_machine_this_is(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-ours")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-ours")
    with wire.server() as vendor:
        using(wire.embedder(vendor.url), a_question)
    (headers,) = vendor.headers
    assert headers["authorization"] == f"Bearer {wire.key}"
    told = {name for name in headers if name.startswith(("x-stainless", "x-fern", "openai-"))}
    assert told <= {"x-stainless-raw-response", "x-fern-language", "x-fern-sdk-name", "x-fern-sdk-version"}


def test_models_that_differ_in_anything_have_names_that_differ() -> None:
    made: list[Embedder] = [
        OpenAiCompatibleEmbedder("openai", key="k"),
        OpenAiCompatibleEmbedder("openai", key="k", dimensions=512),
        OpenAiCompatibleEmbedder("openai", key="k", model="text-embedding-3-large"),
        OpenAiCompatibleEmbedder("custom", key=None, model="text-embedding-3-small", base_url="http://127.0.0.1:1"),
        CohereEmbedder("k"),
    ]
    assert len({one.model for one in made}) == len(made)


def test_a_model_that_is_not_known_needs_its_dimensions() -> None:
    with pytest.raises(SettingsError, match="embedding model ours has is not known here; set CITEWELL_EMBEDDING_DIM"):
        OpenAiCompatibleEmbedder("custom", key=None, model="ours", base_url="http://127.0.0.1:1")
    with pytest.raises(SettingsError, match="embedding model embed-v9 has is not known"):
        CohereEmbedder("k", model="embed-v9")

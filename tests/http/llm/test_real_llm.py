"""A real LLM behind the endpoints: too small to obey, so whatever it says must still leave true citations only."""

import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import settings_for
from tests.fakes.smollm import CannotStart, smollm
from tests.http.conftest import DEFAULT, events, running

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("smollm")]  # it is started once

QUESTION = "What moves water uphill?"
CUT_OFF = "The answer was cut off: it is as long as the language model may write."
V1 = {"message": QUESTION, "projectId": str(DEFAULT.id)}


@pytest.fixture(scope="module")
def llm() -> Iterator[str]:
    try:
        with smollm() as url:
            # It is slow to its first word where other tests have the cores; nobody's patience is tested here.
            hello = {"model": "smollm2", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
            httpx2.post(f"{url}/chat/completions", json=hello, timeout=300).raise_for_status()
            yield url
    except CannotStart as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture
async def http(llm: str, pages: Path) -> AsyncIterator[httpx2.AsyncClient]:
    settings = settings_for(
        pages,
        embedder="hashing",
        llm_base_url=llm,
        llm_model="smollm2",
        llm_context_tokens=1024,
        llm_temperature=0.0,
        llm_timeout_seconds=300,
    )
    async with running(settings) as client:
        yield client


async def streamed(http: httpx2.AsyncClient, address: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    return events((await http.post(address, json=body)).text)


async def test_the_web_chat_shows_cited_sentences_or_quotations(http: httpx2.AsyncClient) -> None:
    said = await streamed(http, "/api/ask/stream", {"question": QUESTION})
    text, last = "".join(one["content"] for one in said), said[-1]
    cited = {int(number) for number in re.findall(r" \[(\d+)\]", text)}
    assert cited == set(range(1, len(last["citations"]) + 1))
    assert last["citations"]
    assert last["confidence"] > 0
    # So small a model may ramble until it may write no more, and that is said; any other notice means quotations.
    if last.get("notice", CUT_OFF) == CUT_OFF:
        assert all(one["chunk_ids"] and one["verdict"] in ("supported", "weak") for one in last["support"])
    else:
        assert "quotes" in last["notice"]
        assert "support" not in last


async def test_a_session_shows_cited_sentences_or_quotations(http: httpx2.AsyncClient) -> None:
    response = (await streamed(http, "/chat/stream", {"query": QUESTION}))[-1]["response"]
    assert response["metadata"]["mode"] == "full"
    assert response["answer"]
    assert response["sources"]


async def test_the_project_api_shows_cited_sentences_or_quotations(http: httpx2.AsyncClient) -> None:
    said = await streamed(http, "/api/v1/chat/stream", V1)
    response = said[-1]["response"]
    assert "".join(one.get("delta", "") for one in said) == response["response"]
    assert set(re.findall(r"\[([0-9a-f]{64})\]", response["response"])) == {one["id"] for one in response["sources"]}
    assert response["sources"]
    assert response["model"] == ("extractive" if "quotes" in response.get("notice", "") else "smollm2")
    assert response["promptEvalCount"] > 0
    assert response["evalCount"] > 0


async def test_it_is_seen_to_be_well(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/health")).json()["services"]["llm"]["status"] == "healthy"

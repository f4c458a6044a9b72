"""Endpoints beside a loopback LLM, and ways to make it say things about the passages it is given."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from citewell.settings import Settings
from tests.conftest import settings_for
from tests.fakes.llm import KEY, LLM, MODEL, Mind, Reply, Says
from tests.http.conftest import DEFAULT, events, running

QUESTION = "What moves water uphill?"
UNCOVERED = "How long does a chicken roast?"
PUMP = "A pump moves water uphill"
RAM = "A ram moves water uphill without a motor"

ASK = ("/api/ask", {"question": QUESTION})
QUERY = ("/api/query", {"query": QUESTION})
CHAT = ("/chat", {"query": QUESTION})
V1 = ("/api/v1/chat", {"message": QUESTION, "projectId": str(DEFAULT.id)})
STREAMS = [("/api/ask/stream", ASK[1]), ("/chat/stream", CHAT[1]), ("/api/v1/chat/stream", V1[1])]


def numbers(request: dict[str, Any]) -> dict[str, int]:
    """The number of each passage that a model was given, by the passage's words."""
    told = "\n".join(str(one.get("content") or "") for one in request["messages"])
    shown = re.findall(r"^\[(\d+)\][^\n]*\n<passage (\w+)>\n(.*?)\n</passage \2>$", told, re.DOTALL | re.MULTILINE)
    return {words: int(number) for number, _, words in shown}


def number_of(words: str, request: dict[str, Any]) -> int:
    """The number of the passage that says these words."""
    return next(number for text, number in numbers(request).items() if words in text)


def saying(make: Callable[[Callable[[str], int]], str], **how: Any) -> Mind:
    """A model that reads: what it says is made with the number of the passage in which some words stand."""
    return lambda request: Says(make(lambda words: number_of(words, request)), **how)


WELL = saying(lambda at: f"{PUMP} [{at(PUMP)}]. {RAM} [{at(RAM)}].")


def over(pages: Path, llm: LLM, **values: object) -> Settings:
    return settings_for(pages, embedder="hashing", llm_base_url=llm.url, llm_model=MODEL, llm_api_key=KEY, **values)


@asynccontextmanager
async def writing(
    pages: Path, *replies: Reply | Mind, **values: object
) -> AsyncIterator[tuple[httpx2.AsyncClient, LLM]]:
    with LLM(*replies) as llm:
        async with running(over(pages, llm, **values)) as http:
            yield http, llm


async def told(http: httpx2.AsyncClient, endpoint: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    reply = await http.post(endpoint[0], json=endpoint[1])
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


def verdicts(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["sentence"], one["verdict"]) for one in body.get("support", [])]


async def streamed(http: httpx2.AsyncClient, endpoint: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return events((await http.post(endpoint[0], json=endpoint[1])).text)

"""What every Reranker promises."""

import asyncio
import math
from collections.abc import AsyncIterator
from uuid import uuid5

import pytest

from citewell.adapters.cohere import CohereReranker
from citewell.answer.retrieval.rerank import LocalReranker
from citewell.models import Chunk, Passage, Project, chunk_id, content_hash
from citewell.ports import Reranker
from tests.fakes.cohere import KEY, Vendor

pytestmark = pytest.mark.anyio

PROJECT = Project.named("ours").id


@pytest.fixture(params=["local", "cohere"])
async def reranker(request: pytest.FixtureRequest) -> AsyncIterator[Reranker]:
    with Vendor() as cohere:
        made: Reranker = LocalReranker() if request.param == "local" else CohereReranker(KEY, base_url=cohere.url)
        yield made
        await made.close()


def passage(text: str, *, score: float = 0.5) -> Passage:
    document = uuid5(PROJECT, "a.md")
    content = content_hash("Title", "Section", text)
    chunk = Chunk(
        id=chunk_id(document, content),
        document_id=document,
        content_hash=content,
        index=0,
        source="a.md",
        chapter="Title",
        section="Section",
        headings=("Section",),
        text=text,
        start=0,
        end=len(text),
        first_line=1,
        last_line=1,
    )
    return Passage(chunk, score, ())


async def test_every_passage_gets_a_finite_score(reranker: Reranker) -> None:
    passages = [passage(f"Valve {n} " + "turns " * (n % 7)) for n in range(20)]
    scores = await reranker.rerank("Which valve turns?", passages, weights={"valv": 0.5, "turn": 0.5})
    assert len(scores) == len(passages)
    assert all(math.isfinite(score) for score in scores)


async def test_the_same_question_gets_the_same_scores(reranker: Reranker) -> None:
    passages = [passage("A pump moves water."), passage("A valve stops it."), passage("Pipes carry hot water.")]
    first = await reranker.rerank("What moves water?", passages, weights={"water": 1.0})
    assert await reranker.rerank("What moves water?", passages, weights={"water": 1.0}) == first


async def test_no_passages_are_no_scores(reranker: Reranker) -> None:
    assert await reranker.rerank("What?", [], weights={}) == []


async def test_one_passage_is_enough(reranker: Reranker) -> None:
    assert len(await reranker.rerank("What?", [passage("A pump.")], weights={})) == 1


async def test_questions_asked_at_once_get_each_their_own_scores(reranker: Reranker) -> None:
    sizes = [1, 9, 3, 7, 5]
    asked = [reranker.rerank("What?", [passage(f"{n} of {size}") for n in range(size)], weights={}) for size in sizes]
    assert [len(scores) for scores in await asyncio.gather(*asked)] == sizes


@pytest.mark.parametrize("text", ["", " ", "\x07", "漢字" * 500, "a" * 50_000, "🤖 🦾", "lone \ud800 half", '"}]\\'])
async def test_odd_texts_are_ranked_too(reranker: Reranker, text: str) -> None:
    scores = await reranker.rerank(f"What is {text}?", [passage(text), passage("A pump.")], weights={})
    assert len(scores) == 2
    assert all(math.isfinite(score) for score in scores)

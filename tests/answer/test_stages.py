"""A question runs through its stages, the log says which, and whatever hangs is given up on."""

import asyncio
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from citewell.adapters.hashing import HashingEmbedder
from citewell.adapters.qdrant_edge.index import QdrantEdgeIndex
from citewell.answer import flow
from citewell.answer.engines import AnswerEngines
from citewell.answer.reply.markers import NumberedMarkers
from citewell.answer.retrieval.rerank import LocalReranker
from citewell.answer.retrieval.search import retrieve
from citewell.errors import IndexUnavailable, ModelError
from citewell.models import Answer, Passage, Piece, StageReached, Vector
from citewell.ports import Embedder, Index
from citewell.similarity_scale import IDENTITY_SCALE, SimilarityScale
from tests.conftest import PROJECT, Citewell, chunk_of

PUMP = Passage(chunk_of("A pump moves water uphill."), 0.9, (), sentence_stems=(("pump", "move", "water", "uphil"),))
QUESTION = "What does a pump do?"

pytestmark = pytest.mark.anyio


class OnePage:
    """An index that holds one page."""

    async def search(self, *_: object, **__: object) -> tuple[Passage, ...]:
        return (PUMP,)

    async def frequencies(self, project: object, stems: Sequence[str], **_: object) -> tuple[int, list[int]]:  # noqa: ARG002
        return 1, [1] * len(stems)

    async def scale(self) -> SimilarityScale:
        return IDENTITY_SCALE

    def problem(self) -> str | None:
        return None

    async def close(self) -> None:
        pass


class HungIndex(OnePage):
    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def search(self, *_: object, **__: object) -> tuple[Passage, ...]:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("never")


class HungEmbedder(HashingEmbedder):
    async def embed_query(self, text: str) -> Vector:  # noqa: ARG002
        await asyncio.Event().wait()
        raise AssertionError("never")


def engines(*, embedder: Embedder | None = None, index: Index | None = None, seconds: float = 10.0) -> AnswerEngines:
    return AnswerEngines(
        embedder or HashingEmbedder(),
        index or OnePage(),
        LocalReranker(),
        index_timeout_seconds=seconds,
        embedder_timeout_seconds=seconds,
    )


def stages(log: pytest.LogCaptureFixture) -> list[str]:
    told = [record for record in log.records if record.name == "citewell.answer"]
    assert all(vars(record)["latency_ms"] >= 0 for record in told)
    return [vars(record)["stage"] for record in told]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="citewell.answer")
    return caplog


async def test_an_answer_says_when_it_searches_and_when_it_writes(log: pytest.LogCaptureFixture) -> None:
    told: list[Piece | Answer] = [one async for one in flow.answer(QUESTION, project=PROJECT, engines=engines())]
    assert told[:2] == [StageReached("retrieving"), StageReached("generating")]
    assert isinstance(told[-1], Answer)
    assert not any(isinstance(one, StageReached) for one in told[2:])
    assert stages(log) == ["RECEIVED", "RETRIEVING", "GENERATING", "COMPLETED"]


async def test_a_whole_answer_is_logged_as_completed(log: pytest.LogCaptureFixture) -> None:
    text, _ = await flow.collect(flow.answer(QUESTION, project=PROJECT, engines=engines()), NumberedMarkers().render)
    assert text.endswith("[1]")
    assert stages(log)[-1] == "COMPLETED"


async def test_an_index_that_hangs_is_given_up_on(log: pytest.LogCaptureFixture) -> None:
    with pytest.raises(IndexUnavailable, match="the vector store does not answer"):
        await flow.collect(
            flow.answer(QUESTION, project=PROJECT, engines=engines(index=HungIndex(), seconds=0.01)),
            NumberedMarkers().render,
        )
    assert stages(log) == ["RECEIVED", "RETRIEVING", "FAILED"]
    assert vars(log.records[-1])["error"] == "IndexUnavailable"


@pytest.mark.parametrize("selection", ["", "A pump moves water uphill."])
async def test_an_embedder_that_hangs_is_given_up_on(selection: str) -> None:
    hung = engines(embedder=HungEmbedder(), seconds=0.01)
    with pytest.raises(ModelError, match="hashing-64 does not answer"):
        await flow.collect(
            flow.answer(QUESTION, project=PROJECT, engines=hung, selection=selection), NumberedMarkers().render
        )


async def test_a_question_that_is_given_up_by_its_reader_has_failed(log: pytest.LogCaptureFixture) -> None:
    index = HungIndex()
    waiting = asyncio.create_task(
        flow.collect(flow.answer(QUESTION, project=PROJECT, engines=engines(index=index)), NumberedMarkers().render)
    )
    await index.asked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert stages(log)[-1] == "FAILED"


async def test_a_stream_that_is_closed_half_way_has_failed(log: pytest.LogCaptureFixture) -> None:
    pieces = flow.answer(QUESTION, project=PROJECT, engines=engines())
    while not isinstance(await anext(pieces), str):
        pass
    await pieces.aclose()
    assert stages(log)[-1] == "FAILED"


@pytest.fixture
def broken(book_home: Path, tmp_path: Path) -> Path:
    """A home whose index was damaged on disk."""
    home = tmp_path / "broken"
    shutil.copytree(book_home, home)
    for config in (home / "index").rglob("edge_config.json"):
        config.write_text("not what the engine wrote")
    return home


async def test_a_damaged_index_is_unavailable_and_names_no_folder(broken: Path) -> None:
    index = QdrantEdgeIndex(broken / "index", model="all-MiniLM-L6-v2-int8", dimensions=384)
    made = engines(index=index)
    vector = (await made.embedder.embed_query(QUESTION)).repeat(6)
    for asked in (
        index.search(PROJECT.id, vector=vector, words=QUESTION, limit=5),
        index.frequencies(PROJECT.id, ["pump"]),
        retrieve(QUESTION, project=PROJECT.id, engines=made, limit=5),
    ):
        with pytest.raises(IndexUnavailable) as refused:
            await asked
        assert str(broken) not in str(refused.value)
        assert "doctor" in str(refused.value)


def test_the_doctor_mends_a_damaged_index(broken: Path, citewell: Citewell) -> None:
    found = citewell("doctor", home=broken)
    assert found.returncode == 1
    assert "is damaged: shard/edge_config.json has 25 bytes instead of" in found.stdout
    assert "Repaired." in citewell("doctor", "--fix", home=broken).stdout
    assert citewell("search", "gyroscope", home=broken).returncode == 0

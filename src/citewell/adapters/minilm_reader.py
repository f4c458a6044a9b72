"""A cross-encoder of 22 million parameters that reads a question beside text, on onnxruntime.

It was trained from the weights of all-MiniLM-L6-v2 by `benchmarks/fit/reader.py`, on English. A window is a heading and
a few units; the model says whether the window answers, whether it supports a claim, and for each token whether it is
part of the answer: the mean over the tokens of a unit is the unit's score.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from citewell.adapters.local_model import batches, load_model, model_inputs, tokenizer
from citewell.ports import ReadableWindow, WindowScores
from citewell.text import data_file, replace_surrogates

_WEIGHTS = Path(str(data_file("reader.onnx")))
_SHA256 = "7c1a32444bd51ded09db7e70c59925e03adf6d5421cdc0355d94a9f553391b94"
_ANSWERS, _SUPPORTS = 0, 2  # the columns of the heads; nothing uses the one between them

# What the model saw in training: `benchmarks/fit/reader_examples.py` imports these.
QUESTION_TOKENS, HEADING_TOKENS, UNIT_TOKENS, WINDOW_TOKENS = 48, 24, 72, 256


class MiniLmReader:
    """Reads English; about 10 ms for a window of 128 tokens on one core."""

    model = "minilm-reader-int8"

    def __init__(self, *, threads: int = 0, weights: Path = _WEIGHTS, sha256: str = _SHA256) -> None:
        self._weights, self._sha256 = weights, sha256
        self._threads = threads or len(os.sched_getaffinity(0))
        self._loading = Lock()
        self._session: Any = None

    async def read(self, question: str, windows: Sequence[ReadableWindow]) -> list[WindowScores]:
        return await asyncio.to_thread(self._read, question, windows)

    async def warm(self) -> None:
        await asyncio.to_thread(self._load)

    async def close(self) -> None:
        pass

    def _load(self) -> None:
        with self._loading:
            if self._session is None:
                self._session = load_model(
                    self._weights, sha256=self._sha256, threads=self._threads, reinstall="reinstall citewell"
                )

    def _read(self, question: str, windows: Sequence[ReadableWindow]) -> list[WindowScores]:
        if self._session is None:
            self._load()
        encoded = [encode(question, window) for window in windows]
        scores: list[WindowScores] = [WindowScores(0.0, 0.0, ())] * len(windows)
        for batch in batches([tokens for tokens, _, _ in encoded]):
            inputs = model_inputs([encoded[row][0] for row in batch], [encoded[row][1] for row in batch])
            heads, token_scores = self._session.run(["windows", "tokens"], inputs)
            for row, head, by_token in zip(batch, heads, token_scores, strict=True):
                units = tuple(float(np.mean(by_token[first:last])) for first, last in encoded[row][2])
                scores[row] = WindowScores(float(head[_ANSWERS]), float(head[_SUPPORTS]), units)
        return scores


def encode(question: str, window: ReadableWindow) -> tuple[list[int], int, list[tuple[int, int]]]:
    """The token ids of a window, where its second segment begins, and the tokens of each unit.

    Long units are cut; the last units are left out where the window is longer than the model reads.
    """
    wordpiece = tokenizer()
    start, end, unknown = wordpiece.encode("[CLS] [SEP] [UNK]", add_special_tokens=False).ids[:3]

    def ids(text: str, most: int) -> list[int]:
        encoded: list[int] = wordpiece.encode(replace_surrogates(text), add_special_tokens=False).ids
        return encoded[:most]

    tokens = [start, *ids(question, QUESTION_TOKENS), end]
    second = len(tokens)
    if heading := ids(window.heading, HEADING_TOKENS):
        tokens += [*heading, end]
    spans: list[tuple[int, int]] = []
    for unit in window.units:
        part = ids(unit, UNIT_TOKENS) or [unknown]
        if len(tokens) + len(part) >= WINDOW_TOKENS:
            break
        spans.append((len(tokens), len(tokens) + len(part)))
        tokens += part
    return [*tokens, end], second, spans

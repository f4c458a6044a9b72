"""What the models that run on this machine share: the WordPiece tokenizer, and a checked model in memory."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from citewell.errors import ModelError
from citewell.text import data_file

_VOCABULARY = data_file("bert-uncased-vocabulary.txt")
# Tokens per run: enough to keep two cores busy; more only spills their caches (16.9 windows/s at one
# window of 240 tokens, 20.5 at four, 18.3 at sixteen).
_BATCH_TOKENS = 1024


@cache
def tokenizer() -> Tokenizer:
    """The WordPiece tokenizer. One for the process: nobody changes it."""
    words = _VOCABULARY.read_text(encoding="utf-8").split("\n")
    vocabulary = {word: number for number, word in enumerate(words) if word}
    wordpiece = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 (a token of text)
    wordpiece.normalizer = BertNormalizer(lowercase=True)
    wordpiece.pre_tokenizer = BertPreTokenizer()
    wordpiece.add_special_tokens(["[CLS]", "[SEP]"])
    return wordpiece


@cache
def load_model(weights: Path, *, sha256: str, threads: int, reinstall: str) -> Any:
    """The ONNX model in memory. One for the process: it may be run from any thread, and loading takes 0.4 s.

    Raises ModelError if the file cannot be read, or is not the one with this SHA-256; `reinstall` says what to do then.
    """
    try:
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    except OSError as error:
        raise ModelError(f"the model {weights.name} cannot be read; {reinstall}") from error
    if digest != sha256:
        raise ModelError(
            f"the model {weights.name} is not the one Citewell trusts (SHA-256 {digest[:12]}…, expected "
            f"{sha256[:12]}…); {reinstall}"
        )
    # Otherwise it collects telemetry in a folder of its own as soon as it is imported, and sends it to its makers.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_cpu_mem_arena = False  # it never releases the memory of the largest batch
    return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])


def batches(windows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Rows of similar length together, longest first, each batch at most `_BATCH_TOKENS` tokens with padding."""
    rows = sorted(range(len(windows)), key=lambda row: -len(windows[row]))
    while rows:
        size = max(1, _BATCH_TOKENS // len(windows[rows[0]]))
        yield rows[:size]
        rows = rows[size:]


def model_inputs(
    windows: Sequence[Sequence[int]], second_segments: Sequence[int] | None = None
) -> dict[str, NDArray[np.int64]]:
    """Token ids, padded to one length, as the model takes them; where the second segment of each window begins."""
    ids = np.zeros((len(windows), max(map(len, windows))), dtype=np.int64)
    mask, segments = np.zeros_like(ids), np.zeros_like(ids)
    for row, tokens in enumerate(windows):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
        if second_segments is not None:
            segments[row, second_segments[row] : len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}

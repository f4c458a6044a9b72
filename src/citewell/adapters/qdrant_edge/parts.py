"""A generation consists of parts: each was built as a shard of its own, and readers open all of them as one shard.

    7/shard/segments/…      the engine's segments of all parts
    7/parts/3/part.json     how many chunks part 3 has, and which segments are its own
    7/parts/3/documents.npy whose chunks they are
    7/parts/3/keys.npy, counts.npy

A shard is nothing but a folder of segments and its settings, so the segments of several can be put into one. The part
is what is copied when a chunk in it changes, and what has to be in memory while it is built.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    HnswIndexConfig,
    KeywordIndexParams,
    Memory,
    MultiVectorComparator,
    MultiVectorConfig,
    ScalarQuantizationConfig,
    ScalarType,
    TextIndexParams,
    TokenizerType,
    UpdateOperation,
)

from citewell.adapters.index_format import DENSE_VECTORS, SPARSE_VECTORS

_RECORD, _DOCUMENTS = "part.json", "documents.npy"


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes at which an index is built differently."""

    part_chunks: int = 25_000
    """A part has at most so many. Under construction, the engine takes 17.5 kB for a chunk of 400 words (docs/log.md),
    so this is some 450 MB, and the vectors. With fewer, a large index would have more graphs for a question to walk."""
    graph_chunks: int = 50_000
    """An index with more gets graphs (HNSW) and quantized vectors. Below, comparing a question with every vector takes
    less than 40 ms (76 ms for 100,000 chunks of five windows, docs/log.md), is exact, and needs no building."""
    graph_kilobytes: int = 10_000
    """Vectors of one segment that are compared one by one even then: that takes 1 to 2 ms."""


@dataclass(frozen=True, slots=True)
class PartRecord:
    """What is stored of a part beside its segments."""

    chunks: int
    segments: tuple[str, ...]
    """The names of their folders."""
    optimized: bool
    """Whether the engine has made graphs where they pay off."""


def part_folders(generation: Path) -> dict[str, Path]:
    """The folder of each part of a generation, by its name."""
    return {folder.name: folder for folder in sorted((generation / "parts").glob("*"))}


def write_part(folder: Path, record: PartRecord, documents: NDArray[np.uint64]) -> None:
    np.save(folder / _DOCUMENTS, documents)
    (folder / _RECORD).write_text(json.dumps(asdict(record)), encoding="utf-8")


def read_part(folder: Path) -> tuple[PartRecord, NDArray[np.uint64]]:
    """A part, and the sorted keys of its documents."""
    content: dict[str, Any] = json.loads((folder / _RECORD).read_bytes())
    record = PartRecord(content["chunks"], tuple(content["segments"]), content["optimized"])
    return record, np.load(folder / _DOCUMENTS)


def shard_config(dimensions: int, limits: Limits) -> EdgeConfig:
    dense = EdgeVectorParams(
        size=dimensions,
        distance=Distance.Cosine,
        multivector_config=MultiVectorConfig(MultiVectorComparator.MaxSim),
        memory=Memory.Cold,
    )
    return EdgeConfig(
        vectors={DENSE_VECTORS: dense},
        # Without the engine's IDF: it would count all projects, or one anew for each question.
        sparse_vectors={SPARSE_VECTORS: EdgeSparseVectorParams(memory=Memory.Cold)},
        hnsw_config=HnswIndexConfig(m=16, ef_construct=100, full_scan_threshold=limits.graph_kilobytes),
        quantization_config=ScalarQuantizationConfig(ScalarType.Int8, quantile=0.99, memory=Memory.Cached),
        # Two segments: one with a graph, and one for the chunks that were added since.
        optimizers=EdgeOptimizersConfig(default_segment_number=2, indexing_threshold=limits.graph_kilobytes),
        # No write-ahead log: a generation that is not finished is thrown away, never replayed.
        wal_enabled=False,
    )


def create_shard(folder: Path, config: EdgeConfig) -> EdgeShard:
    """An empty shard. Its fields are indexed before there are data, or graphs would not follow filters."""
    folder.mkdir(parents=True)
    shard = EdgeShard.create(str(folder), config)
    shard.update(UpdateOperation.create_field_index("project_id", KeywordIndexParams(is_tenant=True)))
    for field in ("document_id", "section", "chapter"):
        shard.update(UpdateOperation.create_field_index(field, KeywordIndexParams(enable_hnsw=False)))
    for field in ("filename", "matchable_urls"):
        shard.update(UpdateOperation.create_field_index(field, KeywordIndexParams(prefix=True, enable_hnsw=False)))
    whole_words = TextIndexParams(
        tokenizer=TokenizerType.Whitespace, lowercase=False, memory=Memory.Cold, enable_hnsw=False
    )
    shard.update(UpdateOperation.create_field_index("words", whole_words))
    return shard

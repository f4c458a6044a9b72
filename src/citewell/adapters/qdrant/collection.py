"""The collection of an embedding model, and the alias that has the configured name.

    citewell            an alias: the collection that was published into last, for people and their tools
    citewell-3f2a91c4   the points of one embedding model and format; our readers open it by this name

An index of another embedding model is another collection, so servers that use the old one are not disturbed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, TypeAlias, assert_never
from uuid import UUID

from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse
from qdrant_client.models import (
    AliasOperations,
    BinaryQuantization,
    BinaryQuantizationConfig,
    CollectionInfo,
    CreateAlias,
    CreateAliasOperation,
    DeleteAlias,
    DeleteAliasOperation,
    Distance,
    HnswConfigDiff,
    IntegerIndexParams,
    IntegerIndexType,
    KeywordIndexParams,
    KeywordIndexType,
    Modifier,
    MultiVectorComparator,
    MultiVectorConfig,
    PayloadSchemaParams,
    ScalarQuantization,
    ScalarQuantizationConfig,
    ScalarType,
    SparseVectorParams,
    TextIndexParams,
    TextIndexType,
    TokenizerType,
    VectorParams,
)

from citewell.adapters.index_format import DENSE_VECTORS, SPARSE_VECTORS, IndexOrigin
from citewell.adapters.qdrant.conditions import ADDED, REMOVED
from citewell.adapters.qdrant.server import QdrantServer
from citewell.adapters.qdrant.states import ProjectState, read_state
from citewell.errors import SettingsError

Quantization: TypeAlias = Literal["auto", "none", "int8", "binary"]

_QUANTIZED_ABOVE = 100_000  # points; below, the vectors are small enough
_HNSW = HnswConfigDiff(m=16, ef_construct=100)

_KEYWORD = KeywordIndexParams(type=KeywordIndexType.KEYWORD)
_PREFIXES = KeywordIndexParams(type=KeywordIndexType.KEYWORD, prefix=True)
_GENERATION = IntegerIndexParams(type=IntegerIndexType.INTEGER, enable_hnsw=False)
_INDEXES: dict[str, PayloadSchemaParams] = {
    "project_id": KeywordIndexParams(type=KeywordIndexType.KEYWORD, is_tenant=True),
    "document_id": _KEYWORD,
    "section": _KEYWORD,
    "chapter": _KEYWORD,
    "filename": _PREFIXES,
    "source_url": _KEYWORD,
    "matchable_urls": _PREFIXES,
    "words": TextIndexParams(type=TextIndexType.TEXT, tokenizer=TokenizerType.WHITESPACE, lowercase=False),
    "state_of": _KEYWORD,
    ADDED: _GENERATION,
    REMOVED: _GENERATION,
}


@dataclass(frozen=True, slots=True)
class CollectionOptions:
    """How a collection is created. Only the quantization of one that exists is changed, by `auto`."""

    alias: str = "citewell"
    shards: int | None = None
    replicas: int | None = None
    quantization: Quantization = "auto"
    on_disk: bool = False


class Collection:
    """The collection of one embedding model on a server."""

    def __init__(self, server: QdrantServer, options: CollectionOptions, configured: IndexOrigin) -> None:
        self.server = server
        self.origin = configured
        self.options = options
        identity = f"{configured.format} {configured.dimensions} {configured.model}"
        self.name = f"{options.alias}-{sha256(identity.encode()).hexdigest()[:8]}"

    async def state(self, project: UUID) -> ProjectState | None:
        """The state of a project here; None if it has none."""
        return await read_state(self.server, self.name, project)

    async def states_elsewhere(self, project: UUID) -> Mapping[str, ProjectState]:
        """The states of a project in collections of other embedding models or versions, by the collection's name."""
        pattern = re.compile(rf"{re.escape(self.options.alias)}-[0-9a-f]{{8}}")
        others = [name for name in await self._names() if pattern.fullmatch(name) and name != self.name]
        states = {name: await read_state(self.server, name, project) for name in sorted(others)}
        return {name: state for name, state in states.items() if state}

    async def prepare(self) -> None:
        """Create it with its payload indexes, which must be there before the points. Others may do so meanwhile."""
        await self.server.require_version()
        names = await self._names()
        if self.options.alias in names:
            raise SettingsError(
                f"the Qdrant server has a collection {self.options.alias}, which Citewell did not make and does not "
                "touch; set CITEWELL_QDRANT_COLLECTION to another name"
            )
        if self.name not in names:
            await self.server.call(self._create)
        indexed = (await self.info()).payload_schema
        for field, schema in _INDEXES.items():
            if field not in indexed:
                await self._create_payload_index(field, schema)

    async def _create_payload_index(self, field: str, schema: PayloadSchemaParams) -> None:
        await self.server.write(
            lambda client: client.create_payload_index(self.name, field, field_schema=schema, wait=True)
        )

    async def info(self) -> CollectionInfo:
        return await self.server.call(lambda client: client.get_collection(self.name))

    async def quantize_if_large(self) -> None:
        """With `auto`, quantize a collection that has become large; searches still score by the whole vectors."""
        if self.options.quantization != "auto":
            return
        info = await self.info()
        if (info.points_count or 0) > _QUANTIZED_ABOVE and info.config.quantization_config is None:
            await self.server.call(
                lambda client: client.update_collection(self.name, quantization_config=_quantization("int8"))
            )

    async def take_alias(self) -> None:
        """Point the alias here, in one step, unless it does already."""
        aliases = (await self.server.call(lambda client: client.get_aliases())).aliases
        current = {alias.alias_name: alias.collection_name for alias in aliases}.get(self.options.alias)
        if current == self.name:
            return
        create = CreateAlias(collection_name=self.name, alias_name=self.options.alias)
        changes: list[AliasOperations] = [CreateAliasOperation(create_alias=create)]
        if current is not None:
            changes.insert(0, DeleteAliasOperation(delete_alias=DeleteAlias(alias_name=self.options.alias)))
        await self.server.call(lambda client: client.update_collection_aliases(changes))

    async def _names(self) -> set[str]:
        listed = await self.server.call(lambda client: client.get_collections())
        return {collection.name for collection in listed.collections}

    async def _create(self, client: AsyncQdrantClient) -> None:
        dense = VectorParams(
            size=self.origin.dimensions,
            distance=Distance.COSINE,
            multivector_config=MultiVectorConfig(comparator=MultiVectorComparator.MAX_SIM),
            on_disk=self.options.on_disk or None,
        )
        try:
            await client.create_collection(
                self.name,
                vectors_config={DENSE_VECTORS: dense},
                sparse_vectors_config={SPARSE_VECTORS: SparseVectorParams(modifier=Modifier.IDF)},
                hnsw_config=_HNSW,
                quantization_config=_quantization(self.options.quantization),
                shard_number=self.options.shards,
                replication_factor=self.options.replicas,
                # A write counts once every replica has it: none may show a reader the generation before.
                write_consistency_factor=self.options.replicas,
            )
        except UnexpectedResponse as error:
            if error.status_code != 409:  # another process was faster
                raise


def _quantization(kind: Quantization) -> ScalarQuantization | BinaryQuantization | None:
    match kind:
        case "auto" | "none":
            return None
        case "int8":
            return ScalarQuantization(scalar=ScalarQuantizationConfig(type=ScalarType.INT8, always_ram=True))
        case "binary":
            return BinaryQuantization(binary=BinaryQuantizationConfig(always_ram=True))
        case never:
            assert_never(never)

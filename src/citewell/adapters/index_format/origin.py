"""How an index was built: the version of its points, its embedding model and the scale of that model's cosines."""

from dataclasses import dataclass, replace

from citewell.errors import IndexMismatch, OtherModel
from citewell.similarity_scale import IDENTITY_SCALE, SimilarityScale

FORMAT = 5
"""Version of the points. When it is raised, the next ingest rebuilds the index from the library."""
DENSE_VECTORS, SPARSE_VECTORS = "dense", "bm25"
MENDED_BY_DOCTOR = "run `citewell doctor --fix` to rebuild it from the database; nothing has to be embedded again"
"""Follows every error of an index that cannot be read."""


@dataclass(frozen=True, slots=True)
class IndexOrigin:
    """What an index must agree on with whoever reads it or adds to it."""

    format: int
    model: str
    dimensions: int
    scale: SimilarityScale | None = None

    @classmethod
    def configured(cls, *, model: str, dimensions: int) -> "IndexOrigin":
        """The origin of what this version builds with an embedding model."""
        return cls(FORMAT, model, dimensions)

    @property
    def similarity_scale(self) -> SimilarityScale:
        return self.scale or IDENTITY_SCALE

    def fault(self, configured: "IndexOrigin") -> str | None:
        """Why nothing can be built on this index: "was made with …"; None if nothing is wrong."""
        if self.model != configured.model:
            return f"was made with the embedding model {self.model}"
        if replace(self, scale=None) != configured:
            return "was made by another version of Citewell"
        return None

    def require(self, configured: "IndexOrigin") -> None:
        """Raise OtherModel or IndexMismatch unless this index can be searched."""
        if self.model != configured.model:
            raise OtherModel(made=self.model, configured=configured.model)
        if self.format != configured.format:
            raise IndexMismatch(f"the index was made by another version of Citewell; {MENDED_BY_DOCTOR}")

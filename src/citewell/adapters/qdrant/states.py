"""The state of a project in a collection: which generation readers use. One point for each project holds it."""

from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID, uuid5

from qdrant_client.models import PointStruct

from citewell.adapters.index_format import MENDED_BY_DOCTOR, IndexOrigin
from citewell.adapters.qdrant.server import CollectionMissing, QdrantServer
from citewell.errors import IndexUnavailable
from citewell.similarity_scale import SimilarityScale


@dataclass(frozen=True, slots=True)
class Generation:
    """A complete generation of a project."""

    number: int
    build: str
    """Unique, even where a number is used again."""
    points: int
    """How many chunks it has."""
    scale: SimilarityScale | None = None


@dataclass(frozen=True, slots=True)
class ProjectState:
    """The generation that readers of a project use, and the one that is complete but not yet published."""

    project: UUID
    origin: IndexOrigin
    published: Generation | None = None
    staged: Generation | None = None

    @property
    def number(self) -> int:
        """The published generation; 0 before the first publish."""
        return self.published.number if self.published else 0

    @property
    def newest(self) -> int:
        """The highest number that is in use."""
        return max(self.number, self.staged.number if self.staged else 0)

    def generation(self, number: int) -> Generation | None:
        known = (generation for generation in (self.published, self.staged) if generation)
        return next((generation for generation in known if generation.number == number), None)


def state_id(project: UUID) -> str:
    return str(uuid5(project, "state"))


async def read_state(server: QdrantServer, collection: str, project: UUID) -> ProjectState | None:
    """The state of a project; None if there is none, or no such collection."""
    try:
        points = await server.call(
            lambda client: client.retrieve(collection, [state_id(project)], with_payload=True, with_vectors=False)
        )
    except CollectionMissing:
        return None
    return _parse(project, points[0].payload or {}) if points else None


async def write_state(server: QdrantServer, collection: str, state: ProjectState) -> None:
    """Replace the state of a project, at once for every reader."""
    payload = {
        # Not `project_id`: no condition on the project's chunks must match it.
        "state_of": str(state.project),
        **asdict(replace(state.origin, scale=None)),
        "published": state.published and asdict(state.published),
        "staged": state.staged and asdict(state.staged),
    }
    point = PointStruct(id=state_id(state.project), vector={}, payload=payload)
    await server.write(lambda client: client.upsert(collection, [point], wait=True))


def _parse(project: UUID, payload: dict[str, Any]) -> ProjectState:
    try:
        return ProjectState(
            project,
            IndexOrigin(payload["format"], payload["model"], payload["dimensions"]),
            published=_generation(payload["published"]),
            staged=_generation(payload["staged"]),
        )
    except (LookupError, TypeError, AttributeError) as error:
        raise IndexUnavailable(f"the index is damaged; {MENDED_BY_DOCTOR}") from error


def _generation(content: dict[str, Any] | None) -> Generation | None:
    if content is None:
        return None
    scale = content["scale"]
    return Generation(
        number=int(content["number"]),
        build=content["build"],
        points=int(content["points"]),
        scale=SimilarityScale(**scale) if scale else None,
    )

"""The tables of an index: one list of generations, and for each project tables of its chunks, windows and words.

    index_generations   number, project, origin, and the number of the tables; what is published, a fact of the library
    index_7_chunks      a row for each chunk: what it is filtered by, its BM25 terms and weights, its payload
    index_7_windows     the vectors of a chunk's windows
    index_7_postings    which chunks have a term, and with what weight: the same as in `chunks`, by term
    index_7_counts      how many chunks have a term, as the changes of each generation

A generation that is built on another one shares its tables: a row is visible from the generation `added` until the
generation `removed`. One that is built from nothing has tables of its own, which are filled before they are indexed.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from citewell.adapters.index_format import IndexOrigin
from citewell.adapters.sql import Database, generation_of
from citewell.errors import IndexUnavailable, StoreUnavailable
from citewell.similarity_scale import SimilarityScale

INDEXED_WINDOWS = 10_000
"""From so many vectors on they have an HNSW index: to compare fewer takes a few milliseconds, and is exact."""

TABLES = ("chunks", "windows", "postings", "counts")

_MAX_INDEXED_DIMENSIONS = 4000  # of an HNSW index over half-precision vectors
_MAX_INLINE_DIMENSIONS = 1980  # longer vectors fit no page, and are stored outside of their rows
PREFIX_CHARACTERS = 500
"""What is indexed of a path: an entry of a B-tree has at most 2.7 kB."""
_LOCK = 0x6369_7465_6978  # "citeix"

_GENERATIONS = """
CREATE TABLE IF NOT EXISTS index_generations (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id uuid NOT NULL,
    tables bigint NOT NULL,
    format integer NOT NULL,
    model text NOT NULL,
    dimensions integer NOT NULL,
    scale text,
    chunks bigint,
    windows bigint
)
"""


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of a project's index. `chunks` and `windows` are None until it is complete."""

    number: int
    tables: int
    origin: IndexOrigin
    chunks: int | None
    windows: int | None

    def table(self, name: str) -> str:
        return f"index_{self.tables}_{name}"

    @property
    def has_vector_index(self) -> bool:
        return (self.windows or 0) >= INDEXED_WINDOWS and self.origin.dimensions <= _MAX_INDEXED_DIMENSIONS

    def visible(self, row: str = "c") -> str:
        """The condition for a row of `chunks` to be in this generation."""
        return f"{row}.added <= {self.number} AND ({row}.removed IS NULL OR {row}.removed > {self.number})"


def to_generation(row: Row[Any]) -> Generation:
    scale = SimilarityScale(**json.loads(row.scale)) if row.scale else None
    origin = IndexOrigin(row.format, row.model, row.dimensions, scale)
    return Generation(row.number, row.tables, origin, row.chunks, row.windows)


async def published_number(connection: AsyncConnection, project: UUID) -> int | None:
    """The generation that the library names."""
    statement = text("SELECT value FROM facts WHERE name = :name")
    value = await connection.scalar(statement, {"name": generation_of(project)})
    return None if value is None else int(value)


async def has_table(connection: AsyncConnection, name: str) -> bool:
    return await connection.scalar(text("SELECT to_regclass(:name)"), {"name": name}) is not None


async def generations(connection: AsyncConnection, project: UUID) -> dict[int, Generation]:
    """Every generation of a project, by its number."""
    if not await has_table(connection, "index_generations"):
        return {}
    statement = text("SELECT * FROM index_generations WHERE project_id = :project ORDER BY number")
    return {row.number: to_generation(row) for row in await connection.execute(statement, {"project": project})}


async def add_generation(
    connection: AsyncConnection, project: UUID, origin: IndexOrigin, base: Generation | None
) -> Generation:
    """A generation to be filled: with the tables of its base, or with new ones."""
    statement = text(
        "INSERT INTO index_generations (project_id, tables, format, model, dimensions, scale) "
        "VALUES (:project, coalesce(CAST(:tables AS bigint), 0), :format, :model, :dimensions, :scale) RETURNING number"
    )
    values = {
        "project": project,
        "tables": base.tables if base else None,
        "format": origin.format,
        "model": origin.model,
        "dimensions": origin.dimensions,
        "scale": json.dumps(asdict(origin.scale)) if origin.scale else None,
    }
    number = int(await connection.scalar(statement, values) or 0)
    if base is None:
        await connection.execute(text("UPDATE index_generations SET tables = number WHERE number = :n"), {"n": number})
    generation = Generation(number, base.tables if base else number, origin, None, None)
    if base is None:
        for statement_text in _new_tables(generation):
            await connection.execute(text(statement_text))
    return generation


def _new_tables(generation: Generation) -> list[str]:
    chunks, windows, postings, counts = map(generation.table, TABLES)
    dimensions = generation.origin.dimensions
    storage = "STORAGE PLAIN" if dimensions <= _MAX_INLINE_DIMENSIONS else ""
    # MAIN: a payload is moved out of a long row, and what is read to search stays in it.
    return [
        f"""CREATE TABLE {chunks} (
            no bigint PRIMARY KEY,
            id uuid NOT NULL,
            document_id uuid NOT NULL,
            added bigint NOT NULL,
            removed bigint,
            section text NOT NULL,
            chapter text NOT NULL,
            filename text NOT NULL,
            url text NOT NULL,
            url_path text NOT NULL,
            terms integer[] STORAGE MAIN NOT NULL,
            label_terms integer[] STORAGE MAIN NOT NULL,
            weights real[] STORAGE MAIN NOT NULL,
            payload json NOT NULL
        )""",
        f"CREATE INDEX {chunks}_id ON {chunks} (id)",
        f"CREATE INDEX {chunks}_document ON {chunks} (document_id)",
        f"CREATE INDEX {chunks}_added ON {chunks} (added)",
        f"CREATE INDEX {chunks}_removed ON {chunks} (removed) WHERE removed IS NOT NULL",
        f"""CREATE TABLE {windows} (
            chunk bigint NOT NULL,
            place integer NOT NULL,
            embedding vector({dimensions}) {storage} NOT NULL,
            PRIMARY KEY (chunk, place)
        )""",
        f"""CREATE TABLE {postings} (
            term integer NOT NULL,
            block bigint NOT NULL,
            generation bigint NOT NULL,
            numbers bigint[] STORAGE EXTERNAL NOT NULL,
            weights real[] STORAGE EXTERNAL NOT NULL
        )""",
        f"CREATE INDEX {postings}_term ON {postings} (term, block)",
        f"""CREATE TABLE {counts} (
            term integer NOT NULL,
            generation bigint NOT NULL,
            chunks bigint NOT NULL,
            text_chunks bigint NOT NULL,
            PRIMARY KEY (term, generation)
        )""",
    ]


def search_indexes(generation: Generation) -> dict[str, str]:
    """The indexes that searches need, by name: made once the rows are there, which is many times faster."""
    chunks, windows = generation.table("chunks"), generation.table("windows")
    made = {f"{chunks}_terms": f"ON {chunks} USING gin (terms) WITH (fastupdate = off)"}
    for column in ("section", "chapter", "filename", "url", "url_path"):
        prefix = f"left({column}, {PREFIX_CHARACTERS})"
        made[f"{chunks}_{column}"] = f"ON {chunks} ({prefix} text_pattern_ops)"
    if generation.has_vector_index:
        half = half_precision("embedding", generation)
        made[f"{windows}_embedding"] = f"ON {windows} USING hnsw (({half}) halfvec_cosine_ops)"
    return made


def half_precision(vector: str, generation: Generation) -> str:
    """The vector as the HNSW index has it: half the size, and the nearest are compared by the whole one again."""
    return f"{vector}::halfvec({generation.origin.dimensions})"


async def drop_tables(connection: AsyncConnection, number: int) -> None:
    for name in TABLES:
        await connection.execute(text(f"DROP TABLE IF EXISTS index_{number}_{name}"))


async def prepare(database: Database) -> None:
    """Make sure that the database has pgvector and a list of generations; errors say what to do."""
    if database.dialect != "postgresql":
        raise StoreUnavailable("CITEWELL_INDEX=postgres needs a PostgreSQL database; set DATABASE_URL")
    async with database.writing() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        if not await _installed_version(connection):
            await _install(connection)
        await _require_version(connection)
        await connection.execute(text(_GENERATIONS))


async def _installed_version(connection: AsyncConnection) -> str | None:
    version = await connection.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    return None if version is None else str(version)


async def _install(connection: AsyncConnection) -> None:
    available = text("SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')")
    if not await connection.scalar(available):
        raise IndexUnavailable(
            "PostgreSQL has no pgvector: install it on its server (Debian: `apt install postgresql-18-pgvector`; "
            "hosted: switch on the extension `vector`), or leave CITEWELL_INDEX out to use the embedded index"
        )
    # Whoever owns the database may install an extension that the server trusts, as it does this one.
    allowed = text("SELECT has_database_privilege(current_database(), 'CREATE')")
    trusted = text("SELECT bool_or(trusted) FROM pg_available_extension_versions WHERE name = 'vector'")
    is_superuser = text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    may_install = await connection.scalar(allowed) and await connection.scalar(trusted)
    if not (may_install or await connection.scalar(is_superuser)):
        raise IndexUnavailable(
            "PostgreSQL does not let this user install pgvector: have an administrator run `CREATE EXTENSION vector` "
            "in the database that DATABASE_URL names"
        )
    await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))


async def _require_version(connection: AsyncConnection) -> None:
    installed = await _installed_version(connection) or "0"
    numbers = [int(part) for part in installed.split(".")[:2] if part.isdigit()]
    if numbers < [0, 8]:
        raise IndexUnavailable(
            f"pgvector {installed} is too old: 0.8 or newer is needed. Update it on the server and run "
            "`ALTER EXTENSION vector UPDATE` in the database"
        )
    if not await connection.scalar(text("SELECT to_regtype('halfvec') IS NOT NULL")):
        raise IndexUnavailable(
            "pgvector is in a schema that is not searched: add it to the search_path of this user with "
            "`ALTER ROLE … SET search_path = …`"
        )

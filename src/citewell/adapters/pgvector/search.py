"""The SQL of a search: nearest chunks by meaning, best chunks by words, and both merged by reciprocal rank fusion.

Knows tables and statements, no connection.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from citewell.adapters.index_format import SparseTerms, normalize_url
from citewell.adapters.pgvector.rows import signed, weights_literal
from citewell.adapters.pgvector.tables import PREFIX_CHARACTERS, Generation, half_precision
from citewell.models import Filters

CANDIDATES = 50  # from each of the two searches, before fusion
_RRF_K = 10  # as the embedded index has it, with the first at position 0

Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Allowed:
    """The condition for a chunk to be found: in the generation, and matching the filters."""

    condition: str
    parameters: Parameters


def allowed_chunks(generation: Generation, filters: Filters) -> Allowed:
    conditions, parameters = [generation.visible()], {}
    for column, value in (("section", filters.section), ("chapter", filters.chapter), ("filename", filters.path)):
        if value is None:
            continue
        is_folder = column == "filename" and value.endswith("/")
        conditions.append(_begins_with(column) if is_folder else _equals(column))
        parameters[column] = value
        if is_folder:
            parameters[f"{column}_pattern"] = _pattern(value)
    if filters.source_url_prefix is not None:
        prefix = normalize_url(filters.source_url_prefix)
        column = "url_path" if prefix.startswith("/") else "url"  # no path begins with a scheme
        conditions.append(_begins_with(column))
        parameters |= {column: prefix, f"{column}_pattern": _pattern(prefix)}
    return Allowed(" AND ".join(f"({condition})" for condition in conditions), parameters)


def _begins_with(column: str) -> str:
    indexed = f"left(c.{column}, {PREFIX_CHARACTERS}) LIKE :{column}_pattern"
    return f"{indexed} AND starts_with(c.{column}, :{column})"


def _equals(column: str) -> str:
    indexed = f"left(c.{column}, {PREFIX_CHARACTERS}) = left(:{column}, {PREFIX_CHARACTERS})"
    return f"{indexed} AND c.{column} = :{column}"


def _pattern(prefix: str) -> str:
    """The LIKE pattern of the indexed part of a prefix."""
    escaped = prefix[:PREFIX_CHARACTERS].replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"{escaped}%"


@dataclass(frozen=True, slots=True)
class WordQuery:
    """The words of a question that occur, rarest first, with how many chunks have each and what it is worth."""

    terms: Sequence[int]
    frequencies: Sequence[int]
    idf: Sequence[float]

    @classmethod
    def weighted(cls, terms: SparseTerms, frequencies: Mapping[int, int], total: int) -> "WordQuery":
        found = sorted((count, term) for term in terms[0] if (count := frequencies.get(signed(term), 0)) > 0)
        idf = [math.log((total - count + 0.5) / (count + 0.5) + 1) for count, _ in found]
        return cls([term for _, term in found], [count for count, _ in found], idf)

    @property
    def first_attempt(self) -> int:
        """How many of the rarest words are likely enough to give all the best chunks."""
        expected = 0
        for number, count in enumerate(self.frequencies, 1):
            expected += count
            if expected >= 4 * CANDIDATES:
                return number
        return len(self.terms)

    def needed(self, score: float) -> int:
        """How many of the rarest words a chunk must have one of to reach a score: the others alone cannot give it.

        A word gives a chunk its IDF times a BM25 weight, which is below 1.
        """
        rest = 0.0
        for number in range(len(self.terms), 0, -1):
            rest += self.idf[number - 1]
            if rest >= score:
                return number
        return 0

    @property
    def weights(self) -> str:
        return weights_literal((list(self.terms), list(self.idf)))

    def rarest(self, number: int) -> list[int]:
        return [signed(term) for term in self.terms[:number]]


def best_by_words(generation: Generation, allowed: Allowed) -> str:
    """Numbers and scores of the best chunks that have one of `:terms`, scored by all words in `:weights`."""
    return f"""
        SELECT c.no, -(c.weights <#> CAST(CAST(:weights AS text) AS sparsevec)) AS score
        FROM {generation.table("chunks")} c
        WHERE c.terms && CAST(:terms AS integer[]) AND {allowed.condition}
        ORDER BY score DESC, c.id LIMIT {CANDIDATES}
    """


def count_words(generation: Generation) -> str:
    """How many chunks have each of `:terms`, and how many have it in their text."""
    return f"""
        SELECT term, sum(chunks) AS chunks, sum(text_chunks) AS text_chunks FROM {generation.table("counts")}
        WHERE term = ANY(CAST(:terms AS integer[])) AND generation <= {generation.number} GROUP BY term
    """


def count_up_to(generation: Generation, allowed: Allowed, limit: int) -> str:
    """How many chunks are allowed, or the limit if there are more."""
    chunks = generation.table("chunks")
    return f"SELECT count(*) FROM (SELECT FROM {chunks} c WHERE {allowed.condition} LIMIT {limit}) AS some"


def count_matches(generation: Generation, allowed: Allowed, terms: Sequence[int]) -> str:
    """How many chunks are allowed, and how many of them have each term in their text."""
    every = f"SELECT count(*) FROM {generation.table('chunks')} c WHERE {allowed.condition}"
    in_text = (f"c.terms @> '{{{term}}}' AND NOT c.label_terms @> '{{{term}}}'" for term in map(signed, terms))
    return f"SELECT ({every})" + "".join(f", ({every} AND {has_term})" for has_term in in_text)


def nearest_exactly(generation: Generation, allowed: Allowed) -> str:
    """The nearest chunks, by the nearest of their windows, from all that are allowed."""
    return f"""
        SELECT c.no, c.id, min(w.embedding <=> CAST(CAST(:vector AS text) AS vector)) AS distance
        FROM {generation.table("windows")} w JOIN {generation.table("chunks")} c ON c.no = w.chunk
        WHERE {allowed.condition}
        GROUP BY c.no ORDER BY distance, c.id LIMIT {CANDIDATES}
    """


def nearest_by_index(generation: Generation, allowed: Allowed) -> str:
    """The same by the HNSW index, from its `:windows` nearest windows."""
    half = half_precision("w.embedding", generation)
    return f"""
        SELECT near.no, near.id, min(near.distance) AS distance FROM (
            SELECT c.no, c.id, w.embedding <=> CAST(CAST(:vector AS text) AS vector) AS distance
            FROM {generation.table("windows")} w JOIN {generation.table("chunks")} c ON c.no = w.chunk
            WHERE {allowed.condition}
            ORDER BY {half} <=> CAST(CAST(:vector AS text) AS halfvec({generation.origin.dimensions}))
            LIMIT :windows
        ) AS near
        GROUP BY near.no, near.id ORDER BY distance, near.id LIMIT {CANDIDATES}
    """


def fused(generation: Generation, nearest: str) -> str:
    """The best chunks by both searches, with their vectors; `:by_words` are the numbers of the best by words."""
    return f"""
        WITH by_meaning AS MATERIALIZED ({nearest}), ranked AS (
            SELECT no, row_number() OVER (ORDER BY distance, id) - 1 AS position FROM by_meaning
            UNION ALL
            SELECT no, ordinal - 1 FROM unnest(CAST(:by_words AS bigint[])) WITH ORDINALITY AS words (no, ordinal)
        ), best AS (
            SELECT no, sum(1 / CAST({_RRF_K} + position AS double precision)) AS score FROM ranked GROUP BY no
        )
        SELECT CAST(c.payload AS text) AS payload, (SELECT count(*) FROM by_meaning) AS near, (
            SELECT array_agg(vector_send(w.embedding) ORDER BY w.place)
            FROM {generation.table("windows")} w WHERE w.chunk = c.no
        ) AS vectors
        FROM best JOIN {generation.table("chunks")} c ON c.no = best.no
        ORDER BY best.score DESC, c.id LIMIT :limit
    """

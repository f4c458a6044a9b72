"""The SQL of a search: nearest chunks by meaning, best chunks by words, and both merged by reciprocal rank fusion.

Knows tables and statements, no connection.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from citewell.adapters.index_format import normalize_url
from citewell.adapters.pgvector.tables import PREFIX_CHARACTERS, Generation, half_precision
from citewell.models import Filters

CANDIDATES = 50  # from each of the two searches, before fusion
ALL = 2**31  # more than there are
_LOOK_UP_COST = 4  # of a term for each chunk of the lists that were read, against an entry of its own list
_SPARE = 10  # of the chunks that the counts promise, some may have been removed
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
    """The terms of a question that occur, rarest first, with how many chunks have each and how much it counts."""

    terms: Sequence[int]
    frequencies: Sequence[int]
    idf: Sequence[float]

    @classmethod
    def weighted(cls, terms: Sequence[int], frequencies: Mapping[int, int], total: int) -> "WordQuery":
        found = sorted((frequencies[term], term) for term in terms if frequencies.get(term))
        idf = [math.log((total - count + 0.5) / (count + 0.5) + 1) for count, _ in found]
        return cls([term for _, term in found], [count for count, _ in found], idf)

    @property
    def first_attempt(self) -> int:
        """How many of the rarest terms are likely enough to give all the best chunks."""
        expected = 0
        for number, count in enumerate(self.frequencies, 1):
            expected += count
            if expected >= CANDIDATES + _SPARE:
                return number
        return len(self.terms)

    def needed(self, score: float) -> int:
        """How many of the rarest terms a chunk must have one of to reach a score: the others alone cannot give it."""
        return next((n for n in range(len(self.terms) + 1) if self.most_without(n) < score), len(self.terms))

    def sensible(self, score: float) -> int:
        """The same and those that are quicker read from their lists than looked up for each chunk that may need it."""
        number = self.needed(score)
        while number < len(self.terms) and self.frequencies[number] <= _LOOK_UP_COST * sum(self.frequencies[:number]):
            number += 1
        return number

    def is_exact(self, number: int, score: float, least: float) -> bool:
        """Whether no other chunk reaches a score: with none of the rarest terms, or with less than `least` by them."""
        return self.needed(score) <= number and (least == 0 or least + self.most_without(number) <= score)

    def most_without(self, number: int) -> float:
        """More than a chunk can score by all terms but the rarest ones: a term gives its IDF times less than 1."""
        return sum(self.idf[number:])

    def score(self, row: str, *, without: int = 0) -> str:
        """The score of a row of `chunks` by all terms, or by all but the rarest ones."""
        scores = (
            f"coalesce({row}.weights[array_position({row}.terms, {term})], 0) * {idf!r}"
            for term, idf in zip(self.terms[without:], self.idf[without:], strict=True)
        )
        return " + ".join(scores) or "0"


def best_by_words(generation: Generation, query: WordQuery, number: int) -> str:
    """The best chunks that have one of the rarest terms, and the score by these of the last one that was considered.

    The lists of those terms give scores by them. The other terms are looked up for those that score `:floor` or more,
    and for no more than the `:considered` best ones.
    """
    chosen = ", ".join(
        f"({term}, CAST({idf!r} AS double precision))"
        for term, idf in zip(query.terms[:number], query.idf[:number], strict=True)
    )
    score, narrowed = "weight * idf", "WHERE"
    if number > 1:
        score, narrowed = f"sum({score})", "GROUP BY no HAVING"
    # To unnest the arrays in FROM takes half as long again: there they are stored first.
    return f"""
        WITH considered AS MATERIALIZED (
            SELECT no, {score} AS score FROM (
                SELECT unnest(p.numbers) AS no, unnest(p.weights) AS weight, chosen.idf
                FROM (VALUES {chosen}) AS chosen (term, idf)
                JOIN {generation.table("postings")} p ON p.term = chosen.term AND p.generation <= {generation.number}
            ) AS posting
            {narrowed} {score} >= CAST(:floor AS double precision)
            ORDER BY score DESC, no LIMIT :considered
        ), least AS (SELECT count(*) AS considered, min(score) AS score FROM considered)
        SELECT c.no, considered.score + {query.score("c", without=number)} AS score,
            CASE WHEN least.considered = :considered THEN least.score ELSE 0 END AS least
        FROM considered JOIN {generation.table("chunks")} c ON c.no = considered.no, least
        WHERE {generation.visible()}
        ORDER BY score DESC, c.id LIMIT {CANDIDATES}
    """


def best_allowed_by_words(generation: Generation, allowed: Allowed, query: WordQuery, number: int) -> str:
    """The same from the chunks that filters allow."""
    terms = ", ".join(map(str, query.terms[:number]))
    return f"""
        SELECT c.no, {query.score("c")} AS score, 0 AS least FROM {generation.table("chunks")} c
        WHERE c.terms && CAST('{{{terms}}}' AS integer[]) AND {allowed.condition}
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
    return f"SELECT count(*) FROM (SELECT FROM {chunks} c WHERE {allowed.condition} LIMIT {limit}) AS counted"


def count_matches(generation: Generation, allowed: Allowed, terms: Sequence[int]) -> str:
    """How many chunks are allowed, and how many of them have each term in their text."""
    every = f"SELECT count(*) FROM {generation.table('chunks')} c WHERE {allowed.condition}"
    in_text = (f"c.terms @> '{{{term}}}' AND NOT c.label_terms @> '{{{term}}}'" for term in terms)
    return f"SELECT ({every})" + "".join(f", ({every} AND {has_term})" for has_term in in_text)


def nearest_exactly(generation: Generation, allowed: Allowed) -> str:
    """The nearest chunks, by the nearest of their windows, from all that are allowed."""
    chunks, windows, number = generation.table("chunks"), generation.table("windows"), generation.number
    if allowed.parameters:
        source = f"{windows} w JOIN {chunks} c ON c.no = w.chunk WHERE {allowed.condition}"
    else:  # hardly any row is invisible, and to find these is quicker than to look all up
        invisible = (f"SELECT no FROM {chunks} WHERE {rule} {number}" for rule in ("added >", "removed <="))
        source = f"{windows} w WHERE w.chunk NOT IN ({' UNION ALL '.join(invisible)})"
    return f"""
        SELECT w.chunk AS no, min(w.embedding <=> CAST(CAST(:vector AS text) AS vector)) AS distance FROM {source}
        GROUP BY w.chunk ORDER BY distance, no LIMIT {CANDIDATES}
    """


def nearest_by_index(generation: Generation, allowed: Allowed) -> str:
    """The same by the HNSW index, from its `:windows` nearest windows."""
    half = half_precision("w.embedding", generation)
    return f"""
        SELECT near.no, min(near.distance) AS distance FROM (
            SELECT c.no, w.embedding <=> CAST(CAST(:vector AS text) AS vector) AS distance
            FROM {generation.table("windows")} w JOIN {generation.table("chunks")} c ON c.no = w.chunk
            WHERE {allowed.condition}
            ORDER BY {half} <=> CAST(CAST(:vector AS text) AS halfvec({generation.origin.dimensions}))
            LIMIT :windows
        ) AS near
        GROUP BY near.no ORDER BY distance, near.no LIMIT {CANDIDATES}
    """


def fused(generation: Generation, nearest: str) -> str:
    """The best chunks by both searches, with their vectors; `:by_words` are the numbers of the best by words.

    In single precision, as in the embedded index: sums of other ranks may be equal, and are then ordered by id.
    """
    return f"""
        WITH by_meaning AS MATERIALIZED ({nearest}), ranked AS (
            SELECT no, row_number() OVER (ORDER BY distance, no) - 1 AS position FROM by_meaning
            UNION ALL
            SELECT no, place - 1 FROM unnest(CAST(:by_words AS bigint[])) WITH ORDINALITY AS words (no, place)
        ), best AS (
            SELECT no, sum(CAST(1 AS real) / CAST({_RRF_K} + position AS real)) AS score FROM ranked GROUP BY no
        )
        SELECT CAST(c.payload AS text) AS payload, (SELECT count(*) FROM by_meaning) AS near, (
            SELECT array_agg(vector_send(w.embedding) ORDER BY w.place)
            FROM {generation.table("windows")} w WHERE w.chunk = c.no
        ) AS vectors
        FROM best JOIN {generation.table("chunks")} c ON c.no = best.no
        ORDER BY best.score DESC, c.id LIMIT :limit
    """

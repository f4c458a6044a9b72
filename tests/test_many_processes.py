"""Three servers and two workers lose nothing and double nothing, while a worker and PostgreSQL are killed."""

import asyncio
from pathlib import Path

from benchmarks.speed.many_processes import Faults, Fleet, Outcome, measure

from tests.fakes.postgres import PostgresServer


def test_uploads_and_questions_interleaved_are_each_stored_once(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path / "home", postgres_server.create())
    sent = Outcome(uploads=40, questions=200, apis=3, workers=2)
    try:
        asyncio.run(measure(sent, fleet, faults=Faults(postgres_server.restart)))
    finally:
        codes = fleet.stop()
    assert sent.is_complete, sent
    assert sorted(codes) == [-9, 0, 0, 0, 0, 0]

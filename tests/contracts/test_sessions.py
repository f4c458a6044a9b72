"""What every Sessions promises."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from citewell.adapters.sql import SqlSessions, tables
from citewell.adapters.sql.database import Database
from citewell.errors import NotFound
from citewell.models import Exchange, Feedback, Owner, Project, StoredExchange, Vote

pytestmark = pytest.mark.anyio

OURS = Project.named("ours").id
ME = Owner(OURS, "my key")
OTHERS = [Owner(OURS, "another key"), Owner(OURS), Owner(Project.named("theirs").id, "my key", admin=True)]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def sessions(opened: Database) -> SqlSessions:
    return SqlSessions(opened)


@pytest.fixture
async def elsewhere(database: Path | str, opened: Database) -> AsyncIterator[SqlSessions]:
    """The same sessions, as another process sees them."""
    other = await Database.open(database)
    yield SqlSessions(other)
    await other.close()


def told(session: UUID, number: int = 0, *, complete: bool = True) -> StoredExchange:
    at = NOON + timedelta(minutes=number)
    return StoredExchange(session, at, f"Question {number}?", f"Answer {number}.", complete=complete)


async def test_what_is_recorded_comes_back_as_it_was(sessions: SqlSessions) -> None:
    whole = StoredExchange(
        uuid4(),
        NOON,
        "What is a pump? 漢字 🤖",
        "It moves water [1].\n",
        sources=({"id": "a", "score": 0.5, "page": None}, {"headings": ["x", "y"]}),
        metadata={"mode": "full", "low_confidence": False, "nested": {"n": 1}},
    )
    assert await sessions.record(whole, ME) == whole
    assert await sessions.history(whole.session_id, ME) == ([whole], 1)


async def test_a_session_that_never_was_is_empty(sessions: SqlSessions) -> None:
    assert await sessions.history(uuid4(), ME) == ([], 0)
    assert await sessions.recent(uuid4(), ME, limit=5) == []


async def test_history_is_told_oldest_first_page_by_page(sessions: SqlSessions) -> None:
    session = uuid4()
    for number in (3, 0, 4, 1, 2):
        await sessions.record(told(session, number), ME)
    pages = [await sessions.history(session, ME, limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [[one.query for one in page] for page, _ in pages] == [
        ["Question 0?", "Question 1?"],
        ["Question 2?", "Question 3?"],
        ["Question 4?"],
        [],
    ]
    assert {total for _, total in pages} == {5}


async def test_sessions_do_not_mix(sessions: SqlSessions) -> None:
    one, other = uuid4(), uuid4()
    await sessions.record(told(one, 1), ME)
    await sessions.record(told(other, 2), ME)
    assert await sessions.history(one, ME) == ([told(one, 1)], 1)


async def test_recent_is_the_last_complete_exchanges_oldest_first(sessions: SqlSessions) -> None:
    session = uuid4()
    for number in range(8):
        await sessions.record(told(session, number, complete=number != 6), ME)
    recent = await sessions.recent(session, ME, limit=3)
    assert recent == [Exchange(f"Question {n}?", f"Answer {n}.") for n in (4, 5, 7)]


async def test_an_incomplete_exchange_is_in_the_history_and_marked(sessions: SqlSessions) -> None:
    cut = told(uuid4(), complete=False)
    await sessions.record(cut, ME)
    assert await sessions.history(cut.session_id, ME) == ([cut], 1)


async def test_last_active_moves_with_every_exchange(sessions: SqlSessions, opened: Database) -> None:
    session = uuid4()

    async def times() -> tuple[datetime, datetime]:
        async with opened.reading() as connection:
            row = (await connection.execute(select(tables.sessions))).one()
        return row.created_at, row.last_active

    await sessions.record(told(session), ME)
    made, first = await times()
    await asyncio.sleep(0.002)
    await sessions.record(told(session), ME)
    still, later = await times()
    assert made == still == first < later


async def test_a_word_keeps_an_exchange_once(sessions: SqlSessions) -> None:
    first = told(uuid4())
    await sessions.record(first, ME, idempotency_key="retry-1")
    again = replace(first, response="Said otherwise.")
    assert await sessions.record(again, ME, idempotency_key="retry-1") == first
    assert await sessions.history(first.session_id, ME) == ([first], 1)


async def test_without_a_word_the_same_is_kept_twice(sessions: SqlSessions) -> None:
    session = uuid4()
    for _ in range(2):
        await sessions.record(told(session), ME)
    assert (await sessions.history(session, ME))[1] == 2


async def test_a_complete_exchange_takes_the_place_of_an_incomplete_one(sessions: SqlSessions) -> None:
    cut = told(uuid4(), complete=False)
    await sessions.record(cut, ME, idempotency_key="retry-1")
    whole = replace(cut, response="All of it.", complete=True, sources=({"id": "a"},), metadata={"mode": "full"})
    assert await sessions.record(whole, ME, idempotency_key="retry-1") == whole
    assert await sessions.history(cut.session_id, ME) == ([whole], 1)


async def test_an_incomplete_exchange_takes_nobody_s_place(sessions: SqlSessions) -> None:
    for first in (told(uuid4(), 1), told(uuid4(), 1, complete=False)):
        await sessions.record(first, ME, idempotency_key=str(first.session_id))
        cut = replace(first, response="Cut of", complete=False)
        assert await sessions.record(cut, ME, idempotency_key=str(first.session_id)) == first


async def test_a_retry_under_another_session_leaves_no_empty_one(sessions: SqlSessions, opened: Database) -> None:
    first = told(uuid4())
    await sessions.record(first, ME, idempotency_key="retry-1")
    assert await sessions.record(told(uuid4()), ME, idempotency_key="retry-1") == first
    async with opened.reading() as connection:
        made = (await connection.execute(select(tables.sessions.c.session_id))).scalars().all()
    assert made == [first.session_id]


async def test_a_completed_retry_under_another_session_is_that_session_s(sessions: SqlSessions) -> None:
    cut, whole = told(uuid4(), complete=False), told(uuid4(), 1)
    await sessions.record(cut, ME, idempotency_key="retry-1")
    assert await sessions.record(whole, ME, idempotency_key="retry-1") == whole
    assert await sessions.history(cut.session_id, ME) == ([], 0)
    assert await sessions.history(whole.session_id, ME) == ([whole], 1)


async def test_what_was_kept_under_a_word_is_found_again(sessions: SqlSessions) -> None:
    first = told(uuid4())
    assert await sessions.find_by_key("retry-1", ME) is None
    await sessions.record(first, ME, idempotency_key="retry-1")
    assert await sessions.find_by_key("retry-1", ME) == first
    assert await sessions.find_by_key("retry-2", ME) is None


@pytest.mark.parametrize("other", OTHERS)
async def test_the_same_word_of_another_owner_is_another(sessions: SqlSessions, other: Owner) -> None:
    await sessions.record(told(uuid4(), 1), ME, idempotency_key="retry-1")
    assert await sessions.find_by_key("retry-1", other) is None
    theirs = told(uuid4(), 2)
    assert await sessions.record(theirs, other, idempotency_key="retry-1") == theirs


async def test_eight_writers_to_one_session_lose_nothing(sessions: SqlSessions, elsewhere: SqlSessions) -> None:
    session = uuid4()

    async def write(writer: int) -> None:
        for number in range(5):
            await (sessions, elsewhere)[writer % 2].record(told(session, writer * 5 + number), ME)

    await asyncio.gather(*(write(writer) for writer in range(8)))
    kept, total = await sessions.history(session, ME)
    assert total == 40
    assert [one.query for one in kept] == [f"Question {number}?" for number in range(40)]


async def test_the_same_word_from_two_processes_at_once_is_kept_once(
    sessions: SqlSessions, elsewhere: SqlSessions
) -> None:
    for number in range(10):
        one, other = told(uuid4()), told(uuid4())
        kept = await asyncio.gather(
            sessions.record(one, ME, idempotency_key=f"retry-{number}"),
            elsewhere.record(other, ME, idempotency_key=f"retry-{number}"),
        )
        assert kept[0] == kept[1]
        assert kept[0] in (one, other)
        assert sum([(await sessions.history(each.session_id, ME))[1] for each in (one, other)]) == 1


@pytest.mark.parametrize("other", OTHERS)
async def test_a_session_of_somebody_else_gives_nothing(sessions: SqlSessions, other: Owner) -> None:
    mine = told(uuid4())
    await sessions.record(mine, ME)
    assert await sessions.history(mine.session_id, other) == ([], 0)
    with pytest.raises(NotFound):
        await sessions.recent(mine.session_id, other, limit=5)
    with pytest.raises(NotFound):
        await sessions.record(told(mine.session_id, 1), other)
    await sessions.delete(mine.session_id, other)
    assert await sessions.history(mine.session_id, ME) == ([mine], 1)


async def test_an_admin_of_the_project_sees_every_session_of_it(sessions: SqlSessions) -> None:
    admin = Owner(OURS, "admin key", admin=True)
    mine, theirs = told(uuid4()), told(uuid4())
    await sessions.record(mine, ME)
    assert await sessions.history(mine.session_id, admin) == ([mine], 1)
    assert await sessions.recent(mine.session_id, admin, limit=5) == [Exchange(mine.query, mine.response)]
    await sessions.record(told(mine.session_id, 1), admin)
    assert (await sessions.history(mine.session_id, ME))[1] == 2, "it stays mine"
    await sessions.record(theirs, OTHERS[-1])
    assert await sessions.history(theirs.session_id, admin) == ([], 0)


async def test_a_session_that_is_forgotten_is_gone(sessions: SqlSessions, opened: Database) -> None:
    gone, kept = told(uuid4()), told(uuid4())
    await sessions.record(gone, ME, idempotency_key="retry-1")
    await sessions.record(kept, ME)
    await sessions.delete(gone.session_id, ME)
    assert await sessions.history(gone.session_id, ME) == ([], 0)
    assert await sessions.find_by_key("retry-1", ME) is None
    assert await sessions.history(kept.session_id, ME) == ([kept], 1)
    async with opened.reading() as connection:
        left = (await connection.execute(select(tables.conversations.c.session_id))).scalars().all()
    assert left == [kept.session_id]


def rated(session: UUID, request: UUID, number: int = 0) -> StoredExchange:
    return replace(told(session, number), metadata={"request_id": str(request)})


async def test_a_vote_is_kept_with_its_exchange_changed_and_taken_back(sessions: SqlSessions) -> None:
    session, first, second = uuid4(), uuid4(), uuid4()
    for number, request in enumerate((first, second)):
        await sessions.record(rated(session, request, number), ME)
    for vote in ("up", "down", None):
        await sessions.set_feedback(session, second, ME, vote=vote)
        kept, _ = await sessions.history(session, ME)
        assert [one.feedback for one in kept] == [None, vote]


async def test_a_vote_for_what_was_never_said_is_not_found(sessions: SqlSessions) -> None:
    session, request = uuid4(), uuid4()
    await sessions.record(rated(session, request), ME)
    await sessions.record(told(session, 1), ME)
    for elsewhere, said in ((session, uuid4()), (uuid4(), request)):
        with pytest.raises(NotFound):
            await sessions.set_feedback(elsewhere, said, ME, vote="up")
    assert {one.feedback for one in (await sessions.history(session, ME))[0]} == {None}


@pytest.mark.parametrize("other", OTHERS)
async def test_nobody_votes_in_a_session_of_somebody_else(sessions: SqlSessions, other: Owner) -> None:
    session, request = uuid4(), uuid4()
    await sessions.record(rated(session, request), ME)
    with pytest.raises(NotFound):
        await sessions.set_feedback(session, request, other, vote="down")
    assert (await sessions.history(session, ME))[0][0].feedback is None


async def test_a_vote_goes_with_the_words_it_was_for(sessions: SqlSessions) -> None:
    session, request = uuid4(), uuid4()
    cut = replace(rated(session, request), complete=False)
    await sessions.record(cut, ME, idempotency_key="retry-1")
    await sessions.set_feedback(session, request, ME, vote="down")
    assert (await sessions.record(rated(session, uuid4()), ME, idempotency_key="retry-1")).feedback is None


async def test_authors_see_the_votes_of_every_reader_newest_first(sessions: SqlSessions) -> None:
    asked: list[StoredExchange] = []
    votes: list[tuple[Owner, Vote | None]] = [(ME, "up"), (OTHERS[0], "down"), (OTHERS[1], None), (ME, "down")]
    for number, (owner, vote) in enumerate(votes):
        request = uuid4()
        one = await sessions.record(rated(uuid4(), request, number), owner)
        await sessions.set_feedback(one.session_id, request, owner, vote=vote)
        asked.append(replace(one, feedback=vote))
    theirs = uuid4()
    await sessions.record(rated(theirs, theirs), OTHERS[-1])
    await sessions.set_feedback(theirs, theirs, OTHERS[-1], vote="up")
    every = await sessions.feedback(OURS, limit=9)
    assert (every.up, every.down) == (1, 2)
    assert every.last == (asked[3], asked[1], asked[0])
    assert await sessions.feedback(OURS, limit=1) == replace(every, last=(asked[3],))
    assert await sessions.feedback(OURS, limit=9, vote="down") == replace(every, last=(asked[3], asked[1]))
    assert await sessions.feedback(uuid4(), limit=9) == Feedback(0, 0, ())


async def test_text_that_no_database_takes_is_kept_with_marks_in_its_place(sessions: SqlSessions) -> None:
    odd = "a\0b\ud800c"
    strange = StoredExchange(uuid4(), NOON, odd, odd, sources=({odd: [odd]},), metadata={"said": {"by": odd}})
    kept = await sessions.record(strange, ME, idempotency_key=odd)
    plain = "a\ufffdb\ufffdc"
    assert (kept.query, kept.response) == (plain, plain)
    assert (kept.sources, kept.metadata) == (({plain: [plain]},), {"said": {"by": plain}})
    assert await sessions.find_by_key(odd, ME) == kept

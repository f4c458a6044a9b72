"""A conversation is stored with all that was shown, replayed by its key, and kept when its reader leaves half-way."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from citewell import wiring
from citewell.answer.conversation import (
    ChatQuestion,
    ExchangeRecord,
    PendingExchange,
    Rendered,
    Reply,
    begin_exchange,
    last_event,
    read_history,
)
from citewell.errors import IdempotencyConflict
from citewell.models import DEFAULT_PROJECT, Owner, Project, StoredExchange
from tests.conftest import settings_for

pytestmark = pytest.mark.anyio

PROJECT = Project.named(DEFAULT_PROJECT)
OWNER = Owner(PROJECT.id)
QUERY = "Why do gyroscopes drift?"


def render(reply: Reply) -> Rendered:
    """Two fields that no list in the conversation names."""
    return Rendered(fields={"freshness": "today", "passages": len(reply.passages)})


class Conversation:
    def __init__(self, answers: wiring.AnswerResources, stores: wiring.Stores) -> None:
        self.answers = answers
        self.sessions = stores.sessions
        self.session_id = uuid4()

    async def begin(self, query: str = QUERY, key: str | None = None) -> PendingExchange:
        question = ChatQuestion(query, uuid4(), session_id=self.session_id, idempotency_key=key)
        return await begin_exchange(question, project=PROJECT, owner=OWNER, sessions=self.sessions)

    async def ask(self, query: str = QUERY, key: str | None = None) -> ExchangeRecord:
        exchange = await self.begin(query, key)
        return await last_event(exchange.stream(self.answers.engines, render, buffered=True))

    async def history(self) -> list[ExchangeRecord]:
        library = self.answers.library
        records, _ = await read_history(
            self.session_id, OWNER, sessions=self.sessions, library=library, limit=10, offset=0
        )
        return records


@pytest.fixture
async def conversation(own_book_home: Path) -> AsyncIterator[Conversation]:
    settings = settings_for(own_book_home)
    async with wiring.open_for_answers(settings) as answers, wiring.open_stores(settings) as stores:
        yield Conversation(answers, stores)


async def test_whatever_fields_were_shown_are_stored_and_listed(conversation: Conversation) -> None:
    record = await conversation.ask()
    assert record.complete
    assert record.has_answer
    assert "[1]" in record.text
    assert record.rendered.fields["freshness"] == "today"
    assert await conversation.history() == [record]


async def test_the_same_key_replays_the_stored_exchange(conversation: Conversation) -> None:
    first = await conversation.ask(key="once")
    assert await conversation.ask(key="once") == first
    assert len(await conversation.history()) == 1
    with pytest.raises(IdempotencyConflict):
        await conversation.begin("Something else?", key="once")


async def test_an_exchange_stored_without_a_fingerprint_is_replayed_by_its_question(conversation: Conversation) -> None:
    """Older versions stored none."""
    first = await conversation.ask()
    stored = replace(first.to_stored(), session_id=conversation.session_id)
    await conversation.sessions.record(stored, OWNER, idempotency_key="old")
    assert (await conversation.ask(key="old")).text == first.text
    with pytest.raises(IdempotencyConflict):
        await conversation.begin("Something else?", key="old")


async def test_two_requests_with_one_key_at_the_same_time_do_not_get_each_other_s_answer(
    conversation: Conversation,
) -> None:
    first, second = await conversation.begin(key="once"), await conversation.begin("What is torque?", key="once")
    engines = conversation.answers.engines
    assert (await last_event(first.stream(engines, render, buffered=True))).query == QUERY
    with pytest.raises(IdempotencyConflict):
        await last_event(second.stream(engines, render, buffered=True))
    assert [record.query for record in await conversation.history()] == [QUERY]


async def test_a_reader_who_leaves_half_way_leaves_an_incomplete_exchange(conversation: Conversation) -> None:
    exchange = await conversation.begin()
    shown = ""
    async with aclosing(exchange.stream(conversation.answers.engines, render, buffered=False)) as events:
        async for event in events:
            if isinstance(event, str):
                shown = event
                break
    (record,) = await conversation.history()
    assert (record.complete, record.text, record.rendered.sources) == (False, shown, ())


async def test_the_exchanges_before_are_the_context_of_a_question(conversation: Conversation) -> None:
    record = await conversation.ask()
    (context,) = (await conversation.begin("And what helps?")).context
    assert (context.question, context.answer) == (QUERY, record.text)


async def test_a_clock_that_is_set_back_does_not_reorder_the_conversation(conversation: Conversation) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    earlier = StoredExchange(conversation.session_id, tomorrow, QUERY, "They drift because a bias is integrated.")
    await conversation.sessions.record(earlier, OWNER)
    await conversation.ask("And what helps?")
    assert [record.query for record in await conversation.history()] == [QUERY, "And what helps?"]
    (_, latest) = (await conversation.begin("Why is that?")).context
    assert latest.question == "And what helps?"

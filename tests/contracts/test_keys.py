"""What every Keys promises, and what a key is."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from citewell import api_keys as texts
from citewell.adapters.sql import SqlKeys
from citewell.adapters.sql.database import Database
from citewell.models import Key, Project

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = Key("0123456789abcdef", "the widget", "ask", NOON)


@pytest.fixture
async def keys(database: Path | str) -> AsyncIterator[SqlKeys]:
    opened = await Database.open(database)
    yield SqlKeys(opened)
    await opened.close()


@pytest.mark.parametrize("key", [KEY, replace(KEY, scope="admin", project=Project.named("ours").id, per_minute=60)])
async def test_a_key_is_found_by_its_id_with_its_digest(keys: SqlKeys, key: Key) -> None:
    await keys.add(key, digest="d" * 64)
    assert await keys.find(key.id) == (key, "d" * 64)


@pytest.mark.parametrize("unknown", ["", "0123", "a\0b", "\ud800"])
async def test_an_unknown_id_finds_nothing(keys: SqlKeys, unknown: str) -> None:
    await keys.add(KEY, digest="d" * 64)
    assert await keys.find(unknown) is None
    assert not await keys.revoke(unknown)


async def test_keys_are_listed_oldest_first(keys: SqlKeys) -> None:
    made = [replace(KEY, id=str(n), created_at=NOON - timedelta(days=n)) for n in range(3)]
    for one in made:
        await keys.add(one, digest="d" * 64)
    assert await keys.keys() == made[::-1]


async def test_a_revoked_key_is_found_and_listed_as_such(keys: SqlKeys) -> None:
    await keys.add(KEY, digest="d" * 64)
    assert await keys.revoke(KEY.id)
    found = await keys.find(KEY.id)
    assert found is not None
    assert found[0].revoked_at is not None
    assert await keys.keys() == [found[0]]


async def test_a_key_is_revoked_once(keys: SqlKeys) -> None:
    await keys.add(KEY, digest="d" * 64)
    assert sorted(await asyncio.gather(*(keys.revoke(KEY.id) for _ in range(4)))) == [False, False, False, True]


def test_no_two_keys_are_alike_and_each_knows_its_id() -> None:
    made = [texts.create_key() for _ in range(100)]
    assert len({one.text for one in made}) == len({one.id for one in made}) == 100
    assert all(texts.key_id(one.text) == one.id for one in made)


def test_a_key_matches_its_own_digest_and_no_other() -> None:
    one, other = texts.create_key(), texts.create_key()
    assert texts.key_matches(one.text, one.digest)
    assert not texts.key_matches(other.text, one.digest)
    assert not texts.key_matches(one.text[:-1], one.digest)


def test_the_secret_is_in_neither_digest_nor_what_a_log_would_show() -> None:
    one = texts.create_key()
    secret = one.text.rpartition("_")[2]
    assert secret not in one.digest
    assert secret not in repr(one)


@pytest.mark.parametrize(
    "text",
    ["", "cw_", "cw__", "sk-123", "cw_0123456789abcdef_", f"cw_{'G' * 16}_{'0' * 64}", f"cw_{'0' * 16}_{'٣' * 64}"],
)
def test_what_has_not_the_shape_of_a_key_has_no_id(text: str) -> None:
    assert texts.key_id(text) is None
    assert texts.key_id(f"{texts.create_key().text}\n") is None

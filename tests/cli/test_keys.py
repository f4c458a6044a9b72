"""Keys are made, listed and revoked on the command line; the secret is seen once and kept nowhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from citewell.api_keys import key_id
from citewell.cli import main

pytestmark = pytest.mark.usefixtures("home_of_its_own")


@pytest.fixture
def home_of_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITEWELL_HOME", str(home))


def keys(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["keys", *arguments])


def listed() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(keys("list", "--json").stdout)
    return found


def test_a_new_key_is_all_that_is_printed_and_says_that_it_is_shown_once() -> None:
    made = keys("create", "the widget")
    assert made.exit_code == 0
    assert key_id(made.stdout.strip())
    assert "only time the key is shown" in made.stderr


def test_a_key_asks_everywhere_unless_said_otherwise() -> None:
    text = keys("create", "the widget").stdout.strip()
    [one] = listed()
    assert one["id"] == key_id(text)
    assert (one["name"], one["scope"], one["project"], one["per_minute"]) == ("the widget", "ask", None, None)
    assert one["revoked_at"] is None


def test_a_key_can_be_narrowed_and_widened() -> None:
    assert keys("create", "ops", "--scope", "admin", "--project", "default", "--per-minute", "90").exit_code == 0
    [one] = listed()
    assert (one["scope"], one["project"], one["per_minute"]) == ("admin", "default", 90)
    shown = keys("list").stdout
    assert "admin  default  ops  90 a minute" in shown
    assert "1 of 1 in use" in shown


def test_the_secret_is_nowhere_in_the_home_folder_nor_in_a_list(home: Path) -> None:
    secret = keys("create", "the widget").stdout.strip().rpartition("_")[2]
    assert secret not in keys("list").stdout + keys("list", "--json").stdout
    for file in home.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("by", ["id", "key"])
def test_a_revoked_key_is_shut_out_once_and_stays_in_the_list(by: str) -> None:
    text = keys("create", "the widget").stdout.strip()
    identity = str(key_id(text))
    done = keys("revoke", identity if by == "id" else text)
    assert done.stdout == f"revoked {identity} (the widget)\n"
    again = keys("revoke", identity)
    assert again.exit_code == 0
    assert "was revoked already" in again.stdout
    assert listed()[0]["revoked_at"] is not None
    assert "revoked" in keys("list").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["create", "x", "--project", "nope"], "there is no project 'nope'; there are default"),
        (["create", " "], "NAME is empty"),
        (["create", "x", "--scope", "root"], "'root' is not one of"),
        (["create", "x", "--per-minute", "0"], "0 is not in the range"),
        (["revoke", "nope"], "there is no key with this id"),
    ],
)
def test_a_mistake_gets_one_clear_line_and_makes_no_key(arguments: list[str], says: str) -> None:
    failed = keys(*arguments)
    assert failed.exit_code in (1, 2)
    assert says in failed.stderr
    assert listed() == []

"""The shell commands of docs/api.md run as they are, against a real server with the example book."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from citewell.http.app import create_app
from citewell.http.reference.openapi import operations
from citewell.settings import Settings
from tests.conftest import serving

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CURL = re.compile(r"\bcurl (?=-)")

# Runs curl as written, and keeps what came back under the number that the line has on the page.
_CALLED = """
set -eu
called() {
  local number=$1 status; shift
  status=$(command curl --max-time 60 -o "$OUT/$number" -w '%{http_code}' "$@") || status="failed $?"
  echo "$number $status" >> "$OUT/log"
  if [ -e "$OUT/$number" ]; then cat "$OUT/$number"; fi
}
"""


class Page:
    """The page's shell blocks as one script, each curl numbered, and the JSON shown under each."""

    def __init__(self) -> None:
        self.expected: dict[int, str] = {}
        self.shown: list[tuple[int, str, str]] = []
        self.script = _CALLED
        for kind, text in _BLOCK.findall(PAGE):
            if kind == "bash":
                self.script += self._numbered(text)
            elif kind in ("json", "sse"):
                self.shown.append((len(self.expected) - 1, kind, text))

    def _numbered(self, text: str) -> str:
        lines = []
        for line in re.split(r"(?<!\\)\n(?=\w)", text):  # a command with the lines it goes on in
            told = re.search(r"# (\d{3})\s*$", line)
            number = len(self.expected)
            changed, count = _CURL.subn(f"called {number} ", line)
            if count:
                assert count == 1, f"one curl a line: {line}"
                self.expected[number] = told[1] if told else "200"
            lines.append(changed)
        return "\n".join(lines) + "\n"


def test_every_line_answers_as_the_page_shows(own_book_home: Path, tmp_path: Path) -> None:
    if not shutil.which("curl") or not shutil.which("bash"):
        pytest.skip("needs bash and curl")
    page, out = Page(), tmp_path / "out"
    out.mkdir()
    with serving(own_book_home) as address:
        run(page.script.replace("http://localhost:8000", address), home=own_book_home, out=out)
    answered = dict(line.split(" ", 1) for line in (out / "log").read_text().splitlines())
    assert {int(number): status for number, status in answered.items()} == page.expected
    assert len(page.shown) > 10
    for number, kind, text in page.shown:
        real = (out / str(number)).read_text(encoding="utf-8")
        if kind == "json":
            assert_shaped(json.loads(text), json.loads(real))
            continue
        events = [json.loads(line[6:]) for line in real.splitlines() if line.startswith("data: ")]
        for line in text.splitlines():
            assert set(json.loads(line.removeprefix("data: "))) in [set(event) for event in events], line


def run(script: str, *, home: Path, out: Path) -> None:
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=out.parent,
        timeout=300,
        env={**os.environ, "PATH": commands, "OUT": str(out), "CITEWELL_HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr


def assert_shaped(shown: Any, real: Any) -> None:
    """Everything that is shown exists in the real response, with the same type."""
    if isinstance(shown, dict):
        assert set(shown) <= set(real), set(shown) - set(real)
        for name, value in shown.items():
            assert_shaped(value, real[name])
    elif isinstance(shown, list):
        assert bool(shown) == bool(real)
        for one in shown:
            assert_shaped(one, real[0])
    else:
        assert isinstance(real, type(shown)), (shown, real)


def test_the_page_has_a_line_for_every_endpoint() -> None:
    commands = "\n".join(text for kind, text in _BLOCK.findall(PAGE) if kind == "bash")
    document = create_app(Settings.model_validate({"database_url": None})).openapi()
    for method, path, endpoint in operations(document):
        if endpoint["tags"] == ["page"]:
            continue
        address = re.sub(r"\\{\w+\\}", r"[\\w$]+", re.escape(path))
        deletes = " -X DELETE" if method == "DELETE" else ""
        assert re.search(rf"curl -sN?{deletes} \"?\$SERVER{address}(?=[\s?])", commands), f"{method} {path}"


def test_the_page_knows_every_error_code_and_status() -> None:
    document = create_app(Settings.model_validate({"database_url": None})).openapi()
    rows = re.findall(r"^\| (\d{3}) \| (.+?) \|", PAGE, re.MULTILINE)
    told = {(status, code) for status, codes in rows for code in re.findall(r"\w+", codes)}
    responses = document["components"]["responses"]
    assert told == {(status, code) for status, one in responses.items() for code in one["x-codes"]}

"""The command line helps, answers, and never shows a traceback for a user's mistake."""

import json
import socket
from pathlib import Path

import pytest

from tests.conftest import BOOK, Citewell, document, find


def test_help_says_what_there_is_without_loading_engines(citewell: Citewell) -> None:
    shown = citewell("--help")
    assert shown.returncode == 0
    for command in ("ingest", "ask", "chat", "search", "serve", "eval"):
        assert command in shown.stdout
        assert citewell(command, "--help").returncode == 0


def test_ask_streams_an_answer_with_numbered_sources(citewell: Citewell, book_home: Path) -> None:
    shown = citewell("ask", "Why do gyroscopes drift?", home=book_home)
    assert shown.returncode == 0
    answer, sources = shown.stdout.split("\n\nSources")
    assert "[1]" in answer
    assert "  [1] 02-body-and-senses/02-proprioception.mdx:" in sources
    assert "(score 0." in sources


def test_ask_as_json_gives_one_object_whose_citations_resolve(citewell: Citewell, book_home: Path) -> None:
    body = json.loads(citewell("ask", "--json", "Why do gyroscopes drift?", home=book_home).stdout)
    assert list(body) == [
        "answer", "confidence", "low_confidence", "mode", "model", "notice", "unsupported", "support",
        "citations", "nearest",
    ]  # fmt: skip
    assert (body["notice"], body["support"]) == ("", []), "quotations need neither"
    assert (body["mode"], body["model"]) == ("full", "extractive")
    by_id = {passage.chunk.id: passage for passage in find(book_home, "Why do gyroscopes drift?")}
    for citation in body["citations"]:
        assert list(citation) == [
            "id", "documentId", "chunkIndex", "source", "chapter", "section", "start", "end", "line", "score", "text",
        ]  # fmt: skip
        stored = document(book_home, by_id[citation["id"]])
        assert stored is not None
        assert stored.text[citation["start"] : citation["end"]] == citation["text"]
        assert len(citation["id"]) == 64


def test_nothing_is_left_outside_the_home_folder(citewell: Citewell, docs: Path, tmp_path: Path) -> None:
    """The library that runs the model would keep notes for its makers where a person's caches are."""
    person = tmp_path / "person"
    person.mkdir()
    folders = {"HOME": str(person), "XDG_CACHE_HOME": str(person / "caches"), "ORT_DISABLE_TELEMETRY": ""}
    assert citewell("ingest", str(docs), **folders).returncode == 0
    assert "uphill" in citewell("ask", "What does a pump do?", **folders).stdout
    assert list(person.rglob("*")) == []


def test_not_covered_is_an_answer_too(citewell: Citewell, book_home: Path) -> None:
    shown = citewell("ask", "How long does a chicken roast?", home=book_home)
    assert shown.returncode == 0
    assert "not covered by these documents" in shown.stdout
    assert "Sources" not in shown.stdout
    assert "\n\nNearest topics\n  0" in shown.stdout


def test_search_lists_places(citewell: Citewell, book_home: Path) -> None:
    shown = citewell("search", "friction cone", home=book_home)
    assert shown.stdout.startswith("1. 03-motion/04-manipulation.mdx:")
    found = json.loads(citewell("search", "--json", "--top-k", "2", "friction cone", home=book_home).stdout)
    assert len(found) == 2


def test_a_search_can_be_narrowed(citewell: Citewell, book_home: Path) -> None:
    folder = "03-motion/"
    found = json.loads(citewell("search", "--json", "calibration", "--path", folder, home=book_home).stdout)
    assert found
    assert all(one["source"].startswith(folder) for one in found)
    cited = citewell("ask", "What does calibration find?", "--section", "Calibration", home=book_home).stdout
    assert "Vision and Depth > Calibration" in cited
    assert "[2]" not in cited.split("Sources")[1]
    shown = citewell("ask", "What does calibration find?", "--section", "Nowhere", home=book_home)
    assert shown.returncode == 0
    assert shown.stdout.strip() == "There is nothing in section “Nowhere” to answer from."
    assert "Nothing found in chapter “No”" in citewell("search", "x", "--chapter", "No", home=book_home).stdout


def test_ingest_as_json_is_the_contract_s_result(citewell: Citewell, docs: Path) -> None:
    (docs / "broken.md").write_bytes(b"\xff")
    shown = citewell("ingest", str(docs), "--json")
    body = json.loads(shown.stdout)
    assert (body["files_processed"], body["chunks_created"]) == (3, 5)
    assert body["exit_code"] == shown.returncode == 1
    assert len(body["errors"]) == 1
    assert body["errors"][0].startswith("broken.md: not UTF-8")


@pytest.mark.parametrize(
    ("arguments", "environment", "says"),
    [
        (["ask", "What is it?"], {}, "citewell ingest"),
        (["ask", "  "], {}, "empty"),
        (["search", " "], {}, "nothing to search"),
        (["ask", "x", "--top-k", "99"], {}, "1<=x<=20"),
        (
            ["ask", "What?", "--url-prefix", "docs"],
            {},
            "should be a URL like https://example.org/docs or a path like /docs",
        ),
        (["search", "x", "--section", " "], {}, "the filter section is empty"),
        (["ask", "What?", "--path", "\udcff/"], {}, "the filter path is not readable text"),
        (["chat", "--project"], {}, "requires an argument"),
        (["ingest"], {}, "Missing argument"),
        (["ingest", "nowhere"], {}, "no such file or folder"),
        (["frobnicate"], {}, "No such command"),
        (["serve", "--host", "203.0.113.9"], {}, "Make a key first"),
        (["eval", "nowhere.jsonl"], {}, "does not exist"),
        (["ask", "What?"], {"CITEWELL_PORT": "many"}, "CITEWELL_PORT='many'"),
        (["ingest", str(BOOK)], {"CITEWELL_CHUNK_OVERLAP": "900"}, "chunk overlap 900"),
        (["ask", "What?"], {"CITEWELL_HOME": "/proc/nowhere"}, "cannot be opened"),
        (["ingest", str(BOOK)], {"CITEWELL_HOME": "/proc/nowhere"}, "cannot write"),
    ],
)
def test_a_mistake_gets_one_clear_line(
    citewell: Citewell, arguments: list[str], environment: dict[str, str], says: str
) -> None:
    shown = citewell(*arguments, **environment)
    assert shown.returncode in (1, 2)
    assert says in shown.stdout + shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_port_that_is_taken_is_named(citewell: Citewell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        shown = citewell("serve", "--port", str(taken.getsockname()[1]))
    assert shown.returncode == 1
    assert "choose another with --port" in shown.stderr


def test_a_question_file_with_a_bad_line_is_named(citewell: Citewell, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"id": "a", "text": "What?"}\n{"id": "b"}\n')
    shown = citewell("eval", str(tmp_path / "q.jsonl"))
    assert shown.returncode == 1
    assert "q.jsonl:2: not a question (text: " in shown.stderr

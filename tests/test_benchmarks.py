"""The retrieval benchmark runs on any data folder of its layout, and says what it measured."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.qdrant import KEY, Qdrant

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "quality" / "retrieval.py"


def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "CITEWELL_EMBEDDER": "hashing"},
    )


def write(path: Path, *lines: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A passage set, a set with exact spans, a site with questions and one without; no PDF."""
    folder = tmp_path / "data"
    write(
        folder / "retrieval" / "birds" / "corpus.jsonl",
        {"id": "b:0", "title": "Swifts", "text": "Swifts sleep on the wing. A List<Bird> holds them."},
        {"id": "b:1", "title": "Herons", "text": "Herons stand in shallow water. They eat frogs."},
    )
    write(
        folder / "retrieval" / "birds" / "queries.jsonl",
        {"id": "q0", "text": "Where do swifts sleep?", "relevant": ["b:0"], "answers": ["on the wing"]},
        {"id": "q1", "text": "What do herons eat?", "relevant": ["b:1"], "answers": ["frogs"]},
        {"id": "q2", "text": "Who ringed the swifts?", "relevant": [], "unanswerable": True},
    )
    speech = "<b>Good evening.</b> The tax falls by a tenth. Nothing else changes."
    start = speech.index("The tax")
    write(folder / "retrieval" / "speech" / "corpus.jsonl", {"id": "s", "title": "A speech", "text": speech})
    write(
        folder / "retrieval" / "speech" / "queries.jsonl",
        {"id": "s0", "text": "What falls?", "relevant": ["s"], "spans": [{"start": start, "end": start + 26}]},
    )
    site = folder / "docs" / "pumps"
    site.mkdir(parents=True)
    (site / "start.md").write_text("# Start\n\nPumps move water.\n\n## Priming\n\nFill the casing first.\n")
    (site / "stop.rst").write_text("Stop\n====\n\nClose the valve before the motor stops.\n")
    write(
        folder / "docs" / "pumps.queries.jsonl",
        {"id": "p0", "text": "fill the casing", "relevant": ["start.md"], "relevant_sections": ["start.md#Priming"]},
        {"id": "p1", "text": "close the valve", "relevant": ["stop.rst"]},
    )
    write(
        folder / "answers" / "answers.jsonl",
        {
            "id": "pumps-1",
            "site": "pumps",
            "question": "What is closed before the motor stops?",
            "answerable": True,
            "gold": [{"file": "stop.rst", "quote": "Close the valve before the motor stops."}],
        },
        {"id": "pumps-2", "site": "pumps", "question": "Who built the first pump?", "answerable": False},
    )
    (folder / "docs" / "unasked").mkdir()
    write(folder / "offtopic" / "queries.jsonl", {"id": "o0", "text": "who won the cup in 1934", "unanswerable": True})
    return folder


def test_every_set_is_compared_with_the_baseline_and_embedded_once(data: Path, tmp_path: Path) -> None:
    options = ("--home", tmp_path / "home", "--json", tmp_path / "out.json")
    first = run(data, *options)
    assert first.returncode == 0, first.stderr
    assert "skipped pdf/" in first.stderr
    assert "skipped docs/unasked" in first.stderr
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    scores = {table["title"]: table["scores"] for one in result["sets"] for table in one["tables"]}
    assert set(scores["docs/pumps"]) == {"ours", "dense", "BM25", "RRF"}
    assert scores["retrieval/birds"]["ours"]["hit@1"]["value"] == 1.0
    assert scores["docs/pumps, by heading"]["ours"]["hit@5"]["value"] == 1.0
    birds = next(one["tables"] for one in result["sets"] if one["set"] == "retrieval/birds")
    assert birds[0]["ids"] == ["q0", "q1"], "a question without an answer is not searched for"
    refusals = next(one["refusals"] for one in result["sets"] if one["set"] == "docs/pumps")
    assert set(refusals["declined"]) == {"answerable", "off topic"}

    # The speech opens with markup, and its spans count characters: both see all of it, at the same place.
    speech = next(kept for title, kept in scores.items() if title.startswith("retrieval/speech"))
    assert speech["ours"]["recall"]["value"] == speech["RRF"]["recall"]["value"] == 1.0
    assert speech["ours"]["precision"]["value"] == speech["RRF"]["precision"]["value"] == 26 / 68

    again = run(data, *options)
    assert again.stdout == first.stdout, "the same data gives the same numbers and intervals"
    assert again.stderr.count(" 0 chunks embedded") == len(result["sets"])


def test_every_question_about_a_site_counts_in_one_table_by_file(data: Path, tmp_path: Path) -> None:
    done = run(data, "--home", tmp_path / "home", "--json", tmp_path / "out.json", "--only", "pumps")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    tables = {table["title"]: table for table in result["joined"]}
    assert tables["all questions about pumps"]["ids"] == ["p0", "p1", "pumps-1"]
    assert tables["all questions about documents"]["scores"]["ours"]["hit@1"]["value"] == 1.0
    assert "all docs sites together" not in tables, "there is only one"


def test_a_set_that_is_not_there_is_named_with_those_that_are(data: Path) -> None:
    done = run(data, "--only", "fish")
    assert done.returncode != 0
    assert "fish" in done.stderr
    assert "docs/pumps" in done.stderr


def test_a_qdrant_server_is_measured_beside_the_embedded_index_and_left_as_it_was(tmp_path: Path) -> None:
    script = SCRIPT.parents[1] / "qdrant_server.py"
    out = tmp_path / "out.json"
    arguments = ("--chunks", "60", "--questions", "10", "--speed-only", "--json", str(out))
    without = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert without.returncode != 0
    assert "set QDRANT_URL" in without.stderr
    with Qdrant() as server:
        done = subprocess.run(
            [sys.executable, str(script), *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "QDRANT_URL": server.url, "QDRANT_API_KEY": KEY},
        )
        assert done.returncode == 0, done.stderr
        assert server.local.get_collections().collections == []
    speed = json.loads(out.read_text(encoding="utf-8"))["speed"]
    assert speed["recall"] == 1.0
    assert speed["largest_score_difference"] < 1e-4


def test_the_scaling_benchmark_builds_asks_and_draws(tmp_path: Path) -> None:
    script, numbers = SCRIPT.parents[1] / "speed" / "scaling.py", tmp_path / "numbers.json"
    commands = (["run", "--chunks", "500", "1000", "--json", numbers], ["draw", numbers, "--folder", tmp_path])
    for command in commands:
        done = subprocess.run(
            [sys.executable, str(script), *map(str, command)], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
    assert [(row["engine"], row["chunks"], row["recall_at_10"]) for row in json.loads(numbers.read_text())] == [
        ("embedded", 500, 1.0),
        ("embedded", 1000, 1.0),
    ]
    assert done.stdout.count("| embedded |") == 2
    assert "<polyline" in (tmp_path / "scaling-query.svg").read_text()

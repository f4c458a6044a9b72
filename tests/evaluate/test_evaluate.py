"""Golden questions are scored by what readers get, and a build can fail on the scores."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citewell.evaluate.metrics import bootstrap_interval, calibration_error, reliability_bins
from citewell.evaluate.relevance import place_items
from tests.conftest import Citewell, made_once, take_in
from tests.ingest.readers.pdf_files import body, make_pdf

PAGES = {
    "01-pumps.md": "# Pumps\n\nA pump moves water uphill.\n\n"
    "## Priming\n\nFill the casing with water before the first start.\n",
    "02-valves.md": "# Valves\n\nA valve stops the flow.\n\n## Leaks\n\nReplace the gasket yearly.\n",
    "03-pipes.mdx": "---\ntitle: Pipes\n---\n\nCopper pipes carry hot water.\n",
    "04-<b>&.md": "# Gauges\n\nA gauge shows `<script>alert(3)</script>` as the pressure.\n",
}
PRIMING: dict[str, Any] = {
    "id": "priming",
    "text": "What do I fill the casing with before the first start?",
    "relevant": ["01-pumps.md"],
    "relevant_sections": ["01-pumps.md#Priming"],
    "answers": ["with WATER before"],
}
LEAKS: dict[str, Any] = {
    "id": "leaks",
    "text": "How often should I replace the gasket?",
    "relevant": ["02-valves.md"],
    "relevant_sections": ["02-valves.md#`leaks`"],
    "answers": ["yearly"],
}
OFF_TOPIC = {"id": "off", "text": "How do I get red wine out of a carpet?", "unanswerable": True}

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes questions to a file and gives its name."""

    def lines(*questions: dict[str, Any]) -> str:
        path = tmp_path / "questions.jsonl"
        path.write_text("".join(f"{json.dumps(one)}\n" for one in questions), encoding="utf-8")
        return str(path)

    return lines


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that holds four small pages; nobody changes it."""
    folder = tmp_path_factory.mktemp("pages")
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return made_once(tmp_path_factory, "evaluated", lambda home: take_in(home, folder))


def run(citewell: Citewell, questions: str, **options: Path) -> dict[str, Any]:
    shown = citewell("eval", "--json", questions, **options)
    assert shown.returncode == 0, shown.stderr
    body: dict[str, Any] = json.loads(shown.stdout)
    return body


def test_questions_are_scored_by_file_heading_passage_and_answer(citewell: Citewell, write: Write) -> None:
    scored = run(citewell, write(PRIMING, LEAKS, OFF_TOPIC))
    values = {name: one["value"] for name, one in scored["scores"].items()}
    for perfect in (
        "hit@1", "hit@5", "mrr@10", "ndcg@10", "heading_hit@1", "heading_ndcg@10", "passage_hit@1", "passage_mrr@10",
        "answered", "key_answer", "declined", "citations_resolve", "citations_quote",
    ):  # fmt: skip
        assert values[perfect] == 1.0, perfect
    assert (scored["questions"], scored["uncovered"]) == (3, 1)
    assert {name: scored["scores"][name]["n"] for name in ("hit@5", "declined", "ece")} == {
        "hit@5": 2, "declined": 1, "ece": 3,
    }  # fmt: skip
    assert values["mean_characters"] > 0
    assert values["p50_ms"] <= values["p95_ms"]


def test_each_question_says_what_was_found_answered_and_cited(citewell: Citewell, write: Write) -> None:
    row = run(citewell, write(PRIMING))["outcomes"][0]
    assert (row["id"], row["complaint"], row["answeredRightly"]) == ("priming", None, True)
    assert "Fill the casing with water" in row["answer"]
    assert row["found"][0]["source"] == "01-pumps.md"
    assert row["found"][0]["section"] == "Priming"
    assert row["passage"] == {"rank": 1, "ndcg": 1.0}
    assert row["citations"] == row["citationsResolve"] == row["citationsQuote"] > 0


def test_the_wrong_heading_of_the_right_file_is_a_hit_by_file_only(citewell: Citewell, write: Write) -> None:
    row = run(citewell, write({**PRIMING, "relevant_sections": ["01-pumps.md#Pumps"]}))["outcomes"][0]
    assert row["file"]["rank"] == 1
    assert row["heading"]["rank"] > 1


def test_what_a_question_does_not_say_is_not_scored(citewell: Citewell, write: Write) -> None:
    bare = {"text": LEAKS["text"], "relevant": ["02-valves.md"], "answers": [], "extra": [1]}
    scored = run(citewell, write(bare))
    unscored = {name for name, one in scored["scores"].items() if one["value"] is None}
    assert unscored >= {"heading_hit@5", "passage_hit@5", "key_answer", "declined"}
    assert scored["scores"]["hit@5"]["n"] == 1
    shown = citewell("eval", write(bare)).stdout
    assert re.search(r"key_answer +– +0   no question says anything about it", shown)


def test_a_question_without_an_id_is_called_by_its_line_even_in_a_file_from_windows(
    citewell: Citewell, tmp_path: Path
) -> None:
    lines = [json.dumps({"text": one["text"], "relevant": one["relevant"]}) for one in (PRIMING, LEAKS)]
    (tmp_path / "windows.jsonl").write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join(lines).encode() + b"\r\n")
    scored = run(citewell, str(tmp_path / "windows.jsonl"))
    assert [one["id"] for one in scored["outcomes"]] == ["1", "3"]
    assert scored["scores"]["hit@1"]["value"] == 1.0


def test_the_passage_at_a_span_is_wanted_wherever_its_text_has_moved(citewell: Citewell, write: Write) -> None:
    words = "Fill the casing with water"
    start = PAGES["01-pumps.md"].index(words)
    exact = {**PRIMING, "answers": [], "spans": [{"start": start, "end": start + len(words)}]}
    moved = {**exact, "spans": [{"start": 0, "end": len(words), "text": words}]}
    gone = {**exact, "spans": [{"start": 0, "end": 9, "text": "Elsewhere"}]}
    placements = [one["passage"] for one in run(citewell, write(exact, moved, gone))["outcomes"]]
    assert placements == [{"rank": 1, "ndcg": 1.0}, {"rank": 1, "ndcg": 1.0}, None]


def test_a_renamed_page_is_pointed_out(citewell: Citewell, write: Write) -> None:
    renamed = {**PRIMING, "relevant": ["01-old-pumps.md"], "relevant_sections": ["02-valves.md#Dripping"]}
    questions = write(renamed, LEAKS)
    shown = citewell("eval", questions)
    assert "1 question names files that are not in this project" in shown.stderr
    assert ": 01-old-pumps.md\n" in shown.stderr
    assert "1 question names headings that are not in their file: 02-valves.md#Dripping" in shown.stderr
    assert "priming  right file not found" in shown.stdout
    assert len(run(citewell, questions)["warnings"]) == 2


def test_key_answers_that_are_not_in_the_text_are_pointed_out(citewell: Citewell, write: Write) -> None:
    scored = run(citewell, write({**LEAKS, "answers": ["once per annum"]}))
    assert scored["scores"]["key_answer"]["value"] == 0.0
    assert scored["scores"]["passage_hit@5"]["n"] == 0
    assert "word for word" in scored["warnings"][0]
    assert scored["outcomes"][0]["complaint"] == "key answer missing"


def test_a_page_of_a_pdf_is_the_passage_wanted(citewell: Citewell, tmp_path: Path, write: Write) -> None:
    pages = ["Turn the green handle to open the gate.", "The boiler needs descaling every spring."]
    chapters = [("Gates", 0), ("Boilers", 1)]
    drawn = [body(name, size=18) + body(text, top=660) for (name, _), text in zip(chapters, pages, strict=True)]
    (tmp_path / "manual.pdf").write_bytes(make_pdf(drawn, outline=chapters))
    home = tmp_path / "manuals"
    assert take_in(home, tmp_path / "manual.pdf").errors == ()
    asked = [
        {"text": "When does the boiler need descaling?", "relevant": [place]}
        for place in ("manual.pdf#page=2", "manual.pdf#page=1", "other.pdf#page=2")
    ]
    rows = run(citewell, write(*asked), home=home)["outcomes"]
    assert [one["file"]["rank"] for one in rows] == [1, 1, None]
    assert [one["passage"] and one["passage"]["rank"] for one in rows] == [1, 2, None]


def test_a_kept_gate_passes_and_a_broken_one_fails_the_build(citewell: Citewell, write: Write) -> None:
    questions = write(PRIMING, {**LEAKS, "answers": ["once per annum"]}, OFF_TOPIC)
    kept = citewell("eval", questions, "--min", "hit@5=1", "--min", "key_answer=0.5", "--max", "ece=1")
    assert (kept.returncode, "failed" in kept.stderr) == (0, False)
    broken = citewell("eval", questions, "--min", "hit@5=0.9", "--min", "key_answer=0.8", "--max", "mean_characters=3")
    assert broken.returncode == 1
    assert "hit@1" in broken.stdout, "the table is shown all the same"
    assert "failed: key_answer is 50.0 % (n 2), should be at least 80.0 %" in broken.stderr
    assert "failed: mean_characters is " in broken.stderr
    assert "hit@5 is" not in broken.stderr


def test_a_gate_on_what_was_not_measured_does_not_pass(citewell: Citewell, write: Write) -> None:
    shown = citewell("eval", write(PRIMING), "--min", "declined=0.5", "--json")
    assert shown.returncode == 1
    assert "no question says anything about it" in shown.stderr
    assert json.loads(shown.stdout)["gates"] == [{"score": "declined", "min": 0.5, "passed": False}]


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (["--min", "hits=0.9"], "'hits' is not a score; these are: hit@1, hit@5"),
        (["--min", "hit@5"], "give a number after the score"),
        (["--min", "hit@5=often"], "give a number after the score"),
        (["--max", "ece=nan"], "give a number after the score"),
        (["--min", "hit@5=90"], "hit@5 lies between 0 and 1"),
        (["--report", "nowhere/report.html"], "there is no folder nowhere"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_asked(
    citewell: Citewell, tmp_path: Path, write: Write, option: list[str], says: str
) -> None:
    shown = citewell("eval", write(PRIMING), *option, home=tmp_path)  # nothing was ingested: asking would say so
    assert shown.returncode == 2
    assert says in shown.stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"text": " "}', "text: it is empty"),
        ('{"text": "What?", "relevant": "a.md"}', "relevant: Input should be a valid array"),
        ("[1]", "not a question"),
        ("", "no question in this file"),
    ],
)
def test_a_line_that_is_no_question_is_explained(citewell: Citewell, tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "q.jsonl").write_text(f"{line}\n")
    shown = citewell("eval", str(tmp_path / "q.jsonl"))
    assert shown.returncode == 1
    assert says in shown.stderr


class _Page(HTMLParser):
    """What a browser would make of a page: its tags with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_shows_hostile_words_as_words_and_fetches_nothing(
    citewell: Citewell, tmp_path: Path, write: Write
) -> None:
    hostile: dict[str, Any] = {
        "id": '"><script>alert(1)</script>',
        "text": "What does a gauge show as the pressure?</summary><img src=x onerror=alert(2)>",
        "relevant": ["</style><svg onload=alert(4)>.md"],
        "relevant_sections": ["04-<b>&.md#<u>"],
        "answers": ["<iframe src='https://example.org'>"],
    }
    shown = citewell("eval", write(hostile), "--report", "report.html")
    assert shown.returncode == 0, shown.stderr
    page = _Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert {tag for tag, _ in page.tags} & {"script", "img", "iframe", "link", "i", "u", "object"} == set()
    attributes = {name for _, held in page.tags for name in held}
    assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert "url(" not in page.text
    for words in (hostile["id"], hostile["text"], hostile["relevant"][0], hostile["answers"][0], "04-<b>&.md"):
        assert words in page.text


def test_the_report_shows_scores_drawings_and_what_was_found_instead(
    citewell: Citewell, tmp_path: Path, write: Write
) -> None:
    astray = {**LEAKS, "id": "astray", "relevant": ["03-pipes.mdx"], "relevant_sections": [], "answers": ["copper"]}
    assert citewell("eval", write(PRIMING, astray, OFF_TOPIC), "--report", "report.html").returncode == 0
    page = _Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert [held.get("aria-label") for tag, held in page.tags if tag == "svg" and "aria-label" in held] == [
        "Confidence against the share of right answers", "How long answers took",
    ]  # fmt: skip
    assert "What went wrong: 1 of 3" in page.text
    assert "Replace the gasket yearly." in page.text
    assert "02-valves.md Leaks" in page.text


def test_a_second_passage_of_the_same_thing_earns_nothing() -> None:
    one, other = frozenset({"a", "b"}), frozenset({"c"})
    assert place_items(["a", "b", "c"], [one, other]) == place_items(["b", "a", "c"], [one, other])
    best = place_items(["a", "c"], [one, other])
    later = place_items(["a", "b", "c"], [one, other])
    assert best is not None
    assert later is not None
    assert (best.rank, best.ndcg) == (1, 1.0)
    assert later.ndcg == pytest.approx((1 + 1 / np.log2(4)) / (1 + 1 / np.log2(3)))
    assert place_items(["x"] * 10 + ["a"], [one]) == place_items([], [one]), "ten are looked at"
    assert place_items(["a"], []) is None


def test_calibration_error_is_the_mean_gap_over_ten_bins() -> None:
    forecasts = np.array([[0.0, 0], [0.05, 1], [0.95, 1], [1.0, 1], [0.3, 0]])
    assert [one.count for one in reliability_bins(forecasts)] == [2, 1, 2]
    # (2 * |0.025 - 0.5| + 1 * |0.3 - 0| + 2 * |0.975 - 1|) / 5
    assert calibration_error(forecasts) == pytest.approx((0.95 + 0.3 + 0.05) / 5)


def test_intervals_hold_the_score_narrow_with_more_questions_and_never_change() -> None:
    def mean(values: np.typing.NDArray[np.float64]) -> float:
        return float(values.mean())

    few = np.array([1.0, 1.0, 1.0, 0.0] * 5)
    many = np.array([1.0, 1.0, 1.0, 0.0] * 100)
    wide = bootstrap_interval(few, np.arange(20), mean)
    narrow = bootstrap_interval(many, np.arange(400), mean)
    assert wide[0] < narrow[0] < 0.75 < narrow[1] < wide[1]
    assert wide == bootstrap_interval(few, np.arange(20), mean)
    # Four citations of one answer are one draw: as uncertain as five questions.
    assert bootstrap_interval(np.sort(few), np.repeat(np.arange(5), 4), mean)[0] < wide[0]

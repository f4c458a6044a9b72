"""The operator's title, welcome, logo and starter questions: on the page, in the API and in refusals, as text."""

import asyncio
import html
from html.parser import HTMLParser
from pathlib import Path

import pytest

from citewell.errors import SettingsError
from citewell.http.app import create_app
from citewell.settings import Settings, read_settings
from tests.browser.payloads import PAYLOADS
from tests.conftest import Citewell, settings_for
from tests.http.conftest import DEFAULT, ingest_folder, running

pytestmark = pytest.mark.anyio

UNCOVERED = "Who won the football world cup in 1998?"
SVG = b"""<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><rect width="9" height="9"/></svg>"""


def branded(home: Path, **values: object) -> Settings:
    """Settings with which every question is declined: what is said then is what this is about."""
    return settings_for(home, embedder="hashing", decline_below=1, **values)


async def test_a_refusal_names_the_title(pages: Path) -> None:
    async with running(branded(pages, title="The Pump Manual")) as http:
        told = (await http.post("/api/ask", json={"question": UNCOVERED})).json()["answer"]
        assert told.startswith("This is not covered by The Pump Manual. The nearest topics it covers are ")
        assert (await http.post("/api/query", json={"query": UNCOVERED})).json()["answer"] == told
        assert (await http.post("/chat", json={"query": UNCOVERED})).json()["answer"] == told
        assert (await http.post("/api/v1/chat", json={"projectId": str(DEFAULT.id), "message": UNCOVERED})).json()[
            "response"
        ] == told


async def test_without_a_title_no_answer_speaks_of_a_book(pages: Path) -> None:
    async with running(branded(pages)) as http:
        told = (await http.post("/api/ask", json={"question": UNCOVERED})).json()["answer"]
        assert told.startswith("This is not covered by these documents. The nearest topics they cover are ")
        selected = {"query": UNCOVERED, "selected_text": "Bread."}
        outside = (await http.post("/chat", json=selected)).json()["answer"]
        assert outside == "An answer was not found in selection; ask again without one to search all documents."
        greeted = (await http.post("/chat", json={"query": "Hello!"})).json()["answer"]
        assert greeted == "Hello! What would you like to know?"
        page = (await http.get("/chat")).text
        assert "<title>Ask the documents</title>" in page
        assert "application-name" not in page


async def test_a_command_refuses_with_the_title_too(pages: Path, citewell: Citewell) -> None:
    engine = {"CITEWELL_EMBEDDER": "hashing", "CITEWELL_DECLINE_BELOW": "1"}
    shown = citewell("ask", UNCOVERED, home=pages, CITEWELL_TITLE="The Pump Manual", **engine)
    assert shown.stdout.startswith("This is not covered by The Pump Manual."), shown


async def test_the_welcome_says_what_the_settings_say(pages: Path, tmp_path: Path) -> None:
    (tmp_path / "logo.svg").write_bytes(SVG)
    settings = branded(
        pages,
        title="The Pump Manual",
        welcome="Ask away.\nWe answer from the manual.",
        logo=tmp_path / "logo.svg",
        starter_questions="What does a pump move? | How do I prime it?\n\n What stops the flow? |",
    )
    async with running(settings) as http:
        body = (await http.get("/api/v1/welcome")).json()
    assert body["title"] == "The Pump Manual"
    assert body["welcome"] == "Ask away.\nWe answer from the manual."
    assert body["logo"] == "/logo"
    assert body["questions"] == ["What does a pump move?", "How do I prime it?", "What stops the flow?"]


async def test_starter_questions_are_those_of_the_default_project(tmp_path: Path, docs: Path) -> None:
    """Another project may not answer them; it has questions of its own, and an empty one has none."""
    settings = branded(tmp_path / "home", starter_questions="What does a pump move?")
    await asyncio.to_thread(ingest_folder, settings, docs, project="other")
    async with running(settings) as http:
        welcome = (await http.get("/api/v1/welcome")).json()
        assert (welcome["documents"], welcome["questions"]) == (0, [])
        other = next(one for one in welcome["projects"] if one["name"] == "other")
        welcome = (await http.get("/api/v1/welcome", params={"project_id": other["id"]})).json()
        assert "What does a pump move?" not in welcome["questions"]


class _Page(HTMLParser):
    """The elements of a page, and the text in its title."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.meta: dict[str, str | None] = {}
        self.title = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag == "meta":
            named = dict(attrs)
            self.meta[named.get("name") or ""] = named.get("content")

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1] == "title" and not self.title:
            self.title = data


async def test_a_title_is_text_on_the_page_whatever_it_looks_like(pages: Path) -> None:
    async with running(branded(pages)) as http:
        plain = _Page((await http.get("/chat")).text)
    for payload in PAYLOADS:
        title = " ".join(payload.split())
        async with running(branded(pages, title=payload)) as http:
            response = await http.get("/chat")
        page = _Page(response.text)
        assert page.meta["application-name"] == title, payload
        assert f"<title>{html.escape(title)}</title>" in response.text
        assert sorted(page.elements) == sorted([*plain.elements, "meta"]), payload


async def test_a_new_title_is_a_new_page_for_a_browser_that_has_the_old_one(pages: Path) -> None:
    async with running(branded(pages, title="Old")) as http:
        old = (await http.get("/chat")).headers["etag"]
        assert (await http.get("/chat", headers={"If-None-Match": old})).status_code == 304
    async with running(branded(pages, title="New")) as http:
        assert (await http.get("/chat", headers={"If-None-Match": old})).status_code == 200


async def test_a_logo_is_served_and_can_run_nothing(pages: Path, tmp_path: Path) -> None:
    (tmp_path / "logo.SVG").write_bytes(SVG)
    async with running(branded(pages, logo=tmp_path / "logo.SVG")) as http:
        response = await http.get("/logo")
        assert '<link rel="icon" href="/logo">' in (await http.get("/chat")).text
    assert response.content == SVG
    assert response.headers["content-type"].startswith("image/svg+xml")
    assert response.headers["x-content-type-options"] == "nosniff"
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert "allow-scripts" not in policy
    assert "script-src" not in policy


async def test_without_a_logo_there_is_none(pages: Path) -> None:
    async with running(branded(pages)) as http:
        assert (await http.get("/logo")).status_code == 404
        assert (await http.get("/api/v1/welcome")).json()["logo"] is None


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("nowhere.png", None, "cannot be read (No such file or directory)"),
        ("logo.bmp", b"BM", "should end in .svg, .png, .jpg, .jpeg, .webp, .gif"),
        ("logo", b"", "should end in "),
        ("logo.png", bytes(1_000_001), "should have at most 1,000,000 bytes"),
    ],
)
def test_a_logo_that_cannot_be_shown_stops_the_server_before_it_starts(
    tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingsError, match="CITEWELL_LOGO=.*" + name) as raised:
        create_app(branded(tmp_path, logo=tmp_path / name))
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("CITEWELL_TITLE", "x" * 101, "should have at most 100 characters, has 101"),
        ("CITEWELL_TITLE", "Pumps\x1b[31m", "should have no control character such as '\\x1b'"),
        ("CITEWELL_WELCOME", "x" * 1001, "should have at most 1000 characters, has 1001"),
        ("CITEWELL_STARTER_QUESTIONS", "|".join("abcdefghi"), "should be at most 8 questions, has 9"),
        ("CITEWELL_STARTER_QUESTIONS", f"Why?|{'x' * 201}", "should have at most 200 characters, has 201"),
    ],
)
def test_a_text_that_does_not_fit_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as raised:
        read_settings()
    assert str(raised.value) == f"{variable}={value!r}: {message}"


def test_blank_texts_are_none_and_the_rest_reaches_other_processes_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITEWELL_TITLE", "  ")
    monkeypatch.setenv("CITEWELL_WELCOME", " \n ")
    monkeypatch.setenv("CITEWELL_STARTER_QUESTIONS", "Why, and how?|What \t now?")
    settings = read_settings()
    assert (settings.title, settings.welcome) == (None, None)
    for name, value in settings.as_environment().items():
        monkeypatch.setenv(name, value)
    assert read_settings() == settings
    assert settings.starter_questions == ("Why, and how?", "What now?")

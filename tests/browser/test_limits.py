"""The page refuses what the API refuses, before it sends anything, and says why; it says what the server refuses."""

import json
import re

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import COVERED, Opens, Watched, ask
from tests.http.live import Live

pytestmark = pytest.mark.xdist_group("browser-limits")

TOO_LONG = "Your question has 32001 characters. At most 32000 are possible."


@pytest.fixture
def sent(chat: Page) -> list[str]:
    """The questions that the page sends."""
    questions: list[str] = []
    chat.route("**/chat/stream*", lambda route: (questions.append(route.request.post_data), route.continue_()))  # type: ignore[func-returns-value]
    return questions


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Type a question first."),
        (" \n ", "Type a question first."),
        ("\u200b\u200d\ufeff\u2060", "Type a question first."),
        ("x" * 32_001, TOO_LONG),
        ("🤖" * 32_001, TOO_LONG),
    ],
    ids=["empty", "blank", "invisible", "letters", "emoji"],
)
def test_a_question_that_the_api_refuses_is_not_sent(chat: Page, sent: list[str], text: str, reason: str) -> None:
    field = chat.get_by_label("Your question")
    field.fill(text)
    field.press("Enter")
    expect(chat.get_by_role("alert")).to_have_text(reason)
    expect(field).to_have_value(text)
    expect(field).to_have_attribute("aria-invalid", "true")
    assert sent == []
    expect(chat.locator(".message")).to_have_count(0)
    field.fill("")
    field.press_sequentially("W")
    expect(chat.locator(".problem")).to_be_empty()


def test_the_api_draws_the_line_at_the_same_character(site: Live) -> None:
    def status(**body: str) -> int:
        return httpx2.post(f"{site.address}/chat", json=body, timeout=60).status_code

    assert [status(query=text) for text in (" ", "🤖" * 32_001, "🤖" * 32_000)] == [400, 400, 200]
    selections = ("🤖" * 64_001, "🤖" * 64_000)
    assert [status(query="Why?", selected_text=text) for text in selections] == [400, 200]


def test_characters_are_counted_as_the_server_counts_them(chat: Page, sent: list[str]) -> None:
    """32,000 emoji are 64,000 units of UTF-16, and allowed."""
    chat.get_by_label("Your question").fill("🤖" * 32_000)
    chat.keyboard.press("Enter")
    answer = chat.locator(".message.assistant")
    expect(answer).to_have_attribute("data-standing", re.compile("answered|uncovered|unsure"))
    assert [len(json.loads(body)["query"]) for body in sent] == [32_000]


@pytest.mark.parametrize(
    ("language", "reason"),
    [
        ("de", "Gib zuerst eine Frage ein."),
        ("es", "Escribe primero una pregunta."),
        ("fr", "Saisissez d’abord une question."),
        ("ja", "先に質問を入力してください。"),
        ("zh", "请先输入问题。"),
        ("ar", "اكتب سؤالًا أولًا."),
    ],
)
def test_the_reason_is_in_the_reader_s_language(site: Live, opened: Opens, language: str, reason: str) -> None:
    page = opened(f"{site.address}/chat?lang={language}")
    page.locator("textarea").press("Enter")
    expect(page.get_by_role("alert")).to_have_text(reason)


def test_a_selection_that_is_too_long_is_refused_with_the_reason(page: Page) -> None:
    page.wait_for_function("window.Citewell")
    page.evaluate("""() => {
      const text = document.querySelector('#text');
      text.textContent = '🤖'.repeat(64001);
      getSelection().selectAllChildren(text);
    }""")
    page.get_by_role("button", name="Ask about this").click()
    expect(page.get_by_role("alert")).to_have_text("Your selection has 64001 characters. Select at most 64000.")
    expect(page.locator(".chip")).to_have_count(0)


def test_what_a_script_of_the_site_asks_is_checked_too(page: Page) -> None:
    page.wait_for_function("window.Citewell")
    for call, reason in (
        ("Citewell.ask('')", "Type a question first."),
        ("Citewell.ask('Why?', ' ')", "There is no text in your selection."),
    ):
        page.evaluate(call)
        expect(page.get_by_role("alert")).to_have_text(reason)
    expect(page.locator(".message")).to_have_count(0)


def test_half_a_character_does_not_spoil_a_question(chat: Page, sent: list[str]) -> None:
    chat.evaluate("document.querySelector('textarea').value = 'Why do gyroscopes drift? \\ud83e'")
    chat.get_by_label("Your question").press("Enter")
    expect(chat.locator(".message.assistant")).to_have_attribute("data-standing", re.compile("answered|unsure"))
    assert "\ufffd" in json.loads(sent[0])["query"]


def test_what_the_server_refuses_anyway_is_said_in_its_words(chat: Page, watched: Watched) -> None:
    watched.expected.append("status of 400")
    message = "query: has a word that this server does not take"
    told = {"error_code": "VALIDATION_ERROR", "message": message, "request_id": ""}
    chat.route("**/chat/stream*", lambda route: route.fulfill(status=400, json=told))
    answer = ask(chat, COVERED)
    expect(answer.get_by_role("alert")).to_contain_text(message)

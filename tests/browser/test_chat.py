"""The chat page as a reader uses it."""

import re
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from citewell.models import Project
from tests.browser.conftest import COVERED, PHONE, UNCOVERED, Opens, Stage, Watched, ask, at, take_in
from tests.browser.states import growing, writing
from tests.conftest import copied
from tests.http.conftest import made_key
from tests.http.live import Held, Live, WaitingIndex, live, until

pytestmark = pytest.mark.xdist_group("browser-chat")


def test_an_answer_grows_and_its_citation_opens_the_words_it_rests_on(chat: Page) -> None:
    answer = ask(chat, COVERED)
    mark = answer.locator("button.mark").first
    sentence = answer.locator(".words").inner_text()
    mark.click()
    panel = chat.locator("dialog.panel")
    expect(panel).to_be_visible()
    cited = panel.locator("mark.cited").first
    expect(cited).to_be_in_viewport()
    assert _words(cited.inner_text())[:40] in _words(sentence)
    expect(panel.get_by_role("heading")).to_have_text("Proprioception: Sensing the Body")
    expect(panel.locator(".facts")).to_contain_text("02-proprioception.mdx")
    expect(panel.locator(".facts")).to_contain_text(re.compile(r"line \d+"))
    expect(panel.locator(".facts")).to_contain_text(re.compile(r"part \d+ of \d+"))
    expect(panel.locator(".facts")).to_contain_text(re.compile(r"match \d+ %"))
    link = panel.get_by_role("link", name="Open the page")
    assert re.match(r"https://book\.example\.org/.*#.*:~:text=", link.get_attribute("href") or "")
    assert panel.locator("mark.context").count() > 0, "what stands around it is shown too"


def test_each_mark_leads_to_its_own_words(chat: Page) -> None:
    answer = ask(chat, "How does a humanoid keep its balance?")
    marks = answer.locator("button.mark")
    shown = []
    for number in range(marks.count()):
        marks.nth(number).click()
        chat.locator("dialog.panel mark.cited").first.wait_for()
        shown.append(_words(" ".join(chat.locator("dialog.panel mark.cited").all_inner_texts())))
        chat.keyboard.press("Escape")
    text = _words(answer.locator(".words").inner_text())
    assert len(shown) > 1
    assert len(set(shown)) == len(shown)
    assert all(words[:30] in text for words in shown)


def test_pointing_at_a_mark_shows_its_excerpt(chat: Page) -> None:
    mark = ask(chat, COVERED).locator("button.mark").first
    mark.hover()
    tip = chat.get_by_role("tooltip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("Proprioception")
    tip.hover()  # who wants to read it may go there
    expect(tip).to_be_visible()
    chat.mouse.move(5, 5)
    expect(tip).to_be_hidden()


def test_the_page_says_that_an_answer_is_being_written_until_its_first_text(stage: Stage) -> None:
    with writing(stage) as page:
        expect(page.locator("[data-streaming] .typing .dots")).to_be_visible()
        expect(page.get_by_role("status")).to_have_text("Writing the answer…")
        expect(page.locator(".message.assistant .words")).to_have_count(0)
    with growing(stage) as page:
        expect(page.locator(".typing")).to_have_count(0)


def test_text_is_shown_while_the_answer_is_still_coming(stage: Stage) -> None:
    with growing(stage) as page:
        expect(page.locator("[data-streaming] .message.assistant .words")).to_contain_text("after one minute")
        expect(page.locator(".message.assistant .actions")).to_have_count(0)


def test_a_reload_keeps_the_conversation_as_it_was(chat: Page) -> None:
    ask(chat, COVERED)
    ask(chat, UNCOVERED)
    before = chat.locator(".messages").inner_text()
    chat.reload()
    expect(chat.locator(".message")).to_have_count(4)
    assert chat.locator(".messages").inner_text() == before
    expect(chat.locator(".message").last).to_have_attribute("data-standing", "uncovered")
    chat.locator("button.mark").first.click()
    expect(chat.locator("dialog.panel mark.cited").first).to_be_in_viewport()


def test_a_new_conversation_is_empty_and_stays_so(chat: Page) -> None:
    ask(chat, COVERED)
    chat.get_by_role("button", name="New conversation").click()
    expect(chat.locator(".message")).to_have_count(0)
    chat.reload()
    expect(chat.locator(".questions button").first).to_be_visible()
    expect(chat.locator(".message")).to_have_count(0)


def test_a_follow_up_is_understood(chat: Page) -> None:
    ask(chat, "What is a capture point?")
    follow_up = ask(chat, "and why does it matter?")
    expect(follow_up).to_contain_text("capture point", ignore_case=True)


def test_an_empty_page_suggests_questions_that_the_book_answers(chat: Page) -> None:
    suggested = chat.locator(".questions button")
    expect(suggested.first).to_be_visible()
    question = suggested.first.inner_text()
    suggested.first.click()
    expect(chat.locator(".message.user")).to_contain_text(question)
    expect(chat.locator(".message.assistant")).to_have_attribute("data-standing", "answered")


def test_stop_keeps_what_was_said_and_the_question_can_be_asked_again(linked_home: Path, opened: Opens) -> None:
    held = Held()
    with live(at(linked_home)) as server:
        server.use(index=WaitingIndex(server.well.engines.index, held), patience=60)
        page = opened(f"{server.address}/chat?lang=en")
        page.get_by_label("Your question").fill(COVERED)
        page.keyboard.press("Enter")
        expect(page.locator(".typing")).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        answer = page.locator(".message.assistant")
        expect(answer).to_have_attribute("data-standing", "stopped")
        held.release()
        answer.get_by_role("button", name="Try again").click()
        expect(answer).to_have_attribute("data-standing", "answered")
        page.reload()
        expect(page.locator(".message")).to_have_count(2)
        expect(page.locator(".message.assistant")).to_have_attribute("data-standing", "answered")
        page.close()


def test_escape_stops_an_answer(linked_home: Path, opened: Opens) -> None:
    held = Held()
    with live(at(linked_home)) as server:
        page = opened(f"{server.address}/chat")
        expect(page.locator(".questions button").first).to_be_visible()
        server.use(index=WaitingIndex(server.well.engines.index, held), patience=60)
        page.get_by_label("Your question").fill(COVERED)
        page.keyboard.press("Enter")
        expect(page.locator(".typing")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(".message.assistant")).to_have_attribute("data-standing", "stopped")
        expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
        until(lambda: not held.waiting, "the server stops too")


def test_everything_can_be_done_with_the_keyboard_alone(chat: Page) -> None:
    expect(chat.get_by_label("Your question")).to_be_focused()
    chat.keyboard.type("Why do gyroscopes")
    chat.keyboard.press("Shift+Enter")
    chat.keyboard.type("drift?")
    expect(chat.get_by_label("Your question")).to_have_value("Why do gyroscopes\ndrift?")
    chat.keyboard.press("Enter")
    answer = chat.locator(".message.assistant")
    expect(answer).to_have_attribute("data-standing", "answered")
    _tab_to(chat, "button.mark", back=True)
    expect(chat.get_by_role("tooltip")).to_be_visible()
    chat.keyboard.press("Escape")
    expect(chat.get_by_role("tooltip")).to_be_hidden()
    chat.keyboard.press("Enter")
    expect(chat.locator("dialog.panel h2")).to_be_focused()
    chat.keyboard.press("Escape")
    expect(chat.locator("dialog.panel")).to_be_hidden()
    assert chat.evaluate("document.activeElement.className") == "mark", "back where it was opened from"
    _tab_to(chat, "button[aria-label='This helped']")
    chat.keyboard.press("Space")
    expect(answer.get_by_role("button", name="This helped")).to_have_attribute("aria-pressed", "true")


def test_focus_goes_from_top_to_bottom(chat: Page) -> None:
    ask(chat, COVERED)
    tops = chat.evaluate(
        """() => [...document.querySelectorAll('button, a[href], textarea, select, [tabindex="0"]')]
            .filter((one) => one.checkVisibility() && !one.hidden && one.tabIndex >= 0)
            .map((one) => one.className || one.tagName)"""
    )
    order = [
        next(number for number, name in enumerate(tops) if part in name)
        for part in ("plain", "scroller", "mark", "TEXTAREA", "send")
    ]
    assert order == sorted(order)


def test_a_screen_reader_hears_the_answer_once_and_whole(chat: Page) -> None:
    answer = ask(chat, COVERED)
    said = chat.get_by_role("status").inner_text()
    assert _words(answer.locator(".words").inner_text())[:60] in _words(said)
    assert "[1]" not in said
    assert chat.locator("[aria-live], [role=status], [role=alert]").count() == 1


def test_a_vote_is_kept(chat: Page) -> None:
    answer = ask(chat, COVERED)
    with chat.expect_response("**/api/v1/feedback"):
        answer.get_by_role("button", name="This did not help").click()
    expect(answer.get_by_role("button", name="This did not help")).to_have_attribute("aria-pressed", "true")
    chat.reload()
    down = chat.locator(".message.assistant").get_by_role("button", name="This did not help")
    expect(down).to_have_attribute("aria-pressed", "true")
    down.click()
    expect(down).to_have_attribute("aria-pressed", "false")


def test_an_answer_is_copied_with_where_its_marks_lead(chat: Page) -> None:
    chat.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(chat, COVERED).get_by_role("button", name="Copy").click()
    expect(chat.get_by_role("status")).to_have_text("Copied")
    expect(chat.locator(".note")).to_be_visible()
    copied_text = chat.evaluate("navigator.clipboard.readText()")
    assert "[1]" in copied_text
    assert re.search(r"^\[1\] Proprioception.*\(https://book\.example\.org/", copied_text, re.MULTILINE)


def test_two_tabs_go_on_with_one_conversation(site: Live, chat: Page, opened: Opens) -> None:
    ask(chat, COVERED)
    other = opened(f"{site.address}/chat", beside=chat)
    expect(other.locator(".message")).to_have_count(2)
    ask(other, "What is a capture point?")
    expect(chat.locator(".message")).to_have_count(4)
    expect(chat.locator(".message.user").last).to_contain_text("capture point")
    other.get_by_role("button", name="New conversation").click()
    ask(other, "What is a gait?")
    chat.reload()
    expect(chat.locator(".message")).to_have_count(4)
    expect(other.locator(".message")).to_have_count(2)


def test_a_phone_shows_all_of_it(site: Live, opened: Opens) -> None:
    page = opened(f"{site.address}/chat", viewport=PHONE, has_touch=True, is_mobile=True)
    answer = ask(page, "Compare hydraulic and electric actuators")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
    answer.locator("button.mark").first.tap()
    panel = page.locator("dialog.panel")
    expect(panel.locator("mark").first).to_be_visible()
    box = panel.bounding_box()
    assert box
    assert (box["width"], box["height"]) == (PHONE["width"], PHONE["height"])
    panel.get_by_role("button", name="Close").tap()
    expect(panel).to_be_hidden()


def test_a_reader_of_arabic_reads_from_the_right(site: Live, opened: Opens) -> None:
    page = opened(f"{site.address}/chat", locale="ar-EG")
    expect(page.get_by_role("heading")).to_have_text("اسأل المستندات")
    assert page.evaluate("getComputedStyle(document.body).direction") == "rtl"
    page.locator("textarea").fill("ما هو gait؟")
    page.keyboard.press("Enter")
    expect(page.locator(".message.assistant[data-standing]")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.user .bubble')).direction") == "rtl"
    english = page.locator(".assistant .words p, .assistant .topics a").first
    assert english.evaluate("(one) => getComputedStyle(one).direction") == "ltr"


def test_who_wants_calm_gets_no_motion(site: Live, opened: Opens) -> None:
    page = opened(f"{site.address}/chat", reduced_motion="reduce")
    ask(page, COVERED)
    moving = page.evaluate("document.getAnimations().length")
    assert moving == 0


def test_a_project_can_be_picked_where_there_are_several(
    tmp_path: Path, linked_home: Path, docs: Path, opened: Opens
) -> None:
    home = copied(linked_home, tmp_path / "home")
    take_in(home, docs, project="waterworks")
    with live(at(home)) as server:
        page = opened(f"{server.address}/chat")
        ask(page, COVERED)
        page.get_by_label("Ask in").select_option("waterworks")
        expect(page.locator(".message")).to_have_count(0)
        answer = ask(page, "What moves water uphill?")
        expect(answer).to_contain_text("A pump moves water uphill")
        answer.locator("button.mark").first.click()
        expect(page.locator("dialog.panel mark.cited")).to_contain_text("A pump moves water uphill")
        page.reload()
        expect(page.locator(".message.assistant")).to_contain_text("A pump moves water uphill")
        page.get_by_label("Ask in").select_option("default")
        expect(page.locator(".message.assistant")).to_contain_text("gyro", ignore_case=True)


def test_a_key_for_one_project_asks_there(tmp_path: Path, docs: Path, opened: Opens) -> None:
    home = tmp_path / "home"
    take_in(home, docs, project="waterworks")
    with live(at(home)) as server:
        key = server.run(made_key(server.state.stores, project=Project.named("waterworks")))
        page = opened(f"{server.address}/chat#key={key}")
        answer = ask(page, "What moves water uphill?")
        expect(answer).to_contain_text("A pump moves water uphill")
        answer.locator("button.mark").first.click()
        expect(page.locator("dialog.panel mark.cited")).to_contain_text("A pump moves water uphill")
        page.keyboard.press("Escape")
        with page.expect_response("**/api/v1/feedback"):
            answer.get_by_role("button", name="This helped").click()
        page.reload()
        expect(page.get_by_role("button", name="This helped")).to_have_attribute("aria-pressed", "true")


def test_who_gets_another_key_begins_anew(linked_home: Path, tmp_path: Path, opened: Opens) -> None:
    with live(at(copied(linked_home, tmp_path / "home"))) as server:
        first, second = (server.run(made_key(server.state.stores)) for _ in range(2))
        page = opened(f"{server.address}/chat#key={first}")
        ask(page, COVERED)
        page.goto("about:blank")
        page.goto(f"{server.address}/chat#key={second}")
        expect(ask(page, COVERED)).to_have_attribute("data-standing", "answered")
        expect(page.locator(".message")).to_have_count(2)


def test_what_failed_in_one_tab_survives_what_another_says(
    site: Live, chat: Page, opened: Opens, watched: Watched
) -> None:
    watched.expected.append("400")
    ask(chat, COVERED)
    told = {"error_code": "VALIDATION_ERROR", "message": "no", "request_id": "5b0c5d4e-6f0a-4a53-9d3b-0d6d4a2f9c11"}
    chat.route("**/chat/stream*", lambda route: route.fulfill(status=400, json=told))
    expect(ask(chat, "What did I type here?")).to_have_attribute("data-standing", "failed")
    other = opened(f"{site.address}/chat", beside=chat)
    ask(other, "What is a gait?")
    expect(chat.locator(".message")).to_have_count(6)
    expect(chat.locator(".message.user", has_text="What did I type here?")).to_be_visible()
    expect(chat.locator(".retry")).to_be_visible()


def test_the_focus_is_never_lost(chat: Page) -> None:
    chat.locator(".questions button").first.press("Enter")
    answer = chat.locator(".message.assistant")
    expect(answer).to_have_attribute("data-standing", "answered")
    expect(chat.get_by_label("Your question")).to_be_focused()
    answer.get_by_role("button", name="This helped").press("Enter")
    expect(answer.get_by_role("button", name="This helped")).to_be_focused()
    expect(answer.get_by_role("button", name="This helped")).to_have_attribute("aria-pressed", "true")


def test_a_long_history_is_fetched_as_it_is_scrolled_to(linked_home: Path, chat: Page) -> None:
    ask(chat, COVERED)
    _repeat_exchange(linked_home, _session(chat), times=60)
    chat.reload()
    expect(chat.locator(".message")).to_have_count(16)
    expect(chat.locator(".message").last).to_be_in_viewport()
    chat.locator(".scroller").evaluate("(one) => one.scrollTo(0, 0)")
    expect(chat.locator(".message")).to_have_count(32)
    first = chat.locator(".scroller").evaluate("(one) => one.scrollTop")
    assert first > 0, "what was being read stays in sight"
    chat.get_by_role("button", name="Show earlier messages").click()
    expect(chat.locator(".message")).to_have_count(48)


def _session(page: Page) -> UUID:
    kept: list[str] = page.evaluate("() => Object.values(localStorage)")
    (session,) = kept
    return UUID(session)


def _repeat_exchange(home: Path, session: UUID, *, times: int) -> None:
    """Many exchanges in a session that has one, without asking for each."""
    columns = "session_id, query, response, sources, metadata, complete"
    with closing(connect(home / "citewell.db")) as database, database:
        for number in range(times):
            database.execute(
                f"INSERT INTO conversations ({columns}, timestamp, created_at) "
                f"SELECT {columns}, datetime(timestamp, '+{number + 1} seconds'), created_at "
                "FROM conversations WHERE session_id = ? AND once IS NOT NULL",
                [session.hex],
            )


def _words(text: str) -> str:
    """Letters and digits alone: how a text is set does not matter."""
    return re.sub(r"\W|_", "", text).lower()


def _tab_to(page: Page, selector: str, *, back: bool = False) -> None:
    for _ in range(40):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the keyboard does not reach {selector}")

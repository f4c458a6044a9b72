"""The widget on pages of another site, as its readers use it; `test_widget_site.py` has the authors' side."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import COVERED, PHONE, Opens, Stage, ask
from tests.browser.hosting import Host, bubble_of, field_of, frame_of
from tests.browser.states import select, widget_writing

pytestmark = pytest.mark.xdist_group("browser-widget")

SENTENCE = "A gyroscope measures rate of turn."
# What pages do to themselves, and would do to whatever stands in them.
HARSH = (
    "body * { all: unset !important; display: none !important } body { transform: scale(0.9); filter: blur(1px) }",
    "citewell-widget, button, textarea, svg, h1, p, li, dialog { position: absolute !important; width: 5px !important; "
    "color: red !important; font: 40px cursive !important; fill: red !important; opacity: 0.1 !important }",
    ":root { font-size: 62.5%; letter-spacing: 1em; text-align: right; line-height: 4; text-transform: uppercase }",
    "* { direction: rtl !important; visibility: hidden; pointer-events: none; box-sizing: content-box }",
    "*::before, *::after { content: 'X' !important; display: block !important; height: 50px }",
)


def test_the_button_opens_and_closes_it(page: Page) -> None:
    expect(frame_of(page)).to_be_hidden()
    bubble_of(page).click()
    expect(frame_of(page)).to_be_visible()
    expect(field_of(page)).to_be_focused()
    expect(bubble_of(page)).to_have_attribute("aria-expanded", "true")
    bubble_of(page).click()
    expect(frame_of(page)).to_be_hidden()
    bubble_of(page).click()
    frame_of(page).get_by_role("button", name="Close").click()
    expect(frame_of(page)).to_be_hidden()
    expect(bubble_of(page)).to_be_focused()


def test_the_keyboard_opens_and_closes_it(page: Page) -> None:
    bubble_of(page).wait_for()
    for _ in range(3):  # past the two links of the page
        page.keyboard.press("Tab")
    expect(bubble_of(page)).to_be_focused()
    page.keyboard.press("Enter")
    expect(field_of(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(frame_of(page)).to_be_hidden()
    expect(bubble_of(page)).to_be_focused()
    page.keyboard.press("Space")
    expect(frame_of(page)).to_be_visible()
    bubble_of(page).focus()
    page.keyboard.press("Escape")
    expect(frame_of(page)).to_be_hidden()


def test_no_style_of_the_page_reaches_it(host: Host, page: Page) -> None:
    bubble_of(page).click()
    ask(page, COVERED)
    page.reload()
    own = _looks(page)
    assert len(own) > 50
    for style in HARSH:
        host.style = style
        page.reload()
        assert _looks(page) == own, style


def test_it_leaves_the_page_as_it_was(host: Host, opened: Opens) -> None:
    host.style = "body { display: flex; flex-direction: column; gap: 5rem } body > :last-child { background: red }"
    host.head = "<script>var before = Object.getOwnPropertyNames(window)</script>"
    page = opened(f"{host.address}/feet.html")
    bubble_of(page).click()
    ask(page, COVERED)
    select(page, SENTENCE)
    looks = """() => [...document.querySelectorAll("html, body, body *")].map((one) =>
        [one.tagName, one.id, JSON.stringify(one.getBoundingClientRect()), getComputedStyle(one).cssText])"""
    with_it = page.evaluate(looks)
    globals_ = page.evaluate("Object.getOwnPropertyNames(window).filter((name) => !before.includes(name))")
    assert set(globals_) - {"before"} == {"Citewell"}
    assert page.evaluate("document.adoptedStyleSheets.length + document.styleSheets.length") == 1
    page.evaluate("Citewell.destroy()")
    assert page.evaluate(looks) == with_it


def test_what_is_typed_into_it_is_no_shortcut_of_the_page(host: Host, opened: Opens) -> None:
    host.head = """<script>
        Array.prototype.last = function () { return this[this.length - 1] };
        Object.prototype.extended = true;
        window.heard = [];
        for (const target of [window, document]) for (const kind of ["keydown", "keypress", "keyup"])
            target.addEventListener(kind, (event) => { event.preventDefault(); heard.push(event.key) });
    </script>"""
    page = opened(f"{host.address}/gyroscopes.html")
    bubble_of(page).click()
    page.keyboard.type(COVERED)
    expect(field_of(page)).to_have_value(COVERED)
    page.keyboard.press("Enter")
    answer = page.locator(".message.assistant")
    expect(answer).to_have_attribute("data-standing", "answered")
    answer.locator("button.mark").first.click()
    expect(page.locator("dialog.panel mark.cited").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog.panel")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(frame_of(page)).to_be_hidden()
    assert page.evaluate("heard") == []


def test_it_says_that_an_answer_is_being_written(stage: Stage) -> None:
    with widget_writing(stage) as page:
        expect(frame_of(page).locator(".typing .dots")).to_be_visible()
        expect(frame_of(page).get_by_role("status")).to_have_text("Writing the answer…")


def test_the_conversation_goes_along_from_page_to_page(page: Page) -> None:
    bubble_of(page).click()
    ask(page, COVERED)
    said = page.locator(".messages").inner_text()
    page.get_by_role("link", name="Feet").click()
    page.wait_for_url("**/feet.html")
    expect(frame_of(page)).to_be_visible()
    expect(page.locator(".message")).to_have_count(2)
    assert page.locator(".messages").inner_text() == said
    assert page.evaluate("document.activeElement === document.body"), "who reads on is not taken away"
    page.reload()
    expect(page.locator(".message")).to_have_count(2)
    bubble_of(page).click()
    page.get_by_role("link", name="Gyroscopes").click()
    page.wait_for_url("**/gyroscopes.html")
    expect(bubble_of(page)).to_be_visible()
    expect(frame_of(page)).to_be_hidden()
    bubble_of(page).click()
    expect(page.locator(".message")).to_have_count(2)


def test_selected_text_is_asked_about_alone(page: Page) -> None:
    about = page.get_by_role("button", name="Ask about this")
    expect(about).to_be_hidden()
    _drag_over(page, page.locator("#text"))
    about.click()
    expect(frame_of(page)).to_be_visible()
    expect(field_of(page)).to_be_focused()
    expect(about).to_be_hidden()
    expect(page.locator(".chip")).to_contain_text("Answering from your selection only")
    expect(page.locator(".chip")).to_contain_text(SENTENCE)
    answer = ask(page, "What does a gyroscope measure?")
    expect(answer).to_have_attribute("data-standing", "answered")
    expect(answer).to_contain_text("rate of turn")
    expect(page.locator(".message.user .scope")).to_contain_text(SENTENCE)
    expect(answer).not_to_contain_text("[1]")
    page.reload()
    expect(answer).to_contain_text("rate of turn")
    expect(answer).not_to_contain_text("[1]")


def test_what_the_selection_does_not_say_the_whole_book_may(page: Page) -> None:
    select(page, SENTENCE)
    page.get_by_role("button", name="Ask about this").click()
    answer = ask(page, "What is a capture point?")
    expect(answer).to_have_attribute("data-standing", "outside-selection")
    expect(answer).to_contain_text("Your selection does not answer this.")
    answer.get_by_role("button", name="Search all documents").click()
    whole = page.locator(".message.assistant").nth(1)
    expect(whole).to_have_attribute("data-standing", "answered")
    expect(whole).to_contain_text("capture point", ignore_case=True)
    page.locator(".chip").get_by_role("button", name="Search all documents instead").click()
    expect(page.locator(".chip")).to_have_count(0)
    expect(ask(page, "What is a capture point?")).to_have_attribute("data-standing", "answered")


def test_a_selection_that_is_no_reading_gets_no_button(host: Host, page: Page) -> None:
    about = page.get_by_role("button", name="Ask about this")
    select(page, SENTENCE)
    expect(about).to_be_visible()
    page.evaluate("getSelection().removeAllRanges()")
    expect(about).to_be_hidden()
    bubble_of(page).click()
    _drag_over(page, ask(page, COVERED).locator(".words"))
    assert page.evaluate("getSelection().toString()")
    expect(about).to_be_hidden()
    host.attributes = 'data-selection="off"'
    page.reload()
    expect(bubble_of(page)).to_be_visible()
    select(page, SENTENCE)
    assert about.count() == 0


def test_the_page_stays_alive_while_a_source_is_open_and_after(page: Page) -> None:
    page.evaluate("document.querySelector('#text').onclick = () => { window.clicks = (window.clicks || 0) + 1; }")
    bubble_of(page).click()
    ask(page, COVERED).locator("button.mark").first.click()
    expect(page.locator("dialog.panel")).to_be_visible()
    page.locator("#text").click(position={"x": 5, "y": 5})
    page.wait_for_function("window.clicks > 0")
    page.evaluate("Citewell.close(); window.clicks = 0")
    page.locator("#text").click(position={"x": 5, "y": 5})
    page.wait_for_function("window.clicks > 0")
    page.evaluate("Citewell.open()")
    expect(page.locator("dialog.panel")).to_be_hidden()
    expect(field_of(page)).to_be_focused()


def test_on_a_phone_it_fills_the_screen(host: Host, opened: Opens) -> None:
    page = opened(f"{host.address}/gyroscopes.html", viewport=PHONE, has_touch=True, is_mobile=True)
    bubble_of(page).tap()
    assert frame_of(page).bounding_box() == {"x": 0, "y": 0, **PHONE}
    expect(bubble_of(page)).to_be_hidden()
    ask(page, COVERED).locator("button.mark").first.tap()
    expect(page.locator("dialog.panel mark.cited").first).to_be_visible()
    assert page.locator("dialog.panel").bounding_box() == {"x": 0, "y": 0, **PHONE}
    page.locator("dialog.panel").get_by_role("button", name="Close").tap()
    frame_of(page).get_by_role("button", name="Close").tap()
    expect(bubble_of(page)).to_be_visible()


def test_a_browser_that_keeps_nothing_can_still_ask(host: Host, opened: Opens) -> None:
    host.head = """<script>
        for (const name of ["localStorage", "sessionStorage"])
            Object.defineProperty(window, name, { get() { throw new DOMException("no", "SecurityError") } });
    </script>"""
    page = opened(f"{host.address}/gyroscopes.html")
    bubble_of(page).click()
    expect(ask(page, COVERED)).to_have_attribute("data-standing", "answered")
    expect(ask(page, "What is a capture point?")).to_have_attribute("data-standing", "answered")


def _drag_over(page: Page, text: Locator) -> None:
    """Select with a mouse, as a reader does: from the beginning of a line to its end."""
    box = text.bounding_box()
    assert box
    page.mouse.move(box["x"] + 1, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 12, steps=4)
    page.mouse.up()


def _looks(page: Page) -> list[Any]:
    """Where each element of the open widget is, and how it looks."""
    expect(page.locator(".message.assistant")).to_have_attribute("data-standing", "answered")
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready")
    looks: list[Any] = page.evaluate(
        """() => [...document.querySelector("citewell-widget").shadowRoot.querySelectorAll("*")].map((one) => {
            const { x, y, width, height } = one.getBoundingClientRect();
            const style = getComputedStyle(one);
            const names = ["display", "color", "font", "letterSpacing", "textTransform", "textAlign", "direction",
                "backgroundColor", "opacity", "visibility", "pointerEvents", "boxSizing", "padding", "fill"];
            return [one.tagName, one.className, x, y, width, height, ...names.map((name) => style[name])];
        })"""
    )
    return looks

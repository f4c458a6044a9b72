"""The widget on pages of another site, as its readers and its authors use it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from citewell.models import Project
from tests.browser.conftest import COVERED, PHONE, Opens, Watched, ask, at, take_in
from tests.browser.hosting import Host, hosting
from tests.browser.states import select
from tests.conftest import copied
from tests.doors.conftest import made_key
from tests.doors.live import live

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


@pytest.fixture(scope="module")
def docs_site(linked_home: Path) -> Iterator[tuple[Host, str]]:
    with hosting() as host, live(at(linked_home, cors_origins=(host.address,))) as server:
        yield host, server.address


@pytest.fixture
def host(docs_site: tuple[Host, str]) -> Host:
    """The site as it was before another test changed it."""
    host, server = docs_site
    vars(host).update(vars(Host(host.address, server)))
    return host


@pytest.fixture
def page(host: Host, opened: Opens) -> Page:
    return opened(f"{host.address}/gyroscopes.html")


def test_the_button_opens_and_closes_it(page: Page) -> None:
    expect(_frame(page)).to_be_hidden()
    _bubble(page).click()
    expect(_frame(page)).to_be_visible()
    expect(_field(page)).to_be_focused()
    expect(_bubble(page)).to_have_attribute("aria-expanded", "true")
    _bubble(page).click()
    expect(_frame(page)).to_be_hidden()
    _bubble(page).click()
    _frame(page).get_by_role("button", name="Close").click()
    expect(_frame(page)).to_be_hidden()
    expect(_bubble(page)).to_be_focused()


def test_the_keyboard_opens_and_closes_it(page: Page) -> None:
    _bubble(page).wait_for()
    for _ in range(3):  # past the two links of the page
        page.keyboard.press("Tab")
    expect(_bubble(page)).to_be_focused()
    page.keyboard.press("Enter")
    expect(_field(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(_frame(page)).to_be_hidden()
    expect(_bubble(page)).to_be_focused()
    page.keyboard.press("Space")
    expect(_frame(page)).to_be_visible()
    _bubble(page).focus()
    page.keyboard.press("Escape")
    expect(_frame(page)).to_be_hidden()


def test_no_style_of_the_page_reaches_it(host: Host, page: Page) -> None:
    _bubble(page).click()
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
    _bubble(page).click()
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
    _bubble(page).click()
    page.keyboard.type(COVERED)
    expect(_field(page)).to_have_value(COVERED)
    page.keyboard.press("Enter")
    answer = page.locator(".message.assistant")
    expect(answer).to_have_attribute("data-standing", "answered")
    answer.locator("button.mark").first.click()
    expect(page.locator("dialog.panel mark.cited").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog.panel")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(_frame(page)).to_be_hidden()
    assert page.evaluate("heard") == []


def test_the_conversation_goes_along_from_page_to_page(page: Page) -> None:
    _bubble(page).click()
    ask(page, COVERED)
    said = page.locator(".messages").inner_text()
    page.get_by_role("link", name="Feet").click()
    page.wait_for_url("**/feet.html")
    expect(_frame(page)).to_be_visible()
    expect(page.locator(".message")).to_have_count(2)
    assert page.locator(".messages").inner_text() == said
    assert page.evaluate("document.activeElement === document.body"), "who reads on is not taken away"
    page.reload()
    expect(page.locator(".message")).to_have_count(2)
    _bubble(page).click()
    page.get_by_role("link", name="Gyroscopes").click()
    page.wait_for_url("**/gyroscopes.html")
    expect(_bubble(page)).to_be_visible()
    expect(_frame(page)).to_be_hidden()
    _bubble(page).click()
    expect(page.locator(".message")).to_have_count(2)


def test_selected_text_is_asked_about_alone(page: Page) -> None:
    about = page.get_by_role("button", name="Ask about this")
    expect(about).to_be_hidden()
    _drag_over(page, page.locator("#text"))
    about.click()
    expect(_frame(page)).to_be_visible()
    expect(_field(page)).to_be_focused()
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
    expect(answer).to_contain_text("Your selection does not say.")
    answer.get_by_role("button", name="Ask the whole book").click()
    whole = page.locator(".message.assistant").nth(1)
    expect(whole).to_have_attribute("data-standing", "answered")
    expect(whole).to_contain_text("capture point", ignore_case=True)
    page.locator(".chip").get_by_role("button", name="Ask the whole book instead").click()
    expect(page.locator(".chip")).to_have_count(0)
    expect(ask(page, "What is a capture point?")).to_have_attribute("data-standing", "answered")


def test_a_selection_that_is_no_reading_gets_no_button(host: Host, page: Page) -> None:
    about = page.get_by_role("button", name="Ask about this")
    select(page, SENTENCE)
    expect(about).to_be_visible()
    page.evaluate("getSelection().removeAllRanges()")
    expect(about).to_be_hidden()
    _bubble(page).click()
    _drag_over(page, ask(page, COVERED).locator(".words"))
    assert page.evaluate("getSelection().toString()")
    expect(about).to_be_hidden()
    host.attributes = 'data-selection="off"'
    page.reload()
    expect(_bubble(page)).to_be_visible()
    select(page, SENTENCE)
    assert about.count() == 0


def test_a_site_has_its_own_colours(host: Host, opened: Opens) -> None:
    host.style = "citewell-widget { --cw-accent: rgb(122, 62, 157); --cw-radius: 4px; --cw-inset: 40px }"
    page = opened(f"{host.address}/gyroscopes.html")
    assert _style(_bubble(page), "background-color") == "rgb(122, 62, 157)"
    box = _bubble(page).bounding_box()
    assert box
    assert box["x"] + box["width"] == 1200 - 40
    _bubble(page).click()
    assert _style(_frame(page), "border-radius") == "4px"


@pytest.mark.parametrize(("attributes", "style", "dark"), [
    ('data-theme="dark"', "", True), ('data-theme="light"', "", False),
    ("", "", True), ("", "citewell-widget { --cw-scheme: light }", False),
])  # fmt: skip
def test_it_is_light_or_dark_as_the_site_wants_or_else_the_reader(
    host: Host, opened: Opens, attributes: str, style: str, dark: bool
) -> None:
    host.attributes, host.style = attributes, style
    page = opened(f"{host.address}/gyroscopes.html", color_scheme="light" if attributes and dark else "dark")
    _bubble(page).click()
    paper = _style(_frame(page), "background-color")
    brightness = sum(map(int, re.findall(r"\d+", paper)[:3])) / 3
    assert (brightness < 128) == dark


def test_scripts_of_the_page_open_ask_and_close(page: Page) -> None:
    page.wait_for_function("window.Citewell")
    page.evaluate("Citewell.open()")
    expect(_frame(page)).to_be_visible()
    page.evaluate("Citewell.close()")
    expect(_frame(page)).to_be_hidden()
    page.evaluate("(question) => Citewell.ask(question)", COVERED)
    expect(_frame(page)).to_be_visible()
    expect(page.locator(".message.assistant")).to_have_attribute("data-standing", "answered")
    page.evaluate("Citewell.ask('What wanders?', 'Bias wanders with temperature.')")
    expect(page.locator(".message.assistant").nth(1)).to_contain_text("Bias wanders")


def test_the_page_stays_alive_while_a_source_is_open_and_after(page: Page) -> None:
    page.evaluate("document.querySelector('#text').onclick = () => { window.clicks = (window.clicks || 0) + 1; }")
    _bubble(page).click()
    ask(page, COVERED).locator("button.mark").first.click()
    expect(page.locator("dialog.panel")).to_be_visible()
    page.locator("#text").click(position={"x": 5, "y": 5})
    page.wait_for_function("window.clicks > 0")
    page.evaluate("Citewell.close(); window.clicks = 0")
    page.locator("#text").click(position={"x": 5, "y": 5})
    page.wait_for_function("window.clicks > 0")
    page.evaluate("Citewell.open()")
    expect(page.locator("dialog.panel")).to_be_hidden()
    expect(_field(page)).to_be_focused()


def test_a_script_that_asks_while_an_answer_comes_is_answered(page: Page) -> None:
    page.evaluate("Citewell.ask('What is a gait?'); Citewell.ask('Why do gyroscopes drift?')")
    expect(page.locator(".message.assistant").last).to_have_attribute("data-standing", "answered")
    expect(page.locator(".message.user").last).to_contain_text("gyroscopes")


def test_a_question_of_a_script_is_put_below_what_was_said_before(host: Host, page: Page) -> None:
    _bubble(page).click()
    ask(page, COVERED)
    page.goto(f"{host.address}/feet.html")
    page.wait_for_function("window.Citewell")
    page.evaluate("Citewell.ask('What is a capture point?')")
    expect(page.locator(".message")).to_have_count(4)
    expect(page.locator(".message.user").first).to_contain_text(COVERED)
    expect(page.locator(".message.assistant").last).to_have_attribute("data-standing", "answered")


def test_nothing_of_it_is_left_when_it_is_destroyed(host: Host, opened: Opens) -> None:
    host.head = """<script>
        var hearing = [];
        for (const target of [window, document]) {
            const [add, remove] = [target.addEventListener, target.removeEventListener];
            target.addEventListener = (...how) => {
                if (new Error().stack.includes("widget.js")) hearing.push(how[0]);
                add.apply(target, how);
            };
            target.removeEventListener = (...how) => {
                if (hearing.includes(how[0])) hearing.splice(hearing.indexOf(how[0]), 1);
                remove.apply(target, how);
            };
        }
        document.addEventListener("citewell:ready", () => window.ready = (window.ready || 0) + 1);
    </script>"""
    page = opened(f"{host.address}/gyroscopes.html")
    page.wait_for_function("window.ready === 1")
    assert set(page.evaluate("hearing")) == {"selectionchange", "scroll", "online"}
    page.evaluate("Citewell.ask('Why do gyroscopes drift?')")
    expect(page.locator(".message.user")).to_be_visible()
    page.evaluate("Citewell.destroy()")
    assert page.locator("citewell-widget").count() == 0
    assert page.evaluate("'Citewell' in window") is False
    assert page.evaluate("hearing") == []
    page.add_script_tag(url=f"{host.server}/widget.js")
    page.wait_for_function("window.ready === 2")
    assert page.locator("citewell-widget").count() == 1


@pytest.mark.parametrize(("attributes", "lang", "title", "direction"), [
    ('data-lang="de"', "en", "Frag das Buch", "ltr"), ('data-lang="ar"', "en", "اسأل الكتاب", "rtl"),
    ('data-lang="tlh"', "en", "Ask the book", "ltr"), ("", "fr-CA", "Interroger le livre", "ltr"),
    ('data-title="Ask our manual"', "de", "Ask our manual", "ltr"),
])  # fmt: skip
def test_it_speaks_as_the_site_does(
    host: Host, opened: Opens, attributes: str, lang: str, title: str, direction: str
) -> None:
    host.attributes, host.lang = attributes, lang
    page = opened(f"{host.address}/gyroscopes.html")
    page.get_by_role("button", name=title).click()
    expect(_frame(page).get_by_role("heading", name=title)).to_be_visible()
    assert _style(_frame(page), "direction") == direction
    box = _frame(page).bounding_box()
    assert box
    assert (box["x"] > 600) == (direction == "ltr"), "in the corner where a line ends"


def test_a_key_that_may_only_ask_opens_one_project(
    host: Host, opened: Opens, watched: Watched, tmp_path: Path, linked_home: Path, docs: Path
) -> None:
    home = copied(linked_home, tmp_path / "home")
    take_in(home, docs, project="waterworks")
    project = Project.named("waterworks")
    with live(at(home, cors_origins=(host.address,))) as server:
        key = server.run(made_key(server.app.state.keeping, project=project))
        host.server, host.attributes = server.address, f'data-key="{key}" data-project="{project.id}"'
        page = opened(f"{host.address}/gyroscopes.html")
        _bubble(page).click()
        answer = ask(page, "What moves water uphill?")
        expect(answer).to_contain_text("A pump moves water uphill")
        answer.locator("button.mark").first.click()
        expect(page.locator("dialog.panel mark.cited")).to_contain_text("A pump moves water uphill")
        watched.expected.append("401")
        host.attributes = ""
        other = opened(f"{host.address}/gyroscopes.html")
        _bubble(other).click()
        expect(_frame(other).get_by_text("This server asks for a key.")).to_be_visible()
        assert other.get_by_label("Key").count() == 0, "a reader has none to give"


def test_a_site_that_is_not_on_the_list_is_told_so(host: Host, opened: Opens, watched: Watched) -> None:
    watched.expected += ["CORS policy", "net::ERR_FAILED"]
    page = opened(f"{host.address.replace('127.0.0.1', 'localhost')}/gyroscopes.html")
    _bubble(page).click()
    said = _frame(page).get_by_text("The server is there, but this site may not ask it.")
    expect(said).to_be_visible()
    expect(ask(page, COVERED).locator("[data-kind=unlisted]")).to_contain_text("CITEWELL_CORS_ORIGINS")


def test_a_strict_policy_of_the_page_is_kept(host: Host, opened: Opens) -> None:
    host.policy = (
        f"default-src 'none'; script-src {host.server}; connect-src {host.server}; style-src 'self'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    page = opened(f"{host.address}/gyroscopes.html")
    assert _style(_bubble(page), "position") == "fixed"
    select(page, SENTENCE)
    page.get_by_role("button", name="Ask about this").click()
    page.locator(".chip button").click()
    mark = ask(page, COVERED).locator("button.mark").first
    mark.hover()
    expect(page.get_by_role("tooltip")).to_be_visible()
    mark.click()
    expect(page.locator("dialog.panel mark.cited").first).to_be_visible()


def test_a_script_tag_too_many_gives_no_second_widget(host: Host, opened: Opens) -> None:
    again = f'<script src="{host.server}/widget.js" data-lang="de" async></script>'
    host.head, host.attributes = again * 2, 'data-lang="de"'
    page = opened(f"{host.address}/gyroscopes.html")
    page.wait_for_function("window.Citewell")
    page.wait_for_load_state("networkidle")
    assert page.locator("citewell-widget").count() == 1
    assert page.locator(".bubble-button").count() == 1


def test_on_a_phone_it_fills_the_screen(host: Host, opened: Opens) -> None:
    page = opened(f"{host.address}/gyroscopes.html", viewport=PHONE, has_touch=True, is_mobile=True)
    _bubble(page).tap()
    assert _frame(page).bounding_box() == {"x": 0, "y": 0, **PHONE}
    expect(_bubble(page)).to_be_hidden()
    ask(page, COVERED).locator("button.mark").first.tap()
    expect(page.locator("dialog.panel mark.cited").first).to_be_visible()
    assert page.locator("dialog.panel").bounding_box() == {"x": 0, "y": 0, **PHONE}
    page.locator("dialog.panel").get_by_role("button", name="Close").tap()
    _frame(page).get_by_role("button", name="Close").tap()
    expect(_bubble(page)).to_be_visible()


def test_a_browser_that_keeps_nothing_can_still_ask(host: Host, opened: Opens) -> None:
    host.head = """<script>
        for (const name of ["localStorage", "sessionStorage"])
            Object.defineProperty(window, name, { get() { throw new DOMException("no", "SecurityError") } });
    </script>"""
    page = opened(f"{host.address}/gyroscopes.html")
    _bubble(page).click()
    expect(ask(page, COVERED)).to_have_attribute("data-standing", "answered")
    expect(ask(page, "What is a capture point?")).to_have_attribute("data-standing", "answered")


def test_in_a_sandbox_it_opens_and_says_what_is_missing(host: Host, page: Page, watched: Watched) -> None:
    watched.expected += ["CORS policy", "net::ERR_FAILED"]
    page.evaluate(
        """() => { const frame = document.createElement("iframe"); frame.sandbox = "allow-scripts";
            frame.src = "/feet.html"; frame.width = frame.height = 600; document.body.append(frame) }"""
    )
    inside = page.frame_locator("iframe")
    inside.get_by_role("button", name="Ask the book").click()
    expect(inside.get_by_text("this site may not ask it").first).to_be_visible()


def _bubble(page: Page) -> Locator:
    return page.locator(".bubble-button")


def _frame(page: Page) -> Locator:
    return page.locator(".frame")


def _field(page: Page) -> Locator:
    return page.get_by_label("Your question")


def _style(locator: Locator, name: str) -> str:
    value: str = locator.evaluate("(one, name) => getComputedStyle(one).getPropertyValue(name)", name)
    return value


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

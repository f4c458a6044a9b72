"""The widget as authors put it on their sites: its looks, its words, its scripts, its keys and their policies."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from citewell.models import Project
from tests.browser.conftest import COVERED, Opens, Watched, ask, at, take_in
from tests.browser.hosting import Host, bubble_of, frame_of, strict, style_of
from tests.browser.states import select
from tests.conftest import copied
from tests.http.conftest import made_key
from tests.http.live import live

pytestmark = pytest.mark.xdist_group("browser-site")

SENTENCE = "A gyroscope measures rate of turn."


def test_a_site_has_its_own_colours(host: Host, opened: Opens) -> None:
    host.style = "citewell-widget { --cw-accent: rgb(122, 62, 157); --cw-radius: 4px; --cw-inset: 40px }"
    page = opened(f"{host.address}/gyroscopes.html")
    assert style_of(bubble_of(page), "background-color") == "rgb(122, 62, 157)"
    box = bubble_of(page).bounding_box()
    assert box
    assert box["x"] + box["width"] == 1200 - 40
    bubble_of(page).click()
    assert style_of(frame_of(page), "border-radius") == "4px"


@pytest.mark.parametrize(("attributes", "style", "dark"), [
    ('data-theme="dark"', "", True), ('data-theme="light"', "", False),
    ("", "", True), ("", "citewell-widget { --cw-scheme: light }", False),
])  # fmt: skip
def test_it_is_light_or_dark_as_the_site_wants_or_else_the_reader(
    host: Host, opened: Opens, attributes: str, style: str, dark: bool
) -> None:
    host.attributes, host.style = attributes, style
    page = opened(f"{host.address}/gyroscopes.html", color_scheme="light" if attributes and dark else "dark")
    bubble_of(page).click()
    paper = style_of(frame_of(page), "background-color")
    brightness = sum(map(int, re.findall(r"\d+", paper)[:3])) / 3
    assert (brightness < 128) == dark


def test_scripts_of_the_page_open_ask_and_close(page: Page) -> None:
    page.wait_for_function("window.Citewell")
    page.evaluate("Citewell.open()")
    expect(frame_of(page)).to_be_visible()
    page.evaluate("Citewell.close()")
    expect(frame_of(page)).to_be_hidden()
    page.evaluate("(question) => Citewell.ask(question)", COVERED)
    expect(frame_of(page)).to_be_visible()
    expect(page.locator(".message.assistant")).to_have_attribute("data-standing", "answered")
    page.evaluate("Citewell.ask('What wanders?', 'Bias wanders with temperature.')")
    expect(page.locator(".message.assistant").nth(1)).to_contain_text("Bias wanders")


def test_a_script_that_asks_while_an_answer_comes_is_answered(page: Page) -> None:
    page.evaluate("Citewell.ask('What is a gait?'); Citewell.ask('Why do gyroscopes drift?')")
    expect(page.locator(".message.assistant").last).to_have_attribute("data-standing", "answered")
    expect(page.locator(".message.user").last).to_contain_text("gyroscopes")


def test_a_question_of_a_script_is_put_below_what_was_said_before(host: Host, page: Page) -> None:
    bubble_of(page).click()
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
    ('data-lang="de"', "en", "Frag die Dokumente", "ltr"), ('data-lang="ar"', "en", "اسأل المستندات", "rtl"),
    ('data-lang="tlh"', "en", "Ask the documents", "ltr"), ("", "fr-CA", "Interroger les documents", "ltr"),
    ('data-title="Ask our manual"', "de", "Ask our manual", "ltr"),
])  # fmt: skip
def test_it_speaks_as_the_site_does(
    host: Host, opened: Opens, attributes: str, lang: str, title: str, direction: str
) -> None:
    host.attributes, host.lang = attributes, lang
    page = opened(f"{host.address}/gyroscopes.html")
    page.get_by_role("button", name=title).click()
    expect(frame_of(page).get_by_role("heading", name=title)).to_be_visible()
    assert style_of(frame_of(page), "direction") == direction
    box = frame_of(page).bounding_box()
    assert box
    assert (box["x"] > 600) == (direction == "ltr"), "in the corner where a line ends"


def test_a_key_that_may_only_ask_opens_one_project(
    host: Host, opened: Opens, watched: Watched, tmp_path: Path, linked_home: Path, docs: Path
) -> None:
    home = copied(linked_home, tmp_path / "home")
    take_in(home, docs, project="waterworks")
    project = Project.named("waterworks")
    with live(at(home, cors_origins=(host.address,))) as server:
        key = server.run(made_key(server.state.stores, project=project))
        host.server, host.attributes = server.address, f'data-key="{key}" data-project="{project.id}"'
        page = opened(f"{host.address}/gyroscopes.html")
        bubble_of(page).click()
        answer = ask(page, "What moves water uphill?")
        expect(answer).to_contain_text("A pump moves water uphill")
        answer.locator("button.mark").first.click()
        expect(page.locator("dialog.panel mark.cited")).to_contain_text("A pump moves water uphill")
        watched.expected.append("401")
        host.attributes = ""
        other = opened(f"{host.address}/gyroscopes.html")
        bubble_of(other).click()
        expect(frame_of(other).get_by_text("This server needs an API key.")).to_be_visible()
        assert other.get_by_label("Key").count() == 0, "a reader has none to give"


def test_a_site_that_is_not_on_the_list_is_told_so(host: Host, opened: Opens, watched: Watched) -> None:
    watched.expected += ["CORS policy", "net::ERR_FAILED"]
    page = opened(f"{host.address.replace('127.0.0.1', 'localhost')}/gyroscopes.html")
    bubble_of(page).click()
    said = frame_of(page).get_by_text("The server does not allow requests from this site.")
    expect(said).to_be_visible()
    expect(ask(page, COVERED).locator("[data-kind=unlisted]")).to_contain_text("CITEWELL_CORS_ORIGINS")


def test_a_strict_policy_of_the_page_is_kept(host: Host, opened: Opens) -> None:
    host.policy = strict(host.server)
    page = opened(f"{host.address}/gyroscopes.html")
    assert style_of(bubble_of(page), "position") == "fixed"
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


def test_in_a_sandbox_it_opens_and_says_what_is_missing(host: Host, page: Page, watched: Watched) -> None:
    watched.expected += ["CORS policy", "net::ERR_FAILED"]
    page.evaluate(
        """() => { const frame = document.createElement("iframe"); frame.sandbox = "allow-scripts";
            frame.src = "/feet.html"; frame.width = frame.height = 600; document.body.append(frame) }"""
    )
    inside = page.frame_locator("iframe")
    inside.get_by_role("button", name="Ask the documents").click()
    expect(inside.get_by_text("does not allow requests from this site").first).to_be_visible()

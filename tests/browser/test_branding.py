"""The operator's title, welcome, logo and starter questions, on the chat page and in the widget."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import UNCOVERED, Opens, Watched, ask, at, faults_for_everyone
from tests.browser.hosting import Host, hosting
from tests.http.live import Live, live

pytestmark = pytest.mark.xdist_group("browser-branding")

TITLE = "Physical AI: Building Humanoid Robots"
WELCOME = "Ask the handbook.\nWe are at desk 7 for anything else."
QUESTIONS = ("Why do gyroscopes drift?", "What is a capture point?")
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"><script>top.ran = true</script>
<rect width="40" height="20" rx="4" fill="#c2410c"/></svg>"""


def png(width: int, height: int) -> bytes:
    """A red image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xc2\x10\x10" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def branded(linked_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Live]]:
    logo = tmp_path_factory.mktemp("logo") / "logo.svg"
    logo.write_text(SVG)
    with hosting() as host:
        settings = at(
            linked_home, title=TITLE, welcome=WELCOME, logo=logo, starter_questions=QUESTIONS,
            cors_origins=(host.address,),
        )  # fmt: skip
        with live(settings) as server:
            host.server = server.address
            yield host, server


@pytest.fixture
def host(branded: tuple[Host, Live]) -> Host:
    host, server = branded
    vars(host).update(vars(Host(host.address, server.address)))
    return host


@pytest.fixture
def branded_chat(branded: tuple[Host, Live], opened: Opens) -> Page:
    return opened(f"{branded[1].address}/chat")


def shown_logo(page: Page) -> dict[str, int | str]:
    """The size of the logo that is drawn, and where it came from."""
    logo = page.locator("img.logo")
    expect(logo).to_be_visible()
    return dict(logo.evaluate("async (one) => { await one.decode(); return {width: one.width, from: one.src}; }"))


def test_the_page_bears_the_title_welcome_logo_and_questions(branded_chat: Page, branded: tuple[Host, Live]) -> None:
    page = branded_chat
    expect(page).to_have_title(TITLE)
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    # The introduction is drawn again together with the questions: it is measured once it stays.
    expect(page.locator(".questions button")).to_have_text(list(QUESTIONS))
    expect(page.locator(".intro")).to_have_text(WELCOME)
    assert page.locator(".intro").bounding_box()["height"] > 40, "on two lines"  # type: ignore[index]
    assert shown_logo(page)["from"] == f"{branded[1].address}/logo"
    assert page.evaluate("window.ran") is None
    assert faults_for_everyone(page) == []
    page.locator(".questions button").first.click()
    expect(page.locator(".message.assistant")).to_have_attribute("data-standing", "answered")


def test_the_page_bears_its_title_before_the_server_has_said_anything(
    branded: tuple[Host, Live], opened: Opens
) -> None:
    page = opened("about:blank")
    page.route("**/api/v1/welcome*", lambda _: None)  # it never answers
    page.goto(f"{branded[1].address}/chat?lang=de")
    expect(page).to_have_title(TITLE)
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    expect(page.locator(".intro")).to_have_text(WELCOME)
    shown_logo(page)


def test_a_refusal_on_the_page_names_the_title(branded_chat: Page) -> None:
    answer = ask(branded_chat, UNCOVERED)
    expect(answer.locator(".headline")).to_have_text(f"This is not covered by {TITLE}.")


@pytest.mark.parametrize(
    ("language", "generic", "titled"),
    [
        ("en", "These documents do not cover this.", "This is not covered by {}."),
        ("de", "Diese Dokumente sagen dazu nichts.", "„{}“ sagt dazu nichts."),
        ("es", "Estos documentos no tratan esto.", "«{}» no trata esto."),
        ("fr", "Ces documents n’en parlent pas.", "« {} » n’en parle pas."),
        ("ja", "これらの文書には書かれていません。", "「{}」には書かれていません。"),
        ("zh", "这些文档没有讲到这个。", "《{}》没有讲到这个。"),
        ("ar", "لا تتناول هذه المستندات هذا.", "لا يتناول «\u2068{}\u2069» هذا."),
    ],
)
def test_a_refusal_is_in_the_reader_s_language_with_a_title_and_without(
    branded: tuple[Host, Live], site: Live, opened: Opens, language: str, generic: str, titled: str
) -> None:
    for address, headline in ((site.address, generic), (branded[1].address, titled.format(TITLE))):
        page = opened(f"{address}/chat?lang={language}")
        page.locator("textarea").fill(UNCOVERED)
        page.keyboard.press("Enter")
        expect(page.locator(".headline")).to_have_text(headline)


def test_without_settings_the_page_speaks_of_documents(site: Live, opened: Opens) -> None:
    page = opened(f"{site.address}/chat")
    expect(page).to_have_title("Ask the documents")
    expect(page.get_by_role("heading", level=1)).to_have_text("Ask the documents")
    expect(page.locator(".intro")).to_contain_text("Answers come only from these documents.")
    expect(page.locator("img")).to_have_count(0)
    expect(page.locator(".questions button")).to_have_count(4)


def test_the_widget_takes_them_from_the_server(host: Host, opened: Opens) -> None:
    page = opened(f"{host.address}/gyroscopes.html")
    page.get_by_role("button", name="Ask the documents").click()
    expect(page.get_by_role("dialog", name=TITLE)).to_be_visible()
    expect(page.get_by_role("button", name=TITLE)).to_be_visible()
    expect(page.locator(".top h1")).to_have_text(TITLE)
    expect(page.locator(".intro")).to_have_text(WELCOME)
    expect(page.locator(".questions button")).to_have_text(list(QUESTIONS))
    shown_logo(page)
    answer = ask(page, UNCOVERED)
    expect(answer.locator(".headline")).to_have_text(f"This is not covered by {TITLE}.")


def test_the_attributes_of_the_widget_win(host: Host, opened: Opens) -> None:
    host.attributes = 'data-title="Ask us" data-welcome="Hello there." data-questions="What is a ram? | Why, though?"'
    page = opened(f"{host.address}/gyroscopes.html")
    page.get_by_role("button", name="Ask us").click()
    expect(page.locator(".questions button")).to_have_text(["What is a ram?", "Why, though?"])
    expect(page.locator(".top h1")).to_have_text("Ask us")
    expect(page.locator(".intro")).to_have_text("Hello there.")
    expect(page.get_by_role("button", name="Ask us")).to_be_visible()
    answer = ask(page, UNCOVERED)
    expect(answer.locator(".headline")).to_have_text(f"This is not covered by {TITLE}.")


def test_a_site_whose_policy_allows_no_images_has_a_widget_without_a_logo(
    host: Host, opened: Opens, watched: Watched
) -> None:
    watched.expected.append("violates the following Content Security Policy directive")
    host.policy = f"default-src 'self'; script-src {host.server}; connect-src {host.server}; img-src 'self'"
    page = opened(f"{host.address}/gyroscopes.html")
    page.get_by_role("button", name="Ask the documents").click()
    expect(page.locator(".top h1")).to_have_text(TITLE)
    expect(page.locator("img.logo")).to_have_count(0)


def test_a_logo_that_is_no_image_leaves_no_hole(linked_home: Path, tmp_path: Path, opened: Opens) -> None:
    (tmp_path / "logo.png").write_text("no image at all")
    with live(at(linked_home, logo=tmp_path / "logo.png")) as server:
        page = opened(f"{server.address}/chat")
        expect(page.locator(".questions button")).to_have_count(4)
        expect(page.locator("img.logo")).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_have_text("Ask the documents")


def test_a_wide_logo_leaves_room_for_the_title(linked_home: Path, tmp_path: Path, opened: Opens) -> None:
    (tmp_path / "logo.png").write_bytes(png(1000, 40))
    with live(at(linked_home, title=TITLE, logo=tmp_path / "logo.png")) as server:
        page = opened(f"{server.address}/chat", viewport={"width": 390, "height": 780})
        assert int(shown_logo(page)["width"]) <= 128
        assert page.get_by_role("heading", level=1).bounding_box()["width"] > 120  # type: ignore[index]
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_logo_opened_by_itself_runs_no_script(branded: tuple[Host, Live], opened: Opens, watched: Watched) -> None:
    watched.expected.append("Blocked script execution")
    page = opened(f"{branded[1].address}/logo")
    expect(page.locator("rect")).to_be_attached()
    assert page.evaluate("window.ran") is None

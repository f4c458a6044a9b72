"""Every state that the pages can be in: how to bring each about with a real server and a real browser."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from playwright.sync_api import Page, expect

from citewell.errors import IndexUnavailable
from tests.browser.conftest import COVERED, UNCOVERED, Stage, ask, at, take_in
from tests.browser.hosting import hosting
from tests.conftest import copied
from tests.fakes.llm import KEY, LLM, MODEL, Fails, Mind, Says
from tests.http.conftest import made_key
from tests.http.live import Held, WaitingIndex, live
from tests.http.llm.server import saying

UNSURE = "Why is it harder for a machine to do what a toddler does than to win at chess?"
TITLE = "Physical AI: Building Humanoid Robots"
LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle cx="4" cy="4" r="4" fill="#c2410c"/></svg>'
TRUE = "A gyroscope bias of 0.01 °/s becomes 0.6° after one minute and 36° after one hour"
SELECTION = "A gyroscope measures rate of turn. Its bias wanders with temperature."


@contextmanager
def empty(stage: Stage) -> Iterator[Page]:
    page = stage.opened(f"{stage.site.address}/chat")
    expect(page.locator(".questions button").first).to_be_visible()
    yield page


@contextmanager
def titled(stage: Stage) -> Iterator[Page]:
    logo = stage.folder / "logo.svg"
    logo.write_text(LOGO)
    welcome = "Ask anything about the handbook.\nEvery answer shows where it comes from."
    branding = {"logo": logo, "welcome": welcome, "starter_questions": (COVERED, "What is a capture point?")}
    with live(at(stage.home, title=TITLE, **branding)) as server:
        page = stage.opened(f"{server.address}/chat")
        expect(page.locator("img.logo")).to_be_visible()
        expect(page.locator(".questions button").first).to_be_visible()
        yield page


@contextmanager
def refused(stage: Stage) -> Iterator[Page]:
    with empty(stage) as page:
        page.get_by_label("Your question").fill("Why? " * 6401)
        page.keyboard.press("Enter")
        expect(page.locator(".problem")).to_be_visible()
        yield page


@contextmanager
def answered(stage: Stage) -> Iterator[Page]:
    page = stage.opened(f"{stage.site.address}/chat")
    expect(ask(page, COVERED)).to_have_attribute("data-standing", "answered")
    yield page


@contextmanager
def excerpt(stage: Stage) -> Iterator[Page]:
    with answered(stage) as page:
        page.locator("button.mark").first.hover()
        expect(page.get_by_role("tooltip")).to_be_visible()
        yield page


@contextmanager
def source(stage: Stage) -> Iterator[Page]:
    with titled(stage) as page:
        ask(page, COVERED)
        page.locator("button.mark").first.click()
        expect(page.locator("dialog.panel mark.cited").first).to_be_visible()
        yield page


@contextmanager
def formatted(stage: Stage) -> Iterator[Page]:
    """An answer with a table or a listing in it."""
    page = stage.opened(f"{stage.site.address}/chat")
    ask(page, "How do I calibrate a camera?")
    expect(page.locator(".words :is(pre, table)").first).to_be_visible()
    yield page


@contextmanager
def formulas(stage: Stage) -> Iterator[Page]:
    """An answer with formulas, beside its source."""
    page = stage.opened(f"{stage.site.address}/chat")
    ask(page, "What are the equations of motion of a humanoid?").locator("button.mark").first.click()
    expect(page.locator("dialog.panel math").first).to_be_visible()
    yield page


@contextmanager
def uncovered(stage: Stage) -> Iterator[Page]:
    page = stage.opened(f"{stage.site.address}/chat")
    expect(ask(page, UNCOVERED)).to_have_attribute("data-standing", "uncovered")
    expect(page.locator(".topics a").first).to_be_visible()
    yield page


@contextmanager
def unsure(stage: Stage) -> Iterator[Page]:
    page = stage.opened(f"{stage.site.address}/chat")
    expect(ask(page, UNSURE)).to_have_attribute("data-standing", "unsure")
    yield page


@contextmanager
def outside_selection(stage: Stage) -> Iterator[Page]:
    """The scope is shown, the selection does not say, and the whole book is offered."""
    page = stage.opened(f"{stage.site.address}/chat")
    ask(page, COVERED)
    select(page, page.locator(".words p").first.inner_text()[:60])
    page.get_by_role("button", name="Ask about this").click()
    expect(page.locator(".chip")).to_be_visible()
    expect(ask(page, "What is a capture point?")).to_have_attribute("data-standing", "outside-selection")
    yield page


@contextmanager
def waiting(stage: Stage) -> Iterator[Page]:
    with _held(stage) as page:
        expect(page.locator(".typing")).to_be_visible()
        yield page
        page.keyboard.press("Escape")


@contextmanager
def stopped(stage: Stage) -> Iterator[Page]:
    with _held(stage) as page:
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".message.assistant")).to_have_attribute("data-standing", "stopped")
        yield page


@contextmanager
def writing(stage: Stage) -> Iterator[Page]:
    """A model was asked, and no text has arrived yet."""
    with _written(stage, Says(hang=True)) as page:
        page.get_by_label("Your question").fill(COVERED)
        page.keyboard.press("Enter")
        expect(page.locator(".typing")).to_have_text("Writing the answer…")
        yield page
        page.keyboard.press("Escape")


@contextmanager
def growing(stage: Stage) -> Iterator[Page]:
    """Half of an answer that a model is still writing."""
    half = f"{TRUE}. A second sentence has"
    with _written(stage, lambda _: Says(half, hang=True)) as page:
        page.get_by_label("Your question").fill(COVERED)
        page.keyboard.press("Enter")
        expect(page.locator("[data-streaming] .words")).to_be_visible()
        yield page
        page.keyboard.press("Escape")


@contextmanager
def doubted(stage: Stage) -> Iterator[Page]:
    """A model's answer of which some is not supported, where the operator wants to show that."""
    mind = saying(lambda at: f"{TRUE} [{at(TRUE)}]. A baker in Lyon invented it [{at(TRUE)}]. It is cheap in bulk.")
    with _written(stage, mind, unsupported="show") as page:
        ask(page, COVERED)
        expect(page.locator(".doubt")).to_have_count(1)
        expect(page.locator(".beside")).to_contain_text("It is cheap in bulk.")
        yield page


@contextmanager
def folded(stage: Stage) -> Iterator[Page]:
    """Quotations, and what a model wrote instead, unfolded: too little of it is supported."""
    mind = saying(
        lambda at: f"Gyroscope bias makes many robots drift, some say [{at(TRUE)}]. A baker in Lyon built them."
    )
    with _written(stage, mind) as page:
        ask(page, COVERED)
        expect(page.locator(".beside")).not_to_have_attribute("open", "")
        expect(page.get_by_text("A baker in Lyon")).to_be_hidden()
        page.locator(".beside summary").click()
        expect(page.get_by_text("A baker in Lyon")).to_be_visible()
        page.locator(".beside").scroll_into_view_if_needed()
        yield page


@contextmanager
def silent(stage: Stage) -> Iterator[Page]:
    """The model is down: sources alone."""
    with _written(stage, Fails(401, "no", "invalid_api_key")) as page:
        expect(ask(page, COVERED)).to_have_attribute("data-standing", "silent")
        yield page


@contextmanager
def offline(stage: Stage) -> Iterator[Page]:
    stage.watched.expected.append("ERR_INTERNET_DISCONNECTED")
    page = stage.opened(f"{stage.site.address}/chat")
    ask(page, COVERED)
    page.context.set_offline(True)
    expect(ask(page, UNSURE).locator("[data-kind=offline]")).to_be_visible()
    yield page


@contextmanager
def busy(stage: Stage) -> Iterator[Page]:
    """A key that has asked as often as it may."""
    stage.watched.expected.append("429")
    with live(at(copied(stage.home, stage.folder / "home"))) as server:
        key = server.run(made_key(server.state.stores, per_minute=3))
        page = stage.opened(f"{server.address}/chat#key={key}")
        expect(page.locator(".questions button").first).to_be_visible()
        while not page.locator("[data-kind=busy]").count():
            ask(page, COVERED)
        expect(page.locator(".retry")).to_be_disabled()
        yield page


@contextmanager
def unavailable(stage: Stage) -> Iterator[Page]:
    async def fail() -> None:
        raise IndexUnavailable("the vector store does not answer")

    with live(at(stage.home)) as server:
        page = stage.opened(f"{server.address}/chat")
        expect(page.locator(".questions button").first).to_be_visible()
        server.use(index=WaitingIndex(server.well.engines.index, fail))
        expect(ask(page, COVERED).locator("[data-kind=unavailable]")).to_be_visible()
        yield page


@contextmanager
def cut(stage: Stage) -> Iterator[Page]:
    """The connection ends in the middle of an answer, as behind a proxy that has no patience."""
    page = stage.opened(f"{stage.site.address}/chat")
    half = 'data: {"stage": "generating"}\n\ndata: {"delta": "Gyroscopes drift because"}\n\n'
    page.route("**/chat/stream*", lambda route: route.fulfill(body=half, content_type="text/event-stream"))
    expect(ask(page, COVERED).locator("[data-kind=cut]")).to_be_visible()
    page.unroute_all()
    yield page


@contextmanager
def nothing_there(stage: Stage) -> Iterator[Page]:
    stage.watched.expected.append("503")
    with live(at(stage.folder / "home")) as server:
        page = stage.opened(f"{server.address}/chat")
        expect(page.locator(".welcome .warn")).to_be_visible()
        expect(ask(page, COVERED).locator("[data-kind=empty]")).to_be_visible()
        yield page


@contextmanager
def key_asked(stage: Stage) -> Iterator[Page]:
    stage.watched.expected.append("401")
    with live(at(copied(stage.home, stage.folder / "home"))) as server:
        server.run(made_key(server.state.stores))
        page = stage.opened(f"{server.address}/chat")
        expect(page.get_by_label("Key")).to_be_visible()
        yield page


@contextmanager
def outdated(stage: Stage) -> Iterator[Page]:
    """A conversation whose source has changed since."""
    docs = stage.folder / "docs"
    docs.mkdir()
    (docs / "pumps.md").write_text("# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nFill the casing first.\n")
    home = stage.folder / "home"
    take_in(home, docs)
    with live(at(home)) as server:
        page = stage.opened(f"{server.address}/chat")
        ask(page, "What moves water uphill?")
        (docs / "pumps.md").write_text("# Pumps\n\nA pump lifts oil.\n\n## Priming\n\nFill the casing first.\n")
        take_in(home, docs)
        page.reload()
        expect(page.locator(".badge")).to_be_visible()
        page.locator("button.mark").first.click()
        expect(page.locator("dialog.panel .warn")).to_be_visible()
        yield page


@contextmanager
def right_to_left(stage: Stage) -> Iterator[Page]:
    page = stage.opened(f"{stage.site.address}/chat?lang=ar")
    page.locator("textarea").fill(COVERED)
    page.keyboard.press("Enter")
    page.locator("button.mark").first.click()
    expect(page.locator("dialog.panel mark.cited").first).to_be_visible()
    yield page


@contextmanager
def widget_closed(stage: Stage) -> Iterator[Page]:
    with _hosted(stage) as page:
        yield page


@contextmanager
def widget_open(stage: Stage) -> Iterator[Page]:
    with _hosted(stage, title=TITLE) as page:
        page.get_by_role("button", name="Ask the documents").click()
        ask(page, COVERED)
        yield page


@contextmanager
def widget_writing(stage: Stage) -> Iterator[Page]:
    with LLM(Says(hang=True)) as llm, _hosted(stage, llm_base_url=llm.url, llm_model=MODEL, llm_api_key=KEY) as page:
        page.get_by_role("button", name="Ask the documents").click()
        page.get_by_label("Your question").fill(COVERED)
        page.keyboard.press("Enter")
        expect(page.locator(".typing")).to_have_text("Writing the answer…")
        yield page
        page.keyboard.press("Escape")


@contextmanager
def widget_source(stage: Stage) -> Iterator[Page]:
    with widget_open(stage) as page:
        page.locator("button.mark").first.click()
        expect(page.locator("dialog.panel mark.cited").first).to_be_visible()
        yield page


@contextmanager
def widget_selection(stage: Stage) -> Iterator[Page]:
    with _hosted(stage) as page:
        select(page, "A gyroscope measures rate of turn.")
        page.get_by_role("button", name="Ask about this").click()
        ask(page, "What does a gyroscope measure?")
        expect(page.locator(".chip")).to_be_visible()
        yield page


@contextmanager
def library(stage: Stage) -> Iterator[Page]:
    page = stage.opened(f"{stage.site.address}/chat")
    answer = ask(page, UNCOVERED)
    with page.expect_response("**/api/v1/feedback"):
        answer.get_by_role("button", name="This did not help").click()
    page.goto(f"{stage.site.address}/library")
    expect(page.get_by_role("cell", name=UNCOVERED).first).to_be_visible()
    yield page


@contextmanager
def library_key(stage: Stage) -> Iterator[Page]:
    stage.watched.expected.append("401")
    with live(at(copied(stage.home, stage.folder / "home"))) as server:
        server.run(made_key(server.state.stores))
        page = stage.opened(f"{server.address}/library")
        expect(page.get_by_label("Admin key")).to_be_visible()
        yield page


State = Callable[[Stage], AbstractContextManager[Page]]
STATES: list[State] = [
    empty, titled, refused, answered, excerpt, source, formatted, formulas, uncovered, unsure,
    outside_selection, waiting, writing, growing, stopped, doubted, folded, silent, offline, busy, unavailable, cut,
    nothing_there, key_asked, outdated, right_to_left, widget_closed, widget_open, widget_writing, widget_source,
    widget_selection, library, library_key,
]  # fmt: skip


@contextmanager
def _hosted(stage: Stage, **values: object) -> Iterator[Page]:
    """A docs page of another origin with the widget on it."""
    with hosting() as host, live(at(stage.home, cors_origins=(host.address,), **values)) as server:
        host.server = server.address
        page = stage.opened(f"{host.address}/gyroscopes.html")
        expect(page.locator("citewell-widget")).to_be_attached()
        yield page


@contextmanager
def _held(stage: Stage) -> Iterator[Page]:
    """A question that is being looked up, and goes on being looked up."""
    with live(at(stage.home)) as server:
        page = stage.opened(f"{server.address}/chat")
        expect(page.locator(".questions button").first).to_be_visible()
        server.use(index=WaitingIndex(server.well.engines.index, Held()), patience=60)
        page.get_by_label("Your question").fill(COVERED)
        page.keyboard.press("Enter")
        expect(page.locator(".message.assistant")).to_be_visible()
        yield page


@contextmanager
def _written(stage: Stage, *replies: Says | Fails | Mind, **values: object) -> Iterator[Page]:
    with (
        LLM(*replies) as llm,
        live(at(stage.home, llm_base_url=llm.url, llm_model=MODEL, llm_api_key=KEY, **values)) as server,
    ):
        yield stage.opened(f"{server.address}/chat")


def select(page: Page, words: str) -> None:
    """Select words of the page as a mouse would."""
    page.evaluate(
        """(words) => {
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            for (let node; (node = walker.nextNode()); ) {
                const start = node.data.indexOf(words.slice(0, 25));
                if (start < 0) continue;
                document.activeElement?.blur();
                const range = document.createRange();
                range.setStart(node, start);
                range.setEnd(node, Math.min(node.data.length, start + words.length));
                getSelection().removeAllRanges();
                getSelection().addRange(range);
                return;
            }
            throw new Error("no such words: " + words);
        }""",
        words,
    )

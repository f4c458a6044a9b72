"""A real browser on a real server. Every page is watched: an error in its console fails the test that opened it.

The browser's driver keeps an event loop running in its thread, so no browser outlives the module that wanted it, and
each module runs whole on one worker (`xdist_group`).
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from citewell.models import IngestResult
from citewell.settings import Settings
from tests.browser.hosting import Host, hosting
from tests.conftest import BOOK, copied, made_once, settings_for
from tests.conftest import take_in as ingest
from tests.http.live import Live, live

COVERED = "Why do gyroscopes drift?"
UNCOVERED = "Who won the football world cup in 1998?"
PHONE: ViewportSize = {"width": 390, "height": 780}
_SERIOUS = ("serious", "critical")
_AXE = Path(__file__).parents[2] / "widget/node_modules/axe-core/axe.min.js"
# The shell is the same engine without what surrounds a page, and takes a fifth less of the machine.
_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]

expect.set_options(timeout=20_000)  # a machine may be busy; what comes at all is not waited for longer


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        assert os.environ.get("CI") != "true", "CI has a browser"
        pytest.skip("needs Chromium, which `make test` installs where it may")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def linked_home(tmp_path_factory: pytest.TempPathFactory, book_home: Path) -> Path:
    """The example book with the addresses of its pages; nothing of it is embedded twice."""
    book = partial(take_in, base_url="https://book.example.org")
    return made_once(tmp_path_factory, "linked", lambda home: book(copied(book_home, home), BOOK))


def take_in(home: Path, *paths: Path, **how: Any) -> IngestResult:
    """Ingest, in a thread: the browser's driver keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(partial(ingest, home, *paths, **how)).result()


@pytest.fixture(scope="module")
def site(linked_home: Path) -> Iterator[Live]:
    """A server over the example book, for all tests of a worker; each has a session of its own."""
    with live(at(linked_home)) as server:
        yield server


def at(home: Path, **values: object) -> Settings:
    """The settings of a server that a browser asks much of at once."""
    return settings_for(home, **{"max_concurrent_requests": 100, **values})


class Watched:
    """What went wrong on pages; `expected` are parts of messages that a test wants to see there."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        # A page may outlive the server of its test for a moment, and ask it something.
        self.expected: list[str] = ["ERR_CONNECTION_REFUSED"]

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._said)
        context.on("weberror", lambda error: self.faults.append(str(error.error)))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.text} ({message.location.get('url', '')})")

    def check(self) -> None:
        unexpected = [one for one in self.faults if not any(part in one for part in self.expected)]
        assert unexpected == []


@pytest.fixture
def watched() -> Iterator[Watched]:
    watched = Watched()
    yield watched
    watched.check()


Opens = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, watched: Watched) -> Iterator[Opens]:
    """`opened(address)` opens a page in a browser profile of its own; `beside=page` in the same one, as another tab."""
    contexts: list[BrowserContext] = []

    def open_page(address: str, *, beside: Page | None = None, **how: object) -> Page:
        if beside:
            context = beside.context
        else:
            context = browser.new_context(**{"viewport": {"width": 1200, "height": 850}, "locale": "en-GB", **how})  # type: ignore[arg-type]
            watched.watch(context)
            contexts.append(context)
        page = context.new_page()
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def chat(site: Live, opened: Opens) -> Page:
    """The chat page of the example book."""
    return opened(f"{site.address}/chat")


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


@dataclass(frozen=True)
class Stage:
    """What a state is made with."""

    home: Path
    folder: Path
    opened: Opens
    watched: Watched
    site: Live


@pytest.fixture
def stage(linked_home: Path, tmp_path: Path, opened: Opens, watched: Watched, site: Live) -> Stage:
    return Stage(linked_home, tmp_path, opened, watched, site)


def ask(page: Page, question: str) -> Locator:
    """Ask, and wait until the answer is whole; gives the answer."""
    before = page.locator(".message.assistant").count()
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")
    answer = page.locator(".message.assistant").nth(before)
    expect(answer).to_have_attribute("data-standing", re.compile("."), timeout=20_000)
    return answer


def faults_for_everyone(page: Page, *, colours_only: bool = False) -> list[str]:
    """What axe finds that keeps somebody out: a line for each element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE.read_text())
    only = {"runOnly": ["color-contrast"]} if colours_only else {}
    found = page.evaluate("(how) => axe.run(document, how)", {"resultTypes": ["violations"], **only})
    return [
        f"{rule['id']} ({rule['impact']}): {node['html'][:150]} — {node['failureSummary'][:200]}"
        for rule in found["violations"]
        if rule["impact"] in _SERIOUS
        for node in rule["nodes"]
    ]

"""Nothing that a book, a model, a reader or even the server says runs in a page, on any path by which it is shown.

The page's policy is switched off in these tests: the renderer has to hold by itself. Each page is looked at for what a
payload would have made of it, too: an element or an attribute that nobody of ours makes.
"""

import html
import json
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import ask, at, take_in
from tests.browser.hosting import hosting
from tests.browser.payloads import PAYLOADS
from tests.fakes.llm import KEY, LLM, MODEL, Says
from tests.http.live import Live, live

pytestmark = pytest.mark.xdist_group("browser-xss")


_TRAP = "window.pwned = () => { window.caught = true; }; window.alert = window.pwned;"
# What payloads would leave behind: elements and attributes that our own code never makes, and links to anywhere else.
_LEFT_BEHIND = """() => {
  const FOREIGN = ['script', 'img', 'iframe', 'frame', 'object', 'embed', 'style', 'link', 'meta', 'base', 'video',
    'audio', 'source', 'marquee', 'template', 'title', 'noscript', 'annotation', 'annotation-xml', 'mglyph'];
  const MATH = 'http://www.w3.org/1998/Math/MathML';
  const found = [];
  if (window.caught) found.push('it ran');
  const look = (root) => {
    for (const one of root.querySelectorAll('*')) {
      if (one.shadowRoot) look(one.shadowRoot);
      const inside = one.closest('.chat, .frame, .tip, .about, .parts, .picker');
      const logo = one.matches('img.logo') && /^http:\\/\\/127\\.0\\.0\\.1:\\d+\\/logo$/.test(one.src);
      if (inside && FOREIGN.includes(one.localName) && !logo) found.push(one.outerHTML);
      const formula = one.closest('math');
      if (formula && !(formula.closest('.formula.set') && one.namespaceURI === MATH)) found.push(one.outerHTML);
      if (one.localName === 'svg' && one.getAttribute('aria-hidden') !== 'true') found.push(one.outerHTML);
      for (const {name, value} of one.attributes) {
        if (/^on|^(srcdoc|formaction|action|xlink:href)$/i.test(name)) found.push(`${name}=${value}`);
        if (name === 'href' && inside && !/^https?:\\/\\//.test(value)) found.push(`${name}=${value}`);
      }
    }
  };
  look(document);
  return found;
}"""
_SELECT = """(text) => {
  const shown = document.querySelector('#text');
  shown.textContent = text;
  getSelection().selectAllChildren(shown);
}"""
_ID = "5b0c5d4e-6f0a-4a53-9d3b-0d6d4a2f9c11"
_HASH = "a" * 64


class Trap:
    """A page on which nothing may run, and from which nothing may be fetched from elsewhere."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.fetched: list[str] = []
        page.on("request", lambda request: self.fetched.append(request.url))
        page.on("dialog", lambda dialog: self.fetched.append(f"a dialog: {dialog.message}"))

    def check(self, payload: str = "") -> None:
        assert self.page.evaluate(_LEFT_BEHIND) == [], payload
        abroad = [url for url in self.fetched if not url.startswith(("http://127.0.0.1:", "data:"))]
        assert abroad == [], payload


@pytest.fixture
def trapped(browser: Browser) -> Iterator[Callable[[str], Trap]]:
    context = browser.new_context(bypass_csp=True, locale="en-GB", reduced_motion="reduce")
    context.add_init_script(_TRAP)
    context.route("https://**/*", lambda route: route.abort())  # it is noted that it was tried

    def open_page(address: str) -> Trap:
        page = context.new_page()
        trap = Trap(page)
        page.goto(address)
        return trap

    yield open_page
    context.close()


def test_the_trap_catches_what_runs(site: Live, trapped: Callable[[str], Trap]) -> None:
    trap = trapped(f"{site.address}/chat")
    trap.page.evaluate("document.querySelector('.chat').insertAdjacentHTML('beforeend', '<img src=x onerror=pwned()>')")
    trap.page.wait_for_function("window.caught")
    with pytest.raises(AssertionError):
        trap.check()


@pytest.mark.parametrize("where", ["page", "widget"])
def test_a_server_that_says_payloads_everywhere_runs_nothing(
    site: Live, trapped: Callable[[str], Trap], where: str
) -> None:
    """Every string of every answer of the API is a payload: live, whole, restored, as an excerpt and in the panel."""
    said = ""

    def lie(route: Route) -> None:
        path = route.request.url.removeprefix(site.address)
        if path.startswith("/chat/stream"):
            route.fulfill(body=_stream(said), content_type="text/event-stream", headers=_OPEN)
        elif route.request.method == "OPTIONS":
            route.fulfill(status=204, headers=_OPEN)
        else:
            route.fulfill(json=_told(path, said), headers=_OPEN)

    with hosting() as host:
        host.server = site.address
        trap = trapped("about:blank")
        page = trap.page
        page.route(lambda url: url.startswith(site.address) and _is_door(url), lie)
        page.route("**/widget/math.js", lambda route: route.fulfill(response=route.fetch(), headers=_SCRIPT))
        page.goto(f"{site.address}/chat" if where == "page" else f"{host.address}/x.html")
        if where == "widget":
            page.get_by_role("button", name="Ask the documents").click()
        for said in PAYLOADS:
            page.get_by_label("Your question").fill(said)
            page.keyboard.press("Enter")
            answer = page.locator(".message.assistant").last
            expect(answer).to_have_attribute("data-standing", "answered")
            trap.check(said)
            answer.locator("button.mark").last.hover()
            expect(page.get_by_role("tooltip")).to_be_visible()
            trap.check(said)
            answer.locator("button.mark").last.click()
            expect(page.locator("dialog.panel .facts ul")).to_be_visible()
            trap.check(said)
            page.keyboard.press("Escape")
            page.get_by_role("button", name="New conversation").click()
        said = ""
        page.get_by_label("Your question").fill("Again?")
        page.keyboard.press("Enter")
        expect(page.locator(".message.assistant")).to_have_attribute("data-standing", "answered")
        page.reload()  # now the history holds every payload, and so do the welcome and the picker
        if where == "widget":
            expect(page.locator(".frame")).to_be_visible()
        expect(page.locator(".message")).to_have_count(2 * len(PAYLOADS))
        page.locator(".scroller").evaluate("(one) => one.scrollTo(0, 0)")
        expect(page.locator(".formula.set").first).to_be_attached()
        trap.check("history")
        page.get_by_role("button", name="New conversation").click()
        expect(page.locator(".questions button").first).to_be_visible()
        trap.check("welcome")


def test_an_error_that_is_a_payload_runs_nothing(site: Live, trapped: Callable[[str], Trap]) -> None:
    trap = trapped(f"{site.address}/chat")
    page = trap.page
    told = {"error_code": "VALIDATION_ERROR", "message": "", "request_id": _ID}
    page.route("**/chat/stream*", lambda route: route.fulfill(status=400, json=told))
    for payload in PAYLOADS:
        told["message"] = payload
        page.get_by_label("Your question").fill("What?")
        page.keyboard.press("Enter")
        expect(page.locator(".message.assistant").last.locator(".failure")).to_be_visible()
        trap.check(payload)


def test_a_selection_that_is_a_payload_runs_nothing(site: Live, trapped: Callable[[str], Trap]) -> None:
    with hosting() as host:
        host.server = site.address
        trap = trapped(f"{host.address}/x.html")
        page = trap.page
        page.wait_for_function("window.Citewell")
        page.route(
            "**/chat/stream*",
            lambda route: route.fulfill(body=_stream("Yes."), content_type="text/event-stream", headers=_OPEN),
        )
        for payload in PAYLOADS:
            page.evaluate(_SELECT, payload)
            page.get_by_role("button", name="Ask about this").click()
            expect(page.locator(".chip")).to_be_visible()
            page.evaluate("(text) => Citewell.ask(text, text)", payload)
            expect(page.locator(".message.assistant").last).to_have_attribute("data-standing", "answered")
            trap.check(payload)


def test_a_library_of_payloads_runs_nothing(site: Live, trapped: Callable[[str], Trap]) -> None:
    trap = trapped("about:blank")
    page = trap.page
    page.route("**/api/v1/projects*/**", lambda route: route.fulfill(json=_library(route.request.url)))
    page.route("**/api/v1/projects", lambda route: route.fulfill(json=_library(route.request.url)))
    page.route("**/api/v1/documents/**", lambda route: route.fulfill(json=_document()))
    page.goto(f"{site.address}/library")
    expect(page.locator("tbody tr").first).to_be_visible()
    page.locator("td button").first.click()
    expect(page.locator(".chunks details")).to_have_count(len(PAYLOADS))
    assert page.locator("main").inner_text().count("pwned()") > len(PAYLOADS)
    trap.check()


def test_an_operator_s_payloads_run_nothing(tmp_path: Path, trapped: Callable[[str], Trap]) -> None:
    """In the title, the welcome and the starter questions, by settings and by attributes of the widget."""
    (tmp_path / "pumps.md").write_text("# Pumps\n\nA pump moves water uphill.\n")
    home = tmp_path / "home"
    assert take_in(home, tmp_path / "pumps.md", embedder="hashing").errors == ()
    for first in range(0, len(PAYLOADS), 6):
        some = [" ".join(payload.split()) for payload in PAYLOADS[first : first + 6]]
        texts = {"title": some[0][:100], "welcome": "\n".join(some), "starter_questions": tuple(some)}
        with hosting() as host, live(at(home, embedder="hashing", decline_below=1, **texts)) as server:
            trap = trapped(f"{server.address}/chat")
            expect(trap.page.locator(".questions button")).to_have_text(some)
            expect(trap.page.locator(".intro")).to_have_text(texts["welcome"])
            expect(trap.page.locator(".top h1")).to_have_text(texts["title"])
            ask(trap.page, "Why?")
            expect(trap.page.locator(".headline")).to_have_text(f"This is not covered by {texts['title']}.")
            trap.check(some[0])
            host.server = server.address
            quoted = [html.escape(text) for text in some]
            host.attributes = f'data-title="{quoted[0]}" data-welcome="{quoted[0]}" data-questions="{"|".join(quoted)}"'
            trap = trapped(f"{host.address}/x.html")
            trap.page.locator(".bubble-button").click()
            expect(trap.page.locator(".intro")).to_have_text(some[0])
            trap.check(some[0])
            trap.page.close()


def test_a_book_of_payloads_runs_nothing(tmp_path: Path, trapped: Callable[[str], Trap]) -> None:
    """Through the real readers, index and doors: in file names, titles, headings and text."""
    folder = tmp_path / "book"
    folder.mkdir()
    for number, payload in enumerate(PAYLOADS):
        name = payload.replace("/", "∕").replace("\n", " ").replace("\t", " ")[:60]
        title = json.dumps(payload.replace("\n", " "))
        (folder / f"{number} {name}.md").write_text(
            f"---\ntitle: {title}\n---\n\n## {payload.splitlines()[0]}\n\n"
            f"The zebra{number} eats grass{number}. {payload}\n"
        )
    home = tmp_path / "home"
    assert take_in(home, folder, embedder="hashing").errors == ()
    with live(at(home, embedder="hashing")) as server:
        trap = trapped(f"{server.address}/chat")
        page = trap.page
        for number in range(0, len(PAYLOADS), 3):
            answer = ask(page, f"What does the zebra{number} eat?")
            expect(answer).to_contain_text(f"zebra{number}")
            answer.locator("button.mark").last.click()  # the text may hold what looks like a mark, before it
            expect(page.locator("dialog.panel mark.cited").first).to_be_attached()
            trap.check(PAYLOADS[number])
            page.keyboard.press("Escape")
        page.reload()
        expect(page.locator(".message").first).to_be_attached()
        trap.check("restored")
        page.goto(f"{server.address}/library")
        expect(page.get_by_role("cell", name="0 <script>pwned", exact=False).first).to_be_visible()
        trap.check("library")


def test_a_model_that_writes_payloads_runs_nothing(linked_home: Path, trapped: Callable[[str], Trap]) -> None:
    """Through the real stream, in pieces of one to four characters; and restored."""
    replies = [
        Says(f"Because of {payload} [1].\n\n{payload}", piece=1 + number % 4) for number, payload in enumerate(PAYLOADS)
    ]
    with LLM(*replies) as llm, live(at(linked_home, llm_base_url=llm.url, llm_model=MODEL, llm_api_key=KEY)) as server:
        trap = trapped(f"{server.address}/chat")
        for payload in PAYLOADS[::2]:
            ask(trap.page, "What is a capture point?")
            trap.check(payload)
            trap.page.get_by_role("button", name="New conversation").click()
            expect(trap.page.locator(".message")).to_have_count(0)
        before = ask(trap.page, "What is a capture point?").inner_text()
        trap.page.reload()
        expect(trap.page.locator(".message.assistant")).to_have_text(before, use_inner_text=True)
        trap.check("restored")


_OPEN = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*"}
_SCRIPT = {"content-type": "text/javascript", **_OPEN}


def _is_door(url: str) -> bool:
    path = "/" + url.split("/", 3)[3]
    return path.startswith(("/chat/stream", "/history/", "/api/"))


def _source(payload: str) -> dict[str, Any]:
    return {
        "source_url": f"https://a.org/{payload}" if len(payload) % 2 else payload, "title": payload, "section": payload,
        "chunk_position": 0, "similarity_score": 0.5, "snippet": payload, "chunk_id": _HASH, "document_id": _ID,
        "start": 0, "end": 1, "line": 1, "page": None, "quotes": [payload, payload], "status": "moved",
    }  # fmt: skip


def _answer(payload: str) -> dict[str, Any]:
    return {
        "sources": [_source(payload)], "confidence": 0.9, "notice": payload,
        "nearest": [{"title": payload, "url": payload, "source_file": payload}],
        "unsupported": [payload],
        "support": [{"sentence": payload, "verdict": "unsupported", "score": 0.1, "chunk_ids": [payload]}],
        "metadata": {
            "query_time_ms": 1, "retrieval_count": 1, "mode": "full", "low_confidence": False, "request_id": _ID,
        },
    }  # fmt: skip


def _stream(payload: str) -> str:
    """An answer with the payload in pieces, and again whole."""
    text = f"So: {payload} [1]\n\n{payload}\n\n[1]"
    pieces: list[dict[str, Any]] = [
        {"stage": "generating"},
        *({"delta": text[at : at + 3]} for at in range(0, len(text), 3)),
    ]
    done = {"done": True, "response": {"answer": text, "fallback_message": None, "session_id": _ID, **_answer(payload)}}
    return "".join(f"data: {json.dumps(one)}\n\n" for one in [*pieces, done])


def _told(path: str, payload: str) -> dict[str, Any]:
    """What the other doors say."""
    if path.startswith("/history/"):
        entries = [
            {"timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z", "query": one,
             "response": f"{one}\n\n[1]", "complete": True,
             "feedback": None, **_answer(one)}
            for number, one in enumerate(PAYLOADS)
        ]  # fmt: skip
        # As if there were no more than are fetched at once, so that all are there.
        return {"session_id": _ID, "entries": entries, "total_entries": 20}
    if path.startswith("/api/v1/citations"):
        return {
            "id": _HASH, "status": "changed", "documentId": _ID, "source": payload, "title": payload,
            "section": payload, "headings": [payload, payload], "chunkIndex": 0, "chunkCount": 2,
            "line": 1, "lastLine": 2, "page": None,
            "chunkText": f"{payload}\n\n{payload}", "before": f"{payload}\n\n", "after": f"\n\n{payload}",
            "source_url": payload,
        }  # fmt: skip
    projects = [{"id": f"{_ID[:-2]}{number:02x}", "name": one} for number, one in enumerate(PAYLOADS)]
    return {
        "project": projects[0], "projects": projects, "documents": 1, "questions": list(PAYLOADS),
        "title": payload or PAYLOADS[1], "welcome": payload or PAYLOADS[1], "logo": payload or PAYLOADS[1],
    }  # fmt: skip


def _document() -> dict[str, Any]:
    """A document whose chunks are payloads."""
    text = "".join(PAYLOADS)
    ends = list(accumulate(map(len, PAYLOADS)))
    chunks = [
        {
            "id": _HASH,
            "chunkIndex": number,
            "section": one,
            "start": end - len(one),
            "end": end,
            "line": 1,
            "lastLine": 2,
            "page": None,
        }
        for number, (one, end) in enumerate(zip(PAYLOADS, ends, strict=True))
    ]
    return {"text": text, "chunks": chunks}


def _library(url: str) -> dict[str, Any]:
    """Every list of the library page, of payloads."""
    now = "2026-01-01T00:00:00Z"
    if url.endswith("/documents"):
        return {"documents": [
            {"documentId": _ID, "projectId": _ID, "filename": one, "status": "FAILED", "error": one, "title": one,
             "url": one, "chunkCount": 1, "characters": 1, "updatedAt": now} for one in PAYLOADS]}  # fmt: skip
    if url.endswith("/ingests"):
        return {"ingests": [
            {"id": _ID, "startedAt": now, "updatedAt": now, "finishedAt": None, "state": "running", "stage": one,
             "done": 1, "total": 2,
             "filesProcessed": 1, "chunksCreated": 1, "errors": list(PAYLOADS)} for one in PAYLOADS]}  # fmt: skip
    if "/gaps" in url:
        return {"gaps": [{"question": one, "times": 1, "lastAskedAt": now} for one in PAYLOADS]}
    if "/feedback" in url:
        return {
            "up": 1,
            "down": 1,
            "last": [{"question": one, "answer": one, "vote": "down", "at": now} for one in PAYLOADS],
        }
    if "/evaluation" in url:
        return {"at": now, "questions": 1, "scores": {one: {"value": 0.5, "low": 0.4, "high": 0.6} for one in PAYLOADS}}
    return {"projects": [{"id": _ID, "name": one, "createdAt": now, "documents": 1, "chunks": 1} for one in PAYLOADS]}

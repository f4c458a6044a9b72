"""Speed of the chat page in the browser: the first words of a stream, and scrolling a long history.

    python benchmarks/speed/page.py examples/robotics-book

The first number is the time between the first byte of an answer that reaches the page and its first words on the
screen, over several questions, from the browser's own clock. For the second, 2,000 messages are scrolled from end to
beginning and back; browsers call a task of 50 ms or more a "long task", and readers notice it.
"""

import argparse
import asyncio
import json
import shutil
import sqlite3
import statistics
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from citewell import wiring
from citewell.ingest.flow import ingest
from citewell.models import DEFAULT_PROJECT, Project
from citewell.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.http.live import live

_QUESTIONS = (
    "Why do gyroscopes drift?",
    "What is a capture point?",
    "How do I calibrate a camera?",
    "What is impedance control?",
)
_EXCHANGES = 1000
# Each piece of a stream with the moment it came, and the moment of the first frame that shows words of it.
_WATCH_SCRIPT = """() => {
  window.seen = {bytes: 0, words: 0};
  const fetched = window.fetch;
  window.fetch = async (...call) => {
    const response = await fetched(...call);
    if (!String(call[0]).includes('/chat/stream')) return response;
    const [ours, theirs] = response.body.tee();
    const reader = ours.getReader();
    const decoder = new TextDecoder();
    (async () => {
      for (;;) {
        const {value, done} = await reader.read();
        if (done) return;
        if (seen.bytes || !decoder.decode(value).includes('delta')) continue;
        seen.bytes = performance.now();
        return reader.cancel();
      }
    })();
    return new Response(theirs, response);
  };
  const look = () => {
    const words = document.querySelector('.message:last-child .words');
    const more = document.querySelectorAll('.message').length > seen.before;
    if (seen.bytes && !seen.words && more && words?.textContent) seen.words = performance.now();
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
_SCROLL_SCRIPT = """async () => {
  const long = [];
  const note = (list) => long.push(...list.getEntries().map((one) => one.duration));
  new PerformanceObserver(note).observe({type: 'longtask'});
  const scroller = document.querySelector('.scroller');
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const frames = [];
  const step = async (by) => {
    const began = performance.now();
    scroller.scrollTop += by;
    await frame();
    frames.push(performance.now() - began);
  };
  let still = 0;
  while (still < 120) {
    const before = scroller.scrollTop;
    await step(-600);
    const more = document.querySelector('.earlier:not([hidden])');
    still = scroller.scrollTop === 0 && before === 0 && !more ? still + 1 : 0;
  }
  const messages = document.querySelectorAll('.message').length;
  while (scroller.scrollTop + scroller.clientHeight < scroller.scrollHeight - 2) await step(1200);
  frames.sort((a, b) => a - b);
  const at = (share) => frames[Math.floor(frames.length * share)];
  return {messages, long, frames: frames.length, median: at(.5), p99: at(.99)};
}"""


def measure(book: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"home": Path(folder), "database_url": None, "max_concurrent_requests": 100})
        asyncio.run(_ingest(settings, book))
        with live(settings) as server, sync_playwright() as playwright:
            chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))))
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1200, "height": 850})
            page.goto(f"{server.address}/chat")
            waits = [_first_words(page, question) for question in _QUESTIONS * 3]
            _lengthen_history(settings.home / "citewell.db")
            page.reload()
            page.locator(".message").first.wait_for()
            scrolled = page.evaluate(_SCROLL_SCRIPT)
            browser.close()
    first = {"median_ms": round(statistics.median(waits), 1), "worst_ms": round(max(waits), 1), "questions": len(waits)}
    print(json.dumps({"first_words_after_first_byte": first, "history": scrolled}, indent=2))


async def _ingest(settings: Settings, book: Path) -> None:
    async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
        recipe, project = wiring.ingest_recipe(settings), Project.named(DEFAULT_PROJECT)
        await ingest([book], project=project, engines=engines, recipe=recipe, progress=lambda *_: None)


def _first_words(page: Page, question: str) -> float:
    page.evaluate(_WATCH_SCRIPT)
    page.evaluate("() => { seen.before = document.querySelectorAll('.message').length; }")
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")
    page.wait_for_function("() => seen.words && !document.querySelector('[data-streaming]')", timeout=60_000)
    return float(page.evaluate("() => seen.words - seen.bytes"))


def _lengthen_history(path: Path) -> None:
    """Copy the stored exchanges until there are 1,000."""
    columns = "session_id, query, response, sources, metadata, complete"
    with closing(sqlite3.connect(path)) as database, database:
        ids = [row[0] for row in database.execute("SELECT id FROM conversations")]
        for number in range(_EXCHANGES - len(ids)):
            database.execute(
                f"INSERT INTO conversations ({columns}, timestamp, created_at) "
                f"SELECT {columns}, datetime(timestamp, '+{number + 1} seconds'), created_at "
                "FROM conversations WHERE id = ?",
                (ids[number % len(ids)],),
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("book", type=Path, help="a folder of documents, such as examples/robotics-book")
    measure(parser.parse_args().book)


if __name__ == "__main__":
    main()

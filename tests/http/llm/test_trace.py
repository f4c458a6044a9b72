"""One question through `/chat/stream` with an LLM passes few files, and `docs/architecture.md` lists them."""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import citewell
from tests.http.llm.server import STREAMS, WELL, streamed, writing

pytestmark = pytest.mark.anyio

SOURCE = Path(citewell.__file__).parent
PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
MOST_FILES = 25


@contextmanager
def traced() -> Iterator[set[str]]:
    """The source files whose functions are called, in any thread, while the context lasts."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    threading.setprofile_all_threads(note) if hasattr(threading, "setprofile_all_threads") else None
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


async def test_a_question_passes_the_files_that_the_architecture_page_lists(pages: Path) -> None:
    async with writing(pages, WELL) as (http, _):
        await streamed(http, STREAMS[1])  # caches are filled once
        with traced() as files:
            await streamed(http, STREAMS[1])
    passed = sorted(Path(file).relative_to(SOURCE).as_posix() for file in files if file.startswith(str(SOURCE)))
    print("\n".join(passed))
    listed = re.search(r"<!-- traced files: begin -->(.*?)<!-- traced files: end -->", PAGE.read_text("utf-8"), re.DOTALL)
    assert listed
    assert passed == sorted(re.findall(r"`([\w/]+\.py)`", listed[1]))
    assert len(passed) <= MOST_FILES

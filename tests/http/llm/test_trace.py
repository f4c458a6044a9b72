"""`docs/architecture.md` lists the files that one question through `/chat/stream` with an LLM passes."""

import re
import sys
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
ONCE_A_SECOND = {"adapters/sql/keys.py"}  # whether there are keys is looked up at most once a second
LIST = re.compile(r"<!-- traced files: begin -->(.*?)<!-- traced files: end -->", re.DOTALL)


@contextmanager
def traced() -> Iterator[set[str]]:
    """The files of all functions that are called in this thread, which runs the event loop."""
    files: set[str] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    sys.setprofile(profile)
    try:
        yield files
    finally:
        sys.setprofile(None)


async def test_a_question_passes_the_files_that_the_architecture_page_lists(pages: Path) -> None:
    async with writing(pages, WELL) as (http, _):
        await streamed(http, STREAMS[1])  # fills the caches
        with traced() as files:
            await streamed(http, STREAMS[1])
    passed = {Path(file).relative_to(SOURCE).as_posix() for file in files if file.startswith(str(SOURCE))}
    listed = LIST.search(PAGE.read_text(encoding="utf-8"))
    assert listed
    assert sorted(passed - ONCE_A_SECOND) == re.findall(r"`([\w/]+\.py)`", listed[1])

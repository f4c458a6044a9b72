"""The server supervises the process that indexes uploads."""

import asyncio
from pathlib import Path

import pytest

from citewell import wiring
from citewell.http.background.upload_worker import UploadWorker
from tests.conftest import settings_for

pytestmark = pytest.mark.anyio


class Failing(UploadWorker):
    """As with an embedding vendor that refuses the key: each start takes a second and changes nothing."""

    starts = 0

    async def _run(self) -> bool:
        self.starts += 1
        return False


async def test_a_worker_that_keeps_failing_is_started_ever_less_often(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(home)
    monkeypatch.setattr("citewell.http.background.upload_worker._RETRY_SECONDS", 0.01)
    async with wiring.open_stores(settings) as kept:
        worker = Failing(settings, kept.uploads)
        await asyncio.sleep(0.7)
        assert 1 < (tried := worker.starts) < 9
        worker.wake()
        await asyncio.sleep(0.1)
        await worker.close()
    assert worker.starts > tried, "somebody who sends more is not kept waiting"

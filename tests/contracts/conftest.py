"""What the ports' promises are tried on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from citewell.adapters.sql.database import Database


@pytest.fixture
async def opened(database: Path | str) -> AsyncIterator[Database]:
    one = await Database.open(database)
    yield one
    await one.close()

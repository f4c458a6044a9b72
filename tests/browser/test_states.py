"""Every state of the pages, in light, in dark and on a phone: nobody is kept out, and each can be looked at.

`make screenshots` runs this and saves a picture of each state in docs/img/all.
"""

from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize

from tests.browser.conftest import PHONE, Stage, faults_for_everyone
from tests.browser.states import STATES, State

pytestmark = pytest.mark.xdist_group("browser-states")


_DESKTOP: ViewportSize = {"width": 1200, "height": 850}


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_nobody_is_kept_out(state: State, stage: Stage, request: pytest.FixtureRequest) -> None:
    folder: str | None = request.config.getoption("--screenshots")
    with state(stage) as page:
        found = {}
        for look in ("light", "dark", "phone"):
            page.emulate_media(color_scheme="dark" if look == "dark" else "light", reduced_motion="reduce")
            page.set_viewport_size(PHONE if look == "phone" else _DESKTOP)
            _settle(page)
            if folder:
                page.screenshot(path=Path(folder) / f"{state.__name__.replace('_', '-')}-{look}.png")
            else:
                found[look] = faults_for_everyone(page, colours_only=look == "dark")  # nothing else changes
        assert not any(found.values()), found


def _settle(page: Page) -> None:
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

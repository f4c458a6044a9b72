"""The HTML that the README and the widget's page print adds the widget to a page as it is; only the address is ours."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import COVERED, Opens, ask, at
from tests.browser.hosting import hosting
from tests.conftest import copied
from tests.http.conftest import made_key
from tests.http.live import live
from tests.test_snippets import SERVER, blocks

pytestmark = pytest.mark.xdist_group("browser-site")

SNIPPETS = [*blocks("README.md", "html"), *blocks("docs/widget.md", "html")]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_script_tag_adds_the_widget_as_it_is_printed(
    snippet: str, linked_home: Path, tmp_path: Path, opened: Opens
) -> None:
    home = copied(linked_home, tmp_path / "home")
    with hosting() as host, live(at(home, cors_origins=(host.address,))) as server:
        if "cw_…" in snippet:
            snippet = snippet.replace("cw_…", server.run(made_key(server.state.stores)))
        host.tag = SERVER.sub(server.address, snippet)
        page = opened(f"{host.address}/gyroscopes.html")
        page.get_by_role("button", name="Ask the documents").click()
        expect(ask(page, COVERED)).to_have_attribute("data-standing", "answered")

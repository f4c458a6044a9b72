"""What the readers find out reaches the person who ingests, and the reader who asks."""

import json
from pathlib import Path

from tests.conftest import Citewell
from tests.ingest.readers.pdf_files import body, make_pdf, picture

PAGE = """# Install

<Tabs>
<TabItem value="win" label="Windows">

Download the valve controller and run the installer as administrator.

</TabItem>
<TabItem value="mac" label="macOS">

Drag the valve controller into the Applications folder and open it twice.

</TabItem>
</Tabs>

{* app.py *}

{* ../secret.py *}
"""


def test_a_picture_in_a_pdf_and_a_missing_include_are_warnings_of_the_ingest(
    citewell: Citewell, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    text = body("The pump moves water from the lower tank into the upper one.")
    scan = picture(0, 0, 612, 792)
    (folder / "scan.pdf").write_bytes(make_pdf([text, [], [], text], drawings={1: scan, 2: scan}))
    (folder / "page.mdx").write_text(PAGE, encoding="utf-8")
    (folder / "app.py").write_text("open_valve()\n", encoding="utf-8")
    (tmp_path / "secret.py").write_text("SECRET = 1\n", encoding="utf-8")
    done = citewell("ingest", str(folder), "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["errors"]) == (0, [])
    assert result["warnings"] == [
        "page.mdx: left out an included file that is not in the ingested folder: ../secret.py",
        "scan.pdf: pages 2-3: only a picture, of which nothing was read; run OCR first",
    ]
    answer = citewell("ask", "How do I install the valve controller on macOS?").stdout
    assert "macOS: Drag the valve controller into the Applications folder" in answer
    assert "SECRET" not in citewell("search", "SECRET open_valve").stdout

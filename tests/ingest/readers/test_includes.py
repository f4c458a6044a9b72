"""A page shows the files it includes, and no file from outside the folder that is ingested."""

import os
from pathlib import Path

import pytest

from citewell.ingest.chunk import ChunkSize
from citewell.ingest.read_ahead import ChunkedDocument, Recipe, read_document
from citewell.ingest.readers.markdown import Includes, read_markdown
from citewell.ingest.walk import SourceFile
from citewell.models import Project
from tests.ingest.readers.soundness import assert_sound

PAGE = "# Tasks { #tasks }\n\nCreate one:\n\n{* ../../docs_src/tasks/app.py ln[1:2] hl[2] *}\n\nThat is all.\n"
APP = "import tasks\n\n\ndef run():\n    return tasks\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository as FastAPI's: pages in docs/en/docs, whose includes are relative to docs/en."""
    write(tmp_path / "repository/docs/en/docs/tutorial/tasks.md", PAGE)
    write(tmp_path / "repository/docs_src/tasks/app.py", APP)
    write(tmp_path / "secret.py", "SECRET = 1\n")
    return tmp_path / "repository"


def write(location: Path, text: str) -> None:
    location.parent.mkdir(parents=True, exist_ok=True)
    location.write_text(text, encoding="utf-8")


def source_file(root: Path, path: str = "docs/en/docs/tutorial/tasks.md") -> SourceFile:
    return SourceFile(root / path, path, root)


def read(file: SourceFile) -> ChunkedDocument:
    return read_document(file, Project.named("p"), Recipe(ChunkSize()))


def test_an_included_file_is_a_code_block(repository: Path) -> None:
    write(repository / "docs/en/docs/tutorial/tasks.md", PAGE.replace(" ln[1:2]", ""))
    document = read(source_file(repository))
    assert document.document.text == (f"# Tasks\n\nCreate one:\n\n```python\n{APP}```\n\nThat is all.\n")
    assert document.warnings == []
    (chunk,) = document.chunks
    assert (chunk.first_line, chunk.last_line) == (1, 7)  # of the page, not of the text
    assert document.document.text[chunk.start : chunk.end] == chunk.text


def test_only_the_named_lines_are_included(repository: Path) -> None:
    write(repository / "docs_src/tasks/app.py", "one\ntwo\nthree\n")
    assert "```python\none\ntwo\n```" in read(source_file(repository)).document.text


def test_an_include_inside_a_code_block_is_only_its_lines(repository: Path) -> None:
    page = '```Python hl_lines="2"\n{!> ../../docs_src/tasks/app.py!}\n```\n'
    write(repository / "docs/en/docs/tutorial/tasks.md", page)
    assert read(source_file(repository)).document.text == f'```Python hl_lines="2"\n{APP}```\n'


def test_what_is_not_in_the_ingested_folder_is_left_out_with_a_warning(repository: Path) -> None:
    document = read(source_file(repository / "docs/en/docs", "tutorial/tasks.md"))
    assert document.document.text == "# Tasks\n\nCreate one:\n\n\n\nThat is all.\n"
    assert document.warnings == [
        "tutorial/tasks.md: left out an included file that is not in the ingested folder: ../../docs_src/tasks/app.py"
    ]


@pytest.mark.parametrize(
    "target",
    [
        "../../../../../secret.py",
        "{outside}/secret.py",
        "link.py",
        "linked/secret.py",
        ".hidden/app.py",
        ".env",
        "huge.py",
        "binary.py",
        "folder.py",
        "missing.py",
        "loop.py",
        "a\0b.py",
    ],
)
def test_nothing_from_outside_and_nothing_unreadable_is_included(repository: Path, target: str) -> None:
    pages = repository / "docs/en/docs/tutorial"
    (pages / "link.py").symlink_to(repository.parent / "secret.py")
    (pages / "linked").symlink_to(repository.parent)
    (pages / "loop.py").symlink_to(pages / "loop.py")
    write(pages / ".hidden/app.py", "SECRET = 1\n")
    write(pages / ".env", "SECRET=1\n")
    write(pages / "huge.py", "SECRET = 1\n" * 20_000)
    (pages / "binary.py").write_bytes(b"SECRET = 1\n\xff\xfe\0")
    (pages / "folder.py").mkdir()
    target = target.replace("{outside}", os.fspath(repository.parent))
    page = f"Words.\n\n{{* {target} *}}\n\nMore words.\n"
    parsed = read_markdown(page, mdx=False, fallback_title="F", includes=Includes(pages / "tasks.md", repository))
    assert "SECRET" not in parsed.text
    assert "More words." in parsed.text
    assert_sound(parsed)


def test_an_upload_includes_nothing(repository: Path) -> None:
    file = SourceFile(repository / "docs/en/docs/tutorial/tasks.md", "tasks.md", None)
    assert read(file).document.text == "# Tasks\n\nCreate one:\n\n\n\nThat is all.\n"


def test_a_page_is_read_again_when_an_included_file_changes(repository: Path) -> None:
    recipe, file = Recipe(ChunkSize()), source_file(repository)
    content = file.location.read_bytes()
    before = recipe.fingerprint(file, content)
    assert recipe.fingerprint(file, content) == before
    write(repository / "docs_src/tasks/app.py", APP + "\n")
    assert recipe.fingerprint(file, content) != before
    assert read(file).document.fingerprint == recipe.fingerprint(file, content)

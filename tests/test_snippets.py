"""The snippets of the README and of the quick starts run as they are printed; only the addresses are the test's.

What would take minutes or need a network is told so by its environment: `make` only says what it would run, and `pip`
takes what is installed already. A server runs until its snippet ends, and is asked something.
"""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import serving
from tests.fakes.llm import LLM, Says

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SERVER = re.compile(r"(?:https?://)?(?:localhost:8000|ask\.example\.org)")
_PRELUDE = r"""
make() { command make -n "$@"; }
citewell() {
  if [ "$1" != serve ]; then command citewell "$@"; return; fi
  command citewell "$@" --port "$PORT" & trap "kill $!" EXIT
  until command curl -fs "127.0.0.1:$PORT/ready"; do kill -0 $!; sleep 0.2; done
  command curl -s "127.0.0.1:$PORT/chat" | grep '<title>'
}
"""
# Runs curl, and stops where the status is not the one that the page names behind the command, or 2xx.
_CURL = r"""
expecting() {
  local wanted=$1 body status; shift
  body=$(mktemp)
  status=$(command curl "$@" -o "$body" -w '%{http_code}')
  cat "$body"; rm "$body"
  case $status in $wanted) ;; *) echo "status $status, not $wanted: $*" >&2; exit 1;; esac
}
"""


def blocks(page: str, *kinds: str) -> list[str]:
    """The fenced blocks of these kinds on a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [block for kind, block in _BLOCK.findall(text) if kind in kinds]


def snippets() -> Iterator[object]:
    for page in ("README.md", "docs/authors.md", "docs/widget.md"):
        for kind in ("bash", "python"):
            for number, block in enumerate(blocks(page, kind), start=1):
                yield pytest.param(kind, block, id=f"{page} {kind} {number}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where an author is: with a folder `docs`, some questions and the examples."""
    folder = tmp_path / "citewell"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "pumps.md").write_text("# Pumps\n\nA pump moves water uphill.\n")
    questions = ['{"text": "What does a pump move?", "relevant": ["pumps.md"]}',
                 '{"text": "How long does a chicken roast?", "unanswerable": true}']  # fmt: skip
    (folder / "questions.jsonl").write_text("\n".join(questions))
    return folder


def run(kind: str, text: str, folder: Path, **environment: str) -> str:
    """What a snippet prints; fails where it fails."""
    program = ["bash", "-euo", "pipefail", "-c", _PRELUDE + text] if kind == "bash" else [sys.executable, "-c", text]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        program,
        cwd=folder,
        env={**os.environ, "PATH": path, "CITEWELL_PORT": "0", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize(("kind", "text"), list(snippets()))
def test_a_snippet_runs_as_it_is_printed(
    kind: str, text: str, folder: Path, tmp_path: Path, own_book_home: Path
) -> None:
    environment = {
        "CITEWELL_HOME": str(own_book_home),
        "PORT": str(free_port()),
        "REPOSITORY": f"file://{ROOT}",
        # Without a network: what a package needs is installed, and what builds it is too.
        **dict.fromkeys(("PIP_NO_INDEX", "PIP_DISABLE_PIP_VERSION_CHECK"), "1"),
    }
    if "git+" in text:
        # (This is how pip is told by its environment not to isolate a build.)
        installed = tmp_path / "installed"
        environment |= {"PIP_TARGET": str(installed), "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    with ExitStack() as stack:
        if "127.0.0.1:8080" in text:
            llm = stack.enter_context(LLM(Says("A pump moves water uphill [1].")))
            text = text.replace("http://127.0.0.1:8080/v1", llm.url)
        if "citewell serve" not in text and SERVER.search(text):
            text = SERVER.sub(stack.enter_context(serving(own_book_home)), text)
        shown = run(kind, text, folder, **environment)
    if "git+" in text:
        assert (installed / "citewell" / "web" / "chat.html").is_file()
    if "git clone" in text:
        assert (folder / "citewell" / "README.md").is_file()
        assert "citewell serve" in shown, "what `make run` would do"
    if "citewell serve" in text:
        title = re.search(r'CITEWELL_TITLE="(.+?)"', text)
        assert f"<title>{title[1] if title else 'Ask the documents'}</title>" in shown
    if "api/ask" in text or kind == "python":
        assert "gyroscope" in shown


def test_the_walk_through_the_api_goes_as_it_is_printed(tmp_path: Path, own_book_home: Path) -> None:
    """In one shell, in the order of the page: every status is the one it names, or 2xx."""
    with serving(own_book_home) as server:
        script = [_CURL]
        for kind, block in _BLOCK.findall((ROOT / "docs/api.md").read_text(encoding="utf-8")):
            text = SERVER.sub(server, block)
            if kind == "bash":
                script.append(re.sub(r"(?m)^(?!until)(.*?)\bcurl (.*)$", _with_status, text))
            elif kind == "python":
                script.append(f"{sys.executable} <<'END'\n{text}END\n")
        shown = run("bash", "\n".join(script), tmp_path, CITEWELL_HOME=str(own_book_home))
    assert "404 NOT_FOUND" in shown, "the last lines of the Python client"


def _with_status(line: re.Match[str]) -> str:
    status = re.search(r"# (\d{3})$", line[0])
    return f"{line[1]}expecting '{status[1] if status else '2??'}' {line[2]}"

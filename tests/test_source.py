"""What the source must not hold, whatever it is for: other programs were broken into by each of these."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "citewell"
MODULES = sorted(SOURCE.rglob("*.py"))

# Whoever may speak to somebody else: our own client, and a vendor's adapter, at an address that the settings name.
SPEAKERS = {
    "client.py", "adapters/llm_openai_agents.py", "adapters/cohere.py", "adapters/embeddings_openai.py",
    "adapters/otel/tracer.py", "adapters/qdrant/server.py",
}  # fmt: skip
SPEAKING = {
    "aiohttp", "cohere", "ftplib", "google", "http.client", "httpcore", "httpcore2", "httpx", "httpx2", "imaplib",
    "openai", "opentelemetry", "pycurl", "qdrant_client", "requests", "smtplib", "socketserver", "telnetlib",
    "urllib.request", "urllib3", "websockets", "xmlrpc",
}  # fmt: skip
LISTENERS = {"http/server.py"}  # opens a socket to be spoken to

RUNNING = {"eval", "exec", "compile", "__import__", "breakpoint"}
LOADING = {"pickle", "cPickle", "dill", "shelve", "marshal", "joblib", "cloudpickle", "jsonpickle"}
DANGEROUS = {
    "os.system", "os.popen", "os.execv", "os.execvp", "os.spawnl", "os.spawnv", "subprocess.getoutput",
    "subprocess.getstatusoutput", "asyncio.create_subprocess_shell", "yaml.load", "yaml.load_all", "yaml.full_load",
    "yaml.unsafe_load", "numpy.loads", "torch.load", "tempfile.mktemp", "ssl._create_unverified_context",
    "tarfile.open", "shutil.unpack_archive",
}  # fmt: skip


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def faults(source: str) -> list[str]:
    """What is dangerous in a module, as it stands there."""
    found = []
    tree = ast.parse(source)
    for one in imports(tree):
        if {one, one.partition(".")[0]} & LOADING or one in DANGEROUS:
            found.append(f"import {one}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in RUNNING or called in DANGEROUS or called.endswith(".extractall"):
                found.append(called)
            for keyword in node.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if (keyword.arg, value) in (("shell", True), ("verify", False), ("allow_pickle", True)):
                    found.append(f"{called}({keyword.arg}={value!r})")
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_runs_or_loads_what_somebody_else_wrote(path: Path) -> None:
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "import pickle",
        "from pickle import loads",
        "from os import system",
        "import yaml\nyaml.load(x)",
        "import subprocess\nsubprocess.run('x', shell=True)",
        "import os\nos.system('x')",
        "httpx.get(x, verify=False)",
        "archive.extractall()",
    ],
)
def test_each_of_them_would_be_found(source: str) -> None:
    assert faults(source)


def test_nothing_fetches_an_address_that_a_client_names() -> None:
    """Only what speaks to a vendor or to our own server can speak at all; the rest has nothing to fetch with."""
    for path in MODULES:
        name = name_of(path)
        used = set(imports(ast.parse(path.read_text(encoding="utf-8"))))
        spoken = {one for one in used if {one, one.partition(".")[0], one.rpartition(".")[0]} & SPEAKING}
        if name not in SPEAKERS and not name.startswith(("client/", "adapters/qdrant/")):
            assert not spoken, name
        if name not in LISTENERS | SPEAKERS:
            assert "socket" not in used, name

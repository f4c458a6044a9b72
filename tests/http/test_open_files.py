"""A server that runs out of open files says so once, and answers again when there are some."""

import resource
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from tests.conftest import serving

QUESTION = {"question": "Why do gyroscopes drift?"}


def test_a_server_allows_as_many_open_files_as_it_may(book_home: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = serving(book_home)
    with server:
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    assert hard == before[1]
    assert soft == (min(hard, 65_536) if hard != resource.RLIM_INFINITY else 65_536) or soft == before[0] > 65_536


def test_a_server_without_open_files_says_so_in_one_line_and_recovers(book_home: Path) -> None:
    server = serving(book_home)
    with server as address, ExitStack() as connections:
        assert httpx2.post(f"{address}/api/ask", json=QUESTION, timeout=60).status_code == 200
        open_files = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (open_files + 5, open_files + 5))
        url = urlsplit(address)
        for _ in range(20):
            connection = connections.enter_context(socket.create_connection((str(url.hostname), url.port or 0)))
            connection.sendall(b"GET /health HTTP/1.1\r\n")
        deadline = time.monotonic() + 60
        while "cannot accept connections" not in server.log and time.monotonic() < deadline:
            time.sleep(0.05)
        connections.close()
        assert httpx2.post(f"{address}/api/ask", json=QUESTION, timeout=60).status_code == 200
    assert server.log.count("cannot accept connections") == 1
    assert "ulimit -n" in server.log
    assert "Traceback" not in server.log

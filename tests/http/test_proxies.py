"""The examples for nginx and Caddy in `deploy/`, run by the real programs in front of a server."""

import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from citewell.settings import Settings
from tests.conftest import copied, settings_for
from tests.fakes.collector import Collector
from tests.http.conftest import DEFAULT, events, made_key
from tests.http.live import Held, Live, WaitingIndex, live, until

DEPLOY = Path(__file__).parents[2] / "deploy"
EXTENSION = "-addext subjectAltName=DNS:localhost"
FILES = "-keyout key.pem -out certificate.pem"
QUESTION = "What moves water uphill?"
UPLOADS = f"/api/v1/projects/{DEFAULT.id}/documents"
STREAMS = [  # those that have an event before they search
    ("/chat/stream", {"query": QUESTION}),
    ("/api/v1/chat/stream", {"message": QUESTION, "projectId": str(DEFAULT.id)}),
]


class Proxy:
    """`with Proxy(…) as proxy:` the program runs with the adapted example; `proxy.client` trusts its certificate."""

    def __init__(self, command: list[str], folder: Path, *, port: int, plain_port: int) -> None:
        self.port, self.plain_port = port, plain_port
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, stdout=log, stderr=log, env={**os.environ, "HOME": str(folder)}
            )
        self.trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.trust.load_verify_locations(folder / "certificate.pem")
        self.client = httpx2.Client(base_url=f"https://localhost:{port}", verify=self.trust, timeout=30)

    def __enter__(self) -> "Proxy":
        def is_open() -> bool:
            assert self._process.poll() is None, self._log.read_text()
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", self.port)) == 0

        until(is_open, "the proxy listens")
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._process.terminate()
        self._process.wait(timeout=20)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """The example with changes, each of which must find something."""
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text)
        assert count, pattern
    return text


def nginx(folder: Path, upstream: int) -> Proxy:
    port, plain_port = free_port(), free_port()
    site = replaced(
        (DEPLOY / "nginx.conf").read_text(encoding="utf-8"),
        (r"127\.0\.0\.1:8000", f"127.0.0.1:{upstream}"),
        (r"listen 80;", f"listen 127.0.0.1:{plain_port};"),
        (r"listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        (r"\n *listen \[::\].*", ""),
        (r"docs\.example\.org;", "localhost;"),
        (r"ssl_certificate .*", f"ssl_certificate {folder}/certificate.pem;"),
        (r"ssl_certificate_key .*", f"ssl_certificate_key {folder}/key.pem;"),
    )
    (folder / "site.conf").write_text(site)
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if Path("/proc/self").owner() == "root" else ""
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {temporary} include {folder}/site.conf; }}\n"
    )
    command = ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    return Proxy(command, folder, port=port, plain_port=plain_port)


def caddy(folder: Path, upstream: int) -> Proxy:
    port, plain_port = free_port(), free_port()
    site = replaced(
        (DEPLOY / "Caddyfile").read_text(encoding="utf-8"),
        (r"127\.0\.0\.1:8000", f"127.0.0.1:{upstream}"),
        (r"docs\.example\.org \{", f"localhost {{\n\tbind 127.0.0.1\n\ttls {folder}/certificate.pem {folder}/key.pem"),
    )
    ports = f"\tadmin off\n\thttp_port {plain_port}\n\thttps_port {port}\n\tstorage file_system {folder}/storage\n"
    (folder / "Caddyfile").write_text(f"{{\n{ports}}}\n{site}")
    command = ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    return Proxy(command, folder, port=port, plain_port=plain_port)


PROXIES: dict[str, Callable[[Path, int], Proxy]] = {"nginx": nginx, "caddy": caddy}


@pytest.fixture(params=PROXIES)
def in_front(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Proxy]:
    """Starts the proxy in front of a port."""
    name: str = request.param
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost {EXTENSION} {FILES}".split(),
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    return lambda upstream: PROXIES[name](tmp_path, upstream)


@pytest.fixture
def own_pages(pages: Path, tmp_path: Path) -> Path:
    """A home folder of three pages, which may get a key."""
    return copied(pages, tmp_path / "home")


@contextmanager
def serve(home: Path, in_front: Callable[[int], Proxy], **values: object) -> Iterator[tuple[Live, Proxy]]:
    """A server that asks for a key, as one that others can reach must, and the proxy, whose client has one."""
    with live(settings_for(home, embedder="hashing", heartbeat_seconds=0.1, **values)) as server:
        key = server.run(made_key(server.state.stores, scope="admin"))
        with in_front(server.port) as proxy:
            proxy.client.headers["Authorization"] = f"Bearer {key}"
            yield server, proxy


@pytest.mark.parametrize(("endpoint", "body"), STREAMS)
def test_each_event_of_a_stream_goes_through_as_it_comes(
    in_front: Callable[[int], Proxy], own_pages: Path, endpoint: str, body: dict[str, str]
) -> None:
    """Events, and the keep-alives between them, arrive while the search still waits for the test."""
    held = Held()
    with serve(own_pages, in_front) as (server, proxy):
        server.use(index=WaitingIndex(server.well.engines.index, held))
        with proxy.client.stream("POST", endpoint, json=body) as response:
            assert response.status_code == 200, response.read()
            lines = (line for line in response.iter_lines() if line)
            before = [next(lines) for _ in range(4)]
            assert held.waiting == 1
            assert before[-3:] == [": still here"] * 3
            held.release()
            rest = [*before, *lines]
        told = events("\n\n".join(line for line in rest if not line.startswith(":")) + "\n\n")
    assert told[-1]["done"] is True
    assert "uphill" in str(told)


def test_a_large_file_reaches_the_server_and_one_above_the_limit_does_not(
    in_front: Callable[[int], Proxy], own_pages: Path
) -> None:
    limit = Settings.model_fields["max_upload_bytes"].default
    with serve(own_pages, in_front) as (_, proxy):
        read = proxy.client.post(UPLOADS, files={"file": ("a.exe", b"a" * 5_000_000)})
        assert (read.status_code, read.json()["error_code"]) == (415, "UNSUPPORTED_MEDIA")
        refused = proxy.client.post(UPLOADS, files={"file": ("a.md", b"a" * (limit + 200_000))})
        # Caddy passes the head of the request on, so the server may refuse it first, by its declared length; or Caddy
        # 2.6 takes the end of the body for a fault of the server.
        assert refused.status_code in (413, 502)
        listed = proxy.client.get(UPLOADS)
        assert listed.status_code == 200
        assert "a.md" not in listed.text


def test_a_trace_begins_at_the_proxy(
    in_front: Callable[[int], Proxy], own_pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with serve(own_pages, in_front, tracing="otlp") as (_, proxy):
            given = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}
            assert proxy.client.post("/api/ask", json={"question": QUESTION}, headers=given).status_code == 200
    (request,) = collector.named("POST /api/ask")
    assert request.parent == ""


def test_everybody_gets_https_the_pages_and_no_metrics(in_front: Callable[[int], Proxy], own_pages: Path) -> None:
    with serve(own_pages, in_front) as (_, proxy):
        moved = httpx2.get(f"http://localhost:{proxy.plain_port}/chat")
        assert moved.status_code == 308
        assert moved.headers["location"].startswith("https://localhost")
        assert proxy.client.get("/metrics").status_code in (403, 404)
        page = proxy.client.get("/chat")
        assert page.status_code == 200
        assert "strict-transport-security" in page.headers
        own_id = str(uuid4())
        assert proxy.client.get("/ready", headers={"X-Request-ID": own_id}).headers["x-request-id"] == own_id


def test_many_questions_on_kept_connections_all_get_their_answer(
    in_front: Callable[[int], Proxy], own_pages: Path
) -> None:
    with serve(own_pages, in_front) as (_, proxy):
        answers = [proxy.client.post("/api/ask", json={"question": QUESTION}) for _ in range(30)]
        assert {answer.status_code for answer in answers} == {200}

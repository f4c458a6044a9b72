"""Malicious uploads to a real server are refused or stored safely, and nothing is written elsewhere.

The server runs in folders of its own, all of which are watched: where it works, where it puts what is temporary, its
user's home, and what lies around CITEWELL_HOME.
"""

import gzip
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import httpx2
import pytest
import watchfiles

from tests.conftest import serving
from tests.http.conftest import DEFAULT, problem
from tests.ingest.readers.docx_files import package, packed, paragraph

MOST = 12_000_000
PAGE = b"# Pumps\n\nFill the casing with water before the first start.\n"
QUESTION = {"question": "What should I do before the first start?"}
DOCUMENTS = f"/api/v1/projects/{DEFAULT.id}/documents"


@dataclass
class Listener:
    """A loopback address that counts connections."""

    calls: int = 0
    at: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.at.getsockname()[1]}"

    def listen(self) -> None:
        while True:
            try:
                connection, _ = self.at.accept()
            except OSError:
                return
            self.calls += 1
            connection.close()


@dataclass
class Place:
    """A running server, its folder, and the files written there."""

    folder: Path
    http: httpx2.Client
    listener: Listener
    written: set[str] = field(default_factory=set)

    def send(self, name: bytes, content: bytes = PAGE) -> httpx2.Response:
        return self.send_form(part(name, content))

    def send_form(self, *parts: bytes, boundary: str = "bounds", ending: bytes = b"--bounds--\r\n") -> httpx2.Response:
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return self.http.post(DOCUMENTS, content=b"".join(parts) + ending, headers=kind)

    def settled(self) -> dict[str, dict[str, Any]]:
        """Every document by name, once nothing is on its way any more; meanwhile the server answers."""
        while True:
            documents = self.http.get(DOCUMENTS).json()["documents"]
            assert self.http.post("/api/ask", json=QUESTION).status_code in (200, 503)
            if not {"PENDING", "PROCESSING"} & {one["status"] for one in documents}:
                return {document["filename"]: document for document in documents}
            time.sleep(0.1)

    def outside(self) -> set[str]:
        """What was written outside CITEWELL_HOME; a file of our own shows that somebody looks."""
        mark = self.folder / "tmp" / f"mark-{len(self.written)}-{time.monotonic_ns()}"
        mark.touch()
        while str(mark) not in self.written:
            time.sleep(0.01)
        home = str(self.folder / "parent" / "home")
        return {one for one in self.written if not one.startswith(home) and "/tmp/mark-" not in one}


def part(name: bytes, content: bytes, *, field: bytes = b"file") -> bytes:
    """A form with one file, whose name is not escaped."""
    head = b'--bounds\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n' % (field, name)
    return head + content + b"\r\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("around")
    for name in ("parent", "work", "tmp", "user"):
        (folder / name).mkdir()
    listener, stop = Listener(), threading.Event()
    server = serving(
        folder / "parent" / "home",
        folder / "work",
        TMPDIR=str(folder / "tmp"),
        HOME=str(folder / "user"),
        CITEWELL_EMBEDDER="hashing",
        CITEWELL_MAX_UPLOAD_BYTES=str(MOST),
        no_proxy="*",
    )

    with server as address, httpx2.Client(base_url=address, timeout=60) as http:
        place = Place(folder, http, listener)

        def look() -> None:
            for changes in watchfiles.watch(folder, watch_filter=None, stop_event=stop, step=20, rust_timeout=100):
                place.written |= {path for _, path in changes}

        watching = [threading.Thread(target=one) for one in (look, listener.listen)]
        for one in watching:
            one.start()
        yield place
        stop.set()
        listener.at.shutdown(socket.SHUT_RDWR)
        listener.at.close()
        for one in watching:
            one.join()
    assert "Traceback" not in server.log
    assert not list((folder / "parent" / "home" / "spool").glob("*/*")), "nothing put aside is left"


@pytest.fixture(autouse=True)
def nothing_else_is_written_or_called(place: Place) -> Iterator[None]:
    yield
    assert place.outside() == set()
    assert place.listener.calls == 0
    for stray in ("/etc/x.md", "/x.md", "/tmp/x.md"):
        assert not Path(stray).exists()


REFUSED = [
    b"../x.md", b"/etc/x.md", b"..\\x.md", b"..\\\\x.md", b"a/../../x.md", b"a/./x.md", b"a//x.md", b"./x.md",
    b"x.md/", b"..", b".", b"/", b"~/../x.md", b"nul\x00.md", b"x.md\x00.png", b"line\nbreak.md", b"tab\t.md",
    b"x" * 5000 + b".md", "ü".encode() * 200 + b".md", "gnp.\u202edm.md".encode(), "zero\u200bwidth.md".encode(),
    "b\u2066i\u2069di.md".encode(), "\ufeffbom.md".encode(), b".md", b"", b" ", b"x.md.", b"x.md ", b"x.md. .",
    b"x.exe", b"x", b"x.md/..", b"x.MD\x7f",
]  # fmt: skip

STORED = [
    ("CON.md", "CON.md"),
    ("%2e%2e%2fx.md", "%2e%2e%2fx.md"),
    ("..x.md", "..x.md"),
    ("...md.md", "...md.md"),
    ("-rf.md", "-rf.md"),
    ("$(touch x).md", "$(touch x).md"),
    ("'; DROP TABLE documents; --.md", "'; DROP TABLE documents; --.md"),
    ("a b/c.md", "a b/c.md"),
    ("<img src=x onerror=alert(1)>.md", "<img src=x onerror=alert(1)>.md"),
    ("caf\u00e9.md", "caf\u00e9.md"),
    ("cafe\u0301.md", "caf\u00e9.md"),
    ("水泵.md", "水泵.md"),
    ("C:\\a\\..\\..\\plans.md", "plans.md"),
]


@pytest.mark.parametrize("name", REFUSED, ids=lambda name: repr(name[:30]))
def test_a_name_that_is_none_is_refused(place: Place, name: bytes) -> None:
    status, code = problem(place.send(name))
    assert (status, code) in ((400, "VALIDATION_ERROR"), (415, "UNSUPPORTED_MEDIA"))


def test_a_strange_name_is_kept_as_a_name_and_never_becomes_a_file(place: Place) -> None:
    for name, known in STORED:
        sent = place.send(name.encode())
        assert sent.status_code == 202, sent.text
        assert sent.json()["filename"] == known
    held = place.settled()
    for known in {known for _, known in STORED}:
        assert held[known]["status"] == "COMPLETED", held[known]
    home = place.folder / "parent" / "home"
    assert not [one for one in home.rglob("*") if one.suffix in (".md", ".upload") or "touch" in one.name]
    gone = "%2e%2e%2fx.md"
    assert place.http.delete(f"{DOCUMENTS}/{held[gone]['documentId']}").status_code in (202, 204)
    assert set(place.settled()) == set(held) - {gone}


def bomb() -> bytes:
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * 100_000_000)
    return buffer.getvalue()


def hostile(listener: str) -> dict[str, tuple[bytes, str]]:
    """Malformed and malicious contents, and the status that each ends with."""
    word = package(paragraph("Words of a pump."))
    wandering = BytesIO(word)
    with ZipFile(wandering, "a") as archive:
        for member in ("../x.md", "/etc/x.md", "..\\x.md", "word/../../x.md"):
            archive.writestr(member, "escaped")
    remote = f'<Relationship Id="p" Type="image" Target="{listener}/p.png" TargetMode="External"/>'
    entities = (
        f'<!DOCTYPE d [<!ENTITY far SYSTEM "{listener}/e"><!ENTITY near SYSTEM "file:///etc/passwd">'
        f'<!ENTITY % dtd SYSTEM "{listener}/d.dtd"> %dtd;]>'
    )
    laughs = "<!DOCTYPE d [" + '<!ENTITY l0 "ha">'
    laughs += "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10)) + "]>"
    swelling = b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 60))
    document = (
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>'
    )
    closing = "</w:t></w:r></w:p></w:body></w:document>"
    relations = ZipFile(BytesIO(word)).read("_rels/.rels").decode()
    fetching = (
        f"![i]({listener}/i.png) <img src='{listener}/j.png'> <script src='{listener}/s.js'></script>\n"
        f'<link rel="stylesheet" href="{listener}/c.css"> <iframe src="file:///etc/passwd"></iframe>\n'
    )
    including = (
        f".. include:: /etc/passwd\n\n.. raw:: html\n   :url: {listener}/r\n\n.. csv-table::\n   :url: {listener}/t\n\n"
        f".. literalinclude:: /etc/passwd\n\n.. image:: {listener}/i.png\n"
    )
    return {
        "html.pdf": (b"<html><body>No PDF.</body></html>", "FAILED"),
        "cut.pdf": (b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>", "FAILED"),
        "picture.md": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + os.urandom(1000), "FAILED"),
        "packed.md": (gzip.compress(PAGE), "FAILED"),
        "packed.docx": (gzip.compress(word), "FAILED"),
        "text.docx": (PAGE, "FAILED"),
        "bomb.docx": (bomb(), "FAILED"),
        "wandering.docx": (wandering.getvalue(), "COMPLETED"),
        "entities.docx": (
            packed({"_rels/.rels": relations, "word/document.xml": f"{entities}{document}Pump &far;&near;.{closing}"}),
            "any",
        ),
        "laughs.docx": (
            packed({"_rels/.rels": relations, "word/document.xml": f"{laughs}{document}Pump &l9;.{closing}"}),
            "any",
        ),
        "remote.docx": (package(paragraph("Words of a pump.") + remote), "any"),
        "empty.md": (b"", "FAILED"),
        "nothing.txt": (b" \n\t\n", "FAILED"),
        "wide.txt": ("A pump without a mark.".encode("utf-16-le"), "FAILED"),
        "latin.txt": ("Eine Pumpe hört auf.".encode("latin-1"), "FAILED"),
        "long.txt": (b"x" * 10_000_000, "COMPLETED"),
        "deep.html": (b"<div>" * 200_000 + b"pump", "FAILED"),
        "deep.md": (b">" * 50_000 + b" pump\n", "any"),
        "brackets.md": (b"[" * 50_000 + b"\n", "any"),
        "laughs.md": (b"---\na0: &a0 [ha, ha]\n" + swelling + b"---\n\n# Pump\n\nWords.\n", "COMPLETED"),
        "front.md": (b"---\na: " + b"[" * 100_000 + b"\n---\n\n# Pump\n\nWords.\n", "COMPLETED"),
        "fetching.md": (f"# Pump\n\n{fetching}".encode(), "COMPLETED"),
        "fetching.html": (f"<html><body><h1>Pump</h1>{fetching}</body></html>".encode(), "COMPLETED"),
        "including.rst": (f"Pump\n====\n\nWords.\n\n{including}".encode(), "COMPLETED"),
    }


def test_contents_that_lie_are_told_so_and_harm_nothing(place: Place) -> None:
    cases = hostile(place.listener.address)
    for name, (content, _) in cases.items():
        sent = place.send(name.encode(), content)
        assert sent.status_code == 202, (name, sent.text)
    held = place.settled()
    for name, (_, expected) in cases.items():
        document = held[name]
        if expected != "any":
            assert document["status"] == expected, document
        if document["status"] == "FAILED":
            assert document["error"], name
            assert str(place.folder) not in document["error"], "no path of the server's"
        body = place.http.get(f"/api/v1/documents/{document['documentId']}", params={"text": True}).json()
        assert "root:x:" not in (body["text"] or ""), name
        assert "escaped" not in (body["text"] or ""), name
    assert place.http.get("/health").status_code == 200


FORMS: list[tuple[str, tuple[bytes, ...], dict[str, Any]]] = [
    ("two files", (part(b"a.md", PAGE), part(b"b.md", PAGE)), {}),
    ("no file", (part(b"a.md", PAGE, field=b"other"),), {}),
    ("nothing", (), {}),
    ("a text", (b'--bounds\r\nContent-Disposition: form-data; name="file"\r\n\r\nwords\r\n',), {}),
    ("another boundary", (part(b"a.md", PAGE),), {"boundary": "other"}),
    ("no boundary", (part(b"a.md", PAGE),), {"boundary": ""}),
    ("an endless boundary", (part(b"a.md", PAGE),), {"boundary": "b" * 5000}),
    ("cut off", (part(b"a.md", PAGE),), {"ending": b""}),
    ("no headers", (b"--bounds\r\n\r\nwords\r\n",), {}),
    ("headers without end", (b"--bounds\r\n" + b"X-A: b\r\n" * 5000,), {}),
    ("thousands of fields", tuple(part(b"", b"x", field=b"f%d" % n) for n in range(3000)), {}),
    ("thousands of files", tuple(part(b"%d.md" % n, b"x") for n in range(3000)), {}),
    ("garbage", (os.urandom(5000),), {}),
]


@pytest.mark.parametrize(("parts", "how"), [pytest.param(*rest, id=name) for name, *rest in FORMS])
def test_a_form_that_is_not_one_file_is_refused(place: Place, parts: tuple[bytes, ...], how: dict[str, Any]) -> None:
    before = set(place.settled())
    assert problem(place.send_form(*parts, **how)) == (400, "VALIDATION_ERROR")
    assert set(place.settled()) == before


def test_a_file_larger_than_allowed_is_refused_though_its_form_would_pass(place: Place) -> None:
    assert problem(place.send(b"big.txt", b"x" * (MOST + 1))) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize("told", [True, False], ids=["told", "chunked"])
def test_what_is_far_too_large_is_not_taken(place: Place, told: bool) -> None:
    """A declared size is refused at once; an undeclared one when the limit is passed."""
    sent, answer = _pour(str(place.http.base_url), 400_000_000, told=told)
    assert b" 413 " in answer.partition(b"\r\n")[0]
    assert sent < 4 * MOST, "what it may read, and what lies in the buffers of both ends"
    assert place.http.post("/api/ask", json=QUESTION).status_code in (200, 503)


def _pour(address: str, size: int, *, told: bool) -> tuple[int, bytes]:
    """Send a file until the server closes; returns the bytes sent and the response."""
    host, _, port = address.removeprefix("http://").rstrip("/").partition(":")
    length = f"Content-Length: {size}" if told else "Transfer-Encoding: chunked"
    head = (
        f"POST {DOCUMENTS} HTTP/1.1\r\nHost: {host}\r\n{length}\r\n"
        "Content-Type: multipart/form-data; boundary=bounds\r\n\r\n"
    )
    piece = b"x" * 100_000
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head.encode())
        first = part(b"big.txt", b"")[:-2]
        sent, answer = 0, b""
        try:
            connection.sendall(first if told else b"%x\r\n%s\r\n" % (len(first), first))
            while sent < size and not answer:
                connection.sendall(piece if told else b"%x\r\n%s\r\n" % (len(piece), piece))
                sent += len(piece)
                connection.setblocking(False)
                with suppress(BlockingIOError):
                    answer = connection.recv(65536)
                connection.settimeout(20)
            while sent < size:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:  # it hung up; what it said before is still there
            with suppress(OSError):
                answer = answer or connection.recv(65536)
        return sent, answer


def test_an_upload_that_cannot_replace_a_document_says_that_the_old_one_answers(place: Place) -> None:
    place.send(b"kept.md", b"# Kettles\n\nA kettle whistles when the tea water boils.\n")
    assert place.settled()["kept.md"]["status"] == "COMPLETED"
    place.send(b"kept.md", b"\0\1\2\3")
    failed = place.settled()["kept.md"]
    assert failed["status"] == "FAILED"
    assert failed["error"] == "a binary file, not text; answers still come from the version that was indexed before"
    assert failed["chunkCount"] == 1
    asked = place.http.post("/api/ask", json={"question": "When does a kettle whistle?"}).json()
    assert "when the tea water boils" in asked["answer"]
    place.send(b"never.md", b"\0\1\2\3")
    assert place.settled()["never.md"]["error"] == "a binary file, not text"

"""What tests share: the example book, ingested once through the real engines, and ways to ask it."""

import asyncio
import fcntl
import gc
import os
import re
import shutil
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from pathlib import Path
from sqlite3 import connect
from threading import Thread
from uuid import UUID

import pytest
from hypothesis import settings as hypothesis_settings

from citewell import wiring
from citewell.adapters.qdrant_edge.sparse_files import copy_sparse
from citewell.adapters.sql.database import Database
from citewell.answer import flow
from citewell.answer.reply.markers import NumberedMarkers
from citewell.ingest.flow import ingest
from citewell.ingest.walk import FileRules
from citewell.models import (
    DEFAULT_PROJECT,
    NO_FILTERS,
    Answer,
    Chunk,
    Document,
    Exchange,
    Filters,
    IngestResult,
    Passage,
    Project,
)
from citewell.settings import Settings
from tests import commands
from tests.fakes.postgres import CannotStart, PostgresServer

BOOK = Path(__file__).parents[1] / "examples" / "robotics-book"
PROJECT = Project.named(DEFAULT_PROJECT)

os.environ.pop("DATABASE_URL", None)  # whoever has one set does not want tests in it
for name in ("QDRANT_URL", "QDRANT_API_KEY"):  # a real server is for the contract of the index alone
    if name in os.environ:
        os.environ[f"REAL_{name}"] = os.environ.pop(name)
os.environ["CITEWELL_READER"] = "none"  # reading takes a tenth of a second; tests of what is read turn it on

Citewell = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_configure() -> None:
    # A busy machine takes its time: no example has a deadline.
    hypothesis_settings.register_profile("citewell", deadline=None)
    hypothesis_settings.load_profile("citewell")
    # Commands hear Ctrl-C, also where whatever runs the tests does not: a shell's job in the background, for one.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Every client makes one, reading all certificates of the machine for it.
    pytest.MonkeyPatch().setattr(ssl, "create_default_context", cache(ssl.create_default_context))


def pytest_collection_finish() -> None:
    """All that was loaded by now stays: nobody need look again and again whether it is garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def book_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder that holds the example book. Nobody changes it."""
    return made_once(tmp_path_factory, "book", lambda home: take_in(home, BOOK))


@pytest.fixture
def own_book_home(tmp_path: Path, book_home: Path) -> Path:
    """A copy of it, to be changed at will."""
    return copied(book_home, tmp_path / "home")


def copied(source: Path, home: Path) -> Path:
    """A copy of a home folder that others may have open."""
    # The database is copied by its engine; the index never changes, and is mostly holes.
    copy_sparse(source / "index", home / "index")
    with closing(connect(source / "citewell.db")) as theirs, closing(connect(home / "citewell.db")) as ours:
        theirs.backup(ours)
    return home


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], IngestResult | None]) -> Path:
    """A home folder for the whole run, made by the worker that needs it first; the others wait for it.

    Each worker has a copy: only one process opens an index where it lies, every other would copy it each time.
    """
    run, alone = factory.getbasetemp(), "PYTEST_XDIST_WORKER" not in os.environ
    if not alone:
        run = run.parent  # what a worker takes for the run's folder is its own, in there
    home, making = run / name, run / f"{name}.partial"
    with (run / f"{name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            shutil.rmtree(making, ignore_errors=True)
            made = make(making)
            assert made is None or made.errors == ()
            making.rename(home)
        return home if alone else copied(home, factory.mktemp(name) / "home")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with three small pages, to be changed at will."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "01-pumps.md").write_text(
        "# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nFill the casing with water before the first start.\n"
    )
    (folder / "02-valves.md").write_text(
        "# Valves\n\nA valve stops the flow.\n\n## Leaks\n\nReplace the gasket yearly.\n"
    )
    (folder / "03-pipes.mdx").write_text("---\ntitle: Pipes\n---\n\nCopper pipes carry hot water.\n")
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real PostgreSQL. A test that stops or freezes it must bring it back."""
    try:
        server = PostgresServer()
    except CannotStart as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """An empty database in PostgreSQL."""
    return postgres_server.create()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """What DATABASE_URL is: nothing, and in a second run of the test a new database with its tables in PostgreSQL."""
    if request.param == "sqlite":
        return None
    return ready(request.getfixturevalue("postgres_server"))


@pytest.fixture
def database(database_url: str | None, home: Path) -> Path | str:
    """Where `Database.open` finds a new database on either engine: the one that `home` and `database_url` mean."""
    return database_url or home / "citewell.db"


def ready(server: PostgresServer) -> str:
    """The URL of a new database that has its tables: a copy, for that is quicker than making them."""
    template = "citewell_template"
    if not server.has(template):

        async def prepare() -> None:
            await (await Database.open(server.create(name=template))).close()

        with ThreadPoolExecutor(1) as aside:  # a loop may run in this thread already
            aside.submit(asyncio.run, prepare()).result()
    return server.create(template=template)


def settings_for(home: Path, **values: object) -> Settings:
    """The database is the one that a test has put into the environment, as for commands; else SQLite."""
    return Settings.model_validate({"home": home, "database_url": os.environ.get("DATABASE_URL"), **values})


def take_in(
    home: Path,
    *paths: Path,
    project: str = DEFAULT_PROJECT,
    prune: bool = False,
    rules: FileRules | None = None,
    base_url: str | None = None,
    whole_documents: bool = False,
    embedder: str = "minilm",
) -> IngestResult:
    """Ingest as the command line does."""

    async def run() -> IngestResult:
        settings = settings_for(home, embedder=embedder)
        async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
            return await ingest(
                paths,
                project=Project.named(project),
                engines=engines,
                recipe=wiring.ingest_recipe(settings, base_url=base_url, whole_documents=whole_documents),
                prune=prune,
                rules=rules,
                progress=lambda *_: None,
            )

    return asyncio.run(run())


def ask(
    home: Path,
    question: str,
    *,
    project: str = DEFAULT_PROJECT,
    top_k: int = 5,
    history: Sequence[Exchange] = (),
    where: Filters = NO_FILTERS,
    **settings: object,
) -> tuple[str, Answer]:
    """The answer's text with numbered marks, and the answer."""

    async def run() -> tuple[str, Answer]:
        async with wiring.open_for_answers(settings_for(home, **settings)) as reading:
            named, engines = Project.named(project), reading.engines
            pieces = flow.answer(question, project=named, engines=engines, top_k=top_k, history=history, filters=where)
            return await flow.collect(pieces, NumberedMarkers().render)

    return asyncio.run(run())


def chunk_of(text: str, *, number: int = 0) -> Chunk:
    """A chunk for a pure step: a document of its own that says only this."""
    return Chunk(
        id=f"{number}",
        document_id=UUID(int=number + 1),
        content_hash="",
        index=0,
        source=f"{number}.md",
        chapter="Waterworks",
        section="",
        headings=(),
        text=text,
        start=0,
        end=len(text),
        first_line=1,
        last_line=1 + text.count("\n"),
    )


def find(home: Path, words: str, *, project: str = DEFAULT_PROJECT) -> list[Passage]:
    return list(ask(home, words, project=project, top_k=20)[1].retrieved)


def document(home: Path, passage: Passage) -> Document | None:
    async def run() -> Document | None:
        async with wiring.open_for_answers(settings_for(home)) as reading:
            return await reading.library.document(passage.chunk.document_id)

    return asyncio.run(run())


def chunk_ids(home: Path) -> list[str]:
    """Every chunk id in the library, and a check that the index holds exactly these."""

    async def run() -> tuple[list[str], int]:
        async with wiring.open_for_answers(settings_for(home)) as reading:
            stored = [chunk.id async for batch in reading.library.chunks() for _, chunk in batch]
            total, _ = await reading.engines.index.frequencies(PROJECT.id, [])
            return stored, total

    stored, indexed = asyncio.run(run())
    assert indexed == len(stored), "the index holds what the library holds"
    return sorted(stored)


@pytest.fixture
def citewell(home: Path, tmp_path: Path) -> Citewell:
    """Runs the command as a person would, in a folder of its own."""

    def run(
        *arguments: str, home: Path = home, typed: str = "", **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        return commands.run(
            *arguments,
            typed=typed,
            cwd=tmp_path,
            timeout=120,
            env={**os.environ, "CITEWELL_HOME": str(home), **environment},
        )

    return run


@pytest.fixture
def server(book_home: Path) -> Iterator[str]:
    """A real server on loopback over the example book; gives its address."""
    with serving(book_home) as address:
        yield address


class serving:  # noqa: N801 (reads as a verb where it is used)
    """`with serving(home) as address:` runs `citewell serve` in a process of its own."""

    def __init__(self, home: Path, cwd: Path | None = None, /, **environment: str) -> None:
        told, telling = os.pipe()
        with os.fdopen(telling, "wb") as stderr:
            self._process = commands.Command(
                *("serve", "--port", "0"),
                cwd=cwd or Path.cwd(),
                stderr=stderr,
                env={**os.environ, "CITEWELL_HOME": str(home), "CITEWELL_LOG_FORMAT": "text", **environment},
            )
        self._told = os.fdopen(told, encoding="utf-8")
        self.log = ""
        self._reading = Thread(target=self._read_on)

    def __enter__(self) -> str:
        for line in self._told:
            self.log += line
            if found := re.search(r"open (http://[^/]+)/chat", line):
                self._reading.start()
                return found[1]
        raise AssertionError(f"the server did not start: {self.log}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> int:
        """The code that it ends with."""
        return self._process.wait(timeout=20)

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=20)
        self._reading.join()

    def _read_on(self) -> None:
        """A server whose log nobody reads stands still once the pipe is full."""
        with self._told as log:
            for line in log:
                self.log += line


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", metavar="FOLDER", help="Keep a picture of every state of the pages here.")

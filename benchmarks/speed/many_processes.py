"""Do several servers and workers on one PostgreSQL lose or double anything?

    python benchmarks/speed/many_processes.py [--apis 3] [--workers 2] [--uploads 500] [--questions 5000] [--kill]
        [--database-url URL]

Starts `citewell serve --no-worker` and `citewell worker --forever` on one home folder and one database (default: a
PostgreSQL of its own), sends uploads and questions to them interleaved, a tenth of the questions twice, to two servers.
Then it counts: every document COMPLETED and indexed once, every exchange stored once. `--kill` kills a worker and the
database in the middle. Exit code 1 if anything is missing or there twice.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from uuid import uuid4

import httpx2

from citewell.models import Project

ROOT = Path(__file__).parents[2]
PROJECTS = ("default", "pumps", "valves")
"""Questions are asked in the first."""
_RETRIED = 0.1
_ASKING, _UPLOADING = 6, 2
_ATTEMPTS = 60


@dataclass
class Outcome:
    """What was sent, and what was found afterwards."""

    uploads: int
    questions: int
    apis: int
    workers: int
    seconds: float = 0.0
    retried_requests: int = 0
    """Answered with 429 or 503, or not at all, and sent again."""
    sent_twice: int = 0
    completed: int = 0
    failed: list[str] = field(default_factory=list)
    indexed_twice: list[str] = field(default_factory=list)
    """By what the workers say, after each document that they have finished."""
    exchanges: int = 0
    exchanges_doubled: int = 0
    answers_that_differ: int = 0
    """Retries that were told another request id than the first try."""
    problems: list[str] = field(default_factory=list)
    """What `citewell doctor` finds; not the generation that a server had open when the last one was published."""

    @property
    def is_complete(self) -> bool:
        wrong = [
            *(self.failed, self.indexed_twice, self.problems),
            *(self.exchanges_doubled, self.answers_that_differ),
        ]
        return not any(wrong) and (self.completed, self.exchanges) == (self.uploads, self.questions)


class Fleet:
    """The processes, on one home folder and one database."""

    def __init__(self, home: Path, database_url: str) -> None:
        self._environment = {
            **os.environ,
            "CITEWELL_HOME": str(home),
            "DATABASE_URL": database_url,
            "CITEWELL_EMBEDDER": "hashing",
            "CITEWELL_READER": "none",
            "CITEWELL_LOG_FORMAT": "text",
            "CITEWELL_THREADS": "1",
        }
        self._folder = home.parent
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.addresses: list[str] = []

    def start_worker(self) -> None:
        self.workers.append(self._start(f"worker-{len(self.workers)}", "worker", "--forever"))

    async def start_server(self) -> None:
        name = f"server-{len(self.addresses)}"
        process = self._start(name, "serve", "--no-worker", "--port", "0")
        for _ in range(1200):
            if ready := re.search(r"open (http://[^/]+)/chat", (self._folder / name).read_text()):
                self.addresses.append(ready[1])
                return
            if process.poll() is not None:
                break
            await asyncio.sleep(0.1)
        raise SystemExit(f"a server did not start: {(self._folder / name).read_text()}")

    def run(self, *command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "citewell", *command],
            capture_output=True,
            text=True,
            env=self._environment,
            check=False,
        )
        return (done.stdout + done.stderr).strip()

    def indexed(self) -> Counter[str]:
        """How often the workers said that they indexed each path."""
        logs = [(self._folder / f"worker-{number}").read_text() for number in range(len(self.workers))]
        return Counter(re.findall(r"^(.+) indexed$", "\n".join(logs), re.MULTILINE))

    def stop(self) -> list[int]:
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        return [process.wait(timeout=60) for process in self._processes]

    def _start(self, name: str, *command: str) -> "subprocess.Popen[bytes]":
        with (self._folder / name).open("wb") as log:
            environment = {**self._environment, "PYTHONUNBUFFERED": "1"}
            process = subprocess.Popen(
                [sys.executable, "-m", "citewell", *command], stdout=log, stderr=log, env=environment
            )
        self._processes.append(process)
        return process


class Clients:
    """Sends everything, again where it must be, and counts what comes back."""

    def __init__(self, client: httpx2.AsyncClient, addresses: list[str], outcome: Outcome) -> None:
        self._client = client
        self._addresses = addresses
        self._outcome = outcome
        self._chance = random.Random(7)
        self.sessions = [str(uuid4()) for _ in range(max(1, outcome.questions // 50))]
        self._turn = 0
        self.answered = 0

    async def create_projects(self) -> None:
        for name in PROJECTS[1:]:
            await self._send("POST", "/api/v1/projects", json={"name": name})

    async def upload(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            name = PROJECTS[number % len(PROJECTS)]
            text = f"# {name.title()} {number}\n\nPart {number} of the {name} turns {number} times a minute.\n"
            file = (f"{number:04}.md", text.encode(), "text/markdown")
            project = Project.named(name).id
            await self._send("POST", f"/api/v1/projects/{project}/documents", files={"file": file})

    async def ask(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            body = {"query": f"How often does part {number} turn?", "session_id": self.session_of(number)}
            key = {"Idempotency-Key": f"question {number}"}
            first = await self._send("POST", "/chat", json=body, headers=key)
            self.answered += 1
            if self._chance.random() < _RETRIED:
                self._outcome.sent_twice += 1
                again = await self._send("POST", "/chat", json=body, headers=key)
                ids = {answer.json()["metadata"]["request_id"] for answer in (first, again)}
                self._outcome.answers_that_differ += len(ids) - 1

    def session_of(self, number: int) -> str:
        return self.sessions[number % len(self.sessions)]

    async def documents(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = []
        for name in PROJECTS:
            found += (await self._send("GET", f"/api/v1/projects/{Project.named(name).id}/documents")).json()[
                "documents"
            ]
        return found

    async def exchanges(self) -> Counter[str]:
        found = Counter[str]()
        for session in self.sessions:
            history = (await self._send("GET", f"/history/{session}?limit=1000")).json()
            found.update(entry["query"] for entry in history["entries"])
        return found

    async def _send(self, method: str, path: str, **body: object) -> httpx2.Response:
        """The answer of the server whose turn it is; of the next one while it is busy or has no database."""
        for attempt in range(_ATTEMPTS):
            self._turn += 1
            address = self._addresses[self._turn % len(self._addresses)]
            try:
                answer = await self._client.request(method, address + path, **body)  # type: ignore[arg-type]
            except httpx2.TransportError:
                answer = None
            if answer is not None and answer.status_code < 400:
                return answer
            if answer is not None and answer.status_code not in (429, 503):
                raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text}")
            self._outcome.retried_requests += 1
            await asyncio.sleep(min(2.0, 0.1 * 2**attempt))
        raise SystemExit(f"{method} {path}: no answer in {_ATTEMPTS} attempts")


async def measure(outcome: Outcome, fleet: Fleet, *, faults: "Faults | None" = None) -> Outcome:
    """Send everything, wait until it is indexed, and count."""
    for _ in range(outcome.workers):
        fleet.start_worker()
    for _ in range(outcome.apis):
        await fleet.start_server()
    async with httpx2.AsyncClient(timeout=120) as client:
        clients = Clients(client, fleet.addresses, outcome)
        started_at = monotonic()
        uploads, questions = iter(range(outcome.uploads)), iter(range(outcome.questions))
        await clients.create_projects()
        await clients.upload(iter([next(uploads)]))  # a question to an empty index is an error
        await _until_indexed(clients, 1)
        work = [clients.upload(uploads) for _ in range(_UPLOADING)] + [clients.ask(questions) for _ in range(_ASKING)]
        tasks = [asyncio.create_task(one) for one in work]
        if faults:
            tasks.append(asyncio.create_task(faults.happen(fleet, clients, outcome.questions)))
        await asyncio.gather(*tasks)
        await _until_indexed(clients, outcome.uploads)
        outcome.seconds = round(monotonic() - started_at, 1)
        await _count(clients, fleet, outcome)
    lines = fleet.run("doctor").splitlines()
    outcome.problems = [line for line in lines if not re.search(r"is left over$|^Run `|^All is well", line)]
    return outcome


@dataclass
class Faults:
    """Kills a worker, starts another one, and restarts the database, while everything runs."""

    restart_database: Callable[[], None]

    async def happen(self, fleet: Fleet, clients: Clients, questions: int) -> None:
        while clients.answered < questions // 3:
            await asyncio.sleep(0.01)
        fleet.workers[0].send_signal(signal.SIGKILL)
        fleet.start_worker()
        while clients.answered < questions * 2 // 3:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(self.restart_database)


async def _until_indexed(clients: Clients, expected: int) -> None:
    deadline = monotonic() + 1500
    while monotonic() < deadline:
        documents = await clients.documents()
        if sum(row["status"] in ("COMPLETED", "FAILED") for row in documents) >= expected:
            return
        await asyncio.sleep(1)
    raise SystemExit("the uploads are not indexed in time")


async def _count(clients: Clients, fleet: Fleet, outcome: Outcome) -> None:
    documents = await clients.documents()
    outcome.completed = sum(row["status"] == "COMPLETED" for row in documents)
    outcome.failed = [f"{row['filename']}: {row['error']}" for row in documents if row["status"] == "FAILED"]
    outcome.indexed_twice = [path for path, times in fleet.indexed().items() if times > 1]
    found = await clients.exchanges()
    outcome.exchanges = len(found)
    outcome.exchanges_doubled = sum(times - 1 for times in found.values())


@contextmanager
def database(url: str | None) -> Iterator[tuple[str, Callable[[], None]]]:
    """The URL of the database, and how to restart it: of a PostgreSQL that ends with this program if none is given."""
    if url:
        yield url, lambda: None
        return
    sys.path.insert(0, str(ROOT))
    from tests.fakes.postgres import PostgresServer

    server = PostgresServer()
    try:
        yield server.create(name="many"), server.restart
    finally:
        server.remove()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("apis", 3), ("workers", 2), ("uploads", 500), ("questions", 5000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--database-url")
    options = parser.parse_args()
    outcome = Outcome(options.uploads, options.questions, options.apis, options.workers)
    with database(options.database_url) as (url, restart), tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder) / "home", url)
        try:
            asyncio.run(measure(outcome, fleet, faults=Faults(restart) if options.kill else None))
        finally:
            codes = fleet.stop()
    print(json.dumps({**asdict(outcome), "exit_codes": codes}, indent=2))
    sys.exit(0 if outcome.is_complete else 1)


if __name__ == "__main__":
    main()

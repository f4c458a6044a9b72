"""How many questions a second the server answers, and how long the slow ones take, beside a route that does nothing.

    python benchmarks/speed/load.py FOLDER [--seconds N] [--clients 1 10 50] [--embedder hashing] [--database-url URL]

Needs `wrk` (Debian: apt-get install wrk). FOLDER is ingested into a home of its own; then, for each number of
clients in turn, wrk asks an empty FastAPI route, `/api/ask` and `/chat`, each server in a process of its own under the
same uvicorn. Machines differ and are busy: read the ratios to the empty route.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import sleep

QUESTIONS = [
    "Why do gyroscopes drift?",
    "How do I calibrate a camera?",
    "What is a capture point?",
    "How long does a chicken roast?",
]

# wrk's own language. Percentiles are in microseconds; `status` counts everything that is not 2xx or 3xx.
_SCRIPT = """
local bodies = {%s}
local turn = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
function request()
  turn = turn %% #bodies + 1
  return wrk.format(nil, nil, nil, bodies[turn])
end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('RESULT {"requests": %%d, "seconds": %%f, "p50_ms": %%f, "p95_ms": %%f, "errors": %%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(95) / 1e3,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


@dataclass(frozen=True, slots=True)
class Measured:
    door: str
    clients: int
    per_second: float
    p50_ms: float
    p95_ms: float
    errors: int


def serve_empty(port: int) -> None:
    """What FastAPI and uvicorn cost alone: a body is read and checked, a small one is written."""
    import uvicorn
    from fastapi import FastAPI

    from citewell.schemas.ask import AskRequest

    app = FastAPI()

    @app.post("/empty")
    async def empty(body: AskRequest) -> dict[str, str]:
        return {"answer": body.question}

    uvicorn.run(app, port=port, log_config=None, access_log=False)


@contextmanager
def started(command: list[str], port: int, *, environment: dict[str, str] | None = None) -> Iterator[str]:
    """The address of a server in a process of its own; what it logs goes to a file, as in production."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stderr=log, env={**os.environ, **(environment or {})})
        try:
            while not _listens(port):
                if process.poll() is not None:
                    log.seek(0)
                    sys.exit(f"{' '.join(command)} did not start: {log.read()}")
                sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def load(address: str, door: str, field: str, *, clients: int, seconds: int) -> Measured:
    bodies = ", ".join(json.dumps(json.dumps({field: question})) for question in QUESTIONS)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(_SCRIPT % bodies)
        script.flush()
        command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "-s", script.name]
        done = subprocess.run([*command, f"{address}{door}"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout.partition("RESULT ")[2])
    return Measured(
        door, clients, told["requests"] / told["seconds"], told["p50_ms"], told["p95_ms"], int(told["errors"])
    )


def report(rows: list[Measured]) -> None:
    print(f"{'clients':>7}  {'door':<10} {'req/s':>8} {'p50 ms':>8} {'p95 ms':>8} {'errors':>6}  of the empty route")
    empty = {row.clients: row for row in rows if row.door == "/empty"}
    for row in rows:
        base = empty[row.clients]
        ratio = f"{row.per_second / base.per_second:.3f} of its req/s, {row.p95_ms / base.p95_ms:.1f} times its p95"
        print(
            f"{row.clients:>7}  {row.door:<10} {row.per_second:>8.1f} {row.p50_ms:>8.1f} {row.p95_ms:>8.1f} "
            f"{row.errors:>6}  {ratio if row is not base else ''}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 10, 50])
    parser.add_argument("--embedder", choices=["minilm", "hashing"], default="minilm")
    parser.add_argument("--database-url", help="a PostgreSQL instead of SQLite")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--empty", type=int, metavar="PORT", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.empty:
        serve_empty(told.empty)
        return
    if not told.folder:
        parser.error("FOLDER is missing: the documents to ask")
    if not shutil.which("wrk"):
        sys.exit("this needs wrk, a load generator; install it with `apt-get install wrk` (macOS: `brew install wrk`)")
    rows: list[Measured] = []
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "CITEWELL_HOME": home,
            "CITEWELL_EMBEDDER": told.embedder,
            "CITEWELL_MAX_CONCURRENT_REQUESTS": str(2 * max(told.clients)),
        } | ({"DATABASE_URL": told.database_url} if told.database_url else {})
        citewell = [sys.executable, "-m", "citewell"]
        subprocess.run(
            [*citewell, "ingest", str(told.folder)], check=True, env={**os.environ, **environment}, stdout=sys.stderr
        )
        ports = _free_port(), _free_port()
        empty = [sys.executable, __file__, "--empty", str(ports[0])]
        serve = [*citewell, "serve", "--port", str(ports[1])]
        with started(empty, ports[0]) as nothing, started(serve, ports[1], environment=environment) as address:
            load(address, "/chat", "query", clients=1, seconds=1)  # the first ones load what the rest find loaded
            for clients in told.clients:
                for at, door, field in (
                    (nothing, "/empty", "question"),
                    (address, "/api/ask", "question"),
                    (address, "/chat", "query"),
                ):
                    rows.append(load(at, door, field, clients=clients, seconds=told.seconds))
    if told.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        report(rows)


if __name__ == "__main__":
    main()

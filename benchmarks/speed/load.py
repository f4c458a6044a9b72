"""Requests per second and latency of the HTTP endpoints, compared with a route that does nothing.

    python benchmarks/speed/load.py FOLDER [--seconds N] [--clients 1 10 50] [--embedder hashing] [--database-url URL]

Needs `wrk` (Debian: apt-get install wrk). FOLDER is ingested into a temporary home; then, for each number of clients,
wrk sends requests to an empty FastAPI route, `/api/ask` and `/chat`, each server in its own process under the same
uvicorn. Machines differ and are busy: read the ratios to the empty route.
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

# Lua, for wrk. Percentiles are in microseconds; `status` counts everything that is not 2xx or 3xx.
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
class Measurement:
    endpoint: str
    clients: int
    per_second: float
    p50_ms: float
    p95_ms: float
    errors: int


def serve_empty(port: int) -> None:
    """A server with an empty route: the cost of FastAPI and uvicorn alone."""
    import uvicorn
    from fastapi import FastAPI

    from citewell.schemas.ask import AskRequest

    app = FastAPI()

    @app.post("/empty")
    async def empty(body: AskRequest) -> dict[str, str]:
        return {"answer": body.question}

    uvicorn.run(app, port=port, log_config=None, access_log=False)


@contextmanager
def start_server(command: list[str], port: int, *, environment: dict[str, str] | None = None) -> Iterator[str]:
    """Start a server process and give its address; its log goes to a file, as in production."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stderr=log, env={**os.environ, **(environment or {})})
        try:
            while not _is_listening(port):
                if process.poll() is not None:
                    log.seek(0)
                    sys.exit(f"{' '.join(command)} did not start: {log.read()}")
                sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def _is_listening(port: int) -> bool:
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


def run_wrk(address: str, endpoint: str, field: str, *, clients: int, seconds: int) -> Measurement:
    bodies = ", ".join(json.dumps(json.dumps({field: question})) for question in QUESTIONS)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(_SCRIPT % bodies)
        script.flush()
        command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "-s", script.name]
        done = subprocess.run([*command, f"{address}{endpoint}"], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.partition("RESULT ")[2])
    return Measurement(
        endpoint,
        clients,
        result["requests"] / result["seconds"],
        result["p50_ms"],
        result["p95_ms"],
        int(result["errors"]),
    )


def report(rows: list[Measurement]) -> None:
    print(
        f"{'clients':>7}  {'endpoint':<10} {'req/s':>8} {'p50 ms':>8} {'p95 ms':>8} {'errors':>6}  of the empty route"
    )
    baselines = {row.clients: row for row in rows if row.endpoint == "/empty"}
    for row in rows:
        base = baselines[row.clients]
        ratio = f"{row.per_second / base.per_second:.3f} of its req/s, {row.p95_ms / base.p95_ms:.1f} times its p95"
        print(
            f"{row.clients:>7}  {row.endpoint:<10} {row.per_second:>8.1f} {row.p50_ms:>8.1f} {row.p95_ms:>8.1f} "
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
    options = parser.parse_args()
    if options.empty:
        serve_empty(options.empty)
        return
    if not options.folder:
        parser.error("FOLDER is missing: a folder of documents")
    if not shutil.which("wrk"):
        sys.exit("this needs wrk, a load generator; install it with `apt-get install wrk` (macOS: `brew install wrk`)")
    rows: list[Measurement] = []
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "CITEWELL_HOME": home,
            "CITEWELL_EMBEDDER": options.embedder,
            "CITEWELL_MAX_CONCURRENT_REQUESTS": str(2 * max(options.clients)),
        } | ({"DATABASE_URL": options.database_url} if options.database_url else {})
        citewell = [sys.executable, "-m", "citewell"]
        subprocess.run(
            [*citewell, "ingest", str(options.folder)], check=True, env={**os.environ, **environment}, stdout=sys.stderr
        )
        ports = _free_port(), _free_port()
        empty = [sys.executable, __file__, "--empty", str(ports[0])]
        serve = [*citewell, "serve", "--port", str(ports[1])]
        with (
            start_server(empty, ports[0]) as nothing,
            start_server(serve, ports[1], environment=environment) as address,
        ):
            run_wrk(address, "/chat", "query", clients=1, seconds=1)  # warm up: the first requests load the model
            for clients in options.clients:
                for server, endpoint, field in (
                    (nothing, "/empty", "question"),
                    (address, "/api/ask", "question"),
                    (address, "/chat", "query"),
                ):
                    rows.append(run_wrk(server, endpoint, field, clients=clients, seconds=options.seconds))
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        report(rows)


if __name__ == "__main__":
    main()

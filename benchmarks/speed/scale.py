"""Parsing speed, memory of a large ingest, and safety when processes are killed.

python benchmarks/speed/scale.py parse FOLDER          parse-only throughput of a folder's Markdown
python benchmarks/speed/scale.py ingest --megabytes N  time and peak memory of a large ingest, with the hashing embedder
python benchmarks/speed/scale.py kill --rounds N       kill -9 at random moments across ingest, plan, publish and delete
"""

import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from citewell import wiring
from citewell.ingest.read_ahead import read_ahead
from citewell.ingest.walk import walk
from citewell.models import Project
from citewell.settings import Settings

CITEWELL = str(Path(sys.executable).with_name("citewell"))
WORDS = [
    f"{first}{second}"
    for first in ["pump", "valve", "rotor", "sensor", "joint", "motor", "gear"]
    for second in ("", "s", "ing")
]


def parse(folder: Path) -> None:
    """Read the files repeatedly, 20 MB in total, so that starting workers takes little of the time."""

    async def run() -> tuple[int, float]:
        files = [file for file in walk([folder]).files if file.path.endswith((".md", ".mdx"))]
        size = sum(file.location.stat().st_size for file in files)
        many = files * max(1, 20_000_000 // size)
        began = time.perf_counter()
        async for _ in read_ahead(many, project=Project.named("benchmark"), recipe=wiring.ingest_recipe(Settings())):
            pass
        return size * (len(many) // len(files)), time.perf_counter() - began

    size, seconds = asyncio.run(run())
    print(f"{size / 1e6:.1f} MB of Markdown parsed and cut in {seconds:.1f} s: {size / 1e6 / seconds:.1f} MB/s")


def page(rng: random.Random, size: int) -> str:
    parts = [f"# Page {rng.random()}\n"]
    while sum(map(len, parts)) < size:
        sentences = (" ".join(rng.choices(WORDS, k=12)).capitalize() + f" {rng.randrange(10**6)}." for _ in range(45))
        parts.append(f"\n## Part {len(parts)}\n\n{' '.join(sentences)}\n")
    return "".join(parts)


def ingest(megabytes: int) -> None:
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder, "docs")
        docs.mkdir()
        texts = [page(rng, 1_000_000) for _ in range(10)]
        for number in range(megabytes):
            (docs / f"{number:05d}.md").write_text(
                texts[number % 10].replace("pump", f"pump{number}"), encoding="utf-8"
            )
        environment = {**os.environ, "CITEWELL_HOME": f"{folder}/home", "CITEWELL_EMBEDDER": "hashing"}
        began = time.perf_counter()
        done = subprocess.run(
            [CITEWELL, "ingest", str(docs), "--json"], env=environment, check=True, capture_output=True, text=True
        )
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        result = json.loads(done.stdout)
        print(
            f"{megabytes} MB, {result['chunks_created']} chunks in {seconds:.0f} s; "
            f"peak memory of a process {peak:.0f} MB"
        )


def kill(rounds: int) -> None:
    """Kill commands at random moments, then check that the index is that of an undisturbed run."""
    rng = random.Random(rounds)
    with tempfile.TemporaryDirectory() as folder:
        home, docs = Path(folder, "home"), Path(folder, "docs")
        docs.mkdir()
        environment = {**os.environ, "CITEWELL_HOME": str(home), "CITEWELL_EMBEDDER": "hashing"}

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run([CITEWELL, *arguments], env=environment, capture_output=True, text=True, check=False)

        for number in range(40):
            (docs / f"{number:02d}.md").write_text(page(rng, 20_000), encoding="utf-8")
        assert run("ingest", str(docs)).returncode == 0
        unserved = killed = 0
        for number in range(rounds):
            for path in rng.sample(sorted(docs.iterdir()), 3):
                path.write_text(page(rng, 20_000), encoding="utf-8")
            action = rng.choice(["ingest", "ingest", "plan", "delete", "doctor"])
            arguments = {
                "ingest": ["ingest", str(docs), "--prune"],
                "plan": ["ingest", str(docs), "--plan"],
                "delete": ["documents", "delete", f"{rng.randrange(40):02d}.md"],
                "doctor": ["doctor", "--fix"],
            }[action]
            process = subprocess.Popen(
                [CITEWELL, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(rng.uniform(0.1, 1.6))
            killed += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
            unserved += run("search", "valve rotor").returncode != 0
            print(f"\r{number + 1} of {rounds}", end="", flush=True)
        assert run("ingest", str(docs), "--prune").returncode == 0
        assert run("doctor").stdout.strip() == "All is well.", run("doctor").stdout
        fresh = Path(folder, "fresh")
        listed = run("documents", "list", "--json").stdout
        environment["CITEWELL_HOME"] = str(fresh)
        assert run("ingest", str(docs)).returncode == 0
        fields = ("path", "id", "chunks", "characters")
        ours, undisturbed = (
            [[document[key] for key in fields] for document in json.loads(text)]
            for text in (listed, run("documents", "list", "--json").stdout)
        )
        assert ours == undisturbed, "the index differs from an undisturbed one"
        shutil.rmtree(fresh)
        print(f"\r{rounds} rounds, {killed} killed while running, {unserved} searches unserved; ends as if undisturbed")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("parse").add_argument("folder", type=Path)
    kinds.add_parser("ingest").add_argument("--megabytes", type=int, default=1000)
    kinds.add_parser("kill").add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    match options.kind:
        case "parse":
            parse(options.folder)
        case "ingest":
            ingest(options.megabytes)
        case _:
            kill(options.rounds)


if __name__ == "__main__":
    main()

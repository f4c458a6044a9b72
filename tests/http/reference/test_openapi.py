"""Every endpoint does what the OpenAPI document says, whatever is sent: fuzzed by schemathesis with all its checks.

To explore further than this does, run it by hand against a server of your own, with another seed and more examples:

    SCHEMATHESIS_HOOKS=tests.http.reference.fuzzing schemathesis --config-file tests/http/reference/schemathesis.toml \\
        run http://localhost:8000/openapi.json --checks all -H "Authorization: Bearer $KEY" --seed 2 --max-examples 500
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from citewell import wiring
from tests.conftest import serving, settings_for
from tests.http.conftest import ingest_folder, made_key

ROOT = Path(__file__).parents[3]
CASES = 3000


def test_at_least_3000_generated_requests_get_what_the_document_promises(tmp_path: Path, docs: Path) -> None:
    """A server with a few small pages and a key, so that requests without a key are tried as well."""
    settings = settings_for(tmp_path / "home", embedder="hashing")  # meaning makes no difference here
    ingest_folder(settings, docs)
    report = tmp_path / "report.json"
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    server = serving(
        settings.home,
        CITEWELL_EMBEDDER="hashing",
        CITEWELL_REQUESTS_PER_MINUTE="1000000",
        CITEWELL_MAX_UPLOAD_BYTES="100000",
    )
    with server as address:
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")),
                *("--config-file", str(Path(__file__).with_name("schemathesis.toml"))),
                *("run", f"{address}/openapi.json", "--checks", "all", "--continue-on-failure", "--no-color"),
                *("--header", f"Authorization: Bearer {asyncio.run(_key(settings.home))}"),
                # The same requests every time; as far as the answers are the same, for some are made of those.
                *("--seed", "1", "--generation-database", "none", "--max-examples", "70"),
                *("--report", "json", "--report-json-path", str(report)),
            ],
            cwd=tmp_path,  # it remembers what failed before in the folder it runs in
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path),
                "SCHEMATHESIS_HOOKS": "tests.http.reference.fuzzing",
            },
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-20_000:]
    told = json.loads(report.read_text(encoding="utf-8"))
    assert (told["complete"], told["failures"], told["errors"]) == (True, [], [])
    assert told["operations"]["tested"] == told["operations"]["total"] > 20
    assert told["test_cases"]["generated"] >= CASES
    assert "Traceback" not in server.log
    assert "unforeseen" not in server.log


async def _key(home: Path) -> str:
    async with wiring.open_stores(settings_for(home)) as stores:
        return await made_key(stores, scope="admin")

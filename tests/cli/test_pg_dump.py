"""Backup and restore of PostgreSQL by its own commands, as docs/deploying.md says."""

from pathlib import Path

from tests.conftest import Citewell
from tests.fakes.postgres import PostgresServer

QUESTION = "What moves water uphill?"


def test_a_dump_restored_elsewhere_answers_as_before_without_embedding_again(
    citewell: Citewell, docs: Path, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = postgres_server.create()
    old = {"home": tmp_path / "old", "DATABASE_URL": url, "CITEWELL_EMBEDDER": "hashing"}
    assert citewell("ingest", str(docs), **old).returncode == 0
    assert citewell("keys", "create", "site widget", **old).returncode == 0
    before = citewell("ask", QUESTION, "--json", **old).stdout

    dump = tmp_path / "citewell.dump"
    postgres_server.client("pg_dump", "--format=custom", f"--file={dump}", url)
    restored = postgres_server.create()
    postgres_server.client(
        "pg_restore", "--no-owner", "--exit-on-error", "--single-transaction", f"--dbname={restored}", str(dump)
    )

    new = {"home": tmp_path / "new", "DATABASE_URL": restored, "CITEWELL_EMBEDDER": "hashing"}
    assert citewell("doctor", **new).returncode == 1, "the index is not part of a dump"
    fixed = citewell("doctor", "--fix", **new)
    assert fixed.returncode == 3, fixed.stdout
    assert citewell("doctor", **new).stdout == "All is well.\n"
    assert citewell("ask", QUESTION, "--json", **new).stdout == before
    assert "site widget" in citewell("keys", "list", **new).stdout
    again = citewell("ingest", str(docs), **new).stdout
    assert "chunks created   0" in again
    assert "(3 unchanged)" in again


def test_the_index_is_built_again_where_the_old_home_folder_is_still_there(
    citewell: Citewell, docs: Path, home: Path, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    """A dump that is older than the index: documents that came later are gone from answers, too."""
    url = postgres_server.create()
    own = {"DATABASE_URL": url, "CITEWELL_EMBEDDER": "hashing"}
    assert citewell("ingest", str(docs), **own).returncode == 0
    dump = tmp_path / "citewell.dump"
    postgres_server.client("pg_dump", "--format=custom", f"--file={dump}", url)
    (docs / "04-boilers.md").write_text("# Boilers\n\nA boiler makes steam.\n")
    assert citewell("ingest", str(docs), **own).returncode == 0

    postgres_server.client(
        "pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", f"--dbname={url}", str(dump)
    )
    fixed = citewell("doctor", "--fix", **own)
    assert fixed.returncode == 3, fixed.stdout
    assert citewell("doctor", **own).returncode == 0
    assert "steam" not in citewell("ask", "What makes steam?", **own).stdout
    assert "uphill" in citewell("ask", QUESTION, **own).stdout

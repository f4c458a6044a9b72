"""Moves the content of the configured database into another one."""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from citewell import home
from citewell.adapters.sql import (
    Database,
    check_database_url,
    copy_database,
    database_exists,
    find_damage,
    has_content,
    replace_database,
)
from citewell.adapters.writer_lock import writer_lock
from citewell.errors import MigrationError, SettingsError
from citewell.settings import Settings
from citewell.wiring.resources import lease

_STATEMENT_SECONDS = 600.0  # a statement moves a batch of rows, or deletes a table
_SQLITE = "sqlite"

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class MovedDatabase:
    """How many rows of each table were moved, and where a file that was replaced is kept."""

    rows: dict[str, int]
    kept: Path | None


async def move_database(
    settings: Settings,
    to: str,
    *,
    overwrite: bool,
    wait: bool,
    on_wait: Callable[[], None],
    copying: Progress,
    checking: Progress,
) -> MovedDatabase:
    """Copy the configured database to PostgreSQL by its URL, or to "sqlite" in the home folder, while no ingest runs.

    Raises MigrationError if there is nothing to move, or the target has content and may not be overwritten.
    """
    source_location, target_location = home.database_location(settings), _location(settings, to)
    if settings.index_engine == "postgres":
        raise MigrationError(
            "the index is in the same PostgreSQL as the documents; move it first with `citewell migrate --to "
            "embedded`, and set CITEWELL_INDEX=embedded"
        )
    if source_location == target_location:
        raise MigrationError("this is the database that is in use; name another one")
    if not await database_exists(source_location):
        raise MigrationError(f"there is nothing to move: {_described(source_location)} holds no library")
    async with (
        writer_lock(settings.home, wait=wait, on_wait=on_wait) as place,
        home.open_database(settings, statement_seconds=_STATEMENT_SECONDS) as source,
        lease(source, None, place, wait=wait, on_wait=on_wait),
    ):
        home.remove_leftovers(settings)
        if isinstance(target_location, str):
            target = await Database.open(target_location, statement_seconds=_STATEMENT_SECONDS)
            try:
                async with lease(target, None, place, wait=wait, on_wait=on_wait):
                    rows = await copy_database(source, target, overwrite=overwrite, copying=copying, checking=checking)
            finally:
                await target.close()
            return MovedDatabase(rows, None)
        _require_room(target_location, overwrite=overwrite)
        async with _new_file(home.staging_folder(settings)) as (file, target):
            rows = await copy_database(source, target, overwrite=True, copying=copying, checking=checking)
            await target.close()
            return MovedDatabase(rows, replace_database(target_location, file))


def _location(settings: Settings, to: str) -> Path | str:
    if to == _SQLITE:
        return settings.home / "citewell.db"
    try:
        check_database_url(to)
    except SettingsError as error:
        raise MigrationError(str(error).replace("DATABASE_URL", "--database")) from None
    return to


def _described(location: Path | str) -> str:
    return str(location) if isinstance(location, Path) else "the PostgreSQL database of DATABASE_URL"


def _require_room(file: Path, *, overwrite: bool) -> None:
    """Raise MigrationError for an intact database with content; `replace_database` would keep it under another name."""
    if overwrite or not file.exists() or not file.stat().st_size or find_damage(file):
        return
    if has_content(file):
        raise MigrationError(
            f"{file} has documents or conversations already; replace them with --force (the old database is kept under "
            "another name)"
        )


@asynccontextmanager
async def _new_file(folder: Path) -> AsyncIterator[tuple[Path, Database]]:
    """A new database in a folder of its own, which is removed at the end."""
    shutil.rmtree(folder, ignore_errors=True)
    file = folder / "citewell.db"
    try:
        database = await Database.open(file, statement_seconds=_STATEMENT_SECONDS)
        try:
            yield file, database
        finally:
            await database.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)

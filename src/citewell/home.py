"""The database of a home folder: where it is, when it may be created, what is wrong with it, its backup and restore.

A backup is the database alone: the index is derived from it, without embedding anything again.
"""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from citewell.adapters.sql import (
    BackupContents,
    Database,
    find_damage,
    has_content,
    has_documents,
    replace_database,
    set_aside,
    staged_copy,
    unusable,
    write_backup,
)
from citewell.errors import BackupError, DatabaseUnusable, SettingsError
from citewell.settings import Settings

_log = logging.getLogger("citewell.home")

_STAGING_FOLDER = "restoring"


def database_location(settings: Settings) -> Path | str:
    """The URL of the database, or else the path of its file."""
    return settings.database_url.get_secret_value() if settings.database_url else settings.home / "citewell.db"


def has_index(settings: Settings) -> bool:
    """Whether an index of documents is published in the home folder: then a database must be there, too."""
    return (settings.home / "index" / "CURRENT").exists()


@asynccontextmanager
async def open_database(
    settings: Settings, *, statement_seconds: float | None = None, rebuild: bool = False, may_fail: bool = False
) -> AsyncIterator[Database]:
    """The database, migrated to this version; raises DatabaseUnusable, unless it `may_fail` until it can be used.

    `rebuild` begins with an empty database where it is missing or damaged; a damaged file is kept under another name.
    """
    location = database_location(settings)
    if rebuild and isinstance(location, Path):
        await asyncio.to_thread(_make_room, location)
    database = await Database.open(
        location,
        statement_seconds=statement_seconds,
        expects_documents=lambda: has_index(settings) and not rebuild,
        may_fail=may_fail,
    )
    try:
        yield database
    finally:
        await database.close()


async def examine_database(settings: Settings) -> str | None:
    """What is wrong with the database, and what to do; None if it can be used. Reads the whole file."""
    location = database_location(settings)
    try:
        async with open_database(settings) as database:
            is_filled = await database.has_documents()
        if isinstance(location, Path) and (damage := await asyncio.to_thread(find_damage, location)):
            return unusable(damage).reason
    except DatabaseUnusable as error:
        return error.reason
    if has_index(settings) and not is_filled:  # only in PostgreSQL: an empty file is not opened
        return (
            "it has no documents, although there is an index of some; check DATABASE_URL, or index the source folders "
            "again with `citewell ingest PATH…`"
        )
    return None


async def back_up(settings: Settings, target: Path, *, overwrite: bool) -> BackupContents:
    """Write the database to one file, also while others use it; raises BackupError."""
    database = _database_file(settings, 'pg_dump --format=custom --file=FILE "$DATABASE_URL"')
    if not database.exists() and not has_index(settings):
        raise BackupError(f"there is nothing to back up: {settings.home} has no database")
    async with open_database(settings):  # says what is wrong with it, and brings an old one up to date
        return write_backup(database, target, overwrite=overwrite)


@dataclass(frozen=True, slots=True)
class StagedBackup:
    """A verified copy of a backup, not yet in use."""

    contents: BackupContents
    _copy: Path
    _database: Path

    @asynccontextmanager
    async def open(self, *, statement_seconds: float) -> AsyncIterator[Database]:
        """The copy as a database, migrated to this version. Close it before it is put in place."""
        database = await Database.open(self._copy, statement_seconds=statement_seconds)
        try:
            yield database
        finally:
            await database.close()

    def put_in_place(self) -> Path | None:
        """Make the copy the database of the home folder; returns where the old one is kept, if there was one."""
        return replace_database(self._database, self._copy)


@contextmanager
def stage_backup(settings: Settings, backup: Path, *, overwrite: bool, model: str) -> Iterator[StagedBackup]:
    """A copy of a backup in the home folder; raises BackupError for a file that cannot be restored here.

    The caller holds the writer's lock. `model` is the configured embedding model.
    """
    database = _database_file(settings, 'pg_restore --clean --if-exists --dbname="$DATABASE_URL" FILE')
    in_use = database.exists() and database.stat().st_size and not find_damage(database)
    if in_use and backup.exists() and backup.samefile(database):
        raise BackupError(f"{backup} is the database itself, not a backup of it")
    with staged_copy(backup, staging_folder(settings)) as (copy, contents):
        if contents.embedding_models and model not in contents.embedding_models:
            raise BackupError(
                f"{backup} has embeddings of the model {contents.embedding_models[0]}, but {model} is configured; "
                "configure that model and restore again (`citewell ingest --reembed` changes the model later)"
            )
        if in_use and has_content(database) and not overwrite:
            raise BackupError(
                f"{settings.home} has documents or conversations already; replace them with --force (the old database "
                "is kept under another name)"
            )
        yield StagedBackup(contents, copy, database)


def staging_folder(settings: Settings) -> Path:
    """Where a new database is made before it takes the place of the old one. For the holder of the writer's lock."""
    return settings.home / _STAGING_FOLDER


def remove_leftovers(settings: Settings) -> None:
    """Remove the copy that a killed restore or migration has left. The caller holds the writer's lock."""
    shutil.rmtree(staging_folder(settings), ignore_errors=True)


def _database_file(settings: Settings, command: str) -> Path:
    location = database_location(settings)
    if isinstance(location, Path):
        return location
    raise SettingsError(f"DATABASE_URL is set, so everything is in PostgreSQL: use its own tools, `{command}`")


def _make_room(database: Path) -> None:
    """Set aside what is left of a database; raises SettingsError for one that is intact and has documents."""
    if not database.exists() or not database.stat().st_size:
        set_aside(database)
    elif damage := find_damage(database):
        kept = set_aside(database)
        _log.warning("%s could not be used: %s; it is kept as %s", database, damage, kept)
    elif has_documents(database):
        raise SettingsError(
            f"--rebuild is for a database that is missing or damaged, and {database} is neither; leave it out"
        )

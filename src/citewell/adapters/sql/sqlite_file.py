"""The SQLite file as a whole: whether it is damaged, and how it is copied, backed up, set aside and replaced.

Works on files with the standard library's driver, since a damaged file cannot be opened as a `Database`. A database is
never opened as a plain file: closing it would release the locks that SQLite holds on it in this process.
"""

import fcntl
import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from citewell.errors import BackupError, DatabaseUnusable, StoreUnavailable

_REMEDY = (
    "restore a backup with `citewell restore FILE`, or index the source folders again with "
    "`citewell ingest --rebuild PATH…`"
)
EMPTY = f"it is empty, although there is an index of its documents; {_REMEDY}"
_MISSING = f"it is missing, although there is an index of its documents; {_REMEDY}"
_CUT_SHORT = "it is damaged (its end is missing)"

_TABLES = frozenset({"projects", "documents", "chunks", "texts", "embeddings", "facts"})
_CONTENT_TABLES = ("documents", "sessions", "keys", "uploads", "gaps", "evaluations")
_MAX_PROBLEMS = 3  # of a damaged file that are shown
_MAX_PROBLEM_CHARACTERS = 200
_BUSY_SECONDS = 60.0
_COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BackupContents:
    """What a backup holds."""

    documents: int
    chunks: int
    sessions: int
    embedding_models: tuple[str, ...]
    """The models whose embeddings of the chunks are in it, the one with the most first."""
    bytes: int

    def __str__(self) -> str:
        size = f"{self.bytes / 1e6:.1f} MB"
        return f"{self.documents} documents, {self.chunks} chunks, {self.sessions} sessions ({size})"


def identity(path: Path) -> object:
    """Something that changes when the file is removed, emptied or replaced by another one; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size == 0


def create_or_check(path: Path, *, may_create: bool) -> None:
    """Create an empty file if there is none and it may be created; raises DatabaseUnusable for one that is no database.

    Fast, whatever the size: it reads the first pages only. `find_damage` reads everything.
    """
    if not path.exists():
        if not may_create:
            raise DatabaseUnusable(_MISSING)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    if not may_create and path.stat().st_size == 0:
        raise DatabaseUnusable(EMPTY)
    try:
        with closing(_connect(path)) as connection:
            names = _table_names(connection)
            if _is_cut_short(path, connection):
                raise unusable(_CUT_SHORT)
    except sqlite3.Error as error:
        if damage := damage_of(error):
            raise unusable(damage) from error
        raise
    if not names and not may_create:
        raise DatabaseUnusable(EMPTY)
    if names and not names >= _TABLES:
        raise DatabaseUnusable(
            f"it is not Citewell's: it has a table {min(names)!r} of another program; choose another folder with "
            "CITEWELL_HOME"
        )


def damage_of(error: BaseException) -> str | None:
    """The damage of the file that an error of the driver means; None for any other error."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, sqlite3.Error):
        return None
    match getattr(cause, "sqlite_errorcode", 0) & 0xFF:  # the rest of the number is a detail
        case sqlite3.SQLITE_CORRUPT:
            return f"it is damaged ({cause})"
        case sqlite3.SQLITE_NOTADB:
            return "it is not a SQLite database"
    if str(cause).startswith("Could not decode to UTF-8"):  # the rest of the message is the text
        return "it is damaged (a text in it is not UTF-8)"
    return None


def unusable(damage: str) -> DatabaseUnusable:
    """The error for a damaged file, with what to do."""
    return DatabaseUnusable(f"{damage}; {_REMEDY}")


def misses_table(error: BaseException) -> bool:
    """Whether an error of the driver says that a table or column is gone."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, sqlite3.Error) and str(cause).startswith(("no such table", "no such column"))


def find_damage(path: Path) -> str | None:
    """Read the whole file: what is damaged; None if it is intact."""
    with _translated_errors(path):
        try:
            with closing(_connect(path)) as connection:
                problems = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})")]
                if problems == ["ok"]:
                    problems = _changed_texts(connection)
        except sqlite3.Error as error:
            if damage := damage_of(error):
                return damage
            raise
    if not problems:
        return None
    shown = " ".join("; ".join(problems).replace("*** in database main ***", "").split())
    return f"it is damaged ({shown[:_MAX_PROBLEM_CHARACTERS]})"


def has_content(path: Path) -> bool:
    """Whether an intact database holds anything that somebody could miss."""
    return _has_rows(path, _CONTENT_TABLES)


def has_documents(path: Path) -> bool:
    """Whether an intact database holds documents."""
    return _has_rows(path, ["documents"])


def set_aside(path: Path) -> Path:
    """Rename what is left of a damaged or removed database; returns the new path, even if there was only a log.

    The log must go, too: SQLite would replay it into whatever database comes next. (A process that still has the old
    one open does no harm: SQLite does not touch the log of a database that has moved.)
    """
    aside = _unused_path(path, "damaged")
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    _flush_to_disk(path.parent)
    return aside


def write_backup(database: Path, target: Path, *, overwrite: bool) -> BackupContents:
    """Copy a database that others may be using to one file, and check the copy; raises BackupError.

    The file appears when it is complete. Until then the copy is `<target>.partial`, which the next backup to the same
    file overwrites.
    """
    _check_target(database, target, overwrite=overwrite)
    partial = target.with_name(f"{target.name}.partial")
    try:
        with _alone_in(target.parent):
            try:
                _copy_database(database, partial)
                contents = _verify_copy(partial)
                _flush_to_disk(partial)
                _check_target(database, target, overwrite=overwrite)
                partial.replace(target)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
        _flush_to_disk(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"the backup {target} cannot be written: {_message(error)}") from error
    return contents


def _verify_copy(partial: Path) -> BackupContents:
    try:
        return verify(partial)
    except BackupError as error:
        raise BackupError(f"no backup was written, because the database cannot be used: {error}; {_REMEDY}") from error


def verify(path: Path) -> BackupContents:
    """What a backup holds; raises BackupError for a file that is none, or is damaged."""
    if not path.stat().st_size:
        raise BackupError("it is empty")
    try:
        with closing(_connect(path)) as connection:
            names = _table_names(connection)
            if _is_cut_short(path, connection):
                raise BackupError(_CUT_SHORT)
            if missing := sorted(_TABLES - names):
                raise BackupError(f"it is a SQLite file, but no backup of Citewell: it has no table {missing[0]}")
            if damage := find_damage(path):
                raise BackupError(damage)
            return BackupContents(
                documents=_count(connection, "documents"),
                chunks=_count(connection, "chunks"),
                sessions=_count(connection, "sessions") if "sessions" in names else 0,
                embedding_models=_embedding_models(connection),
                bytes=path.stat().st_size,
            )
    except sqlite3.Error as error:
        raise BackupError(damage_of(error) or _message(error)) from error


@contextmanager
def staged_copy(backup: Path, folder: Path) -> Iterator[tuple[Path, BackupContents]]:
    """A verified copy of a backup in a new folder, which is removed at the end; raises BackupError."""
    shutil.rmtree(folder, ignore_errors=True)
    copy = folder / "citewell.db"
    try:
        try:
            folder.mkdir(parents=True)
            _copy_bytes(backup, copy)
            contents = verify(copy)
        except BackupError as error:
            raise BackupError(f"{backup} cannot be restored: {error}") from error
        except OSError as error:
            raise BackupError(f"{backup} cannot be restored: {_message(error)}") from error
        yield copy, contents
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def replace_database(database: Path, new: Path) -> Path | None:
    """Give the database the content of another file, all at once, also while others use it.

    Returns where the old content is kept; None if there was none. An intact database stays the same file, and its
    content is exchanged in one transaction: open connections see the new one. One that is damaged or empty is renamed.
    """
    with _translated_errors(database):
        with closing(_connect(new)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
        if not database.exists() or not database.stat().st_size or find_damage(database):
            aside = set_aside(database)
            new.replace(database)
            _flush_to_disk(database.parent)
            return aside if aside.exists() else None
        kept = _unused_path(database, "replaced") if has_content(database) else None
        if kept:
            partial = new.with_name(kept.name)
            _copy_database(database, partial)
            partial.rename(kept)
            _flush_to_disk(kept.parent)
        with closing(_connect(new)) as source, closing(_connect(database)) as target:
            source.backup(target)
        return kept


@contextmanager
def _translated_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StoreUnavailable(f"the database {path} cannot be read or written: {_message(error)}") from error


def _connect(path: Path, *, mode: str = "rw") -> sqlite3.Connection:
    """A connection to an existing file, without transactions unless they are begun."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)


def _copy_database(source: Path, target: Path) -> None:
    """Copy a snapshot of a database to a new file of its own, without a log; writers are not blocked."""
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)  # it has conversations in it
    with closing(_connect(source)) as reader, closing(_connect(target)) as writer:
        # Not safe if the machine stops, but then nobody has been told that there is a backup.
        writer.execute("PRAGMA synchronous=OFF")
        reader.backup(writer)
        writer.execute("PRAGMA journal_mode=DELETE")
    _flush_to_disk(target)


def _copy_bytes(source: Path, target: Path) -> None:
    if source.is_symlink():
        raise BackupError("it is a symbolic link; name the file itself")
    if not source.exists():
        raise BackupError("there is no such file")
    if not source.is_file():
        raise BackupError("it is not a file")
    if (log := Path(f"{source}-wal")).exists() and log.stat().st_size:
        raise BackupError(
            "it is a database in use, with a write-ahead log beside it; make a backup of it with `citewell backup FILE`"
        )
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    target.touch(mode=0o600)
    with os.fdopen(descriptor, "rb") as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer, _COPY_BYTES)


def _check_target(database: Path, target: Path, *, overwrite: bool) -> None:
    if target.is_symlink():
        raise BackupError(f"{target} is a symbolic link; name another file")
    if target.exists():
        if target.samefile(database):
            raise BackupError(f"{target} is the database itself; name another file")
        if not target.is_file():
            raise BackupError(f"{target} is not a file; name a file for the backup")
        if not overwrite:
            raise BackupError(f"{target} exists already; name another file, or overwrite it with --force")
    elif not target.parent.is_dir():
        raise BackupError(f"there is no folder {target.parent}")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Wait for other backups into the same folder. The lock is on the folder: no file of it is left behind."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _unused_path(database: Path, reason: str) -> Path:
    """A path beside the database that says why and when it was set aside."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    path = database.with_name(f"{database.name}.{reason}-{stamp}")
    number = 1
    while path.exists():
        number += 1
        path = database.with_name(f"{database.name}.{reason}-{stamp}-{number}")
    return path


def _has_rows(path: Path, tables: Sequence[str]) -> bool:
    with _translated_errors(path), closing(_connect(path)) as connection:
        existing = _table_names(connection)
        return any(
            connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()  # noqa: S608 (our own names)
            for table in tables
            if table in existing
        )


def _is_cut_short(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether the file ends in the middle of a page. While there is a log, that may be in it."""
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        return False
    return path.stat().st_size % int(connection.execute("PRAGMA page_size").fetchone()[0]) != 0


def _table_names(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return {str(row[0]) for row in rows}


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 (our own names)


def _embedding_models(connection: sqlite3.Connection) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT model, count(*) AS found FROM embeddings JOIN chunks ON chunks.embedding_key = embeddings.text_hash "
        "GROUP BY model ORDER BY found DESC, model"
    )
    return tuple(str(row[0]) for row in rows)


def _changed_texts(connection: sqlite3.Connection) -> list[str]:
    """SQLite checks how its pages hang together, not what is in them; documents' texts have hashes of their own."""
    if "texts" not in _table_names(connection):
        return []
    rows = connection.execute("SELECT hash, text FROM texts WHERE hash IN (SELECT text_hash FROM documents)")
    changed = sum(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != stored for stored, text in rows)
    return [f"the texts of {changed} documents are not what was indexed"] if changed else []


def _message(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _flush_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)  # of a file or a folder
    os.fsync(handle)
    os.close(handle)

"""Generations of an index on disk: immutable folders, and a file that names the one in use.

    index/7/           a published generation; no byte of it changes again
    index/8.partial/   one that is being built; removed at the next start if unfinished
    index/CURRENT      "7", replaced atomically
    index/7.lock       held by the process that has generation 7 open
    index/7.reader-x/  links to the files of generation 7, for another process; its own lock is beside it
    index/still.lock   held while a folder is opened, closed or copied

Knows folders, renames and locks; nothing of what lies inside a generation.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO

from citewell.adapters.qdrant_edge.sparse_files import link_or_copy


class Generations:
    """The folder `index/`. Only the holder of the writer's lock may call what changes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._current = folder / "CURRENT"

    def published(self) -> int | None:
        """The generation that readers use; None if there is none, or its folder is missing."""
        try:
            number = int(self._current.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return None
        return number if self.path(number).is_dir() else None

    def path(self, number: int) -> Path:
        return self.folder / str(number)

    def start_partial(self) -> tuple[int, Path]:
        """A number that was never used, and the path of an unused folder to build that generation in."""
        self.folder.mkdir(parents=True, exist_ok=True)
        number = max([*self._numbers(), self._last_published()], default=0) + 1
        partial = self.folder / f"{number}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        return number, partial

    def move_into_place(self, number: int, partial: Path) -> None:
        """Rename a built generation to its final name; all of it is on disk when this returns."""
        for file in partial.rglob("*"):
            if file.is_file() and file.stat().st_nlink == 1:  # the others were synced with the generation they are from
                _sync(file)
        partial.rename(self.path(number))
        _sync(self.folder)

    def publish(self, number: int) -> None:
        """Make readers use this generation from now on."""
        if self.published() == number:
            return
        replacement = self.folder / "CURRENT.new"
        replacement.write_text(f"{number}\n", encoding="ascii")
        _sync(replacement)
        replacement.replace(self._current)
        _sync(self.folder)

    def leftovers(self) -> list[str]:
        """Names of folders that no reader uses and no writer will finish."""
        names = [partial.name for partial in self.folder.glob("*.partial")]
        used_by_readers = [str(number) for number in sorted(self._numbers()) if number != self.published()]
        used_by_readers += sorted(folder.name for folder in self.folder.glob("*.reader-*") if folder.is_dir())
        for name in used_by_readers:
            if lock := self.lock(name):
                names.append(name)
                lock.close()
        return names

    def remove_leftovers(self) -> None:
        for name in self.leftovers():
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / f"{name}.lock").unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove every generation; one that a process has open goes with the next `remove_leftovers`."""
        self._current.unlink(missing_ok=True)
        self.remove_leftovers()

    def lock(self, name: int | str) -> IO[bytes] | None:
        """Lock a generation, or a folder, until the handle is closed; None while another process holds the lock."""
        handle = (self.folder / f"{name}.lock").open("ab")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            return None
        return handle

    @contextmanager
    def exclusive_access(self) -> Iterator[None]:
        """Keep everybody else from opening, closing or copying a generation: the engine then replaces files."""
        with (self.folder / "still.lock").open("ab") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def private_copy(self, number: int) -> tuple[Path, IO[bytes] | None]:
        """A folder of links to the files of a generation, even while others have it open, and its lock.

        Nobody writes into these files, and what the engine replaces when it opens a folder, it replaces there alone.
        """
        folder = self.folder / f"{number}.reader-{token_hex(4)}"
        lock = self.lock(folder.name)
        try:
            with self.exclusive_access():
                link_or_copy(self.path(number), folder)
        except BaseException:
            self.remove_copy(folder, lock)
            raise
        return folder, lock

    def remove_copy(self, folder: Path, lock: IO[bytes] | None) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        (self.folder / f"{folder.name}.lock").unlink(missing_ok=True)
        if lock is not None:
            lock.close()

    def _numbers(self) -> Iterator[int]:
        for entry in self.folder.iterdir() if self.folder.is_dir() else ():
            if entry.name.isdecimal() and entry.is_dir():
                yield int(entry.name)

    def _last_published(self) -> int:
        with suppress(FileNotFoundError, ValueError):
            return int(self._current.read_text(encoding="ascii"))
        return 0


def _sync(path: Path) -> None:
    """Flush a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

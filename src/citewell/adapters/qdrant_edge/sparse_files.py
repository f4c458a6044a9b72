"""Copies, links and checksums sparse files without reading their holes: the engine reserves far more than it uses.

Knows nothing of generations.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

_BLOCK_BYTES = 1 << 16
_ZEROS = bytes(_BLOCK_BYTES)


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a folder without filling the holes of its files."""
    shutil.copytree(source, target, copy_function=_copy_file)


def link_or_copy(source: Path, target: Path) -> None:
    """Make a folder whose files are hard links to those of another, or copies if the file system has no links."""
    shutil.copytree(source, target, copy_function=_link_file)


def checksum(path: Path) -> str:
    """The SHA-256 over the blocks of a file that are not all zeros, each after its position.

    A hole and zeros that were written are the same, so a copy that filled the holes has the same checksum. Of 140 MB
    that a small index seems to have, 0.4 MB are read.
    """
    digest = sha256()
    with path.open("rb", buffering=0) as file:
        for position, block in _data_blocks(file.fileno()):
            digest.update(position.to_bytes(8, "big"))
            digest.update(block)
    return digest.hexdigest()


def used_bytes(folder: Path) -> int:
    """The space that the files of a folder take on the disk, without their holes."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def _link_file(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        _copy_file(source, target)
    return target


def _copy_file(source: str, target: str) -> str:
    # Not an unbuffered writer: on a disk that is almost full it writes a part of a block, and raises nothing.
    with Path(source).open("rb", buffering=0) as reader, Path(target).open("wb") as writer:
        for position, block in _data_blocks(reader.fileno()):
            writer.seek(position)
            writer.write(block)
        writer.truncate(os.fstat(reader.fileno()).st_size)
    return target


def _data_blocks(descriptor: int) -> Iterator[tuple[int, bytes]]:
    """The blocks of a file that are not all zeros, each with its position, a multiple of the block size."""
    size, position = os.fstat(descriptor).st_size, 0
    while position < size:
        try:
            data = os.lseek(descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return  # no data after this position
        end = os.lseek(descriptor, data, os.SEEK_HOLE)
        for position in range(data - data % _BLOCK_BYTES, end, _BLOCK_BYTES):
            block = os.pread(descriptor, _BLOCK_BYTES, position)
            if block != _ZEROS[: len(block)]:
                yield position, block
        position += _BLOCK_BYTES

"""Compare what was found with what the library holds, and say what has to be done. Changes nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from citewell.errors import UnreadableFile
from citewell.ingest.chunk import ChunkSize
from citewell.ingest.load import fingerprint, read_bytes
from citewell.ingest.walk import SourceFile


@dataclass(frozen=True, slots=True)
class Plan:
    """What an ingest will do; `errors` are files that could not even be opened."""

    read: tuple[SourceFile, ...]
    unchanged: tuple[SourceFile, ...]
    vanished: tuple[str, ...]
    errors: tuple[str, ...]


def plan(files: Iterable[SourceFile], known: Mapping[str, str], size: ChunkSize) -> Plan:
    """Which files to read anew: those whose bytes, or the way we read them, are not what is known."""
    read: list[SourceFile] = []
    unchanged: list[SourceFile] = []
    errors: list[str] = []
    seen: set[str] = set()
    for file in files:
        seen.add(file.path)
        try:
            same = known.get(file.path) == fingerprint(read_bytes(file), size)
        except UnreadableFile as error:
            errors.append(str(error))
            continue
        (unchanged if same else read).append(file)
    return Plan(tuple(read), tuple(unchanged), tuple(sorted(known.keys() - seen)), tuple(errors))

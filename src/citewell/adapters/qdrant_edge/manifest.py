"""`made.json` in the folder of a generation: how it was built, and size and checksum of each of its files.

The engine notices little of what a disk can do to its files, and answers from vectors that are damaged. So nothing
opens a generation before its files were compared with this manifest, which has a checksum of its own.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from citewell.adapters.index_format import IndexOrigin
from citewell.adapters.qdrant_edge.sparse_files import checksum
from citewell.similarity_scale import SimilarityScale

_NAME = "made.json"
_KEYS_WITHOUT_FILES = frozenset({"format", "model", "dimensions", "scale"})  # all that earlier versions wrote
CheckedFiles: TypeAlias = dict[tuple[int, int, int, int], str]
"""The checksums of files that were found intact, by device, inode, size and time of the last change."""

_ENGINE_TEMPORARY = ".atomicwrite"  # a killed engine leaves such a folder behind, and never reads it


@dataclass(frozen=True, slots=True)
class Manifest:
    """How a generation was built, and what its files are."""

    format: int
    """Version of the payload."""
    model: str
    dimensions: int
    scale: SimilarityScale | None = None
    files: Mapping[str, tuple[int, str]] | None = None
    """Size and checksum of each file, by its path; None before it is complete, or if an earlier version made it."""

    @property
    def origin(self) -> IndexOrigin:
        return IndexOrigin(self.format, self.model, self.dimensions, self.scale)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    content = {name: value for name, value in asdict(manifest).items() if value is not None}
    if manifest.files is not None:
        content["checksum"] = _checksum_of(content)
    (folder / _NAME).write_text(json.dumps(content), encoding="utf-8")


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a generation; None if there is no such generation. Raises ValueError if it is damaged."""
    try:
        content: dict[str, Any] = json.loads((folder / _NAME).read_bytes())
        claimed = content.pop("checksum", None)
        is_sealed = claimed is not None or not content.keys() <= _KEYS_WITHOUT_FILES
        if is_sealed and claimed != _checksum_of(content):
            raise ValueError("its checksum is wrong")
        scale, files = content.get("scale"), content.get("files")
        return Manifest(
            format=content["format"],
            model=str(content["model"]),
            dimensions=content["dimensions"],
            scale=SimilarityScale(**scale) if scale else None,
            files={path: (size, digest) for path, (size, digest) in files.items()} if files else None,
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{_NAME} cannot be read: {error}") from error


def seal(folder: Path, *, base: Path | None = None) -> None:
    """Add size and checksum of every file to the manifest of a generation that is complete.

    Files that are hard links to those of the base are not read again.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise FileNotFoundError(folder / _NAME)
    known = read_manifest(base) if base else None
    files: dict[str, tuple[int, str]] = {}
    for path, file in _files(folder).items():
        if base and known and known.files and path in known.files and _is_same_file(file, base / path):
            files[path] = known.files[path]
        else:
            files[path] = file.stat().st_size, checksum(file)
    write_manifest(folder, replace(manifest, files=files))


def _is_same_file(file: Path, other: Path) -> bool:
    try:
        return file.samefile(other)
    except FileNotFoundError:
        return False


def find_damage(folder: Path, manifest: Manifest, *, checked: CheckedFiles | None = None) -> str | None:
    """The first file that is not as it was when the generation was published, and how many more there are.

    A file that was `checked` is not read again before it is written or replaced: most files of a generation are links
    to those of the one before. What is checked now is added, and files of other generations are forgotten.
    """
    if manifest.files is None:
        return None
    known = dict(checked or {})
    intact: CheckedFiles = {}
    found = _files(folder)
    faults = [f"{path} does not belong to it" for path in found.keys() - manifest.files.keys()]
    for path, (size, digest) in manifest.files.items():
        file = folder / path
        try:
            status = file.stat()
            identity = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
            if status.st_size != size:
                faults.append(f"{path} has {status.st_size} bytes instead of {size}")
            elif known.get(identity) != digest and checksum(file) != digest:
                faults.append(f"{path} has other contents than when it was published")
            else:
                intact[identity] = digest
        except FileNotFoundError:
            faults.append(f"{path} is missing")
        except OSError as error:
            faults.append(f"{path} cannot be read: {error.strerror}")
    if checked is not None:
        checked.clear()
        checked.update(intact)
    others = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return min(faults) + others if faults else None


def fingerprint(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file, the manifest included: what changes when one of them is written or replaced."""
    found: dict[str, tuple[int, int]] = {}
    for path, file in (_files(folder) | {_NAME: folder / _NAME}).items():
        with suppress(OSError):
            status = file.stat()
            found[path] = status.st_size, status.st_mtime_ns
    return found


def _files(folder: Path) -> dict[str, Path]:
    """Every file of a generation but the manifest, by its path in the folder."""
    # Not `rglob`: it fails if the engine removes a temporary folder meanwhile.
    found = [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]
    files = {file.relative_to(folder).as_posix(): file for file in found}
    return {path: file for path, file in files.items() if path != _NAME and _ENGINE_TEMPORARY not in path}


def _checksum_of(content: dict[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

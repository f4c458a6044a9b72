"""A DOCX file as the parts it is packed of. What could harm us is refused before anything is unpacked or parsed."""

import posixpath
import zlib
from dataclasses import dataclass
from io import BytesIO
from zipfile import BadZipFile, ZipFile, ZipInfo

from citewell.errors import UnreadableFile
from citewell.ingest.readers.xml_tree import Element, parse_xml

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # old Word files, and new ones behind a password
_MOST_ENTRIES = 10_000
_MOST_BYTES = 200_000_000
_MOST_PART_BYTES = 64_000_000  # of XML; as a tree it takes about twelve times as much memory
_HIGHEST_RATIO = 200  # of unpacked to packed; text packs to a tenth

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PREFIXES = {
    _W: "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",  # the "strict" variant of the standard
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships": "r",
    "http://purl.oclc.org/ooxml/officeDocument/relationships": "r",
    "http://schemas.openxmlformats.org/officeDocument/2006/math": "m",
    "http://purl.oclc.org/ooxml/officeDocument/math": "m",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://purl.org/dc/elements/1.1/": "dc",
}


@dataclass(frozen=True, slots=True)
class _Relation:
    kind: str
    target: str
    external: bool


class Package:
    """The parts of one file; those that are missing read as empty."""

    def __init__(self, content: bytes) -> None:
        self._archive = _opened(content)
        main = [one for one in self._relations("").values() if one.kind == "officeDocument"]
        if not main or main[0].target not in self._archive.namelist():
            raise UnreadableFile("it is a ZIP archive, but no Word document; save it as .docx from Word or LibreOffice")
        self._main = main[0].target
        self._from_main = self._relations(self._main)

    @property
    def document(self) -> Element:
        return self._part(self._main)

    def related(self, kind: str) -> Element:
        """The part that the document names as its "styles", "numbering" or "footnotes"."""
        return self._part(self._name(kind))

    def addresses(self, kind: str = "") -> dict[str, str]:
        """Where the links of the document, or of a part of it, lead on the web."""
        relations = self._relations(self._name(kind)) if kind else self._from_main
        return {name: one.target for name, one in relations.items() if one.external and one.kind == "hyperlink"}

    def _name(self, kind: str) -> str:
        return next((one.target for one in self._from_main.values() if one.kind == kind and not one.external), "")

    @property
    def title(self) -> str:
        """The title in the file's properties."""
        parts = [one.target for one in self._relations("").values() if one.kind == "core-properties"]
        found = self._part(parts[0]).find("dc:title") if parts else None
        return " ".join(found.text.split()) if found else ""

    def _part(self, name: str) -> Element:
        if name not in self._archive.namelist():
            return Element("")
        return parse_xml(self._bytes(self._archive.getinfo(name)), prefixes=_PREFIXES)

    def _bytes(self, entry: ZipInfo) -> bytes:
        if entry.file_size > _MOST_PART_BYTES:
            size = f"{entry.file_size / 1e6:.0f} MB"
            raise UnreadableFile(f"it holds {size} of text and formatting in one part; split it into smaller documents")
        try:
            return self._archive.read(entry)
        except (BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
            raise UnreadableFile(f"it is damaged ({error}); get a fresh copy or save it again from Word") from error

    def _relations(self, part: str) -> dict[str, _Relation]:
        folder, name = posixpath.split(part)
        found: dict[str, _Relation] = {}
        for element in self._part(posixpath.join(folder, "_rels", f"{name}.rels")).walk():
            if element.tag == "Relationship":
                kind = element.get("Type").rpartition("/")[2]
                external = element.get("TargetMode") == "External"
                target = element.get("Target")
                if not external:
                    target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                found[element.get("Id")] = _Relation(kind, target, external)
        return found


def _opened(content: bytes) -> ZipFile:
    """The archive, if it is one and promises to stay small."""
    if content.startswith(_OLE):
        raise UnreadableFile(
            "it is password-protected, or a .doc from before 2007; save it as .docx without a password"
        )
    try:
        archive = ZipFile(BytesIO(content))
    except (BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableFile("it is not a Word document (no ZIP archive) or is damaged; get a fresh copy") from error
    entries = archive.infolist()
    if len(entries) > _MOST_ENTRIES:
        raise UnreadableFile(f"it packs {len(entries):,} files, which no Word document does; save it again from Word")
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > _MOST_BYTES or unpacked > _HIGHEST_RATIO * len(content):
        raise UnreadableFile(f"it would unpack to {unpacked / 1e6:,.0f} MB (a ZIP bomb?); save it again from Word")
    if any(entry.flag_bits & 0x1 for entry in entries):
        raise UnreadableFile("it is password-protected; save it without a password")
    return archive

"""The parts of a DOCX file. A harmful archive is refused before anything is unpacked or parsed."""

import posixpath
import zlib
from dataclasses import dataclass
from io import BytesIO
from zipfile import BadZipFile, ZipFile, ZipInfo

from citewell.errors import UnreadableFile
from citewell.ingest.readers.xml_tree import Element, parse_xml

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # old Word files, and new ones behind a password
_MAX_ENTRIES = 10_000
_MAX_UNPACKED_BYTES = 200_000_000
_MAX_PART_BYTES = 64_000_000  # of XML; its tree takes about twelve times as much memory
_MAX_COMPRESSION_RATIO = 200  # text compresses to about a tenth

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
    """The parts of one file; a missing part is empty."""

    def __init__(self, content: bytes) -> None:
        self._archive = _open_archive(content)
        main = [relation for relation in self._read_relations("").values() if relation.kind == "officeDocument"]
        if not main or main[0].target not in self._archive.namelist():
            raise UnreadableFile("it is a ZIP archive, but no Word document; save it as .docx from Word or LibreOffice")
        self._main = main[0].target
        self._from_main = self._read_relations(self._main)

    @property
    def document(self) -> Element:
        return self._read_part(self._main)

    def related(self, kind: str) -> Element:
        """The part that the document names as its "styles", "numbering" or "footnotes"; empty if there is none."""
        return self._read_part(self._part_name(kind))

    def link_targets(self, kind: str = "") -> dict[str, str]:
        """The web URLs of the links in the document, or in one of its parts, by relation id."""
        relations = self._read_relations(self._part_name(kind)) if kind else self._from_main
        return {
            name: relation.target
            for name, relation in relations.items()
            if relation.external and relation.kind == "hyperlink"
        }

    def _part_name(self, kind: str) -> str:
        relations = self._from_main.values()
        return next((relation.target for relation in relations if relation.kind == kind and not relation.external), "")

    @property
    def title(self) -> str:
        """The title in the file's properties."""
        parts = [
            relation.target for relation in self._read_relations("").values() if relation.kind == "core-properties"
        ]
        title = self._read_part(parts[0]).find("dc:title") if parts else None
        return " ".join(title.text.split()) if title else ""

    def _read_part(self, name: str) -> Element:
        if name not in self._archive.namelist():
            return Element("")
        return parse_xml(self._read_entry(self._archive.getinfo(name)), prefixes=_PREFIXES)

    def _read_entry(self, entry: ZipInfo) -> bytes:
        if entry.file_size > _MAX_PART_BYTES:
            size = f"{entry.file_size / 1e6:.0f} MB"
            raise UnreadableFile(f"it holds {size} of text and formatting in one part; split it into smaller documents")
        try:
            return self._archive.read(entry)
        except (BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
            raise UnreadableFile(f"it is damaged ({error}); get a fresh copy or save it again from Word") from error

    def _read_relations(self, part: str) -> dict[str, _Relation]:
        """The relations of a part by id; those of the whole file for the part ""."""
        folder, name = posixpath.split(part)
        relations: dict[str, _Relation] = {}
        for element in self._read_part(posixpath.join(folder, "_rels", f"{name}.rels")).walk():
            if element.tag == "Relationship":
                kind = element.get("Type").rpartition("/")[2]
                external = element.get("TargetMode") == "External"
                target = element.get("Target")
                if not external:
                    target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                relations[element.get("Id")] = _Relation(kind, target, external)
        return relations


def _open_archive(content: bytes) -> ZipFile:
    """The ZIP archive; raises UnreadableFile if it is none, is encrypted or would unpack to too much."""
    if content.startswith(_OLE):
        raise UnreadableFile(
            "it is password-protected, or a .doc from before 2007; save it as .docx without a password"
        )
    try:
        archive = ZipFile(BytesIO(content))
    except (BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableFile("it is not a Word document (no ZIP archive) or is damaged; get a fresh copy") from error
    entries = archive.infolist()
    if len(entries) > _MAX_ENTRIES:
        raise UnreadableFile(f"it packs {len(entries):,} files, which no Word document does; save it again from Word")
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > _MAX_UNPACKED_BYTES or unpacked > _MAX_COMPRESSION_RATIO * len(content):
        raise UnreadableFile(f"it would unpack to {unpacked / 1e6:,.0f} MB (a ZIP bomb?); save it again from Word")
    if any(entry.flag_bits & 0x1 for entry in entries):
        raise UnreadableFile("it is password-protected; save it without a password")
    return archive

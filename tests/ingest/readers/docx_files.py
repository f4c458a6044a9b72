"""Word files for tests: the smallest package around a body, with whatever other parts a case needs."""

from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

_NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:v="urn:schemas-microsoft-com:vml"'
)
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"

STYLES = """
<w:style w:type="paragraph" w:default="1" w:styleId="Standard"><w:name w:val="Normal"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/><w:basedOn w:val="Standard"/>
  <w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Kapitel"><w:name w:val="Kapitel"/><w:basedOn w:val="Mitte"/></w:style>
<w:style w:type="paragraph" w:styleId="Mitte"><w:name w:val="Mitte"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="TOC1"><w:name w:val="toc 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Listing"><w:name w:val="Source Code"/></w:style>
<w:style w:type="paragraph" w:styleId="Schleife"><w:name w:val="Loop"/><w:basedOn w:val="Schleife"/></w:style>
<w:style w:type="paragraph" w:styleId="Punkt"><w:name w:val="List Bullet"/>
  <w:pPr><w:numPr><w:numId w:val="2"/></w:numPr></w:pPr></w:style>
"""
NUMBERING = """
<w:abstractNum w:abstractNumId="7">
  <w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
  <w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%2)"/></w:lvl>
  <w:lvl w:ilvl="2"><w:start w:val="1"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1.%3"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="8">
  <w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val=""/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="7"/>
  <w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>
"""
FOOTNOTES = """
<w:footnote w:id="-1" w:type="separator"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>
<w:footnote w:id="4"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t xml:space="preserve"> Measured inside, see </w:t></w:r>
  <w:hyperlink r:id="rId1"><w:r><w:t>the note</w:t></w:r></w:hyperlink></w:p></w:footnote>
"""


def package(body: str, **parts: str) -> bytes:
    """A document with this body, and with `styles`, `numbering`, `footnotes` or `endnotes` of the given XML."""
    document = f"<w:document {_NAMESPACES}><w:body>{body}</w:body></w:document>"
    related = [f'<Relationship Id="{name}" Type="{_OFFICE}/{name}" Target="{name}.xml"/>' for name in parts]
    files = {
        "_rels/.rels": _relations(f'<Relationship Id="a" Type="{_OFFICE}/officeDocument" Target="word/document.xml"/>'),
        "word/document.xml": document,
        "word/_rels/document.xml.rels": _relations("".join(related) + _link("rId1", "https://x.org/a(b)")),
        "word/_rels/footnotes.xml.rels": _relations(_link("rId1", "https://notes.org/")),
        **{f"word/{name}.xml": f"<w:{name} {_NAMESPACES}>{xml}</w:{name}>" for name, xml in parts.items()},
    }
    return packed(files)


def packed(files: dict[str, str]) -> bytes:
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def paragraph(inner: str, *, style: str = "", properties: str = "") -> str:
    """A paragraph of runs, or of one run where only words are given."""
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    runs = inner if inner.startswith("<") or not inner else run(inner)
    return f"<w:p><w:pPr>{style}{properties}</w:pPr>{runs}</w:p>"


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def item(text: str, number: int, level: int = 0) -> str:
    numbered = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return paragraph(text, properties=numbered)


def _relations(inner: str) -> str:
    return f'<Relationships xmlns="{_PACKAGE}">{inner}</Relationships>'


def _link(name: str, address: str) -> str:
    return f'<Relationship Id="{name}" Type="{_OFFICE}/hyperlink" Target="{address}" TargetMode="External"/>'

"""A Word document is read as it would print with all changes accepted, and a dangerous one is not opened."""

import contextlib
import struct
from collections.abc import Callable
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import docx
import pytest
from docx.enum.text import WD_BREAK
from docx.shared import Pt
from hypothesis import given, settings
from hypothesis import strategies as st

from citewell.errors import UnreadableFile
from citewell.ingest.readers.docx import read_docx
from citewell.models import ParsedDocument
from tests.ingest.readers.docx_files import FOOTNOTES, NUMBERING, STYLES, item, package, packed, paragraph, run
from tests.ingest.readers.soundness import assert_sound


def read(content: bytes) -> ParsedDocument:
    parsed = read_docx(content, fallback_title="File name")
    assert_sound(parsed)
    return parsed


def shown(body: str) -> str:
    """The text of a document with this body."""
    return read(package(body, styles=STYLES, numbering=NUMBERING, footnotes=FOOTNOTES)).text.strip()


def saved(document: "docx.document.Document") -> bytes:
    buffer = BytesIO()
    document.save(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (run("One ") + run("two", "<w:b/>") + run("  three"), "One two three"),
        (run("kept ") + f"<w:del>{run('gone')}</w:del><w:ins>{run('new')}</w:ins>", "kept new"),
        (f"<w:moveFrom>{run('old place')}</w:moveFrom><w:moveTo>{run('new place')}</w:moveTo>", "new place"),
        (run("seen ") + run("hidden", "<w:vanish/>") + run("seen", '<w:vanish w:val="0"/>'), "seen seen"),
        ("<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r>", "a b\nc-d"),
        (run("see ") + f'<w:hyperlink r:id="rId1">{run("it ")}</w:hyperlink>' + run("now"),
         "see [it](https://x.org/a%28b%29) now"),
        (f'<w:hyperlink w:anchor="x">{run("inside")}</w:hyperlink>', "inside"),
        (
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
            '<w:r><w:instrText> HYPERLINK "https://y.org" </w:instrText></w:r>'
            f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{run("y")}<w:r><w:fldChar w:fldCharType="end"/></w:r>',
            "[y](https://y.org)",
        ),
        (
            '<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>PAGEREF _Toc</w:instrText>'
            '<w:fldChar w:fldCharType="separate"/>'
            '<w:t>7</w:t><w:fldChar w:fldCharType="end"/></w:r>',
            "7",
        ),
        (run("Call ") + run("f(", '<w:rFonts w:ascii="Consolas"/>') + run("x)", '<w:rFonts w:ascii="Consolas"/>'),
         "Call `f(x)`"),
        (run("10") + run("6", '<w:vertAlign w:val="superscript"/>') + run(" m"), "10^6 m"),
        (run("Note") + '<w:r><w:commentReference w:id="0"/></w:r>', "Note"),
        (f"<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>{run('Click me')}</w:sdtContent></w:sdt>", ""),
        (f"<w:sdt><w:sdtContent>{run('Chosen')}</w:sdtContent></w:sdt>", "Chosen"),
        (
            "<m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:sSup><m:e><m:r><m:t>b</m:t></m:r></m:e>"
            "<m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:den></m:f></m:oMath>",
            r"$\frac{a}{b^{2}}$",
        ),
        ("<m:oMathPara><m:oMath><m:r><m:t>E=m</m:t></m:r></m:oMath></m:oMathPara>", "$$\nE=m\n$$"),
        (run("a") + '<w:r><w:footnoteReference w:id="4"/></w:r>' + run("."),
         "a[^1].\n\n[^1]: Measured inside, see [the note](https://notes.org/)"),
    ],
)  # fmt: skip
def test_a_paragraph_reads_as_printed(runs: str, words: str) -> None:
    assert shown(paragraph(runs)) == words


def test_text_boxes_are_read_once_after_their_paragraph() -> None:
    box = f"<w:txbxContent>{paragraph('In the box.')}</w:txbxContent>"
    drawn = f"<mc:Choice><w:drawing><wps:txbx>{box}</wps:txbx></w:drawing></mc:Choice>"
    old = f"<mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback>"
    body = paragraph(run("Beside. ") + f"<w:r><mc:AlternateContent>{drawn}{old}</mc:AlternateContent></w:r>")
    assert shown(body + paragraph("After.")) == "Beside.\n\nIn the box.\n\nAfter."
    assert shown(paragraph(f"<w:r><w:pict><v:textbox>{box}</v:textbox></w:pict></w:r>")) == "In the box."


def test_headings_are_known_by_style_in_any_language_and_by_outline_level() -> None:
    outlined = '<w:outlineLvl w:val="2"/>'
    body = [
        paragraph("One", style="berschrift1"),
        paragraph("Two", style="Kapitel"),
        paragraph("Three", properties=outlined),
        paragraph("Four", style="Heading4"),
        paragraph("Loop", style="Schleife"),
        paragraph("", style="berschrift1"),
    ]
    read_ = read(package("".join(body), styles=STYLES))
    assert read_.text == "# One\n\n## Two\n\n### Three\n\n#### Four\n\nLoop\n"
    assert [(b.level, b.title) for b in read_.blocks if b.level] == [(1, "One"), (2, "Two"), (3, "Three"), (4, "Four")]


def test_numbers_are_counted_as_word_counts_them() -> None:
    body = [item("a", 1), item("b", 1, 1), item("c", 1, 1), item("d", 1, 2), item("e", 1), item("f", 1, 1)]
    assert shown("".join(body)) == "1. a\n  - a) b\n  - b) c\n    - 1.I d\n2. e\n  - a) f"
    assert shown(item("a", 1) + paragraph("Text.") + item("b", 1) + item("c", 3)) == "1. a\n\nText.\n\n2. b\n\n5. c"
    assert (
        shown(item("bullet", 2) + paragraph("by style", style="Punkt") + item("none", 0))
        == "- bullet\n- by style\n\nnone"
    )


def test_a_numbered_heading_shows_its_number() -> None:
    numbered = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
    assert shown(paragraph("Scope", style="berschrift1", properties=numbered)) == "# 1. Scope"


def test_code_is_known_by_style_or_by_its_font() -> None:
    mono = '<w:rFonts w:ascii="Courier New"/>'
    body = (
        paragraph("def f():", style="Listing")
        + paragraph("", style="Listing")
        + paragraph("    return 1", style="Listing")
    )
    assert shown(body) == "```\ndef f():\n\n    return 1\n```"
    assert shown(paragraph(run("$ ls", mono)) + paragraph(run("a ```", mono))) == "````\n$ ls\na ```\n````"


def test_a_document_typed_in_one_font_is_not_all_code() -> None:
    body = paragraph(run("A typescript of many words. " * 100, '<w:rFonts w:ascii="Courier New"/>'))
    assert "```" not in shown(body)
    assert "`" not in shown(body)


def test_a_table_of_contents_is_not_content() -> None:
    gallery = '<w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj></w:sdtPr>'
    contents = f"<w:sdt>{gallery}<w:sdtContent>{paragraph('Contents')}</w:sdtContent></w:sdt>"
    assert shown(contents + paragraph("One....3", style="TOC1") + paragraph("Text.")) == "Text."


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def test_merged_cells_are_said_once_and_deleted_rows_not_at_all() -> None:
    rows = [
        cell("Mark") + cell("Level", '<w:gridSpan w:val="2"/>'),
        cell("low", '<w:vMerge w:val="restart"/>') + cell("0") + cell("1|2"),
        cell("", "<w:vMerge/>") + cell("2") + cell("3"),
    ]
    table = "".join(f"<w:tr>{row}</w:tr>" for row in rows)
    deleted = f"<w:tr><w:trPr><w:del/></w:trPr>{cell('gone')}</w:tr>"
    expected = "| Mark | Level |  |\n| --- | --- | --- |\n| low | 0 | 1\\|2 |\n|  | 2 | 3 |"
    assert shown(f"<w:tbl>{table}{deleted}</w:tbl>") == expected


def test_a_table_that_only_frames_text_is_text() -> None:
    inner = f"<w:tbl><w:tr>{cell('a')}{cell('b')}</w:tr></w:tbl>"
    assert shown(f"<w:tbl><w:tr>{cell('Boxed.')}</w:tr></w:tbl>") == "Boxed."
    assert shown(f"<w:tbl><w:tr>{cell('x')}<w:tc>{inner}</w:tc></w:tr></w:tbl>") == "x\n\n| a | b |\n| --- | --- |"


def test_a_document_made_by_a_program_reads_well() -> None:
    document = docx.Document()
    document.core_properties.title = ""
    document.add_heading("Wintering bees", 0)
    document.add_paragraph("How to keep a hive ").add_run("alive").bold = True
    document.add_heading("What you need", 1)
    document.add_paragraph("sugar", style="List Bullet")
    document.add_paragraph("a mouse guard", style="List Bullet")
    document.add_paragraph("weigh", style="List Number")
    document.add_paragraph("feed", style="List Number")
    document.add_paragraph("Bees do not sleep.", style="Quote")
    font = document.add_paragraph().add_run("hive --weigh").font
    font.name, font.size = "Courier New", Pt(10)
    table = document.add_table(rows=2, cols=2)
    for place, text in zip(((0, 0), (0, 1), (1, 0), (1, 1)), ("Year", "Sugar", "1998", "16 kg"), strict=True):
        table.cell(*place).text = text
    document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
    document.sections[0].header.paragraphs[0].text = "Page header"
    document.sections[0].footer.paragraphs[0].text = "Page footer"
    parsed = read(saved(document))
    assert parsed.title == "Wintering bees"
    assert parsed.text == (
        "# Wintering bees\n\nHow to keep a hive alive\n\n# What you need\n\n- sugar\n- a mouse guard\n\n"
        "1. weigh\n2. feed\n\n> Bees do not sleep.\n\n```\nhive --weigh\n```\n\n"
        "| Year | Sugar |\n| --- | --- |\n| 1998 | 16 kg |\n"
    )


def test_a_title_comes_from_the_properties_then_the_page_then_a_heading() -> None:
    def title(name: str, *headings: tuple[str, int]) -> str:
        document = docx.Document()
        document.core_properties.title = name
        for text, level in headings:
            document.add_heading(text, level)
        return read(saved(document)).title

    assert title("Named", ("Shown", 0)) == "Named"
    assert title("Microsoft Word - x.doc", ("First", 2), ("Shown", 0)) == "Shown"
    assert title("", ("First", 2)) == "First"
    assert title("") == "File name"


def bomb() -> bytes:
    return packed({"word/document.xml": "0" * 30_000_000})


def many_files() -> bytes:
    return packed({f"{number}": "" for number in range(10_001)})


def lying_bomb() -> bytes:
    """Its directory promises a few bytes, its content is many."""
    content = bytearray(package("x" * 5_000_000))
    directory = content.rfind(b"PK\x01\x02", 0, content.find(b"word/document.xml", content.find(b"PK\x01\x02")))
    content[directory + 24 : directory + 28] = struct.pack("<I", 100)
    return bytes(content)


def entities(declaration: str, *, encoding: str = "utf-8") -> bytes:
    content = package("<w:p/>")
    xml = f"<?xml version='1.0' encoding='{encoding}'?>{declaration}<document>&a;</document>"
    buffer = BytesIO()
    with ZipFile(BytesIO(content)) as source, ZipFile(buffer, "w", ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, xml.encode(encoding) if name == "word/document.xml" else source.read(name))
    return buffer.getvalue()


_ENTRY = b"PK\x01\x02\x14\x03\x14\x00"  # of a directory; then come the flags, and the first says "encrypted"
_LAUGHS = "<!DOCTYPE x [<!ENTITY a '" + "&b;" * 50 + "'><!ENTITY b '" + "c" * 1000 + "'>]>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a Word document"),
        (b"Dear Sir or Madam", "not a Word document"),
        (package("<w:p/>")[:-40], "not a Word document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "password-protected"),
        (packed({"readme.txt": "hello"}), "no Word document"),
        (bomb, "ZIP bomb"),
        (many_files, "10,001 files"),
        (lying_bomb, "damaged|cannot be read"),
        (package("<w:p>"), "cannot be read"),
        (package("<w:p/>").replace(_ENTRY + b"\x00", _ENTRY + b"\x01"), "password-protected"),
        (entities(_LAUGHS), "XML entities"),
        (entities(_LAUGHS, encoding="utf-16"), "XML entities"),
        (entities("<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>"), "XML entities"),
        (entities("<!DOCTYPE x SYSTEM 'http://x.org/x.dtd'>"), "XML entities"),
        (entities(""), "cannot be read"),
        (package("<w:ins>" * 300 + "</w:ins>" * 300), "200 levels deep"),
        (packed({"_rels/.rels": "<a/>", "word/document.xml": "<a/>"}), "no Word document"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_with_a_reason(
    content: bytes | Callable[[], bytes], message: str
) -> None:
    """What takes long to make is made here: every process of a run collects all tests."""
    with pytest.raises(UnreadableFile, match=message):
        read_docx(content() if callable(content) else content, fallback_title="F")


def _in_boxes(depth: int) -> str:
    inner = run("deep")
    for _ in range(depth):
        inner = f"<w:r><w:pict><w:txbxContent><w:p>{inner}</w:p></w:txbxContent></w:pict></w:r>"
    return inner


_deep_tables = paragraph("deep")
for _ in range(60):  # of three levels each
    _deep_tables = f"<w:tbl><w:tr><w:tc>{_deep_tables}</w:tc></w:tr></w:tbl>"

HOSTILE = {
    "tables in tables": _deep_tables,
    "insertions": "<w:p>" + "<w:ins>" * 190 + run("deep") + "</w:ins>" * 190 + "</w:p>",
    "boxes": paragraph(_in_boxes(45)),
    "fractions": "<w:p><m:oMath>" + "<m:f><m:num>" * 95 + "</m:num></m:f>" * 95 + "</m:oMath></w:p>",
    "fields": "<w:p>" + '<w:r><w:fldChar w:fldCharType="begin"/></w:r>' * 20_000 + run("x") + "</w:p>",
    "links": "<w:p>" + ('<w:hyperlink r:id="rId1">' + run("x") + "</w:hyperlink>") * 5_000 + "</w:p>",
    "spans": "<w:tbl>" + ("<w:tr>" + cell("x", '<w:gridSpan w:val="999"/>') * 3 + "</w:tr>") * 300 + "</w:tbl>",
    "letters": paragraph("a" * 200_000),
    "backticks": paragraph("`" * 100_000),
    "items": item("x", 1, 8) * 3_000,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_body_is_read_in_reasonable_time(body: str) -> None:
    random = "".join(chr(33 + (n * n * 7919 + n) % 57) for n in range(60_000)).replace("<", "").replace("&", "")
    content = package(body + paragraph(random), styles=STYLES, numbering=NUMBERING)
    parsed = read_docx(content, fallback_title="F")
    assert "deep" in parsed.text or "deep" not in body


_texts = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=40)
_paragraph = st.tuples(
    _texts, st.sampled_from([None, "Heading 1", "List Bullet", "List Number", "Quote", "Title", "macro"])
)


@given(st.lists(_paragraph, max_size=8))
@settings(max_examples=25)
def test_any_paragraphs_give_a_sound_document(paragraphs: list[tuple[str, str | None]]) -> None:
    document = docx.Document()
    for text, style in paragraphs:
        document.add_paragraph(text, style=style)
    content = saved(document)
    parsed = read(content)
    assert parsed == read(content)


@given(st.lists(st.text(alphabet="abc é漢.,", min_size=1, max_size=30).filter(str.strip), min_size=1, max_size=8))
def test_no_word_of_a_paragraph_is_lost(paragraphs: list[str]) -> None:
    assert shown("".join(map(paragraph, paragraphs))).split() == " ".join(paragraphs).split()


_TAGS = [
    "w:p",
    "w:r",
    "w:tbl",
    "w:tr",
    "w:tc",
    "w:ins",
    "w:del",
    "w:hyperlink",
    "w:sdt",
    "w:sdtContent",
    "w:txbxContent",
]
_TAGS += ["w:pict", "mc:AlternateContent", "mc:Choice", "m:oMath", "m:f", "m:num", "w:pPr", "w:numPr", "w:rPr", "w:t"]
_leaves = st.sampled_from(["<w:t>word</w:t>", "<w:br/>", '<w:pStyle w:val="Listing"/>', '<w:numId w:val="1"/>',
                           "x", '<w:footnoteReference w:id="4"/>', '<w:fldChar w:fldCharType="end"/>', "<w:vMerge/>"]
)  # fmt: skip


def _around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(_TAGS), st.lists(inner, max_size=4)).map(
        lambda pair: f"<{pair[0]}>{''.join(pair[1])}</{pair[0]}>"
    )


@given(st.recursive(_leaves, _around, max_leaves=30))
@settings(max_examples=150)
def test_any_nesting_of_elements_gives_a_sound_document(body: str) -> None:
    shown(f"{body}<w:p>{body}</w:p>")


@given(st.data())
@settings(max_examples=150)
def test_a_damaged_file_is_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(package(paragraph("Text"), styles=STYLES))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableFile):
        assert_sound(read_docx(bytes(content), fallback_title="F"))

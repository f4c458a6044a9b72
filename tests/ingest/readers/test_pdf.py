"""A PDF is read as a person would read its pages, and every word is found on its page."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from citewell.errors import UnreadableFile
from citewell.ingest.readers.pdf import read_pdf
from citewell.ingest.readers.pdf.blocks import OutlineEntry, build_document
from citewell.ingest.readers.pdf.layout import lines_in_order, without_running_lines
from citewell.ingest.readers.pdf.lines import Line, Piece, clean, collect_words, contents_entry, join_lines
from citewell.ingest.readers.pdf.tables import table_at
from citewell.models import ParsedDocument
from tests.ingest.readers.pdf_files import Word, body, make_pdf, picture, rules


def read(*pages: Sequence[Word], fallback_title: str = "File") -> ParsedDocument:
    return read_pdf(make_pdf(pages), fallback_title=fallback_title)


def check_blocks(parsed: ParsedDocument) -> None:
    text, blocks = parsed.text, parsed.blocks
    for block in blocks:
        assert 0 <= block.start < block.end <= len(text)
        assert block.start == 0 or text[block.start - 1] == "\n"
        assert block.end == len(text) or text[block.end - 1] == "\n"
        assert (block.kind == "heading") == (1 <= block.level <= 6)
    for before, after in pairwise(blocks):
        assert before.end <= after.start
        assert not text[before.end : after.start].strip()
    outside = text[: blocks[0].start] + text[blocks[-1].end :] if blocks else text
    assert not outside.strip()
    assert list(parsed.page_starts) == sorted(parsed.page_starts)
    starts = {block.start for block in blocks}
    assert all(start in starts or start in (0, len(text)) for start in parsed.page_starts)


PROSE = (
    "The pump moves water from the lower tank into the upper one, and it",
    "does so at any hour of the day, which makes it the loudest part of the",
    "whole system.",
)


def test_lines_become_paragraphs_and_gaps_part_them() -> None:
    parsed = read([*body(*PROSE), *body(*PROSE, top=630)])
    assert parsed.text == f"{' '.join(PROSE)}\n\n{' '.join(PROSE)}\n"
    assert [block.kind for block in parsed.blocks] == ["text", "text"]
    check_blocks(parsed)


def test_an_indented_line_after_a_sentence_begins_a_paragraph() -> None:
    full = "The valve is closed as long as nobody turns the wheel on its back side."
    parsed = read([(full, 90, 700, 11), (full, 72, 686, 11), (full, 90, 672, 11), (full, 72, 658, 11)])
    assert parsed.text == f"{full} {full}\n\n{full} {full}\n"


def test_a_line_that_ends_before_it_must_ends_its_paragraph() -> None:
    parsed = read(body(*PROSE, "Another thought begins here, although there is no gap before it at all."))
    assert len(parsed.blocks) == 2


def test_larger_and_bold_lines_are_headings() -> None:
    parsed = read(
        [
            ("Pumps and Valves", 72, 740, 24),
            ("Pumps", 72, 700, 16),
            *body(*PROSE, top=670),
            ("Small pumps", 72, 610, 11, "F2"),
            *body(*PROSE, top=590),
            ("Valves", 72, 500, 16),
            *body(*PROSE, top=480),
        ]
    )
    headings = [(block.level, block.title) for block in parsed.blocks if block.kind == "heading"]
    assert headings == [(1, "Pumps and Valves"), (2, "Pumps"), (3, "Small pumps"), (2, "Valves")]
    assert parsed.title == "Pumps and Valves"
    assert "\n### Small pumps\n\nThe pump" in parsed.text
    check_blocks(parsed)


def test_the_outline_names_headings_that_look_like_text() -> None:
    pages = [body("2. Valves", "", *PROSE), [*body("Valves"), *body(*PROSE, top=660)]]
    content = make_pdf(pages, outline=[("Valves", 1)])
    headings = [block for block in read_pdf(content, fallback_title="F").blocks if block.kind == "heading"]
    assert [(block.level, block.title, block.anchor) for block in headings] == [(1, "Valves", "")]


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ("The Pump Handbook", "The Pump Handbook"),
        ("Microsoft Word - pumps_final2.doc", "Largest"),
        ("pumps.indd", "Largest"),
        ("untitled", "Largest"),
        ("Document1", "Largest"),
        ("", "Largest"),
    ],
)
def test_the_title_is_the_metadata_s_where_that_makes_sense(metadata: str, title: str) -> None:
    content = make_pdf([[("Largest", 72, 740, 24), *body(*PROSE)]], title=metadata)
    assert read_pdf(content, fallback_title="File").title == title


def test_without_any_title_the_fallback_is_it() -> None:
    assert read(body(*PROSE), fallback_title="Pump manual").title == "Pump manual"


def test_bullets_become_list_items_of_one_group() -> None:
    items = [("\x95", 80, 640, 11), ("first item, which is long enough to need", 95, 640, 11)]
    items += [("another line", 95, 626, 11), ("\x95", 80, 612, 11), ("second item", 95, 612, 11)]
    words: list[Word] = [*body(*PROSE), *((text.replace("\x95", "•"), x, y, size) for text, x, y, size in items)]
    parsed = read([*words, *body(*PROSE, top=580)])
    assert "\n- first item, which is long enough to need another line\n- second item\n\nThe" in parsed.text
    listed = [block for block in parsed.blocks if block.kind == "list"]
    assert len(listed) == 2
    assert len({block.group for block in listed}) == 1
    check_blocks(parsed)


def test_numbers_before_items_stay() -> None:
    parsed = read([*body("Do this:", "1. Open the valve.", "2. Start the pump.")])
    assert "1. Open the valve.\n2. Start the pump.\n" in parsed.text
    assert [block.kind for block in parsed.blocks] == ["text", "list", "list"]


def test_a_table_s_rows_are_pipe_rows() -> None:
    rows = [("Plan", "Cost", "Visits"), ("Standard", "$20", "12"), ("Plus", "$45", "unlimited")]
    words = [(cell, 72 + 150 * c, 600 - 16 * r, 11.0) for r, row in enumerate(rows) for c, cell in enumerate(row)]
    parsed = read([*body(*PROSE), *words, *body(*PROSE, top=500)])
    table = "| Plan | Cost | Visits |\n| --- | --- | --- |\n| Standard | $20 | 12 |\n| Plus | $45 | unlimited |\n"
    (block,) = (block for block in parsed.blocks if block.kind == "table")
    assert parsed.text[block.start : block.end] == table
    assert block.group is not None
    check_blocks(parsed)


def test_a_cell_of_two_lines_is_one_cell() -> None:
    words: list[Word] = [("Plan", 72, 600, 11), ("Note", 200, 600, 11), ("Plus", 72, 580, 11)]
    words += [("covers teeth", 200, 580, 11), ("and eyes", 200, 567, 11), ("Basic", 72, 545, 11), ("no", 200, 545, 11)]
    assert "| Plus | covers teeth and eyes |\n| Basic | no |\n" in read([*body(*PROSE), *words]).text


PRICES = [
    ("Plan", "Employee", "Employee and family"),
    ("Northwind Standard", "$45.00", "$125.50"),
    ("Northwind Health Plus", "$85.00", ""),
    ("Vision", "none", "$12.25"),
]


def draw_table(
    rows: Sequence[Sequence[str]], *, width: float, by_column: bool
) -> tuple[list[Word], list[float], list[float]]:
    """The cells of a table as words, and the places of its vertical and horizontal rules."""
    columns, heights = range(len(rows[0])), [600 - 18.0 * row for row in range(len(rows))]
    places = [(row, column) for row in range(len(rows)) for column in columns]
    if by_column:
        places.sort(key=lambda place: (place[1], place[0]))
    words: list[Word] = [(rows[row][column], 72 + width * column, heights[row], 10.0) for row, column in places]
    verticals = [68 + width * column for column in range(len(rows[0]) + 1)]
    return [word for word in words if word[0]], verticals, [612.0, *(height - 6 for height in heights)]


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("boxes", [False, True])
@pytest.mark.parametrize("width", [108, 140])  # so narrow that words of two cells nearly touch
def test_a_ruled_table_keeps_rows_columns_and_header(by_column: bool, boxes: bool, width: float) -> None:
    words, verticals, horizontals = draw_table(PRICES, width=width, by_column=by_column)
    drawn = rules(verticals, horizontals, boxes=boxes)
    content = make_pdf([[*body(*PROSE), *words, *body(*PROSE, top=480)]], drawings={0: drawn})
    parsed = read_pdf(content, fallback_title="F")
    (table,) = (parsed.text[block.start : block.end] for block in parsed.blocks if block.kind == "table")
    assert table == (
        "| Plan | Employee | Employee and family |\n| --- | --- | --- |\n| Northwind Standard | $45.00 | $125.50 |\n"
        "| Northwind Health Plus | $85.00 |  |\n| Vision | none | $12.25 |\n"
    )
    assert parsed.text.index("system.") < parsed.text.index("| Plan") < parsed.text.rindex("The pump")
    assert parsed.warnings == ()
    check_blocks(parsed)


def test_rows_that_only_a_frame_and_a_header_rule_hold_together_are_rows() -> None:
    words, verticals, horizontals = draw_table([PRICES[0], PRICES[1], PRICES[3], PRICES[1]], width=140, by_column=False)
    frame = [horizontals[0], horizontals[1], horizontals[-1]]
    content = make_pdf([[*body(*PROSE), *words]], drawings={0: rules(verticals, frame)})
    assert "\n| Northwind Standard | $45.00 | $125.50 |\n| Vision | none" in read_pdf(content, fallback_title="F").text


def test_a_cell_of_several_lines_stays_in_its_row() -> None:
    words: list[Word] = [("Plan", 72, 600, 10), ("Covers", 200, 600, 10), ("Gold", 72, 580, 10)]
    words += [
        ("teeth, eyes and robo-", 200, 580, 10),
        ("tics", 200, 568, 10),
        ("Iron", 72, 550, 10),
        ("nothing", 200, 550, 10),
    ]
    drawn = rules([68, 196, 320], [612, 594, 562, 544])
    content = make_pdf([[*body(*PROSE), *words]], drawings={0: drawn})
    table = "| Plan | Covers |\n| --- | --- |\n| Gold | teeth, eyes and robotics |\n| Iron | nothing |\n"
    assert table in read_pdf(content, fallback_title="F").text


def test_a_box_around_paragraphs_is_no_table() -> None:
    drawn = rules([60, 560], [720, 640]) + rules([60, 300, 560], [600, 500])
    content = make_pdf(
        [[*body(*PROSE), *body("One box.", top=560), *body("Another box.", top=560, x=310)]], drawings={0: drawn}
    )
    parsed = read_pdf(content, fallback_title="F")
    assert {block.kind for block in parsed.blocks} == {"text"}
    assert parsed.text.startswith(" ".join(PROSE))


def test_a_table_over_two_pages_keeps_the_header_of_each_page() -> None:
    words, verticals, horizontals = draw_table(PRICES, width=140, by_column=False)
    content = make_pdf([words] * 4, drawings=dict.fromkeys(range(4), rules(verticals, horizontals)))
    assert read_pdf(content, fallback_title="F").text.count("| Plan |") == 4


@pytest.mark.parametrize("by_column", [False, True])
def test_a_table_of_figures_in_columns_without_rules_keeps_its_rows(by_column: bool) -> None:
    words, _, _ = draw_table(PRICES, width=140, by_column=by_column)
    text = read([*body(*PROSE), *words, *body(*PROSE, top=480)]).text
    assert "| Plan | Employee | Employee and family |\n| --- | --- | --- |\n" in text
    assert "\n| Northwind Standard | $45.00 | $125.50 |\n| Northwind Health Plus | $85.00 |" in text
    assert text.count("The pump") == 2


def test_pages_that_are_only_a_picture_are_named_in_one_warning() -> None:
    scan = picture(0, 0, 612, 792)
    content = make_pdf(
        [body(*PROSE), [], [], body(*PROSE), [], []], drawings={1: scan, 2: scan, 4: scan, 0: picture(9, 9, 40, 40)}
    )
    parsed = read_pdf(content, fallback_title="F")
    assert parsed.warnings == ("pages 2-3, 5: only a picture, of which nothing was read; run OCR first",)


def test_a_large_picture_beside_text_is_a_warning_and_a_backdrop_is_none() -> None:
    table_as_picture = make_pdf([body(*PROSE)], drawings={0: picture(72, 389, 459, 181)})
    assert read_pdf(table_as_picture, fallback_title="F").warnings == (
        "page 1: a large picture; text in it, if there is any, was not read; run OCR first",
    )
    backdrop = make_pdf([body(*PROSE)], drawings={0: picture(0, 0, 612, 792)})
    assert read_pdf(backdrop, fallback_title="F").warnings == ()


# "a. " and the like are the marks of a list, which the text has as "- ".
_CELL = (
    st.text(alphabet="abc $.19", max_size=12)
    .map(lambda text: " ".join(text.split()))
    .filter(lambda text: not re.match(r"[a-c]\.(?: |$)", text))
)
_tables = st.lists(
    st.lists(_CELL, min_size=3, max_size=3),
    min_size=2,
    max_size=6,
)


@given(_tables, st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=60)
def test_no_word_of_a_table_is_lost(rows: list[list[str]], by_column: bool, ruled: bool, boxes: bool) -> None:
    words, verticals, horizontals = draw_table(rows, width=140, by_column=by_column)
    drawn = rules(verticals, horizontals, boxes=boxes) if ruled else b""
    parsed = read_pdf(make_pdf([[*body(*PROSE), *words]], drawings={0: drawn}), fallback_title="F")
    letters = Counter("".join([*PROSE, *(word[0] for word in words)]).replace(" ", ""))
    written = Counter(parsed.text.replace(" ", ""))
    assert not letters - written
    check_blocks(parsed)


def test_typewriter_lines_are_a_fenced_block() -> None:
    code: list[Word] = [("def pump():", 72, 600, 10, "F3"), ("return 1", 96, 588, 10, "F3")]
    parsed = read([*body(*PROSE), *code, *body(*PROSE, top=560)])
    assert "\n```\ndef pump():\n    return 1\n```\n" in parsed.text
    assert [block.kind for block in parsed.blocks] == ["text", "code", "text"]
    check_blocks(parsed)


LEFT = [f"left column line {n:02d} goes on and on to the edge" for n in range(12)]
RIGHT = [f"right column line {n:02d} goes on and on to the end" for n in range(12)]


@pytest.mark.parametrize("line_by_line", [True, False])
def test_two_columns_are_read_one_after_the_other(line_by_line: bool) -> None:
    left, right = body(*LEFT, x=50, size=9), body(*RIGHT, x=320, size=9)
    words = [word for pair in zip(left, right, strict=True) for word in pair] if line_by_line else [*left, *right]
    parsed = read([("A title over both of the columns", 72, 740, 20), *words])
    assert parsed.text.index("left column line 11") < parsed.text.index("right column line 00")
    assert "00 goes on and on to the edge left column line 01" in parsed.text


def test_a_word_broken_at_a_line_end_is_mended() -> None:
    full = "This line is about robotics and long-term planning in the lab and robo-"
    assert "robotics here" in read(body(full, "tics here and there.")).text
    assert (
        "the state-of-the-art machine" in read(body("We have built for the lab the state-of-the-", "art machine.")).text
    )


def test_headers_footers_and_page_numbers_go() -> None:
    pages = [
        [
            ("Pump Handbook 2026", 72, 760, 9),
            *body(f"Page text {name} is here.", *PROSE),
            (f"Page {n} of 4", 280, 30, 9),
        ]
        for n, name in enumerate(("alpha", "beta", "gamma", "delta"), start=1)
    ]
    text = read(*pages).text
    assert "Handbook" not in text
    assert "of 4" not in text
    assert text.count("Page text") == 4


def test_two_pages_are_too_few_to_tell_a_header_from_text() -> None:
    assert read(*[[("Twice", 72, 760, 11), *body(*PROSE)]] * 2).text.count("Twice") == 2


def test_every_page_has_a_start_also_the_empty_ones() -> None:
    parsed = read([], body("One."), [], body("Two."), [])
    assert parsed.text == "One.\n\nTwo.\n"
    assert parsed.page_starts == (0, 0, 6, 6, 11)
    assert bisect_right(parsed.page_starts, parsed.text.index("One")) == 2
    assert bisect_right(parsed.page_starts, parsed.text.index("Two")) == 4
    check_blocks(parsed)


def test_a_sentence_over_a_page_break_stays_readable() -> None:
    parsed = read(body(*PROSE[:2]), body(*PROSE[2:]))
    assert parsed.text == f"{PROSE[0]} {PROSE[1]}\n{PROSE[2]}\n"
    assert parsed.text[parsed.page_starts[1] :].startswith(PROSE[2])
    check_blocks(parsed)


def test_a_turned_page_is_read_all_the_same() -> None:
    turned = b"BT /F1 11 Tf 0 1 -1 0 %d 72 Tm (%s) Tj ET"
    upright = make_pdf([[("XX", 0, 0, 1), ("YY", 0, 0, 1)]], rotate=90)
    content = upright.replace(
        b"BT /F1 1.00 Tf 1 0 0 1 0.00 0.00 Tm (XX) Tj ET", turned % (100, b"Turned line one, which")
    )
    content = content.replace(b"BT /F1 1.00 Tf 1 0 0 1 0.00 0.00 Tm (YY) Tj ET", turned % (114, b"goes on here."))
    assert read_pdf(content, fallback_title="F").text == "Turned line one, which goes on here.\n"


def test_a_password_is_asked_for_unless_it_is_empty() -> None:
    with pytest.raises(UnreadableFile, match=r"^password-protected; remove the password and try again$"):
        read_pdf(make_pdf([body(*PROSE)], password="secret"), fallback_title="F")
    assert read_pdf(make_pdf([body(*PROSE)], password=""), fallback_title="F").text.startswith("The pump")


@pytest.mark.parametrize(
    "content",
    [b"", b"%PDF-1.4\n%%EOF", b"\0" * 5000, make_pdf([body(*PROSE)])[:-40], make_pdf([body(*PROSE)] * 9)[:3000]],
    ids=["empty", "header only", "zeros", "end missing", "half"],
)
def test_a_broken_file_says_so(content: bytes) -> None:
    with pytest.raises(UnreadableFile, match="not a PDF, or"):
        read_pdf(content, fallback_title="F")


def test_a_scan_asks_for_ocr() -> None:
    with pytest.raises(UnreadableFile, match=r"^no text in it \(a scan\?\); run OCR first$"):
        read([], [])


def test_too_many_pages_are_refused() -> None:
    with pytest.raises(UnreadableFile, match=r"^5,001 pages; split it"):
        read(*[[]] * 5001)


def test_threads_take_turns() -> None:
    contents = [make_pdf([body(f"Number {n}.", *PROSE)] * 3) for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda content: read_pdf(content, fallback_title="F").text, contents))
    assert [f"Number {n}." in text for n, text in enumerate(texts)] == [True] * 8


@given(st.data())
@settings(max_examples=60)
def test_a_damaged_file_is_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(make_pdf([body(*PROSE)] * 3, title="Pumps", outline=[("Pumps", 0)]))
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=12)):
        content[position] = data.draw(st.integers(0, 255))
    with suppress(UnreadableFile):
        check_blocks(read_pdf(bytes(content), fallback_title="F"))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("eﬃ\u00adcient \u00a0ﬂow\x07", "efficient flow"),
        ("oﬀ\ufffe ﬁrst\uffff", "off first"),
        ("ends with a soft\u00ad", "ends with a soft\u00ad"),
        ("\ud83d\ude00 fine \ud83d", "😀 fine"),
        ("e\u0301te\u0301", "été"),
        ("", ""),
    ],
)
def test_text_is_cleaned_as_it_would_be_typed(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@pytest.mark.parametrize(
    ("first", "second", "known", "joined"),
    [
        ("robo-", "tics", "", "robotics"),
        ("state-of-the-", "art", "", "state-of-the-art"),
        ("long-", "term", "long term", "long-term"),
        ("long-", "term", "long-term", "long-term"),
        ("in-", "formation", "in formation information", "information"),
        ("Anglo-", "American", "", "Anglo-American"),
        ("2020-", "21 saw", "", "2020-21 saw"),
        ("soft\u00ad", "ware", "", "software"),
        ("a dash -", "here", "", "a dash - here"),
        ("泵将水", "送上去", "", "泵将水送上去"),
        ("one", "two", "", "one two"),
    ],
)
def test_lines_are_joined_as_they_were_broken(first: str, second: str, known: str, joined: str) -> None:
    assert join_lines(first, second, frozenset(known.split())) == joined


def test_a_line_of_contents_loses_its_dots() -> None:
    assert contents_entry("Pumps and valves . . . . . . . . 12") == "Pumps and valves … 12"
    assert contents_entry("Wait ..... what is this") is None
    assert contents_entry("Plain text") is None


def test_a_heading_of_the_outline_needs_the_right_page() -> None:
    pages = [[line(Piece("Valves", 72, 110, 700, 11))], [line(Piece("Valves", 72, 110, 700, 11))]]
    kinds = [
        block.kind for block in build_document(pages, outline=[OutlineEntry("Valves", 1, 2)], fallback_title="F").blocks
    ]
    assert kinds == ["text", "heading"]


def line(*cells: Piece) -> Line:
    return Line(cells, cells[0].size, cells[0].bold, cells[0].mono)


_text = st.one_of(
    st.sampled_from(["•", "1.", "- a", "| a", "# b", "$$", "```", "Pump", "robo-", "tics", "Page 3", "A … 4", "o"]),
    st.text(alphabet="ab -.•|#`$1é漢\u00ad", min_size=1, max_size=20).map(clean).filter(bool),
)
_pieces = st.lists(
    st.builds(
        lambda text, left, row, size, bold, mono: Piece(
            text, left, left + len(text) * size / 2, row * 12, size, bold, mono
        ),
        _text,
        st.sampled_from([50.0, 60.0, 200.0, 320.0]),
        st.integers(0, 60),
        st.sampled_from([9.0, 11.0, 11.0, 16.0]),
        st.booleans(),
        st.booleans(),
    ),
    max_size=25,
)


@given(_pieces)
def test_ordering_lines_loses_no_words(pieces: list[Piece]) -> None:
    words = sorted("".join(piece.text for piece in pieces).replace(" ", ""))
    assert sorted("".join(line.text for line in lines_in_order(pieces)).replace(" ", "")) == words


@given(st.lists(_pieces, max_size=5))
def test_whatever_stands_on_pages_gives_sound_blocks(pages: list[list[Piece]]) -> None:
    parsed = build_document([lines_in_order(page) for page in pages], fallback_title="F")
    check_blocks(parsed)
    assert len(parsed.page_starts) == len(pages)
    assert parsed.title


@given(_text, _text, st.frozensets(_text))
def test_joining_lines_keeps_every_letter(first: str, second: str, known: frozenset[str]) -> None:
    joined = join_lines(first, second, known)
    assert [mark for mark in joined if mark.isalnum()] == [mark for mark in first + second if mark.isalnum()]


@pytest.mark.parametrize(
    "page",
    [
        [Piece("x" * 100_000, 0, 500, 700, 11)],
        [Piece(". " * 50_000, 0, 500, 700, 11)],
        [Piece("•", 30 * (n % 9), 30 * (n % 9) + 5, 700 - n // 9, 11) for n in range(30_000)],
        [Piece("ab-", 72 + 200 * (n % 2), 80 + 200 * (n % 2), 700 - 12 * (n // 2), 11) for n in range(30_000)],
        [Piece("a", 50 * n, 50 * n + 5, 700, 11) for n in range(30_000)],
        [Piece("-" * 50_000 + "a-" * 20_000, 0, 500, 700, 11)] * 3,
    ],
    ids=["one word", "dots", "bullets", "two columns of stubs", "one endless row", "dashes"],
)
def test_hostile_pages_are_read_in_reasonable_time(page: list[Piece]) -> None:
    lines = lines_in_order(page)
    collect_words([lines])
    without_running_lines([lines] * 3, body_size=11)
    check_blocks(build_document([lines], fallback_title="F"))
    table_at(lines, 0, frozenset())

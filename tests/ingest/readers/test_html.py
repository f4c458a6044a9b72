"""A page is read as its reader sees it, without the site around it."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from citewell.errors import UnreadableFile
from citewell.ingest.readers.html import decode, read_html
from citewell.models import ParsedDocument
from tests.ingest.readers.soundness import assert_sound

PAGES = Path(__file__).parent / "pages"


def read(source: str) -> ParsedDocument:
    parsed = read_html(source.encode(), fallback_title="File name")
    assert_sound(parsed)
    return parsed


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>One\n  <b>two</b>\tthree</p>", "One two three"),
        ("<p>a<b> b </b>c<i>d</i></p>", "a b cd"),
        (
            "<p>5&nbsp;kg &lt; 6&#160;kg &amp;amp; caf&eacute; &#x2014; soft&shy;ly</p>",
            "5 kg < 6 kg &amp; café — softly",
        ),
        ("<p>one<br>two<br/>three</p>", "one\ntwo\nthree"),
        ("one<br><br>two", "one\n\ntwo"),
        ("<p>one<p>two<div>three</div>four", "one\n\ntwo\n\nthree\n\nfour"),
        ("<p>Use <code>a  b</code>, <code>a`b</code> or <tt>c</tt>.</p>", "Use `a b`, `` a`b `` or `c`."),
        ("<p>see<a href='https://x.org/a b'> it</a>.</p>", "see [it](https://x.org/ab)."),
        ("<a href='HTTP://x.org/(a)'><code>a</code></a>", "[`a`](HTTP://x.org/%28a%29)"),
        ("<a href='/b'>b</a> <a href='javascript:x()'>c</a> <a href='mailto:d@e.f'>d</a>", "b c d"),
        ("<a href='https://x.org'>https://x.org</a><a href='https://y.org'></a>", "https://x.org"),
        ("<a href='https://x.org'><h3>Card</h3><p>Text</p></a>", "### Card\n\nText"),
        ("<p>10<sup>6</sup> m, 1<sup>st</sup>, H<sub>2</sub>O</p>", "10^6 m, 1st, H2O"),
        (
            "<p>2<sup>n − 1</sup>, x<sup>-2</sup>, Acme<sup>TM</sup>, <sup>co-op</sup></p>",
            "2^(n − 1), x^-2, AcmeTM, co-op",
        ),
        ("<p>So.<sup><a href='#fn1'>[1]</a></sup></p>", "So.[^1]"),
        ("<img alt='A pump' src=x> <img alt='IMG_1.png'> <img src=y>", "A pump"),
        ("<p>He said <q>no</q>.</p>", "He said “no”."),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", "漢kan"),
    ],
)
def test_words_are_what_a_browser_shows(source: str, expected: str) -> None:
    assert read(source).text == expected + "\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"),
        ("<ol start=9><li>a<li><p>b</p><p>c</p></ol>", "9. a\n10. b\n\n    c"),
        ("<ul><li>a</li><ul><li>b</li></ul></ul>", "- a\n  - b"),
        ("<ul><li><pre>x</pre></ul>", "- ```\n  x\n  ```"),
        ("<ul><li></li><li> </li><li>a</li></ul>", "- a"),
        ("<ul><p>Indented by hand.</p></ul>", "Indented by hand."),
        ("<ul><li><h3>Card</h3>Text</ul>", "- Card\n\n  Text"),
        ("<blockquote><p>a</p><ul><li>b</ul></blockquote>", "> a\n\n> - b"),
        ("<dl><dt>a<dt>b<dd>c<dt>d:<dd><ul><li>e</ul><dt>f</dl>", "- a, b: c\n- d:\n  - e\n- f"),
        ("<details><summary>More</summary>Hidden.</details>", "More\n\nHidden."),
        ("<div class=admonition><p class=admonition-title>note</p><p>Hot.</p></div>", "Note: Hot."),
        ("<pre><code class='language-py'>\nx = 1\n  y</code></pre>", "```py\nx = 1\n  y\n```"),
        ("<div class='highlight-sh notranslate'><pre>a\n```\nb</pre></div>", "````sh\na\n```\nb\n````"),
        ("<pre>a<br>b<div>c</div>d</pre>", "```\na\nb\nc\nd\n```"),
        ("<pre> \n</pre>", ""),
        ("<p>``` is a fence</p><p># is a hash</p>", "\\``` is a fence\n\n\\# is a hash"),
        ("<math><mfrac><mi>a</mi><mi>b</mi></mfrac><mo>=</mo><msup><mi>c</mi><mn>2</mn></msup></math>",
         r"$\frac{a}{b} = c^{2}$"),
        ("<p>a<math display=block alttext='x^2'></math>b</p>", "a\n\n$$\nx^2\n$$\n\nb"),
        ("<p>a <span class='math inline'>\\(x\\)</span></p><p>$$ y $$</p>", "a $x$\n\n$$\ny\n$$"),
        ("a<script type='math/tex; mode=display'>x<y</script>", "a\n\n$$\nx<y\n$$"),
    ],
)  # fmt: skip
def test_blocks_keep_their_form(source: str, expected: str) -> None:
    assert read(source).text == (expected + "\n" if expected else "")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<table><tr><th>a<th>b<tr><td>1<td>2|3</table>", "| a | b |\n| --- | --- |\n| 1 | 2\\|3 |"),
        ("<table><tr><td>a<td>1<tr><td>b<td>2</table>", "|  |  |\n| --- | --- |\n| a | 1 |\n| b | 2 |"),
        ("<table><tr><td><b>a</b><td><b>b</b><tr><td>1<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        (
            "<table><thead><tr><th rowspan=2>n<th colspan=2>2023<tr><th>Q1<th>Q2<tbody><tr><td>x<td>1<td>2</table>",
            "| n | 2023 Q1 | 2023 Q2 |\n| --- | --- | --- |\n| x | 1 | 2 |",
        ),
        (
            "<table><tr><th>a<th>b<th>c<tr><td rowspan=2>x<td colspan=2>y<tr><td>1<td>2</table>",
            "| a | b | c |\n| --- | --- | --- |\n| x | y |\n| x | 1 | 2 |",
        ),
        ("<table><tr><th>a<th>b<tr><td><p>1</p><p>2</p><td><ul><li>x<li>y</ul></table>",
         "| a | b |\n| --- | --- |\n| 1 2 | x; y |"),
        ("<table><caption>Cap</caption><tr><th>a<th>b<tr><td>1<td>2</table>",
         "Cap\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("<table><tr><td><p>One</p><p>cell</table>", "One\n\ncell"),
        ("<table role=presentation><tr><td>a<td>b</table>", "a\n\nb"),
        ("<table><tr><td><h2>A</h2>b<td>c</table>", "## A\n\nb\n\nc"),
        ("<table><tr><th>In<th>Out<tr><td><pre>a\nb</pre><td>c</table>", "In\n\nOut\n\n```\na\nb\n```\n\nc"),
        ("<table><div>lost</div><tr><td>a<td>b</table>", "lost\n\n|  |  |\n| --- | --- |\n| a | b |"),
        ("<table></table><table><tr><td><td></table>", ""),
    ],
)  # fmt: skip
def test_a_table_is_rows_of_cells_unless_it_only_arranges_the_page(source: str, expected: str) -> None:
    assert read(source).text == (expected + "\n" if expected else "")


@pytest.mark.parametrize(
    "hidden",
    [
        "<nav>x</nav>", "<footer>x</footer>", "<aside>x</aside>", "<script>x</script>", "<style>x</style>",
        "<noscript>x</noscript>", "<template>x</template>", "<form>x</form>", "<button>x</button>", "<p hidden>x</p>",
        "<div style='color:red; display: none'>x</div>", "<span aria-hidden=true>x</span>", "<!-- x -->",
        "<div role=navigation>x</div>", "<span class='sr-only'>x</span>", "<svg><title>x</title></svg>",
        "<header><a>x</a></header>", "<select><option>x</select>", "<textarea>x</textarea>", "<dialog>x</dialog>",
    ],
)  # fmt: skip
def test_what_is_not_content_is_gone(hidden: str) -> None:
    assert read(f"<h1>T</h1>a {hidden} b").text.replace("\n\n", " ") == "# T a b\n".replace("\n\n", " ")


def test_a_header_heads_the_text_or_the_site() -> None:
    article = "<header>Site</header><article><header><h1>T</h1><p>By me</p></header>Text of it.</article>"
    assert read(article).text == "# T\n\nBy me\n\nText of it.\n"
    assert read("<header><h1>Site</h1></header><h1>T</h1>").text == "# T\n"
    assert read("<header><h1>T</h1></header>Text").text == "# T\n\nText\n"


def test_a_form_around_the_page_is_not_the_end_of_it() -> None:
    assert read("<form><h1>T</h1><p>Text</p></form>").text == "# T\n\nText\n"


@pytest.mark.parametrize(
    "wrapped",
    [
        "<main>{}</main>", "<div role=main>{}</div>", "<article>{}</article>",
        "<main><div class='x theme-doc-markdown'>{}</div><p>c</p></main>",
        "<main><div class=toc>c</div><div itemprop=articleBody>{}</div></main>",
        "<main>a<article class=bd-article>{}</article></main>",
    ],
)  # fmt: skip
def test_only_the_main_content_is_read(wrapped: str) -> None:
    page = f"<body><div>Site menu</div>{wrapped.format('<p>What the page says.</p>')}<div>Imprint</div></body>"
    assert read(page).text == "What the page says.\n"


def test_cards_do_not_hide_the_text_beside_them() -> None:
    page = "<p>A long text that the page is about.</p><article>Card</article>"
    assert "long text" in read(page).text
    assert "Real text" in read("<main></main><p>Real text</p>").text


def test_a_heading_is_found_under_the_id_a_browser_would_jump_to() -> None:
    page = (
        "<section id=s><h1>One<a class=headerlink href='#s'>¶</a></h1><p>a</p></section>"
        "<h2 id=two>Two <code>x</code></h2>"
        "<h3><a name=three>Three</a></h3><a name=four></a><h4>Four</h4><p>b</p><h5>Five</h5><h6></h6>"
    )
    found = [(block.level, block.title, block.anchor) for block in read(page).blocks if block.kind == "heading"]
    assert found == [(1, "One", "s"), (2, "Two x", "two"), (3, "Three", "three"), (4, "Four", "four"), (5, "Five", "")]


def test_a_heading_that_was_never_closed_ends_at_the_next() -> None:
    assert read("<h1>One<h2>Two</h2>").text == "# One\n\n## Two\n"


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>Setup | Acme Docs</title><h1>Setup</h1>", "Setup"),
        ("<title>Setup - Acme - Docs</title><h1>Setup</h1>", "Setup"),
        ("<title>a — b — Acme 3.1 documentation</title><h1>a — b</h1>", "a — b"),
        ("<title>Acme · Setup</title><h1>Setup</h1>", "Setup"),
        ("<title>Setup | Acme</title><h1>Welcome</h1>", "Setup | Acme"),
        ("<title>Types - The Book</title><h1>The Book</h1><main><h2>Types</h2></main>", "Types"),
        ("<title>  Only\n title </title>Text", "Only title"),
        ("<title> </title><h1>A <em>b</em></h1>", "A b"),
        ("<svg><title>Icon</title></svg><p>Text</p>", "File name"),
        ("", "File name"),
    ],
)
def test_a_title_is_the_pages_own(page: str, title: str) -> None:
    assert read(page).title == title


@pytest.mark.parametrize(
    "content",
    [
        "é–漢".encode(),
        b"\xef\xbb\xbf" + "é–漢".encode(),
        "é–漢".encode("utf-16"),
        b"\xfe\xff" + "é–漢".encode("utf-16-be"),
        b"<meta charset=gb2312>" + "é–漢".encode("gb18030"),
        b'<?xml version="1.0" encoding="Big5"?>' + "漢".encode("big5"),
        b'<META http-equiv="Content-Type" content="text/html; charset=iso-8859-1">\xe9\x96',
        b'<meta charset="windows-1251">\xe9\x96',
        b"<meta charset=rot13><meta charset=unicode_escape>" + "é".encode(),
        b"\xe9\x96",
        b"<meta charset=utf-8>\xe9 \xff",
    ],
)
def test_a_page_is_decoded_as_it_declares(content: bytes) -> None:
    text = decode(content)
    assert any(sign in text for sign in ("é", "й", "漢", "\ufffd"))
    assert_sound(read_html(content, fallback_title="F"))


def test_a_file_that_is_no_text_is_refused() -> None:
    with pytest.raises(UnreadableFile, match="save it as UTF-8"):
        read_html(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", fallback_title="F")


def test_tabs_stand_under_their_labels() -> None:
    tabs = "<ul role=tablist><li role=tab>npm<li role=tab>yarn</ul>"
    page = f"{tabs}<div role=tabpanel>a</div><div role=tabpanel hidden>b</div>"
    assert read(page).text == "npm:\n\na\n\nyarn:\n\nb\n"


def test_items_of_one_list_share_a_group_and_tables_have_their_own() -> None:
    page = "<ul><li>a<ol><li>b</ol></ul><p>c</p><ul><li>d</ul><table><tr><th>e<th>f<tr><td>1<td>2</table>"
    kinds = [(block.kind, block.group) for block in read(page).blocks]
    assert kinds == [("list", 1), ("list", 1), ("text", None), ("list", 2), ("table", 3)]


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.html")), ids=lambda path: path.stem)
def test_a_page_of_a_known_kind_reads_as_a_person_would_copy_it(path: Path) -> None:
    parsed = read_html(path.read_bytes(), fallback_title="F")
    assert_sound(parsed)
    headings = [f"{block.title} #{block.anchor}" for block in parsed.blocks if block.kind == "heading"]
    expected = path.with_suffix(".txt").read_text(encoding="utf-8")
    assert f"{parsed.title}\n{headings}\n\n{parsed.text}" == expected


HOSTILE = {
    "open tags": "<div>" * 1_900 + "deep",
    "open items": "<ul><li>x" * 900,
    "open emphasis": "<b>x" * 1_900,
    "quotations": "<blockquote>x" * 1_500,
    "tables in tables": "<table><tr><td>x" * 600,
    "crossed tags": "<b><p></b>" * 20_000,
    "closing tags": "<div>" * 1_000 + "</b>" * 50_000,
    "brackets": "<" * 100_000,
    "ampersands": "&" * 100_000,
    "letters": "a" * 100_000,
    "spaces": " " * 100_000 + "x",
    "breaks": "<br>" * 50_000,
    "breaks and spaces": "<br> " * 50_000,
    "comments": "<!--" * 50_000,
    "metas": "<meta " * 20_000,
    "backticks": f"<code>{'`' * 50_000}</code>",
    "attributes": f"<p {'a=b ' * 50_000}>x",
    "links": "<a href='https://x.org'>x" * 1_500,
    "wide spans": "<table>" + "<tr><td colspan=1000 rowspan=65000>x<td>y" * 300,
    "tall spans": "<table><tr>" + "<td rowspan=9999>abcdefgh" * 90 + "<tr><td>x" * 3_000,
    "title dashes": f"<title>{' - ' * 30_000}x</title><h1>x</h1>",
    "terms": "<dl>" + "<dt>a<dd>b" * 10_000,
    "formulas": "<math><mfrac>" * 900,
    "code lines": f"<pre>{'x<br>' * 30_000}</pre>",
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_page_is_read_in_reasonable_time_and_space(hostile: str) -> None:
    parsed = read_html(hostile.encode(), fallback_title="F")
    assert len(parsed.text) <= 40 * len(hostile)


def test_words_nested_too_deep_are_kept_in_order() -> None:
    page = "<div>" * 500 + "one <b>two</b> three<p>four</p>five" + "</div>" * 500 + "six"
    assert read(page).text.split() == ["one", "two", "three", "four", "five", "six"]


def test_a_page_that_never_closes_its_tags_is_refused() -> None:
    with pytest.raises(UnreadableFile, match="tags are open at once"):
        read("<div>" * 3_000)


_TAGS = (
    "p div span b code pre a ul ol li dl dt dd table tr td th thead tbody caption blockquote h1 h2 h3 section article"
    " main header nav aside details summary math mfrac annotation sup br hr img input form script style figure"
    " figcaption body html head title label q o:p custom-tag select option template"
)
_tags = st.sampled_from(_TAGS.split())
_attributes = st.sampled_from(
    ["", " id=x", " class='highlight-py'", " class=admonition-title", " role=tablist", " role=tabpanel", " hidden",
     " href='https://x.org/a'", " href='#a'", " rowspan=3", " colspan=2", " start=-5", " class=katex", " class=sig",
     " role=doc-footnote", " class=label", " display=block", " alt='é'"]
)  # fmt: skip
_words = st.sampled_from(
    ["word", " ", "\n", "&amp;", "&#0;", "```", "$$", "|", "# ", "- ", "1. ", "é漢", "\\(", "<", "\x0b\u2028\u200b"]
)
_opening = st.tuples(_tags, _attributes).map(lambda pair: f"<{pair[0]}{pair[1]}>")
_soup = st.lists(st.one_of(_opening, _tags.map(lambda tag: f"</{tag}>"), _words), max_size=60).map("".join)


@given(_soup)
@settings(max_examples=200)
def test_any_soup_of_tags_gives_a_sound_document(source: str) -> None:
    parsed = read(source)
    assert parsed == read(source)


_element = st.tuples(_tags, _attributes)


def _around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(_element, st.lists(inner, max_size=4)).map(
        lambda pair: f"<{''.join(pair[0])}>{''.join(pair[1])}</{pair[0][0]}>"
    )


_tree = st.recursive(_words, _around, max_leaves=30)


@given(_tree)
@settings(max_examples=150)
def test_any_nesting_of_tags_gives_a_sound_document(source: str) -> None:
    read(source)


@given(st.lists(st.text(alphabet="abc é漢.,", min_size=1, max_size=30).filter(str.strip), min_size=1, max_size=8))
def test_no_word_of_a_paragraph_is_lost(paragraphs: list[str]) -> None:
    page = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    assert read(page).text.split() == " ".join(paragraphs).split()


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with contextlib.suppress(UnreadableFile):
        assert_sound(read_html(content, fallback_title="F"))

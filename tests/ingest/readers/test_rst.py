"""A page of reStructuredText is read as its reader sees it, and line 40 stays line 40."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from citewell.ingest.readers.rst import read_rst
from citewell.models import ParsedDocument
from citewell.text.units import split_units
from tests.ingest.readers.steps import count_calls, deadline


def read(source: str) -> ParsedDocument:
    return read_rst(source, fallback_title="File name")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("See :ref:`the guide <guide>`.", "See the guide."),
        ("See :ref:`some-label`.", "See some-label."),
        ("A :class:`~ray.data.Dataset`, a :class:`ray.data.Dataset`.", "A `Dataset`, a `ray.data.Dataset`."),
        ("Call :func:`~ray.data.read_csv` or :py:meth:`map`.", "Call `read_csv()` or `map()`."),
        ("Call :func:`tune.report() <ray.tune.report>`.", "Call `tune.report()`."),
        ("Call :meth:`the mapper <ray.data.Dataset.map>`.", "Call the mapper."),
        ("Set :code:`x` or ``y``, never ``a`b``.", "Set `x` or `y`, never `` a`b ``."),
        ("`Ax <https://ax.dev/>`__ and `there <other.html>`_", "[Ax](https://ax.dev/) and there"),
        ("`<https://ax.dev/>`_", "https://ax.dev/"),
        ("As in [1]_, [#note]_ and |release|.", "As in [1], [#note] and |release|."),
        (r"Not \*bold\*, so\ called.", "Not *bold*, socalled."),
        ("**Bold** and *slanted* and `default`.", "**Bold** and *slanted* and `default`."),
        ("Where :math:`a_1 < b`, :kbd:`Ctrl`, :pep:`8`, :abbr:`X`.", "Where $a_1 < b$, `Ctrl`, PEP 8, X."),
        (":doc:`/tune/index`, :doc:`more <a>`, :doc:`/a/b_c`.", "tune, more, b_c."),
        ("snake_case_ and __init__ stay.", "snake_case_ and __init__ stay."),
        ("A :ref:`long\nname <label>` goes on.", "A long\nname goes on."),
        ("From a `Spark DataFrame\n<https://x.org>`__, call.", "From a\n[Spark DataFrame](https://x.org), call."),
    ],
)
def test_a_role_shows_its_text(source: str, expected: str) -> None:
    assert read(source).text == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Title\n=====\nText.", "# Title\n\nText."),
        ("=====\nTitle\n=====\n\nText.", "\n# Title\n\n\nText."),
        (".. a comment\n   goes on\n\nText.", "\n\n\nText."),
        ("..\n   a comment\n\n..\n\n   A quote.", "\n\n\n\n\nA quote."),
        (".. note:: Mind\n   this.\n\n   And that.\n\nText.", "Mind\nthis.\n\nAnd that.\n\nText."),
        (".. note::\n   :class: x\n\n   Mind.\n", "\n\n\nMind.\n"),
        (".. admonition:: Mind *this*\n\n   Text.", "Mind *this*:\n\nText."),
        (".. tab-set::\n\n   .. tab-item:: macOS (new)\n      :sync: m\n\n      Run.", "\n\nmacOS (new):\n\n\nRun."),
        (".. grid:: 1 2 3\n\n   .. grid-item-card:: Fast\n\n      Words.", "\n\nFast:\n\nWords."),
        (".. versionadded:: 2.1\n\nText.", "Added in version 2.1.\n\nText."),
        (".. versionadded:: 2.1 Pumps.", "Added in version 2.1: Pumps."),
        (".. deprecated:: 2.1\n   Use valves.", "Deprecated since version 2.1:\nUse valves."),
        (".. autoclass:: ray.Pump\n   :members:", "`ray.Pump`\n"),
        (".. autosummary::\n   :toctree: doc/\n\n   ~ray.Pump\n   ray.valve", "\n\n\n- `ray.Pump`\n- `ray.valve`"),
        (".. toctree::\n   :caption: Parts\n\n   one\n   two\n\nText.", "\n\n\n\n\n\nText."),
        (".. image:: a.png\n   :alt: A pump\n   :width: 3\n\nText.", "\nA pump\n\n\nText."),
        (".. figure:: a.png\n   :alt: no\n\n   A caption.", "\n\n\nA caption."),
        (".. unknown:: argument\n   :option: 1\n\n   Body.", "argument\n\n\nBody."),
        (".. |x| replace:: y\n\n.. __: https://x.org\n\n__ https://x.org\n\nText.", "\n\n\n\n\n\nText."),
        (".. [1] A footnote\n   goes on.", "[1] A footnote\ngoes on."),
        (":orphan:\n:author: Me\n   and you\n\nText.", "\n\n\n\nText."),
        (
            "Text.\n\n:param x: a pump\n   of ours\n:returns: water",
            "Text.\n\n- param x: a pump\n  of ours\n- returns: water",
        ),
        ("* one\n  more\n* two\n\n  * deep", "- one\n  more\n- two\n\n  - deep"),
        ("#. one\n#. two\n\n(3) three", "1. one\n2. two\n\n3) three"),
        ("A. Smith wrote\nthis.", "A. Smith wrote\nthis."),
        ("term\n    Its definition.", "term:\nIts definition."),
        ("| A street\n| A town", "A street\nA town"),
        ("Text.\n\n----\n\nMore.", "Text.\n\n\n\nMore."),
        ("Text\n.. note:: More.", "Text\nMore."),
        (".. math:: a = b", "$$ a = b $$"),
        (".. math::\n\n   a = b\n\nText.", "\n$$\na = b\n$$\nText."),
        (".. math::\n   :label: x\n\n   a = b\nText.", "\n\n$$\na = b $$\nText."),
    ],
)
def test_markup_goes_and_what_it_shows_stays_on_its_line(source: str, expected: str) -> None:
    assert read(source).text == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            ".. code-block:: python\n   :linenos:\n\n   x = 1\n\n     y\n\nText.",
            "\n\n```python\nx = 1\n\n  y\n```\nText.",
        ),
        (".. testcode::\n    x = 1\n\nText.", "```python\nx = 1\n```\nText."),
        (".. code::\n\n   x = 1", "\n```\nx = 1\n```"),
        (".. code::\n\n   x = 1\nText.", "```\nx = 1\n```\nText."),
        ("Like this::\n\n    x = ``1``\n\nText.", "Like this:\n```\nx = ``1``\n```\nText."),
        ("Like this\n\n::\n\n  x\n\nText.", "Like this\n\n\n```\nx\n```\nText."),
        ("- Like this::\n\n    x\n\n- More.", "- Like this:\n  ```\n  x\n  ```\n- More."),
        (".. code:: md\n\n   ```\n   x\n   ```\n", "\n````md\n```\nx\n```\n````"),
        ("Text.\n\n>>> 1 + 1\n2\n\nMore.", "Text.\n```python\n>>> 1 + 1\n2\n```\nMore."),
        (".. code-block:: sh\n   :caption: Run\n\n   ls\n", "Run:\n\n```sh\nls\n```"),
        (".. testcode::\n   :hide:\n\n   x = 1\n\nText.", "\n\n\n\n\nText."),
        (".. literalinclude:: a.py\n   :language: python\n\nText.", "\n\n\nText."),
        ("```python in prose", "``python in prose"),
    ],
)
def test_code_stands_between_fences(source: str, expected: str) -> None:
    assert read(source).text == expected


@pytest.mark.parametrize(
    "source",
    [
        "==== =====\nName Use\n==== =====\na    ``x``\n     more\nb|c  y\n==== =====\n",
        "+-----+--------+\n|Name | Use    |\n+=====+========+\n| a   | ``x``  |\n|     | more   |\n+-----+--------+\n"
        "| b|c | y      |\n+-----+--------+\n",
        ".. list-table::\n   :header-rows: 1\n\n   * - Name\n     - Use\n   * - a\n     - ``x``\n       more\n"
        "   * - b|c\n     - y\n",
        '.. csv-table::\n   :header: "Name", Use\n\n   a, "``x`` more"\n   b|c, y\n',
    ],
)
def test_each_kind_of_table_reads_as_one_pipe_table(source: str) -> None:
    parsed = read(source + "\nAfter.\n")
    (table, after) = parsed.blocks
    assert table.kind == "table"
    assert table.group is not None
    assert parsed.text[table.start : table.end] == "| Name | Use |\n| --- | --- |\n| a | `x` more |\n| b\\|c | y |\n"
    assert parsed.text[: after.start].count("\n") == source.count("\n") + 1


def test_a_table_without_header_has_an_empty_one_and_one_column_is_a_list() -> None:
    assert read("== ==\na  b\nc  d\n== ==").text == "|  |  |\n| --- | --- |\n| a | b |\n| c | d |"
    assert read(".. list-table::\n\n   * - a\n   * - b\n").text == "\n\n- a\n- b\n"


def test_cells_over_several_columns_or_rows_keep_their_words() -> None:
    grid = "+---+---+\n| over two |\n+---+---+\n| a | b |\n|   +---+\n| c | d |\n+---+---+".replace(
        "over two ", "o two "
    )
    text = read(grid).text
    for word in ("o two", "a", "b", "c", "d"):
        assert word in text
    assert "long words" in read("== ==\nlong words\na  b\n== ==").text


def test_headings_rank_by_first_use_and_answer_to_their_label_or_title() -> None:
    parsed = read(
        ".. _my_Label:\n\nPumps & :class:`~a.Valves`\n==========================\n\n"
        "One\n---\n\nTwo\n~~~\n\nOne\n---\n\nText.\n"
    )
    headings = [(b.level, b.title, b.anchor) for b in parsed.blocks if b.kind == "heading"]
    assert headings == [(1, "Pumps & Valves", "my-label"), (2, "One", "one"), (3, "Two", "two"), (2, "One", "")]
    assert parsed.title == "Pumps & Valves"


def test_a_label_belongs_only_to_the_heading_right_after_it() -> None:
    parsed = read(".. _far:\n\nText.\n\nNear\n====\n")
    assert [block.anchor for block in parsed.blocks] == ["", "near"]


def test_a_reference_without_words_takes_those_of_the_file() -> None:
    text = read(
        "See :ref:`x`, Site_ and `my site`_.\n\n.. _x:\n\nPumps\n=====\n\n.. _Site: https://a.b\n.. _my site: Site_"
    ).text
    assert text.startswith("See Pumps, [Site](https://a.b) and [my site](https://a.b).")


def test_a_page_without_heading_has_the_fallback_title() -> None:
    assert read("Only text.").title == "File name"


def test_items_of_a_list_share_a_group_and_another_list_has_another() -> None:
    blocks = read("- a\n\n  .. code::\n\n     x\n\n- b\n\n  1. c\n\nText.\n\n- d\n").blocks
    assert [(block.kind, block.group) for block in blocks] == [
        ("list", 1),
        ("code", 1),
        ("list", 1),
        ("list", 1),
        ("text", None),
        ("list", 2),
    ]


def test_a_page_is_quotable_by_its_units() -> None:
    source = "T\n=\n\nText::\n\n  code\n\n* item\n\n== ==\na  b\n== ==\nc  d\n== ==\n\n.. math::\n\n  x\n\n"
    assert [unit.kind for unit in split_units(read(source).text)] == ["sentence", "code", "item", "row", "math"]


_line = st.sampled_from(
    [
        *(
            "",
            "",
            "Text here.",
            "Title",
            "=====",
            "-----",
            "~~~",
            "- item",
            "* - cell",
            "1. one",
            "#. auto",
            "::",
            "like::",
        ),
        *(".. note::", ".. note:: Words", ".. code-block:: py", ".. math:: a", ".. math::", ".. list-table:: T"),
        *(".. csv-table:: T", ":header-rows: 1", ":header: a,b", ".. _label:", ".. comment", "..", ".. tab-item:: A"),
        *(
            ".. image:: x",
            ":alt: words",
            ".. autosummary::",
            "~a.b",
            ":ref:`a <b>`",
            "`open",
            "close <x>`_",
            "``a",
            "b``",
        ),
        *(
            "+--+--+",
            "|a |b |",
            "+==+==+",
            "== ==",
            "a  b",
            ">>> 1",
            "| bar",
            ":field: v",
            "```",
            "$$",
            'a,"b',
            "x = 1",
            "\\",
        ),
        *(".. [1] note", "__ https://a.b", ".. |s| image:: x", "term", "é漢字", "\u00a0", "\x0c", ".. figure:: x"),
    ]
)
_page = st.lists(st.tuples(st.integers(0, 5), _line), max_size=30).map(
    lambda lines: "\n".join(" " * indent + line for indent, line in lines)
)
_noise = st.text(alphabet="ab :.`_<>*|=+-\n\t\\[]#1)(\"'é漢", max_size=200)


@given(st.one_of(_page, _noise))
@settings(max_examples=300)
def test_blocks_are_whole_lines_in_order_that_cover_everything_written(source: str) -> None:
    parsed = read(source)
    text = parsed.text
    position = 0
    for block in parsed.blocks:
        assert position <= block.start < block.end <= len(text)
        assert block.start == 0 or text[block.start - 1] == "\n"
        assert block.end == len(text) or text[block.end - 1] == "\n"
        assert not text[position : block.start].strip()
        assert text[block.start : block.end].strip()
        assert (block.level in range(1, 7) and bool(block.title.strip())) == (block.kind == "heading")
        assert (block.group is not None) >= (block.kind in ("list", "table"))
        position = block.end
    assert not text[position:].strip()


@given(st.one_of(_page, _noise))
@settings(max_examples=300)
def test_every_line_stays_on_its_line(source: str) -> None:
    closing_fence = 1  # after the last line of a file without a last newline
    assert 0 <= read(source).text.count("\n") - source.count("\n") <= closing_fence
    assert read(source + "\n\nThe end.").text.split("\n")[source.count("\n") + 2] == "The end."


@given(_page)
@settings(max_examples=150)
def test_fences_come_in_pairs_and_only_in_code(source: str) -> None:
    parsed = read(source)
    for block in parsed.blocks:
        lines = [line.strip() for line in parsed.text[block.start : block.end].rstrip("\n").split("\n")]
        fences = [line for line in lines if line.startswith("```")]
        if block.kind == "code":
            assert lines[0].startswith("```")
            assert set(lines[-1]) == {"`"}
        elif block.kind != "math":
            assert not fences


HOSTILE = [
    *(mark * 100_000 for mark in "`:.*_|+-=<\\ \n["),
    *(
        "`a " * 30_000,
        "``a" * 30_000,
        ":a:" * 30_000,
        ":a:`" * 30_000,
        "a-" * 50_000,
        "a_ " * 30_000,
        "|a" * 50_000,
    ),
    *("`\\" * 50_000, ".. note:: " * 10_000, "- " * 50_000, "* - " * 25_000, "[a" * 50_000, "1. " * 30_000),
    *(
        "\n".join(" " * depth + ".. note:: x" for depth in range(400)),
        "\n".join(" " * n + "- x" for n in range(400)),
    ),
    *(
        "== ==\n" * 20_000,
        "== ==\n\nx\n" * 10_000,
        "+-" * 30_000 + "+\n" + "|\n" * 30_000 + "+-+",
        "+-+\n" * 20_000,
    ),
    *(
        ".. code::\n\n" * 10_000,
        ".. code::\n\n x\n" * 10_000,
        "x::\n\n" * 20_000,
        "..\n" * 30_000,
        ">>> x\n" * 20_000,
    ),
    *("== " * 30_000 + "==\n" + "x\n" * 30_000 + "== ==", ".. list-table::\n\n" + "  * - x\n" * 20_000),
    *(
        "*" + "a *" * 30_000 + "\n" + "=" * 90_001,
        ".. _" + "a:" * 50_000,
        ":a" * 50_000 + ": x",
        "a`" * 50_000,
        "`" + "a " * 30_000 + "<" + "x\n" * 30_000 + ">`_",
    ),
    *(".. csv-table::\n\n  " + '"' * 90_000, ".. image:: x\n" + "  :alt: x\n" * 20_000, "x\n" * 50_000),
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: repr(hostile[:12]))
def test_hostile_pages_are_read_in_linear_steps(hostile: str) -> None:
    assert count_calls(lambda: read(hostile)) < 50 * len(hostile)


@pytest.mark.parametrize(
    "hostile", [page for page in HOSTILE if "\n" not in page], ids=lambda hostile: repr(hostile[:12])
)
def test_hostile_lines_of_a_million_characters_are_read_in_minutes_not_hours(hostile: str) -> None:
    """The work of one regular expression cannot be counted; in quadratic time it would take hours."""
    with deadline():
        read(hostile * (1_000_000 // len(hostile)))

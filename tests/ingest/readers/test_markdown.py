"""A page is read as its reader sees it, and line 40 stays line 40."""

from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.ingest.readers.markdown import plain_markdown, read_markdown
from citewell.text import split_units, unit_text
from tests.ingest.readers.soundness import assert_sound


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import Tabs from '@theme/Tabs';\n\nText.", "\n\nText."),
        ("export const Note = ({text}) => (\n  <b>{text}</b>\n);\n\nText.", "\n\n\n\nText."),
        ("Import the data first, then export it.", "Import the data first, then export it."),
        ('<TabItem value="x" label="macOS">\n\nRun it.\n\n</TabItem>', "\n\nmacOS: Run it.\n\n"),
        ("<details>\n<summary>More</summary>\nHidden.\n</details>", "\n**More**\nHidden.\n"),
        ('<Chart data={[1, 2].map((x) => x > 1)} caption="Load" />', "**Load**"),
        ("A line<br/>broken.", "A line broken."),
        ("Keep `<Tabs>` and `a {/* b */} c`.", "Keep `<Tabs>` and `a {/* b */} c`."),
        ("``a ` <b> ` c`` <i>d</i>", "``a ` <b> ` c`` d"),
        ("Seen {/* not seen */}too <!-- nor this -->.", "Seen too ."),
        ("Lost <!--\ntwo\n-->lines", "Lost \n\nlines"),
        (":::tip Watch out\n\nHot.\n\n:::", "**Watch out**\n\nHot.\n\n"),
        (":::note[Mind this]\nText\n:::", "**Mind this**\nText\n"),
        ("/// warning | Mind\n\nHot.\n\n///", "**Mind**\n\nHot.\n\n"),
        ("//// note\n/// tip\nDeep.\n///\n////", "\n\nDeep.\n\n"),
        (
            '!!! note "Read me"\n    Text.\n\n    ```py\n    x\n    ```\nOut.',
            "**Read me**\nText.\n\n```py\nx\n```\nOut.",
        ),
        ('=== "Linux"\n    Run it.\n=== "macOS"\n    !!! tip\n        Wait.', "\nLinux: Run it.\n\n\nmacOS: Wait."),
        ("!!!note\n    Wait.", "\nWait."),
        ("Heading\n===\n    text", "Heading\n===\n    text"),
        ("(set-up)=\n## Setup", "\n## Setup"),
        ("## Setup {#set-up}", "## Setup"),
        ("## Setup {/* #set-up */}", "## Setup"),
        ("## Setup { #set-up }", "## Setup"),
        ("## 2. Setup {: #2-set-up .wide }", "## 2. Setup"),
        ("## Setup \\{#set-up}", "## Setup \\{#set-up}"),
        ("[](){#a}\nText {.wide} goes on. {#b}", "\nText  goes on."),
        ("$x_{#1} + {.5}$", "$x_{#1} + {.5}$"),
        ("```mdx-code-block\nimport A from 'a';\n<A>\nShown.\n</A>\n```\nOut.", "\n\n\nShown.\n\n\nOut."),
        ("````md\n```mdx-code-block\n<A/>\n```\n````", "````md\n```mdx-code-block\n<A/>\n```\n````"),
        ("```{note} Mind\n:class: wide\n\nHot.\n```", "**Mind**\n\n\nHot.\n"),
        ("````{note}\n```py\nx\n```\n````", "\n```py\nx\n```\n"),
        ("```{code-block} python\n:linenos:\nx = 1\n```", "```python\n\nx = 1\n```"),
        ("```{toctree}\n:hidden:\na\nb\n```\nText", "\n\n\n\n\nText"),
        (":::{note}\n:class: wide\nHot.\n:::", "\n\nHot.\n"),
        (":::{div} wide\nHot.\n:::", "\nHot.\n"),
        ("See {ref}`the guide <guide>`, {class}`~ray.data.Dataset`.", "See the guide, `Dataset`."),
        ("Use [`Field()`][pydantic.Field] or [`str`][].", "Use `Field()` or `str`."),
        ("Cell **[H][D]** and m[row][column].", "Cell **[H][D]** and m[row][column]."),
        (
            "See [MRO] and [it][MRO].\n\n[MRO]: https://x.org/m",
            "See [MRO](https://x.org/m) and [it](https://x.org/m).\n\n",
        ),
        ("Below &lt;50 ms &mdash; or &gt;80&nbsp;%", "Below <50 ms — or >80 %"),
        ("&gt; no quote, &#42;not bold&#42;", "&gt; no quote, &#42;not bold&#42;"),
        ("The {'words '}and {\"more\"} {`here`} stay.", "The words and more here stay."),
        ("{{ table }}\n{% for x in y %}\n{: .wide }\nText", "\n\n\nText"),
        ("## :material-api: The API", "## The API"),
        ('A <abbr title="Command Line Interface">CLI</abbr> app', "A CLI (Command Line Interface) app"),
        ('[<b title="x">Web</b>](https://x.org)', "[**x** Web](https://x.org)"),
        ("{* ../a.py hl[2] *}\nText", "{* ../a.py hl[2] *}\nText"),  # read_markdown follows it or leaves it out
        ("See [the `map`](../a.md#b) and [web](https://x.org/a).", "See the `map` and [web](https://x.org/a)."),
        ("![A robot](./r.png) walks", "A robot walks"),
        ("If a < b and b > c, <https://x.org>.", "If a < b and b > c, <https://x.org>."),
        ("$\\frac{a}{b} < 1$", "$\\frac{a}{b} < 1$"),
        ("<style>{`\n.a { color: red }\n`}</style>\nText", "\n\n\nText"),
        ("```jsx\n<Tabs>\nimport x from 'y'\n```\n<Tabs>", "```jsx\n<Tabs>\nimport x from 'y'\n```\n"),
        ("- item\n\n  ```html\n  <b>kept</b>\n  ```\n", "- item\n\n  ```html\n  <b>kept</b>\n  ```\n"),
    ],
)
def test_markup_goes_and_what_it_shows_stays(source: str, expected: str) -> None:
    assert plain_markdown(source) == expected


_markup = st.sampled_from([
    *('<TabItem label="x">', "</TabItem>", "<Tabs>", '=== "Tab"\n', "    ", ":::{tab-item} A\n", ":::\n"),
    *("/// tab | B\n", "\n```{tab-item} C\n"),
    *("\n```mdx-code-block\n", "\n```\n", "\n````\n", "- item\n", "\n\n", "words ", "\ufdd0", "\ufdd2"),
    *("{#a}", "[a][b.c]", "{ref}`x`", "&lt;", "{'a\\n'}", "<!--", "-->", "!!! note\n", ":sync: a\n", "## T {#a}\n"),
])  # fmt: skip


@given(
    st.one_of(
        st.text(alphabet="ab <>/{}*`~#:[]()!|$\\\n-=\"'é漢", max_size=400), st.lists(_markup, max_size=30).map("".join)
    )
)
def test_every_line_stays_on_its_line(source: str) -> None:
    assert plain_markdown(source).count("\n") == source.count("\n")


@given(st.lists(_markup, max_size=30).map("".join))
def test_whatever_a_page_is_made_of_gives_sound_blocks(source: str) -> None:
    assert_sound(read_markdown(f"{source}\n", mdx=True, fallback_title="F"))


@pytest.mark.parametrize(
    "hostile", ["<" * 20_000, "`" * 20_001, "{/*" * 8_000, "[a](" * 8_000, "<a " * 8_000, ":" * 50_000]
)
def test_hostile_pages_are_read_in_reasonable_time(hostile: str) -> None:
    assert plain_markdown(hostile).count("\n") == 0


def test_a_title_comes_from_frontmatter_then_heading_then_file_name() -> None:
    def title(source: str) -> str:
        return read_markdown(source, mdx=True, fallback_title="File name").title

    assert title("---\ntitle: From **front** matter\n---\n# Heading\n") == "From front matter"
    assert title("---\nsidebar: x\n---\n# A `heading`\n") == "A heading"
    assert title("Only text.") == "File name"
    assert title("---\ntitle: [unclosed\n---\n# Still read\n") == "Still read"


@pytest.mark.parametrize(
    "frontmatter",
    [
        "date: 2024-02-30",
        "weight: " + "9" * 5000,
        "a: " + "[" * 100_000,
        "a: " + "{a: " * 50_000,
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)),
        "a: &a [*a]",
        "a: !!python/object/apply:os.abort []",
        "? [a, b]\n: c",
        "a: *nobody",
        "[a, b]",
        "a: [b",
    ],
    ids=lambda text: text[:12],
)
def test_frontmatter_that_is_out_of_hand_costs_a_page_nothing_but_its_fields(frontmatter: str) -> None:
    page = read_markdown(f"---\n{frontmatter}\n---\n\n# Pumps\n\nWords.\n", mdx=False, fallback_title="file")
    assert page.title == "Pumps"
    assert "Words." in page.text


def test_frontmatter_is_taken_as_it_was_written() -> None:
    source = "---\ntags: [a, {b: c}]\ntitle: >\n  Yes,\n  no\nslug: 007\nnothing: ~\n---\n\n# Heading\n"
    page = read_markdown(source, mdx=False, fallback_title="file")
    assert (page.title, page.slug) == ("Yes, no", "007")


def test_frontmatter_is_not_text_but_a_rule_is() -> None:
    read = read_markdown("---\ntitle: T\nsecret: 7\n---\n\nBody.\n", mdx=False, fallback_title="F")
    assert "secret" not in read.text
    assert read.text.split("\n")[5] == "Body."
    assert read_markdown("---\n---\nBody.\n", mdx=False, fallback_title="F").text == "\n\nBody.\n"
    assert "after" in read_markdown("before\n\n---\n\nafter\n", mdx=False, fallback_title="F").text


def test_mdx_has_no_indented_code_and_markdown_does() -> None:
    source = "Text\n\n    indented\n"
    kinds = {
        mdx: [block.kind for block in read_markdown(source, mdx=mdx, fallback_title="F").blocks]
        for mdx in (True, False)
    }
    assert kinds == {True: ["text", "text"], False: ["text", "code"]}


def test_headings_carry_the_anchor_a_browser_finds_them_under() -> None:
    source = "# Title\n\n## What's *new*?\n\n## Setup {#own-id}\n\n## What's new\n\n### Naïve `map()` & co\n"
    blocks = read_markdown(source, mdx=True, fallback_title="F").blocks
    assert [block.anchor for block in blocks] == ["", "whats-new", "own-id", "whats-new-1", "naïve-map--co"]


INSTALL = "First install brew, then run it twice."
MACOS = f"{INSTALL}\n\n```bash\nbrew x\n```\n\nThen restart."
WINDOWS_ITEM = '<TabItem value="w" label="Windows">'


@pytest.mark.parametrize(
    "source",
    [
        f"<Tabs>\n{WINDOWS_ITEM}\n\nUse winget.\n\n</TabItem>\n"
        f'<TabItem value="macOS">\n\n{MACOS}\n\n</TabItem>\n</Tabs>\n',
        "<Tabs values={[{label: 'Windows', value: 'w'}, {label: 'macOS', value: 'm'}]}>\n"
        f'<TabItem value="w">Use winget.</TabItem>\n<TabItem value="m">\n{MACOS}\n</TabItem>\n</Tabs>\n',
        f"```mdx-code-block\n<Tabs>\n{WINDOWS_ITEM}\n```\n\nUse winget.\n\n```mdx-code-block\n</TabItem>\n"
        f'<TabItem value="m" label="macOS">\n```\n\n{MACOS}\n\n```mdx-code-block\n</TabItem>\n</Tabs>\n```\n',
        f'=== "Windows"\n\n    Use winget.\n\n=== "macOS"\n\n{indent(MACOS, "    ")}\n',
        "::::{tab-set}\n\n:::{tab-item} Windows\n:sync: w\n\nUse winget.\n:::\n\n"
        f":::{{tab-item}} macOS\n{MACOS}\n:::\n\n::::\n",
        "`````{tab-set}\n````{tab-item} Windows\nUse winget.\n````\n"
        f"````{{tab-item}} macOS\n{MACOS}\n````\n`````\n",
        f"/// tab | Windows\nUse winget.\n///\n\n/// tab | macOS\n{MACOS}\n///\n",
    ],
    ids=["TabItem", "values", "mdx-code-block", "MkDocs", "MyST", "MyST fences", "slashes"],
)
def test_every_paragraph_of_a_tab_says_which_tab_it_is(source: str) -> None:
    source += "\nAfter.\n"
    text = read_markdown(source, mdx=True, fallback_title="F").text
    assert [line for line in text.split("\n") if line.strip()] == [
        "Windows: Use winget.",
        f"macOS: {INSTALL}",
        "```bash",
        "brew x",
        "```",
        "macOS: Then restart.",
        "After.",
    ]
    assert text.count("\n") == source.count("\n")


def test_a_tab_that_begins_with_code_or_a_list_is_introduced_by_its_label() -> None:
    source = (
        '<Tabs>\n<TabItem value="npm">\n\n```bash\nnpm i x\n```\n\n</TabItem>\n<TabItem value="yarn">\n\n'
        "- Install yarn.\n\n  It is quick.\n- Run it.\n\n</TabItem>\n</Tabs>\n"
    )
    text = read_markdown(source, mdx=True, fallback_title="F").text
    shown = [unit_text(text, unit) for unit in split_units(text)]
    assert shown == ["npm:", "```bash\nnpm i x\n```", "yarn:", "Install yarn.", "It is quick.", "Run it."]


def test_tabs_in_tabs_and_tabs_that_name_themselves_are_readable() -> None:
    nested = '=== "macOS"\n\n    === "brew"\n\n        Run brew.\n\n=== "Windows"\n\n    Windows needs nothing.\n'
    text = read_markdown(nested, mdx=False, fallback_title="F").text
    assert [line for line in text.split("\n") if line] == ["macOS, brew: Run brew.", "Windows needs nothing."]

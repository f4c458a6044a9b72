"""A page is read as its reader sees it, and line 40 stays line 40."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.ingest.readers.markdown import read_markdown
from citewell.ingest.readers.mdx import plain_markdown


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import Tabs from '@theme/Tabs';\n\nText.", "\n\nText."),
        ("export const Note = ({text}) => (\n  <b>{text}</b>\n);\n\nText.", "\n\n\n\nText."),
        ("Import the data first, then export it.", "Import the data first, then export it."),
        ('<TabItem value="x" label="macOS">\n\nRun it.\n\n</TabItem>', "**macOS**\n\nRun it.\n\n"),
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
        ('=== "Linux"\n    Run it.\n=== "macOS"\n    !!! tip\n        Wait.', "**Linux**\nRun it.\n**macOS**\n\nWait."),
        ("(set-up)=\n## Setup", "\n## Setup"),
        ("## Setup {#set-up}", "## Setup"),
        ("## Setup {/* #set-up */}", "## Setup"),
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


@given(st.text(alphabet="ab <>/{}*`~#:[]()!|$\\\n-=\"'é漢", max_size=400))
def test_every_line_stays_on_its_line(source: str) -> None:
    assert plain_markdown(source).count("\n") == source.count("\n")


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

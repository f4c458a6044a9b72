"""Formulas in answers and sources are shown as books show them, and nothing but symbols is."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import COVERED, Opens, Watched, ask, at
from tests.browser.hosting import hosting, strict
from tests.conftest import BOOK
from tests.http.live import Live, live

pytestmark = pytest.mark.xdist_group("browser-formulas")

QUESTION = "What are the equations of motion of a humanoid?"
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(?!\d)([^$\n]+?)\$", re.DOTALL)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_UNSET = """async (formulas) => {
    const {typeset} = await import('/widget/math.js');
    return formulas.filter((tex) => !typeset(tex, false) || !typeset(tex, true));
}"""
_HARMFUL = (
    r"\href{javascript:alert(1)}{x}",
    r"\href{https://example.org}{x}",
    r"\url{https://example.org}",
    r"\includegraphics{https://example.org/x.png}",
    r"\htmlId{x}{y}",
    r"\htmlData{x=y}{z}",
    r"\htmlStyle{position:fixed}{x}",
    r"\def\x{\x\x}\x",
    r"\newcommand{\x}{xxxxxxxx}\x\x\x\x",
    r"\cancelto{0}{x}",
)
_BROKEN = (r"\nosuchcommand{x}", r"\frac{1}{", "x}{", r"\begin{matrix} a")


def test_every_formula_of_the_book_can_be_set(chat: Page) -> None:
    formulas = [
        one or other
        for page in sorted(BOOK.rglob("*.mdx"))
        for one, other in _FORMULA.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
    ]
    assert len(formulas) > 100
    assert chat.evaluate(_UNSET, formulas) == []


@pytest.mark.parametrize(
    "tex",
    [
        r"\begin{bmatrix} a & b \\ c & d \end{bmatrix}",
        r"\begin{aligned} a &= b \\ &= c \end{aligned}",
        r"f(x) = \begin{cases} 1 & x > 0 \\ 0 & \text{otherwise} \end{cases}",
        r"\hat{x} \sqrt[3]{2} \mathbf{M}(q)\ddot{q} \to \mathbb{R}^n",
        r"\cancel{x} \boxed{y} \overbrace{a+b}^{n} \underset{x}{\arg\min}",
        r"\sum_{i=1}^{n} \int_0^\infty e^{-x^2}\,dx \;\not\in\; \mathcal{L}",
        r"\ce{2H2 + O2 -> 2H2O}",
        r"\begin{align} a &= b \\ &= c \end{align}",
        r"\begin{equation} a = b \end{equation}",
        r"\overline{A} \underline{x} \sout{x} \colorbox{yellow}{x}",
    ],
)
def test_what_books_write_can_be_set(chat: Page, tex: str) -> None:
    assert chat.evaluate(_UNSET, [tex]) == []


@pytest.mark.parametrize("tex", [*_HARMFUL, *_BROKEN])
def test_what_is_no_formula_stays_as_it_is(chat: Page, tex: str) -> None:
    assert chat.evaluate(_UNSET, [tex]) == [tex]


def test_an_answer_and_its_source_show_formulas(chat: Page) -> None:
    answer = ask(chat, QUESTION)
    expect(answer.locator("div.formula math")).to_be_visible()
    expect(answer.locator(".formula:not(.set)")).to_have_count(0)
    assert "$" not in answer.locator(".words").inner_text()
    answer.locator("button.mark").first.click()
    expect(chat.locator("dialog.panel .formula math").first).to_be_visible()
    chat.reload()
    expect(chat.locator("div.formula math")).to_be_visible()


def test_bars_and_strokes_are_drawn(chat: Page) -> None:
    """Without a style of their own, "not A" would be shown as "A"."""
    expect(ask(chat, QUESTION).locator("div.formula math")).to_be_visible()
    drawn = chat.evaluate(
        r"""async () => {
            const {typeset} = await import('/widget/math.js');
            const [bar, stroke] = ['\\overline{A}', '\\cancel{x}'].map((tex) => typeset(tex, false));
            document.querySelector('.words').append(bar, stroke);
            const line = getComputedStyle(bar.querySelector('menclose')).borderTopStyle;
            return [line, getComputedStyle(stroke.querySelector('.tml-cancel')).position];
        }"""
    )
    assert drawn == ["solid", "absolute"]


def test_their_style_loads_nothing(chat: Page) -> None:
    style = chat.evaluate("import('/widget/math.js').then(({style}) => style)")
    assert ".tml-overline" in style
    assert not re.search(r"@font-face|@import|url\(", style)


def test_what_is_selected_holds_its_formulas_as_they_were_written(chat: Page) -> None:
    expect(ask(chat, QUESTION).locator("div.formula math")).to_be_visible()
    chat.get_by_role("heading", name="Ask the documents").click()
    chat.evaluate("getSelection().selectAllChildren(document.querySelector('.words'))")
    chat.get_by_role("button", name="Ask about this").click()
    expect(chat.locator(".chip q")).to_contain_text(r"\ddot{q}")


def test_who_hears_an_answer_hears_its_formulas_as_they_were_written(chat: Page) -> None:
    ask(chat, "What is a capture point?")
    ask(chat, QUESTION)
    expect(chat.get_by_role("status")).to_contain_text(r"\ddot{q}")


def test_formulas_are_copied_as_they_were_written(chat: Page) -> None:
    chat.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answer = ask(chat, QUESTION)
    expect(answer.locator("div.formula math")).to_be_visible()
    answer.get_by_role("button", name="Copy").click()
    expect(chat.get_by_role("status")).to_have_text("Copied")
    assert r"\ddot{q}" in chat.evaluate("navigator.clipboard.readText()")


def test_without_a_formula_nothing_is_fetched_for_one(chat: Page) -> None:
    fetched: list[str] = []
    chat.on("request", lambda request: fetched.append(request.url))
    ask(chat, COVERED)
    assert not [url for url in fetched if "math.js" in url]


def test_where_it_cannot_be_fetched_the_formula_is_shown_as_it_is_written(
    site: Live, opened: Opens, watched: Watched
) -> None:
    watched.expected += ["net::ERR_FAILED"]
    page = opened("about:blank")
    page.route("**/widget/math.js", lambda route: route.abort())
    page.goto(f"{site.address}/chat")
    answer = ask(page, QUESTION)
    expect(answer.locator("div.formula")).to_contain_text(r"\ddot{q}")
    expect(answer.locator("math")).to_have_count(0)


def test_a_widget_on_another_site_shows_them_under_a_strict_policy(site: Live, opened: Opens) -> None:
    with hosting() as host, live(at(site.state.settings.home, cors_origins=(host.address,))) as server:
        host.server = server.address
        host.policy = strict(host.server)
        page = opened(f"{host.address}/x.html")
        page.get_by_role("button", name="Ask the documents").click()
        expect(ask(page, QUESTION).locator("div.formula math")).to_be_visible()
        page.close()

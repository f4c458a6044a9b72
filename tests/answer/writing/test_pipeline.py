"""What an LLM writes reaches its reader in checked units: cited truly, safe, with a verdict, however it is cut."""

import re
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from citewell.answer.reply import NumberedMarkers
from citewell.answer.support import needs_support
from citewell.answer.writing.pipeline import CheckedUnit, Pipeline
from citewell.answer.writing.release import Release
from citewell.answer.writing.unit_stream import UnitStream
from citewell.models import Passage, Piece, UnsupportedPolicy
from tests.answer.sanitize.sanitize_cases import INSTRUCTIONS, PAGE
from tests.answer.sanitize.sanitize_cases import TABLE as UNSAFE
from tests.answer.sanitize.test_sanitize import LIVE_TAG, MARKDOWN, READERS, tokens
from tests.answer.writing.marker_cases import TABLE as CITED
from tests.conftest import chunk_of

PUMP = "A pump moves water uphill"
RAM = "A ram moves water uphill without a motor"
MOON = "The Emperor Napoleon built 47 lighthouses on Mars in 1811"
PASSAGES = [
    Passage(chunk_of(text, number=number), 0.9, ()) for number, text in enumerate((f"{PUMP}.", f"{RAM}.", PAGE))
]


def made(*, selection: Passage | None = None) -> Pipeline:
    return Pipeline(PASSAGES, INSTRUCTIONS, question="What moves water uphill?", selection=selection)


def rendered(pieces: list[Piece]) -> str:
    markers = NumberedMarkers()
    return "".join(map(markers.render, pieces))


def joined(units: list[CheckedUnit]) -> str:
    """All that was checked, whether it would be shown or not."""
    return rendered([piece for unit in units for piece in (*unit.pieces, unit.gap)])


def written(deltas: list[str] | str) -> tuple[str, list[tuple[str, str]]]:
    pipeline = made()
    units = [unit for delta in deltas for unit in pipeline.feed(delta)] + pipeline.end()
    segments = [unit.segment for unit in units if unit.segment.text]
    return joined(units), [(one.text, one.support.verdict if one.support else "") for one in segments]


def shown(deltas: list[str] | str, *, policy: UnsupportedPolicy = "fold", min_support: float = 0.5) -> str:
    """What a reader gets to see of it."""
    return rendered(pieces_of(deltas, policy=policy, min_support=min_support)[0])


def pieces_of(
    deltas: list[str] | str, *, policy: UnsupportedPolicy = "fold", min_support: float = 0.5
) -> tuple[list[Piece], Release]:
    pipeline, release = made(), Release(min_support, policy)
    pieces = [piece for delta in deltas for unit in pipeline.feed(delta) for piece in release.add(unit)]
    pieces += [piece for unit in pipeline.end() for piece in release.add(unit)]
    return pieces + release.end(), release


def test_a_sentence_is_checked_with_its_citation_and_its_verdict() -> None:
    pipeline = made()
    assert pipeline.feed(f"{PUMP} [1].") == []
    (unit,) = pipeline.feed(" So ")
    assert joined([unit]) == f"{PUMP} [1]. "
    assert (unit.segment.text, unit.segment.passages) == (f"{PUMP}.", (PASSAGES[0],))
    assert unit.segment.support is not None
    assert unit.segment.support.verdict == "supported"


def test_a_citation_moves_to_the_passage_that_says_it() -> None:
    pipeline = made()
    (unit,) = [*pipeline.feed(f"{RAM} [1]."), *pipeline.end()]
    assert unit.segment.passages == (PASSAGES[1],)


def test_what_no_passage_supports_is_not_shown() -> None:
    text = f"{PUMP} [1]. {MOON} [1]. {MOON}, twice. {RAM} [2]."
    assert shown(text, policy="drop") == shown(text) == f"{PUMP} [1]. {RAM} [2]."
    assert shown(text, policy="show") == f"{PUMP} [1]. {MOON} [1]. {RAM} [2]."


def test_what_cites_nothing_gets_the_citation_of_the_passage_that_says_it() -> None:
    assert shown(f"{PUMP}. {RAM}!") == f"{PUMP} [1]. {RAM} [2]!"
    assert shown(f"- {PUMP}\n- {RAM}\n") == f"- {PUMP} [1]\n- {RAM} [2]"
    table = f"| what |\n| --- |\n| {PUMP} |\n| {MOON} |\n| {RAM} |\n"
    assert shown(table) == f"| what |\n| --- |\n| {PUMP} [1] |\n| {RAM} [2] |"


def test_code_is_shown_whole_or_not_at_all_and_cited_below() -> None:
    code, lie = "```sh\na pump moves water uphill\n```\n", "```sh\nnapoleon --lighthouses 47\n```\n"
    assert shown(f"Do:\n\n{code}{RAM} [2].") == f"Do:\n\n{code}\n[1]\n\n{RAM} [2]."
    assert shown(f"{code.strip()} [1]\n{RAM} [2].") == f"{code}\n[1]\n\n{RAM} [2]."
    assert shown(f"{PUMP} [1].\n\n{lie}\n{RAM} [2].") == f"{PUMP} [1].\n\n{RAM} [2]."


@pytest.mark.parametrize("fence", ["```python", "~~~", "```"])
def test_a_call_in_code_has_to_be_in_the_code_of_a_passage(fence: str) -> None:
    text = "To print client 1, synchronize it:\n\n```python\nclient = Client(1)\nclient.sync()\n```\n"
    verdicts = []
    for code in ("print(1)", "client = Client(1, sync=1)\nclient.print()", "client = Client(1)\nclient.sync()"):
        pipeline = Pipeline([Passage(chunk_of(text), 0.9, ())], INSTRUCTIONS)
        (unit,) = [*pipeline.feed(f"{fence}\n{code}\n{fence[:3]}\n"), *pipeline.end()]
        verdicts.append(unit.segment.support and unit.segment.support.verdict)
    assert verdicts == ["uncited", "uncited", "supported"]


def test_code_that_is_left_open_is_closed_before_its_citation() -> None:
    assert shown("```sh\na pump moves water uphill") == "```sh\na pump moves water uphill\n```\n\n[1]"


def test_headings_and_lead_ins_are_shown_with_what_they_introduce_or_not_at_all() -> None:
    text = f"# Devices\n\n## Moon\n\n{MOON}.\n\n## Pumps\n\nThese do:\n\n- {PUMP} [1]\n\n## More\n\n{MOON}.\n"
    assert shown(text) == f"# Devices\n\n## Pumps\n\nThese do:\n\n- {PUMP} [1]"


@pytest.mark.parametrize("heading", [f"**{MOON}.**", f"# {MOON}.", f"**{MOON}, {MOON}, {MOON}**"])
def test_a_sentence_that_is_set_as_a_heading_is_a_claim(heading: str) -> None:
    assert shown(f"{heading}\n\n{PUMP} [1].") == f"{PUMP} [1]."


@pytest.mark.parametrize(
    "aside",
    [
        "Sure! ",
        "I hope this helps. ",
        "Do you want to know more? ",
        "The passages do not say what moves water uphill [1]. ",
        "I don't know. ",
        "Ich weiß es leider nicht. ",
        "what moves water uphill\n\n",
        "Question: What moves water uphill\n\n",
        'I call search_book_content("pump moves water uphill"). ',
        "---\n\n",
        '{"name": "search", "arguments": {"query": "a pump moves water uphill"}}\n',
        '```json\n{\n  "name": "search",\n  "parameters": {\n    "query": "a pump moves water uphill"\n  }\n}\n```\n',
        '<tool_call>\n{"name": "x", "arguments": {"query": "a pump moves water uphill"}}\n</tool_call>\n',
        '[{"name": "x", "arguments": {}}]\n',
        '{"query": "a pump moves water uphill", "limit": 5}\n',
    ],
)
def test_what_answers_nothing_is_not_shown(aside: str) -> None:
    assert shown(f"{aside}{RAM} [2].") == f"{RAM} [1]."
    alone = pieces_of(aside)
    assert (alone[0], alone[1].claims) == ([], "none")


@pytest.mark.parametrize("call", ['{"name": "x", "arguments": {"query": "a pump moves water uph', "<tool_call>"])
def test_a_tool_call_without_an_end_is_not_shown(call: str) -> None:
    assert shown(call) == ""


def test_json_that_is_no_call_is_kept() -> None:
    assert written('{"flow": 40}\n')[0] == '{"flow": 40}\n'


def test_nothing_is_shown_before_its_support_is_enough() -> None:
    weak = "A pump helps to move things uphill"
    pipeline, release = made(), Release(0.9, "fold")
    pieces = [piece for unit in pipeline.feed(f"{weak} [1]. {PUMP} [1]. S") for piece in release.add(unit)]
    assert pieces == []
    pieces = [piece for unit in pipeline.end() for piece in release.add(unit)] + release.end()
    assert rendered(pieces) == f"{PUMP} [1].", "the best of it, since all of it is not enough"
    assert shown(f"{PUMP} [1]. {weak} [1].", min_support=0.9) == f"{PUMP} [1]."


def test_what_is_repeated_is_shown_once() -> None:
    assert shown(f"{PUMP} [1]. {PUMP} [1]. {RAM} [2]. {PUMP}.") == f"{PUMP} [1]. {RAM} [2]."
    assert pieces_of(f"{PUMP}. {MOON}. {MOON}.", policy="show")[1].unsupported == (f"{MOON}.",)


def test_what_is_withheld_is_given_beside_the_answer_where_too_little_is_left() -> None:
    weak = "A pump helps to move things uphill"
    text = f"{weak} [1]. {MOON}."
    assert pieces_of(text, min_support=0.95)[1].unsupported == (f"{weak}.", f"{MOON}.")
    assert pieces_of(text, min_support=0.95, policy="drop")[1].unsupported == ()
    assert pieces_of(f"{PUMP}. {MOON}.")[1].unsupported == ()
    assert pieces_of(f"{PUMP}. {MOON}. {MOON} [1].", policy="show")[1].unsupported == (f"{MOON}.",)
    assert pieces_of(f"{MOON}.")[1].unsupported == (), "of which nothing is supported, nothing is shown"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"- {MOON}. {PUMP} [1].\n- {RAM} [2].", f"- {PUMP} [1].\n- {RAM} [2]."),
        (f"1. {MOON}\n    - {PUMP} [1]\n    - {RAM} [2]\n", f"- {PUMP} [1]\n- {RAM} [2]"),
        (f"1. {PUMP} [1]\n    - {MOON}\n    - {RAM} [2]\n", f"1. {PUMP} [1]\n    - {RAM} [2]"),
        (f"{PUMP} [1].\n\n{MOON}. {RAM} [2].", f"{PUMP} [1].\n\n{RAM} [2]."),
        (f"1. {MOON}\n\n    ```\n    {PUMP}\n    ```\n", f"```\n{PUMP}\n```\n\n[1]"),
    ],
)
def test_what_is_left_out_takes_no_mark_of_a_list_and_no_indent_with_it(text: str, left: str) -> None:
    assert shown(text) == left


@pytest.mark.parametrize("code", ["    ![x](evil)\n", "```\n![x](evil)\n```\n", "\n    ![x](evil)\n"])
@pytest.mark.parametrize("lie", [f"{MOON}.\n", f"{MOON}.\n\n", f"So\n{MOON}.\n\n"])
@pytest.mark.parametrize("policy", ["fold", "show"])
def test_what_is_left_out_turns_no_code_into_prose(lie: str, code: str, policy: UnsupportedPolicy) -> None:
    text = shown([f"{PUMP} [1]. {lie}{code}"], policy=policy)
    assert "<img" not in MarkdownIt("commonmark").render(text), text


def test_a_lone_carriage_return_ends_no_code_unseen() -> None:
    text, _ = written(["It is so:\n\n```\na\n```\rx\n![x](evil)\n"])
    assert "<img" not in MarkdownIt("commonmark").render(text), text


def test_citations_alone_are_no_answer() -> None:
    pieces, release = pieces_of("[1]\n\n[2]\n\n**")
    assert (pieces, release.claims) == ([], "none")


def test_a_selection_is_all_that_is_cited() -> None:
    selection = PASSAGES[2]
    pipeline = made(selection=selection)
    (unit,) = [*pipeline.feed(f"{PUMP} [1][2]."), *pipeline.end()]
    assert joined([unit]) == f"{PUMP} [1]."
    assert unit.segment.passages == (selection,)


def test_control_characters_of_a_model_are_no_citations() -> None:
    assert written(["A\0 b\1 c."])[0] == "A\ufffd b\ufffd c."


def test_code_after_a_cited_list_is_left_as_it_is() -> None:
    text = f"- {PUMP} [1].\n- {RAM} [2].\n\n```sh\ncurl http://localhost:8000 <in >out\n```\n"
    assert written([text])[0] == text


TEXTS = st.lists(
    st.sampled_from(
        [text for text, _ in [*CITED, *UNSAFE]]
        + [f"{PUMP} [1]. ", f"{RAM}[2]\n", "\n\n", " ", "- ", "NOT_COVERED", "<think>", "</think>", "```\n", ". "]
    ),
    max_size=5,
).map("".join)


@settings(max_examples=60)
@given(text=TEXTS, cuts=st.lists(st.integers(0, 300), max_size=8), policy=st.sampled_from(["fold", "show"]))
def test_it_does_not_matter_where_a_stream_is_cut(text: str, cuts: list[int], policy: UnsupportedPolicy) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    deltas = [text[start:end] for start, end in pairwise(places)]
    assert written([text]) == written(text) == written(deltas)
    assert shown([text], policy=policy) == shown(text, policy=policy) == shown(deltas, policy=policy)


PARTS = st.one_of(MARKDOWN, st.sampled_from([f"{PUMP} [1]. ", f"{MOON}. ", f"{MOON}\n", "[2]", "\n\n"]))


@settings(max_examples=150)
@given(parts=st.lists(PARTS), policy=st.sampled_from(["all", "fold", "show"]))
def test_no_renderer_finds_what_is_not_in_the_sources(parts: list[str], policy: Literal["all", "fold", "show"]) -> None:
    text = written(["".join(parts)])[0] if policy == "all" else shown(["".join(parts)], policy=policy)
    for reader in READERS:
        for token in tokens(reader.parse(text)):
            target = token.attrs.get("href" if token.type == "link_open" else "src")
            assert target is None or str(target) in PAGE, text
            if token.type in ("html_inline", "html_block") and token.content not in PAGE:
                assert not LIVE_TAG.search(re.sub(r"</?kbd>", "", token.content)), text


@settings(max_examples=150)
@given(
    parts=st.lists(st.one_of(PARTS, st.sampled_from([f"{RAM}. ", f"- {PUMP}\n", "# So\n", "So:\n", f"| {RAM} |\n"]))),
    policy=st.sampled_from(["drop", "fold", "show"]),
)
def test_every_claim_that_is_shown_has_a_citation(parts: list[str], policy: UnsupportedPolicy) -> None:
    pieces, release = pieces_of(["".join(parts)], policy=policy)
    assert all(segment.passages for segment in release.segments if segment.support)
    reread = UnitStream()
    units = [*reread.feed(rendered(pieces)), *reread.end()]
    for position, unit in enumerate(units):
        following = "".join(one.text for one in units[position + 1 : position + 2])
        is_cited = bool(re.search(r"\[\d+\]", unit.text)) or bool(re.match(r"\s*\[\d+\]", following))
        is_code = unit.is_code or not unit.is_last  # the line that opens it, too; the citation is below
        is_exempt = is_code or unit.text.lstrip(" \t>-").startswith(("#", "|", "**")) or ":" in unit.text[-4:]
        assert is_cited or is_exempt or not needs_support(unit.text), rendered(pieces)


@pytest.mark.parametrize(
    "text", ["See [the manual](https://evil.org/?q=1", "Look: <img src=x onerror=alert(1)", "`<b> x"]
)
def test_nothing_is_shown_before_it_was_checked(text: str) -> None:
    assert joined(made().feed(f"{PUMP} [1]. {text}")) == f"{PUMP} [1]. "

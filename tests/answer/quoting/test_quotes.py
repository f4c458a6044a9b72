"""Quotes read like an answer: whole, in order, introduced, and never a word that is not in the text."""

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.answer.quoting.passage_units import MAX_CHARACTERS
from citewell.answer.quoting.quote_builder import Quote
from citewell.answer.quoting.score import score_candidates
from citewell.answer.quoting.select import select_quotes
from citewell.models import Passage
from citewell.text.terms import keywords
from citewell.text.units import split_units, unit_text
from tests.conftest import chunk_of

PUMPS = """## Pumps

Where does the water go when it has to climb? A pump answers that question. It moves water uphill.

A pump is a machine that lifts water. It needs power.

The three checks of a pump are:

1. **Seal.** Look for drops.
2. **Noise.** Listen for a rattle.
3. **Heat.** Touch the casing.

| pump | head | weight |
| --- | --- | --- |
| Piston | 90 m | 30 kg |
| Rotary | 20 m | 5 kg |

![a pump](pump.png)

**Figure 1**: A pump in a shed.

The battery lasts about 3.1 h. Peaks of 2 kW occur at the start.[^1]

Start the pump from a terminal:

```bash
pumpctl start --slowly

pumpctl wait
```

[^1]: Measured at 12 V. The pump was cold.
"""


def passages(*texts: str) -> list[Passage]:
    return [Passage(chunk_of(text, number=at), score=1 / (1 + at), windows=()) for at, text in enumerate(texts)]


def quotes(question: str, *texts: str) -> list[Quote]:
    found = passages(*texts)
    asked = list(keywords(question))
    return select_quotes(question, score_candidates(question, found, {stem: 1 / len(asked) for stem in asked}), found)


def said(question: str, *texts: str) -> list[str]:
    return [one.text for one in quotes(question, *texts)]


def flat(text: str) -> str:
    return " ".join(word for line in text.splitlines() for word in line.lstrip("> \t").split())


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It lasts 3.1 h. Peaks are short.", ["It lasts 3.1 h.", "Peaks are short."]),
        ("The limit is 140 N. For the face it is 65 N.", ["The limit is 140 N.", "For the face it is 65 N."]),
        ("At 12 V. The fuse blows.", ["At 12 V.", "The fuse blows."]),
        ("It needs 17.7 N·m. Note that.", ["It needs 17.7 N·m.", "Note that."]),
        ("Orders are x, y, z, w. Others put w first.", ["Orders are x, y, z, w.", "Others put w first."]),
        ("As Eq. 4 and Fig. 3 show. Next.", ["As Eq. 4 and Fig. 3 show.", "Next."]),
        ("Use e.g. Linux, i.e. The kernel. Next.", ["Use e.g. Linux, i.e. The kernel.", "Next."]),
        ("Is it? No. It is not.", ["Is it?", "No.", "It is not."]),
        ("It was J. Smith. He left.", ["It was J. Smith.", "He left."]),
        ("**Stepping.** A foot moves. Then it lands.", ["**Stepping.** A foot moves.", "Then it lands."]),
        ("Effort is high.[^1] It falls.\n\n[^1]: A note.", ["Effort is high.", "It falls.", "A note."]),
        ("**Twin**\n: A replica.\n\n**Title**\n\nText.", ["**Twin** : A replica.", "Text."]),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, sentences: list[str]) -> None:
    assert [unit_text(text, unit) for unit in split_units(text)] == sentences


def test_a_definition_is_what_an_answer_to_what_is_begins_with() -> None:
    assert said("What is a pump?", "A pump in the cellar makes noise at night.", PUMPS)[0].startswith(
        "A pump is a machine that lifts water."
    )


def test_a_sentence_that_leans_on_the_one_before_brings_it() -> None:
    text = "The old pump stood in the cellar. It weighed 40 kg without its motor.\n\nNobody knows who built the shed."
    (found,) = said("How much weighed it?", text)
    assert found == "The old pump stood in the cellar. It weighed 40 kg without its motor."


def test_a_sentence_whose_beginning_is_not_at_hand_gives_way() -> None:
    text = "A valve weighs 3 kg and a pump weighs 40 kg.\n\nThey rarely change what a pump weighs."
    assert said("What does a pump weigh?", text) == ["A valve weighs 3 kg and a pump weighs 40 kg."]


def test_neighbours_are_one_quote_and_others_are_not() -> None:
    text = "A gasket seals a pump. A gasket wears out. Bolts are cheap. Weather is weather. Replace a gasket yearly."
    found = said("Why does a gasket wear out?", text)
    assert "A gasket seals a pump. A gasket wears out." in found
    assert all(before + " " + after not in text for before, after in pairwise(found))


def test_a_list_that_answers_is_quoted_as_a_list_under_its_introduction() -> None:
    assert said("What are the three checks of a pump?", PUMPS)[0].endswith(
        "The three checks of a pump are:\n1. **Seal.** Look for drops.\n2. **Noise.** Listen for a rattle.\n"
        "3. **Heat.** Touch the casing."
    )


def test_a_list_ends_at_the_next_title() -> None:
    text = "A pump needs:\n\n- power\n- water\n\n**Colours**\n\n- red\n- blue\n"
    assert said("What does a pump need?", text) == ["A pump needs:\n- power\n- water"]


def test_code_is_quoted_whole_with_the_words_that_announce_it() -> None:
    told = "Start the pump from a terminal:\n\n```bash\npumpctl start --slowly\n\npumpctl wait\n```"
    assert [one for one in said("Which command starts the pump from a terminal?", PUMPS) if told in one]


def test_who_asks_for_code_is_not_given_a_drawing() -> None:
    drawing = "The pump script as a drawing:\n\n```mermaid\nflowchart TD\n  pump --> script --> pump\n```"
    assert "pumpctl start" in "".join(said("Show me the pump script", drawing, PUMPS))


def test_a_comparison_gets_the_whole_table() -> None:
    (table,) = (one for one in said("Compare piston and rotary pump weight", PUMPS) if "| --- |" in one)
    assert "| Piston | 90 m | 30 kg |\n| Rotary | 20 m | 5 kg |" in table
    assert table.count("| pump | head | weight |") == 1


@pytest.mark.parametrize(
    "little",
    [
        "**Figure 1**: Priming the pump.",
        "How do you prime the pump?",
        "[Priming the pump](https://example.org/priming)",
        "In this lesson you will learn to prime the pump.",
    ],
)
def test_what_answers_nothing_is_left_out(little: str) -> None:
    text = f"{little}\n\nPrime the pump with a bucket of water."
    assert said("How do I prime the pump?", text) == ["Prime the pump with a bucket of water."]


def test_a_clear_answer_is_not_padded() -> None:
    padding = "\n\n".join(f"The {name} pump is painted." for name in ("old", "new", "small", "large", "spare"))
    found = said(
        "When was the Moravian pump station built?", f"The Moravian pump station was built in 1911.\n\n{padding}"
    )
    assert found == ["The Moravian pump station was built in 1911."]


LINES = st.sampled_from(
    [
        "A pump lifts water.",
        "It weighs 5 kg. The pump is heavy.",
        "This pump is why the water comes. Both leak.",
        "The pump has parts:",
        "- a pump seal\n- a pump bolt\n  - The pump nut turns.\n- The pump lid shuts.",
        "Pump tools are:\n1. a wrench\n2. a bucket for the pump",
        "- another pump seal",
        "- The pump valve opens.",
        "1. Start the pump.",
        "| pump | head |\n| --- | --- |\n| water | 3 m |\n| oil | 9 m |",
        "```bash\npump --run\n\npump --stop\n```",
        "$$\np = w\n$$",
        "> The pump is quoted. It is\n> old.",
        "## Pump",
        "**Pump**",
        "**Pump**\n: what a pump is",
        "See [the pump](https://example.org).[^1]",
        "[^1]: A pump note.",
        "Where is the pump?",
        "A pump " + "runs and " * 120 + "stops.",
        "",
    ]
)
TEXTS = st.lists(LINES, min_size=1, max_size=14, unique=True).map("\n\n".join)
ASKED = st.sampled_from(
    [
        "What is a pump?",
        "How do I start the pump?",
        "Compare the pump heads of water and oil",
        "Give me the code to run the pump",
        "How much does the pump weigh?",
        "What are the parts of a pump?",
    ]
)


@given(ASKED, st.lists(TEXTS, min_size=1, max_size=3))
def test_whatever_is_asked_of_whatever_text_the_quotes_hold(question: str, texts: list[str]) -> None:
    found = quotes(question, *texts)
    for one in found:
        text = texts[one.passage]
        assert all(flat(line) in flat(text) for line in one.text.splitlines()), "never a word that is not in the text"
        assert flat(one.text).split()[-1] in flat(text[one.start :]), "and it begins where it says"
        assert _fences(one.text) <= _fences(text), "code blocks are whole"
    others = found[1:]  # the best one comes first, wherever it stands
    for passage in {one.passage for one in others}:
        starts = [one.start for one in others if one.passage == passage]
        assert starts == sorted(set(starts)), "in reading order"
    spoken = Counter(unit_text(one.text, unit) for one in found for unit in split_units(one.text) if unit.kind != "row")
    assert [words for words, times in spoken.items() if times > 1] == [], "never the same sentence twice"
    lengths = [len(unit_text(one.text, unit)) for one in found for unit in split_units(one.text)]
    assert sum(lengths) <= MAX_CHARACTERS or max(lengths) > MAX_CHARACTERS, "and short, but for what cannot be cut"


def _fences(text: str) -> Counter[str]:
    return Counter(re.findall(r"```bash\n.*?\n```", text, re.DOTALL)) + Counter({"```": text.count("```") % 2})


def test_who_asks_how_gets_every_step_of_the_list_that_follows() -> None:
    text = (
        "Descale the machine every three months. Use citric acid, never vinegar.\n\n"
        "1. Fill the tank.\n2. Press both keys.\n3. Rinse twice.\n\nThe warranty lasts two years."
    )
    (found,) = said("How do I descale the machine?", text)
    assert found.endswith("1. Fill the tank.\n2. Press both keys.\n3. Rinse twice.")
    assert "Descale the machine every three months." in found


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("The name of the `./docs` folder. Next.", ["The name of the `./docs` folder.", "Next."]),
        ("```mdx-code-block\n<Tabs>\n<TabItem value='a'>\n```\n\nText.", ["Text."]),
        ("</TabItem>\n\nText.\n\n:::note\n\n<!-- a comment -->\n\n{/* another */}\n", ["Text."]),
        ("import Tabs from '@theme/Tabs';\n\nText.\n\n+++\n\n:\n", ["Text."]),
        ("{#first} Text. {#second}\n\n- An item {: .big}\n", ["Text.", "An item"]),
        ("```{note}\n:class: big\nA note. Its end.\n```\nText.", ["A note.", "Its end.", "Text."]),
        ("```{literalinclude} code.py\n:language: python\n```\n\nText.", ["Text."]),
        ("```{python}\nprint(1)\n```", ["```{python}\nprint(1)\n```"]),
    ],
)
def test_markup_that_a_page_does_not_show_is_never_quoted(text: str, units: list[str]) -> None:
    assert [unit_text(text, unit) for unit in split_units(text)] == units


def test_a_sentence_is_quoted_without_the_code_that_is_too_long_for_an_answer() -> None:
    sentence = "To avoid the rattle of a pump, set the `soft_start` option of its controller to true:"
    code = "```yaml\n" + "option: value\n" * 80 + "```"
    text = f"A pump may rattle, and bolts are cheap.\n\n{sentence}\n\n{code}\n\nEnd."
    assert said("How do I avoid the rattle of a pump?", text)[0].endswith(sentence)


def test_the_best_sentence_brings_the_short_one_that_goes_on_with_its_thought() -> None:
    text = "Use a rotary pump rather than a piston pump for oil. It's faster.\n\nBolts are cheap."
    assert said("Should I use a rotary pump or a piston pump for oil?", text)[0].endswith("for oil. It's faster.")


def test_a_row_of_a_small_table_comes_with_the_others() -> None:
    text = "| Item | Cost |\n| --- | --- |\n| Pump | 90 |\n| Pipes | 20 |\n| **Total** | 110 |\n"
    (found,) = said("What does the pump station cost?", text)
    assert "**Total** | 110" in found


def test_a_pointer_to_another_page_gives_way_to_a_sentence_that_says_something() -> None:
    text = "See pump controllers for more information.\n\nThe pump is started by its controller."
    assert said("What controllers does a pump have?", text) == ["The pump is started by its controller."]


def test_a_short_sentence_is_no_duplicate_of_a_longer_one_that_has_its_words() -> None:
    short = "The flow parameter sets both the filling speed and the draining speed."
    longer = (
        "To set the filling speed and the draining speed, the flow parameter of a pump takes both: the first sets one."
    )
    question = "How do I set the flow parameter, the filling speed and the draining speed?"
    found = " ".join(said(question, f"{longer}\n\nBolts.\n\n{short}"))
    assert short in found
    assert longer in found


TABS = """## Install the pump controller

**Linux**

```bash
apt install pump-controller
```

**Windows**

```powershell
winget install pump-controller
```
"""


@pytest.mark.parametrize(
    ("platform", "command", "other"), [("Windows", "winget", "apt install"), ("Linux", "apt install", "winget")]
)
def test_a_platform_that_is_asked_for_is_answered_from_its_tab(platform: str, command: str, other: str) -> None:
    answer = "\n".join(said(f"Which command installs the pump controller on {platform}?", TABS))
    assert command in answer
    assert other not in answer


@pytest.mark.parametrize("label", ["**{}**", "### {}", "On {}:"])
def test_code_is_told_apart_by_the_label_heading_or_sentence_before_it(label: str) -> None:
    text = "".join(
        f"{label.format(name)}\n\n```\n{tool} install the pump controller\n```\n\n"
        for name, tool in (("Linux", "sudo lx"), ("macOS", "mx"), ("Windows", "wx"))
    )
    answer = "\n".join(said("Show me the command to install the pump controller on Windows", text))
    assert "wx install" in answer
    assert "lx install" not in answer


def test_a_list_that_is_asked_for_comes_before_a_sentence_about_it() -> None:
    sentence = "Bolts of a pump are cheap, and the types are many."
    items = "Join types of a pump:\n" + "\n".join(
        f"- {name} join types of a pump" for name in ("welded", "screwed", "glued", "pressed", "bolted")
    )
    assert said("List all join types of a pump", sentence, items.replace("\n", "\n\n", 1))[0] == items


@pytest.mark.parametrize(
    "dangling",
    [
        "Because the pump overheats without water.",
        "One is overheating of the pump.",
        "As mentioned above, the pump overheats.",
    ],
)
def test_a_sentence_that_begins_in_the_middle_of_a_thought_brings_the_one_before(dangling: str) -> None:
    text = f"Dry pumps have two problems. {dangling} Fill it first."
    assert said("Why does the pump overheat?", text)[0].startswith("Dry pumps have two problems.")


def test_a_whole_sentence_that_begins_with_because_stands_alone() -> None:
    text = "Read this first. Because the pump overheats without water, fill it before you start it."
    assert said("Why must the pump be filled?", text)[0].startswith("Because the pump overheats")


def test_the_sentence_that_answers_best_comes_first_wherever_it_stands() -> None:
    text = (
        "The pump and its battery were built by two companies.\n\n## Care\n\nStore the tools in a dry place.\n\n"
        "## Runtime\n\nThe battery of the pump lasts three hours."
    )
    assert said("How long does the battery of the pump last?", text)[0] == "The battery of the pump lasts three hours."


def test_code_that_nobody_asked_for_is_not_quoted_beside_the_answer() -> None:
    text = "The pump lasts three hours on a battery.\n\n```python\npump.battery = hours(3)\npump.last()\n```\n"
    assert "```" not in "".join(said("What limits the hours that the pump lasts?", text))


@pytest.mark.parametrize("dangling", ["Use it where the pump must be quiet.", "A screw pump does."])
def test_a_sentence_that_says_nothing_alone_brings_the_one_before(dangling: str) -> None:
    text = f"A piston rattles, and a screw turns softly. {dangling}"
    assert said("Which pump must be quiet?", text)[0].startswith("A piston rattles")


def test_an_abbreviation_is_explained_by_the_sentence_that_introduces_it() -> None:
    other = "A PMP plan lists the PMP values, and the PMP must be renewed."
    text = "Each house has a peak management plan (PMP). It is a list of who may draw power, and when."
    assert said("What does PMP stand for?", other, text)[0].startswith("Each house has a peak management plan (PMP).")

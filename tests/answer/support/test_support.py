"""A sentence is held against the text it cites: what the text says is supported, what was changed is not."""

import json
import sys
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.answer.support.features import SUPPORT_FEATURES
from citewell.answer.support.quantities import find_quantities
from citewell.answer.support.score import VERDICT_BANDS, BoostedTrees, needs_support, support_score, verdict_for
from tests.answer.support.value_cases import ADDS_ONLY, RIGHT, WRONG

TOWER = (
    "The Eiffel Tower is a wrought-iron lattice tower on the Champ de Mars in Paris, France. It is 330 metres tall and "
    "was completed in 1889. Gustave Eiffel's company designed and built it. The tower is not illuminated after "
    "23:45. It increases in height by up to 15 cm in summer because iron expands when it is warm."
)
ROBOT = (
    "The left leg of Strider has seven joints, each driven by a brushless motor. Its battery holds 2.5 kWh and lasts "
    "for 90 minutes of walking. Before the first step the camera must be calibrated with a printed board."
)
PUMP = (
    "## Priming\n\nA pump that runs dry fails within 30 seconds. Fill the casing with water before you start the "
    "motor:\n\n```sh\npumpctl prime --wait 20\n```\n\n- Close the drain valve.\n- Open the vent until water comes.\n"
)


@pytest.mark.parametrize("text", [TOWER, ROBOT, PUMP])
def test_what_a_text_says_word_for_word_is_supported(text: str) -> None:
    said = [one.strip("- ") for line in text.split("\n") for one in line.split(". ") if one.endswith(("m", "t", "."))]
    assert said
    assert [one for one in said if verdict_for(support_score(one, [text])) != "supported"] == []


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (TOWER, "It is 320 metres tall and was completed in 1889."),
        (TOWER, "It is 330 metres tall and was completed in 1899."),
        (ROBOT, "Its battery holds 3.5 kWh and lasts for 90 minutes of walking."),
        (ROBOT, "The left leg of Strider has eight joints."),
        (PUMP, "A pump that runs dry fails within 50 seconds."),
    ],
    ids=lambda said: said[:40],
)
def test_another_number_is_not_supported(text: str, changed: str) -> None:
    assert verdict_for(support_score(changed, [text])) == "unsupported"


@pytest.mark.parametrize("said", ["The Eiffel Tower is 300 metres tall.", "The tower was completed in 1890."])
def test_another_number_in_other_words_is_weak_at_best(said: str) -> None:
    assert verdict_for(support_score(said, [TOWER])) in ("weak", "unsupported")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (TOWER, "It is 330 feet tall and was completed in 1889."),
        (TOWER, "It increases in height by up to 15 mm in summer because iron expands when it is warm."),
        (ROBOT, "Its battery holds 2.5 kWh and lasts for 90 hours of walking."),
        (PUMP, "A pump that runs dry fails within 30 minutes."),
    ],
    ids=lambda said: said[:40],
)
def test_the_number_of_something_else_is_not_supported(text: str, changed: str) -> None:
    assert verdict_for(support_score(changed, [text])) == "unsupported"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (TOWER, "The Eiffel Tower is a wrought-iron lattice tower on the Champ de Mars in London, France."),
        (TOWER, "Ferdinand Porsche's company designed and built it."),
        (ROBOT, "The left leg of Nimbus has seven joints, each driven by a brushless motor."),
    ],
    ids=lambda said: said[:40],
)
def test_another_name_is_not_supported(text: str, changed: str) -> None:
    assert verdict_for(support_score(changed, [text])) == "unsupported"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (TOWER, "The tower is illuminated after 23:45."),
        (TOWER, "It is not 330 metres tall and was completed in 1889."),
        (TOWER, "It decreases in height by up to 15 cm in summer because iron expands when it is warm."),
        (TOWER, "It increases in height by up to 15 cm in summer because iron expands when it is cold."),
        (ROBOT, "Before the first step the camera must not be calibrated with a printed board."),
        (PUMP, "Fill the casing with water after you start the motor."),
    ],
    ids=lambda said: said[:40],
)
def test_the_opposite_is_not_supported(text: str, changed: str) -> None:
    assert verdict_for(support_score(changed, [text])) == "unsupported"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TOWER, "The tower, built by the company of Gustave Eiffel, was completed in 1889."),
        (TOWER, "In summer the height grows by as much as 15 cm, since warm iron expands."),
        (TOWER, "It is 0.33 km tall, and it was completed in 1889."),
        (TOWER, "The tower in Paris is 330 m tall."),
        (ROBOT, "Strider's left leg has 7 joints with a brushless motor each."),
        (ROBOT, "You have to calibrate the camera with a printed board before it takes the first step."),
        (PUMP, "Yes, a pump fails within half a minute, 30 seconds, when it runs dry."),
        (PUMP, "To prime the pump, fill the casing with water, then start the motor."),
    ],
    ids=lambda said: said[:40],
)
def test_the_same_in_other_words_is_not_called_unsupported(text: str, said: str) -> None:
    assert verdict_for(support_score(said, [text])) in ("supported", "weak")


@pytest.mark.parametrize(("text", "said"), WRONG, ids=lambda said: said[:60])
def test_a_value_that_the_text_does_not_have_is_not_supported(text: str, said: str) -> None:
    """Flags, identifiers, files, quoted values and numbers; an example's value as a default; the other limit."""
    assert verdict_for(support_score(said, [text])) == "unsupported"


@pytest.mark.parametrize(("text", "said"), RIGHT, ids=lambda said: said[:60])
def test_a_value_of_the_text_in_another_spelling_is_not_called_unsupported(text: str, said: str) -> None:
    assert verdict_for(support_score(said, [text])) != "unsupported"


@pytest.mark.parametrize(("text", "said"), ADDS_ONLY, ids=lambda said: said[:60])
def test_only_is_weak_at_best_where_the_text_restricts_nothing(text: str, said: str) -> None:
    assert verdict_for(support_score(said, [text])) in ("weak", "unsupported")


def test_a_value_may_be_in_another_of_the_texts() -> None:
    said = "Run `pumpctl prime --wait 20` first, and fill the casing with water."
    assert support_score(said, [TOWER, PUMP]) >= support_score(said, [PUMP])
    assert verdict_for(support_score(said, [PUMP])) != "unsupported"


def test_a_count_of_what_a_text_lists_is_weak_at_best() -> None:
    listed = "Strider has a camera, a battery and a motor in its left leg."
    assert verdict_for(support_score("Strider has three parts: a camera, a battery and a motor.", [listed])) == "weak"


@pytest.mark.parametrize(
    "said",
    [
        "Herons stand in shallow water and eat frogs.",
        "Kubernetes restarts a container whose liveness probe fails.",
        "Napoleon was buried under the dome of Les Invalides in 1840.",
    ],
)
@pytest.mark.parametrize("text", [TOWER, ROBOT, PUMP])
def test_what_a_text_does_not_speak_of_is_not_supported(text: str, said: str) -> None:
    assert verdict_for(support_score(said, [text])) == "unsupported"


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (
            "Der Turm ist 330 Meter hoch und wurde 1889 fertig. Im Sommer wächst er um 15 cm.",
            "Der Turm ist 330 Meter hoch.",
            "Der Turm ist nicht 330 Meter hoch und wurde 1889 fertig.",
        ),
        (
            "La torre mide 330 metros y fue terminada en 1889. Crece 15 cm en verano.",
            "La torre mide 330 metros.",
            "La torre mide 230 metros y fue terminada en 1889.",
        ),
        (
            "Башня имеет высоту 330 метров и была построена в 1889 году.",
            "Башня имеет высоту 330 метров.",
            "Роботам нужны камеры.",
        ),
        ("这座塔高330米，于1889年建成。夏天它会变高。", "这座塔高330米。", "机器人需要校准相机。"),
        ("यह मीनार 330 मीटर ऊँची है और 1889 में बनी थी।", "यह मीनार 330 मीटर ऊँची है।", "रोबोट को कैमरा चाहिए।"),
    ],
)
def test_other_languages_are_judged_too(text: str, right: str, wrong: str) -> None:
    assert verdict_for(support_score(right, [text])) == "supported"
    assert verdict_for(support_score(wrong, [text])) == "unsupported"


@pytest.mark.parametrize("said", ["这座塔高330米。", "Der Turm ist 330 Meter hoch und wurde im Jahr 1889 fertig."])
def test_a_translation_is_neither_right_nor_wrong_to_us(said: str) -> None:
    assert verdict_for(support_score(said, [TOWER])) == "weak"


def test_a_sentence_may_rest_on_two_texts() -> None:
    both = "Strider has seven joints in its left leg, and the Eiffel Tower is 330 metres tall."
    together = support_score(both, [ROBOT, TOWER])
    assert together > max(support_score(both, [ROBOT]), support_score(both, [TOWER]))
    assert verdict_for(together) == "supported"


def test_another_text_takes_no_support_away() -> None:
    said = "It is 330 metres tall and was completed in 1889."
    assert support_score(said, [TOWER, PUMP]) >= support_score(said, [TOWER])
    assert support_score(said, [PUMP, TOWER]) == support_score(said, [TOWER, PUMP])


def test_citations_and_markdown_are_no_part_of_the_claim() -> None:
    plain = support_score("The Eiffel Tower is 330 metres tall.", [TOWER])
    assert support_score("The **Eiffel Tower** is `330` metres tall [1][12].", [TOWER]) == plain


def test_every_word_that_a_text_does_not_say_costs() -> None:
    said = "The tower is 330 metres tall"
    odds = [
        support_score(said + added + ".", [TOWER]) for added in ("", " and has elevators", " and has elevators of Otis")
    ]
    assert odds == sorted(odds, reverse=True)
    assert odds[0] > odds[2]


@pytest.mark.parametrize(
    ("said", "texts"),
    [
        ("", [TOWER]),
        ("…!", [TOWER]),
        ("And", [TOWER]),
        ("It is in the.", [TOWER]),
        ("A tower.", []),
        ("A tower.", ["", " "]),
    ],
)
def test_nothing_supports_nothing(said: str, texts: list[str]) -> None:
    assert support_score(said, texts) == 0.0


def test_code_is_compared_like_text() -> None:
    assert verdict_for(support_score("Run `pumpctl prime --wait 20` first.", [PUMP])) != "unsupported"
    assert verdict_for(support_score("Run `kubectl rollout restart` first.", [PUMP])) == "unsupported"


@pytest.mark.parametrize(
    "long",
    [
        "a " * 50_000,
        "1 " * 50_000,
        "not " * 25_000,
        "tower. " * 15_000,
        "x" * 100_000,
        "1" * 100_000,
        "1," * 50_000,
        "[" * 100_000,
        " ".join(f"word{number}" for number in range(12_000)),
        " ".join(map(str, range(18_000))),
    ],
    ids=lambda long: long[:8],
)
def test_a_hostile_text_costs_no_more_calls_than_prose(long: str) -> None:
    prose = (TOWER + " ") * (100_000 // len(TOWER))
    usual = calls_to_score(prose, prose)  # what is quadratic in 100,000 characters calls a thousand times as often
    hostile = [calls_to_score(long, TOWER), calls_to_score("A tower.", long), calls_to_score(long, long)]
    assert max(hostile) <= 20 * usual


def calls_to_score(sentence: str, text: str) -> int:
    """How many functions are called to score a sentence: a cost that does not depend on how busy the machine is."""
    count = 0

    def profile(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        support_score(sentence, [text])
    finally:
        sys.setprofile(None)
    return count


@given(st.text(max_size=200), st.text(max_size=400))
def test_no_text_is_too_strange(sentence: str, text: str) -> None:
    assert 0.0 <= support_score(sentence, [text]) <= 1.0


@pytest.mark.parametrize(
    "talk",
    [
        "Sure!",
        "Here are the steps:",
        "Of course, here is what the text says:",
        "## Priming",
        "**Summary**",
        "---",
        "Let me know if you need more!",
        "In summary:",
        "To calibrate the camera, follow these steps:",
        "Would you like to know more?",
        "[1]",
        "",
    ],
)
def test_talk_needs_no_support(talk: str) -> None:
    assert not needs_support(talk)


@pytest.mark.parametrize(
    "claim",
    [
        "The tower is 330 metres tall.",
        "- Fill the casing.",
        "No, pumps must not run dry.",
        "**Note:** the motor stops after 30 seconds.",
        "这座塔高330米。",
        "Let the motor cool for ten minutes.",
        "Yes, it has seven joints.",
        "Here is why: the motor stalls.",
        "The tower has 3 levels:",
        "I can lift 30 kg.",
    ],
)
def test_a_claim_needs_support(claim: str) -> None:
    assert needs_support(claim)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,500 m", "1.5 km"),
        ("1,5 km", "1500 metres"),
        ("90 minutes", "1.5 hours"),
        ("seven", "7"),
        ("twenty-one", "21"),
        ("2.5 million", "2,500,000"),
        ("15%", "15 percent"),
        ("two years", "24 months"),
        ("高330米", "330"),
    ],
)
def test_numbers_are_values_with_units(one: str, other: str) -> None:
    [ours], [theirs] = find_quantities(one), find_quantities(other)
    assert ours.same_value(theirs)
    assert ours.measures == theirs.measures


def test_digits_inside_names_are_no_numbers() -> None:
    assert find_quantities("The MX64 speaks v1.2.3 of RS485.") == []


def test_the_shipped_trees_may_turn_no_sign_around() -> None:
    fitted = json.loads(files("citewell").joinpath("data", "support.json").read_text(encoding="utf-8"))
    chance = np.random.default_rng(7)
    trees = BoostedTrees(fitted["words"], fitted["words"]["features"])
    low, high = (np.array(edge) for edge in zip(*_edges(fitted["words"]), strict=True))
    for _ in range(20):
        row = chance.uniform(low - 0.1, high + 0.1)
        for sign, (name, direction) in enumerate(SUPPORT_FEATURES.items()):
            more = row.copy()
            more[sign] = high[sign] + 1
            gained = trees.probability(more) - trees.probability(row)
            assert gained * direction >= -1e-9, name
    assert 0 < VERDICT_BANDS["weak"] < VERDICT_BANDS["supported"] < 1


def _edges(fitted: dict[str, list[float]]) -> list[tuple[float, float]]:
    """Between which values each sign is asked about."""
    found: list[list[float]] = [[0.0] for _ in fitted["features"]]
    for node, (sign, edge) in enumerate(zip(fitted["feature"], fitted["threshold"], strict=True)):
        if fitted["left"][node] != node:
            found[int(sign)].append(edge)
    return [(min(edges), max(edges)) for edges in found]


def test_trees_fitted_on_other_signs_are_refused() -> None:
    fitted = json.loads(files("citewell").joinpath("data", "support.json").read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match=r"benchmarks/fit/support\.py"):
        BoostedTrees(fitted["words"], ["other", "signs"])

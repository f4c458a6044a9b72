"""Words are counted alike in a text and in a question about it, whatever the language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.text.language import detect_language
from citewell.text.sentences import sentence_stems
from citewell.text.stemming import stems
from citewell.text.terms import keywords
from citewell.text.words import split_words


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("How are the cameras calibrated?", "english"),
        ("Wie werden die Kameras kalibriert?", "german"),
        ("¿Cómo se calibran las cámaras?", "spanish"),
        ("Comment les caméras sont-elles calibrées ?", "french"),
        ("Hoe worden de camera's gekalibreerd?", "dutch"),
        ("Máy ảnh được hiệu chỉnh như thế nào?", "vietnamese"),
        ("ros2 launch demo", "english"),
        ("", "english"),
    ],
)
def test_function_words_betray_a_language(text: str, spoken: str) -> None:
    assert detect_language(text) == spoken


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("Which robots walk?", "A robot that walked."),
        ("Welche Häuser sind hoch?", "Das hohe Haus ist im Wald und die Stadt ist nicht weit."),
        ("¿Cuáles son las ciudades?", "La ciudad es grande y los ríos son largos."),
        ("ما هي المدينة الكبيرة؟", "المدن الكبيرة والمدينة"),
        ("भारत की राजधानी क्या है?", "राजधानी दिल्ली है।"),
        ("机器人如何行走？", "这种机器人可以行走很远。"),
        ("ロボットはどう歩く？", "このロボットは速く歩く。"),
        ("로봇은 어떻게 걷나요?", "이 로봇은 빠르게 걷습니다."),
        ("หุ่นยนต์เดินอย่างไร", "หุ่นยนต์เดินเร็ว"),
        ("Thành phố nào lớn nhất?", "Hà Nội là thành phố lớn."),
        ("Какие города большие?", "Большой город стоит на реке."),
        ("What does mapBatches do?", "Call map_batches on the dataset."),
    ],
)
def test_a_question_shares_stems_with_what_answers_it(question: str, passage: str) -> None:
    assert set(stems(question)) & set(stems(passage)), (stems(question), stems(passage))


def test_what_wraps_a_question_is_not_its_subject() -> None:
    assert list(keywords("How do I calibrate the camera?")) == ["calibr", "camera"]
    assert list(keywords("Wie hoch ist der Turm?")) == ["hoch", "turm"]


def test_a_vowel_sign_does_not_split_a_word() -> None:
    assert split_words("हिन्दी किताब") == ["हिन्दी", "किताब"]


def test_vietnamese_accents_make_other_words() -> None:
    said = stems("má mà ma là của những người không được", "vietnamese")
    assert len(set(said[:3])) == 3


def test_sentences_and_list_items_are_told_apart() -> None:
    text = "A pump moves water. It needs power.\n\n- Fill the casing.\n- Start the motor.\n"
    assert [len(said) for said in sentence_stems(text)] == [4, 3, 3, 3]


@given(st.text(max_size=300))
def test_no_text_is_too_strange_and_what_speaks_has_sentences(text: str) -> None:
    assert bool(sentence_stems(text)) == bool(stems(text))

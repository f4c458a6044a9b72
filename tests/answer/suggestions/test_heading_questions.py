"""Headings become the questions that a reader might ask, or none."""

from datetime import UTC, datetime
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.answer.suggestions.heading_questions import heading_questions
from citewell.answer.suggestions.starter_questions import MAX_SEARCHES, MAX_SUGGESTIONS, sample_documents
from citewell.models import DocumentSummary

TEXT = """
Stand on one leg. The robot has to reach the capture point in time, and the capture point is near. An emergency stop
cuts the power; a digital twin shows what it does. Of friction nothing is said but that friction is a force. We choose
footholds with care: the Jacobian of a leg, as Jacobi called it, tells how. With visual SLAM it knows where it is. The
series elastic actuators are soft. It begins with forward kinematics.
"""


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("How fast must each loop run?", "How fast must each loop run?"),
        ("3.2 How fast must each loop run?", "How fast must each loop run?"),
        ("Wie schnell läuft der Roboter?", "Wie schnell läuft der Roboter?"),
        ("机器人如何保持平衡？", "机器人如何保持平衡？"),
        ("How to Choose Footholds", "How do you choose footholds?"),
        ("How contact is modelled", "How is contact modelled?"),
        ("Why the real world is hard", "Why is the real world hard?"),
        ("What a physics engine does", "What does a physics engine do?"),
        ("When a foot slips", "What happens when a foot slips?"),
        ("Which standards apply", "Which standards apply?"),
        ("Choosing footholds", "How do you choose footholds?"),
        ("Choose a foothold", "How do you choose a foothold?"),
        ("Recovering from a push", "How do you recover from a push?"),
        ("Capture point", "What is the capture point?"),
        ("**Capture Point**", "What is the capture point?"),
        ("Emergency stop", "What is an emergency stop?"),
        ("Digital twins", "What is a digital twin?"),
        ("Series elastic actuators", "What are series elastic actuators?"),
        ("Friction", "What is friction?"),
        ("The Jacobian", "What is the Jacobian?"),
        ("Visual SLAM", "What is visual SLAM?"),
        ("Forward kinematics", "What is forward kinematics?"),
    ],
)
def test_a_heading_becomes_a_plain_question(heading: str, question: str) -> None:
    text = TEXT + "Friction is a force. The Jacobian is a matrix, and the Jacobian is large.\n"
    assert [one.question for one in heading_questions([heading], text)] == [question]


@pytest.mark.parametrize(
    "heading",
    [
        "Introduction", "Summary", "Exercises", "Contents", "See also", "Learning objectives", "Chapter 3", "4", "x",
        "", "`robot.walk()`", "robot_walk", "conf.py", "--verbose", "Mass budget", "Training data", "Building blocks",
        "Why it matters", "What is this?", "Where next?", "Why robots?", "Kinematics: Where Is My Hand?",
        "Links and joints", "Before the computer could walk", "Laufen lernen", "平衡", "التوازن", "y" * 90,
        " ".join(["capture"] * 30) + "?",
    ],
)  # fmt: skip
def test_what_would_make_no_good_question_makes_none(heading: str) -> None:
    assert heading_questions([heading], TEXT) == []


def test_in_another_language_only_questions_are_used() -> None:
    text = "Der Roboter steht auf einem Bein, und das ist nicht leicht. Die Balance ist eine Kunst, die er lernt. " * 3
    found = heading_questions(["Die Balance", "Training", "Warum fällt ein Roboter um?"], text)
    assert [one.question for one in found] == ["Warum fällt ein Roboter um?"]


def test_the_best_come_first_and_each_comes_once() -> None:
    headings = [
        "Choosing footholds",
        "Capture point",
        "How fast must each loop run?",
        "Capture Point",
        "How to choose footholds",
    ]
    found = [one.question for one in heading_questions(headings, TEXT)]
    assert found == ["How fast must each loop run?", "What is the capture point?", "How do you choose footholds?"]


@given(st.lists(st.text(max_size=60), max_size=5), st.text(max_size=300))
def test_whatever_stands_in_headings_a_question_is_one_short_line(headings: list[str], text: str) -> None:
    for one in heading_questions(headings, text):
        assert one.question.endswith(("?", "？", "؟"))
        assert len(one.question.splitlines()) == 1
        assert len(one.question) <= 80


@given(st.integers(0, 200))
def test_a_book_is_looked_at_from_its_beginning_to_its_end(count: int) -> None:
    documents = [
        DocumentSummary(UUID(int=number), f"{number:03}.md", "", "", None, 1, 1, datetime.now(UTC))
        for number in range(count)
    ]
    chosen = sample_documents(documents)
    flat = [one for part in chosen for one in part]
    assert len(chosen) == min(MAX_SUGGESTIONS, count)
    assert len(flat) == min(MAX_SEARCHES, count)
    assert flat == sorted(set(flat), key=lambda one: one.path)
    if count >= MAX_SEARCHES:
        gaps = [int(b.path[:3]) - int(a.path[:3]) for a, b in pairwise(flat)]
        assert max(gaps) <= 2 * (count // MAX_SEARCHES) + 2

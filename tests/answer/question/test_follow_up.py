"""A follow-up is understood in the light of what was asked before; a question that stands alone is left alone."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.answer.question.follow_up import resolve_follow_up
from citewell.answer.question.topic import find_topic
from citewell.errors import BadFilter
from citewell.models import Exchange, Filters
from tests.conftest import Citewell, ask, take_in

GYROSCOPES = Exchange("Why do gyroscopes drift?", "Integrating a bias makes the result drift. [1]")
CAPTURE = Exchange("What is the capture point?", "It is where a foot must be set to stop. [1]")
INSTALL = Exchange("How do I install Ray on Linux?", "Run pip. [1]")
SETUP = Exchange("How do I install it?", "Run pip. [1]")
DOCKER = Exchange("How do I install Docker?", "Run apt. [1]")
RAY = Exchange("What is Ray?", "A framework. [1]")
CAMERA = Exchange("How do I calibrate the camera?", "Print a checkerboard. [1]")
PHOTOS = Exchange("How many checkerboard photos do I need?", "Take 20 to 40 images. [1]")
GEARS = Exchange("What is the difference between a planetary gearbox and a strain wave gear?", "Backlash. [1]")
STAGES = Exchange(
    "What are the stages of learning to walk?",
    "They are:\n\n1. **Reward design**: say what is good.\n2. Simulation training\n3. Transfer [1]",
)
SENSORS = Exchange("Which sensors are in a foot?", "Common ones are load cells, switches and cameras. [1]")
REFUSED = Exchange(
    "How do I bake bread?",
    "This is not covered by these documents. "
    "The nearest topics they cover are “Safety > Stops”, “Hands” and “Walking”.",
)
THANKS = Exchange("thanks", "You're welcome.")


@pytest.mark.parametrize(
    ("before", "asked", "understood"),
    [
        (CAPTURE, "how is it computed?", "how is the capture point computed?"),
        (CAPTURE, "What are its limits?", "What are the capture point’s limits?"),
        (CAPTURE, "Who invented it?", "Who invented the capture point?"),
        (CAPTURE, "Why is this important?", "Why is the capture point important?"),
        (CAPTURE, "When should I use it?", "When should I use the capture point?"),
        (CAPTURE, "what about the support polygon?", "What is the support polygon?"),
        (CAPTURE, "give me an example of that", "An example of the capture point"),
        (CAPTURE, "any code?", "Code for the capture point"),
        (CAPTURE, "and why is that?", "why is that (the capture point)?"),
        (CAPTURE, "¿por qué?", "por qué (the capture point)?"),
        (CAPTURE, "give me an example in Python", "An example of the capture point in Python"),
        (CAMERA, "give me an example", "How do I calibrate the camera, with an example?"),
        (CAMERA, "Example?", "How do I calibrate the camera, with an example?"),
        (CAMERA, "any sample code, please?", "How do I calibrate the camera, with code?"),
        (CAMERA, "show me how", "How do I calibrate the camera, with an example?"),
        (CAMERA, "an example with Docker please", "How do I calibrate the camera with Docker, with an example?"),
        (GYROSCOPES, "what about accelerometers?", "Why do accelerometers drift?"),
        (GYROSCOPES, "Thanks! But how can I measure it?", "how can I measure it (gyroscopes drift)?"),
        (GYROSCOPES, "Does that happen in space?", "Does that happen in space (gyroscopes drift)?"),
        (INSTALL, "what about Docker?", "How do I install Ray on Docker?"),
        (INSTALL, "and on Windows?", "How do I install Ray on Windows?"),
        (INSTALL, "With conda?", "How do I install Ray on Linux with conda?"),
        (INSTALL, "and macOS?", "How do I install Ray on macOS?"),
        (INSTALL, "Windows?", "How do I install Ray on Windows?"),
        (INSTALL, "for Windows?", "How do I install Ray for Windows?"),
        (INSTALL, "ok and on a Mac", "How do I install Ray on a Mac?"),
        (INSTALL, "same on windows?", "How do I install Ray on windows?"),
        (INSTALL, "what if I use conda?", "How do I install Ray on Linux with conda?"),
        (INSTALL, "I'm on Windows", "How do I install Ray on Windows?"),
        (SETUP, "on Windows?", "How do I install it on Windows?"),
        (SETUP, "On Windows", "How do I install it on Windows?"),
        (SETUP, "in Python?", "How do I install it in Python?"),
        (SETUP, "and for Docker?", "How do I install it for Docker?"),
        (SETUP, "what about Docker?", "How do I install it on Docker?"),
        (SETUP, "what about the plugin?", "How do I install the plugin?"),
        (DOCKER, "and podman?", "How do I install podman?"),
        (RAY, "what about Docker?", "What is Docker?"),
        (CAMERA, "what about the IMU?", "How do I calibrate the IMU?"),
        (CAMERA, "how long does it take?", "how long does it take (calibrate the camera)?"),
        (CAMERA, "How many photos does it need?", "How many photos does it need (calibrate the camera)?"),
        (PHOTOS, "why?", "why (checkerboard photos)?"),
        (PHOTOS, "how big should they be?", "how big should they be (checkerboard photos)?"),
        (GEARS, "what about the second one?", "what about a strain wave gear?"),
        (GEARS, "How heavy is the former?", "How heavy is the former?"),
        (GEARS, "How heavy is the first one?", "How heavy is a planetary gearbox?"),
        (STAGES, "and the second one?", "Simulation training (the stages of learning to walk)?"),
        (STAGES, "how does the first step work?", "how does Reward design work (the stages of learning to walk)?"),
        (STAGES, "tell me about the last one", "tell me about Transfer (the stages of learning to walk)?"),
        (SENSORS, "what about the third one?", "what about cameras (sensors are in a foot)?"),
        (REFUSED, "tell me about the second one", "tell me about Hands"),
    ],
)
def test_a_follow_up_is_filled_in_from_the_last_question(before: Exchange, asked: str, understood: str) -> None:
    assert resolve_follow_up(asked, [before]).question == understood
    assert resolve_follow_up(asked, [before, THANKS]).question == understood, "a thank you in between changes nothing"


@pytest.mark.parametrize(
    "asked",
    [
        "How do I mount the lidar?",
        "Is it possible to run ROS 2 on Windows?",
        "How long does it take to charge the battery?",
        "Who lost his crown in the revolution?",
        "Who was the first president?",
        "What is the last step in assembling a hand?",
        "What do you mean by bias?",
        "Tell me more about harmonic drives",
        "Which gearbox has no backlash and why is it used?",
        "When a motor stalls, how does it behave?",
        "What does the IT department install?",
        "What about the power consumption of a humanoid knee actuator?",
        "And how does ROS 2 handle time?",
        "Great Britain",
        "Hello world program",
        "what time is it in alaska",
        "in memory storage of large tables",
        "Windows",
        "I use a harmonic drive with a cracked flexspline, what now?",
    ],
)
def test_a_question_that_stands_alone_is_left_alone(asked: str) -> None:
    for before in (GYROSCOPES, CAPTURE, INSTALL, GEARS, STAGES):
        assert resolve_follow_up(asked, [before]) == resolve_follow_up(asked) == resolve_follow_up(asked, [THANKS])
        assert resolve_follow_up(asked, [before]).question == asked


@pytest.mark.parametrize(
    "asked",
    ["Tell me more", "go on", "more details, please", "Could you elaborate?", "explain further", "and why is that?",
     "What else?", "Erzähl mir mehr", "cuéntame más", "dis-m'en plus"],
)  # fmt: skip
def test_more_means_the_same_question_again_without_what_was_said(asked: str) -> None:
    once = resolve_follow_up(asked, [GYROSCOPES])
    assert (once.question, once.kind, once.already_shown) == (GYROSCOPES.question, "more", (GYROSCOPES.answer,))
    twice = resolve_follow_up(asked, [GYROSCOPES, Exchange("tell me more", "White noise.")])
    assert twice.already_shown == (GYROSCOPES.answer, "White noise.")


def test_a_topic_lasts_over_follow_ups_and_five_exchanges() -> None:
    history = [CAPTURE, Exchange("how is it computed?", "…"), Exchange("any code?", "…"), Exchange("why?", "…")]
    assert resolve_follow_up("who invented it?", history).question == "who invented the capture point?"
    history += [THANKS, THANKS]
    assert resolve_follow_up("who invented it?", history).question == "who invented it?", "only the last five count"


@pytest.mark.parametrize(
    "asked",
    ["tell me more", "Why?", "and the second one?", "can you give me an example?", "What is it?", "what's this?"],
)
def test_a_follow_up_to_nothing_is_asked_back(asked: str) -> None:
    nothing: list[Exchange] = []
    for history in (nothing, [THANKS]):
        understood = resolve_follow_up(asked, history)
        assert (understood.kind, understood.question) == ("unclear", asked)
        assert understood.reply.endswith("?")


def test_who_asks_for_the_fifth_of_two_is_asked_back() -> None:
    assert resolve_follow_up("and the fifth one?", [GEARS]).reply == "Which one do you mean?"


def test_a_pronoun_without_antecedent_is_searched_as_it_is() -> None:
    assert resolve_follow_up("How long does it take?").question == "How long does it take?"
    assert resolve_follow_up("what about Docker?").question == "what about Docker?"


@given(st.lists(st.text(max_size=60), max_size=6), st.text(max_size=400))
def test_whatever_is_said_is_understood_as_something(said: list[str], asked: str) -> None:
    history = [Exchange(one, f"1. {one}\n2. {one}, a and b.") for one in said]
    understood = resolve_follow_up(asked, history)
    assert understood == resolve_follow_up(asked, history)
    assert understood.wants_answer or understood.reply


@pytest.mark.parametrize("unit", ["ok ", "the second one ", "a, ", "and it or ", "what is the "])
def test_long_input_costs_no_more_than_it_must(unit: str) -> None:
    endless = unit * 6000
    assert resolve_follow_up(endless, [Exchange(endless, endless)]).question == endless.strip()
    assert resolve_follow_up("what about the second one?", [Exchange("Which are there?", endless)]).question


def test_focus_is_what_remains_without_the_wrapping() -> None:
    found = find_topic("Could you please tell me about harmonic drives?")
    assert found is not None
    assert (found.words, found.is_noun_phrase) == ("harmonic drives", True)
    assert find_topic("What is it?") is None


def test_more_says_what_was_not_said(book_home: Path) -> None:
    first, answer = ask(book_home, "Why do gyroscopes drift?")
    history = [Exchange("Why do gyroscopes drift?", first)]
    more, further = ask(book_home, "and why is that?", history=history)
    assert further.mode == "full"
    assert further.question == "Why do gyroscopes drift?"
    assert not {one.text for one in answer.segments} & {one.text for one in further.segments}
    assert "bias" in more.lower()


def test_a_follow_up_is_answered_from_what_it_follows(book_home: Path) -> None:
    history = [Exchange("What is the capture point?", "It is where a foot must be set to stop.")]
    text, answer = ask(book_home, "can you show code for it?", history=history)
    assert "def capture_point" in text
    assert answer.cited


def test_more_ends_when_all_is_said(home: Path, docs: Path) -> None:
    take_in(home, docs)
    said = "\n".join(file.read_text() for file in docs.iterdir())
    text, answer = ask(home, "tell me more", history=[Exchange("What does a pump do?", said)])
    assert text.startswith("Nothing more was found on this. The nearest topic")
    assert (answer.mode, answer.confidence) == ("no_results", 0)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("tell me more", "More about what? You could ask about “"),
        ("What is it?", "What do you mean by “it”? You could"),
        ("Thank you!", "You're welcome."),
        ("hi", "Hello!"),
    ],
)
def test_what_asks_nothing_gets_a_friendly_word(book_home: Path, asked: str, says: str) -> None:
    text, answer = ask(book_home, asked)
    assert text.startswith(says)
    assert (answer.mode, answer.confidence, answer.cited) == ("no_results", 0, ())
    assert all(f"“{one.chunk.topic}”" in text for one in answer.nearest)


def test_what_a_place_does_not_say_is_declined_for_that_place(book_home: Path) -> None:
    text, answer = ask(book_home, "How long does a chicken roast?", where=Filters(path="03-motion/"))
    assert text.startswith("This is not covered in 03-motion/. The nearest topics there are “")
    assert all(one.chunk.source.startswith("03-motion/") for one in answer.nearest)
    with pytest.raises(BadFilter, match="should be a URL like"):
        Filters(source_url_prefix="docs")


def test_chat_remembers_what_was_asked(citewell: Citewell, book_home: Path) -> None:
    asked = "What is the capture point?\nhow is it computed?\nthanks\n\nnever asked\n"
    shown = citewell("chat", home=book_home, typed=asked)
    assert shown.returncode == 0, shown.stderr
    first, second, third = (block.strip() for block in re.split(r"^> ", shown.stdout, flags=re.MULTILINE)[1:])
    assert first.startswith("What is the capture point?\n")
    assert "\nSources (confidence" in first
    assert "Understood as" not in first
    assert "\nUnderstood as: how is the capture point computed?\n" in second
    assert third == "thanks\nYou're welcome."


def test_chat_keeps_to_its_place_and_needs_documents(citewell: Citewell, book_home: Path) -> None:
    shown = citewell("chat", "--section", "Nowhere", home=book_home, typed="What is a robot?\n")
    assert "There is nothing in section “Nowhere” to answer from." in shown.stdout
    empty = citewell("chat", typed="What is a robot?\n")
    assert empty.returncode == 1
    assert "citewell ingest" in empty.stderr


@pytest.mark.parametrize("ending", ["\n", "\x04", signal.SIGINT])
def test_chat_on_a_terminal_ends_with_an_empty_line_or_an_interrupt(
    book_home: Path, ending: str | signal.Signals
) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("citewell")), "chat"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        # On a terminal that knows more, invisible marks would stand before the prompt.
        env={**os.environ, "CITEWELL_HOME": str(book_home), "TERM": "dumb"},
    )
    os.close(theirs)
    try:
        assert "> " in _until(ours, "> ")
        os.write(ours, b"Why do gyroscopes drift?\n")
        shown = _until(ours, "\n> ")
        assert "Sources (confidence" in shown
        _wait_until_asleep(process)
        if isinstance(ending, str):
            os.write(ours, ending.encode())
        else:
            process.send_signal(ending)
        try:
            assert process.wait(timeout=60) == 0
        except subprocess.TimeoutExpired:
            pytest.fail(f"a minute after {ending!r} the chat still runs; its terminal showed:\n{shown}")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _until(terminal: int, mark: str) -> str:
    """What appears on a terminal up to a mark."""
    shown = ""
    while mark not in shown.replace("\r", "") and select.select([terminal], [], [], 60)[0]:
        shown += os.read(terminal, 4096).decode(errors="replace")
    return shown.replace("\r", "")


def _wait_until_asleep(process: "subprocess.Popen[bytes]") -> None:
    """A prompt is shown a moment before anyone listens, and an interrupt in between (4 % of those sent at once) is
    noted by Python only after the next key. A process that has shown its prompt and sleeps does listen."""
    patience = time.monotonic() + 300
    while (state := Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0]) != "S":
        assert time.monotonic() < patience, f"the chat showed its prompt and waits for no key: it is in state {state}"
        time.sleep(0.001)


def test_who_asks_why_of_an_answer_does_not_hear_it_again(book_home: Path) -> None:
    question = "What is the zero moment point?"
    first, _ = ask(book_home, question)
    second, answer = ask(book_home, "and why is that?", history=[Exchange(question, first)])
    assert all(segment.text not in first for segment in answer.segments)
    assert second != first


def test_an_example_is_given_of_what_was_asked_before(book_home: Path) -> None:
    history = [Exchange("How do I compute the capture point?", "It is where a foot must be set to stop.")]
    text, answer = ask(book_home, "give me an example", history=history)
    assert answer.question == "How do I compute the capture point, with an example?"
    assert "capture" in text
    assert answer.cited

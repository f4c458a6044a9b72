"""Questions made by rule from sentences and headings of documentation, for fitting only. Pure.

Real questions about documentation are scarce, sentences are not. "To enable autoscaling, set `x`." answers "How do I
enable autoscaling?", and "A pod is a group of containers." answers "What is a pod?".
"""

import random
import re
from collections.abc import Iterator

_DEFINES = re.compile(
    r"^(?:The |An? )?(?P<thing>[A-Z`*\w][\w`*./() -]{2,50}?) "
    r"(?:is|are) (?:an?|the|one|used|designed|a set|responsible)\b"
)
_TO_DO = re.compile(r"^To (?P<task>[a-z][^,.:]{6,90}), (?!and\b|or\b)", re.ASCII)
_IF_WANTED = re.compile(r"^If you (?:want|need|would like|wish) to (?P<task>[^,.:]{6,90}), ")
_YOU_CAN = re.compile(
    r"^(?P<how>You can(?:'t| not)?|You must|You should) (?P<task>[a-z][^.:;]{8,90}?)(?: by | with | using |\.|$)"
)
_BECAUSE = re.compile(r"^(?P<fact>[A-Z][^.,]{12,120}?),? (?:because|since|so that) ")
_NUMBER = re.compile(
    r"(?<![\w`.])\d[\d.,]*(?: ?%| ?[kKMGT]i?B| (?:seconds?|minutes?|hours?|days?|bytes?|cores?|nodes?))?(?![\w`])"
)
_CODE = re.compile(r"`[^`\n]{2,60}`")
_OPTION_WORD = re.compile(
    r"(?:the )?`[^`\n]{2,60}` (?P<word>command|option|parameter|flag|field|setting|property|method"
    r"|value|file|cmdlet|attribute|annotation|argument|resource|role|permission)"
)
_ONLY_WHEN = re.compile(
    r"^(?P<fact>[A-Z][^.,]{10,110}?) (?:supports?|requires?|needs?|includes?|contains?|provides?) "
    r"(?P<what>[^.:]{6,100})"
)
_SUBJECT_STOPS = {"this", "it", "these", "that", "there", "they", "which", "following", "here", "what", "you", "we"}
_HEADING_VERB = re.compile(r"^(?:to )?(?P<verb>[a-z]+e?)(?:ing)?\b", re.IGNORECASE)
_HOW = (
    "How do I {}?",
    "how to {}",
    "How can I {}?",
    "what do I have to do to {}?",
    "I want to {}. How?",
    "way to {}?",
    "Steps to {}",
    "{}",
)
_WHAT = (
    "What is {}?",
    "what is {}",
    "What's {}?",
    "what does {} mean",
    "explain {}",
    "Define {}",
    "{}?",
    "What exactly is {}?",
)
_WHY = ("Why is it that {}?", "why {}", "What is the reason that {}?", "How come {}?")


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _mine(text: str) -> str:
    """In the reader's words: "your cluster" becomes "my cluster"."""
    return re.sub(r"\byou\b", "I", re.sub(r"\byour\b", "my", text))


def questions_of(sentence: str, rng: random.Random) -> Iterator[str]:
    """Questions that a sentence of documentation answers."""
    if match := _DEFINES.match(sentence):
        thing = match["thing"].strip("*` ")
        if thing and thing.split()[0].lower() not in _SUBJECT_STOPS and len(thing.split()) <= 5:
            yield rng.choice(_WHAT).format(_lowered(thing) if rng.random() < 0.5 else thing)
    for pattern in (_TO_DO, _IF_WANTED):
        if match := pattern.match(sentence):
            yield rng.choice(_HOW).format(_mine(match["task"]))
    if match := _YOU_CAN.match(sentence):
        task = _mine(match["task"])
        yield (
            rng.choice(_HOW).format(task)
            if " by " in sentence or "using" in sentence
            else rng.choice(
                ("Can I {}?", "Is it possible to {}?", "can i {}", "Am I allowed to {}?", "Do I have to {}?")
            ).format(task)
        )
    if match := _BECAUSE.match(sentence):
        yield rng.choice(_WHY).format(_mine(_lowered(match["fact"])))
    if match := _ONLY_WHEN.match(sentence):
        verb = sentence[match.end("fact") :].split(maxsplit=1)[0]
        fact = match["fact"]
        if fact.split()[0].lower() not in _SUBJECT_STOPS:
            yield rng.choice(
                (f"What does {fact} {verb.rstrip('s')}?", f"Does {fact} {verb.rstrip('s')} {match['what']}?")
            )
    numbers = list(_NUMBER.finditer(sentence))
    if numbers and len(sentence.split()) >= 7:
        number = rng.choice(numbers)
        word = "what" if rng.random() < 0.5 else "how many"
        yield _with_gap(sentence, number.span(), word, rng)
    options = list(_OPTION_WORD.finditer(sentence))
    if options:
        option = rng.choice(options)
        yield _with_gap(sentence, option.span(), f"which {option['word']}", rng)
    elif codes := list(_CODE.finditer(sentence)):
        yield _with_gap(sentence, rng.choice(codes).span(), rng.choice(("what", "which one", "which setting")), rng)


def _with_gap(sentence: str, span: tuple[int, int], word: str, rng: random.Random) -> str:
    """The sentence with its answer replaced by a question word, or only its other words."""
    before, after = sentence[: span[0]].strip(), sentence[span[1] :].strip()
    if rng.random() < 0.4:
        return _mine(f"{word} {after.rstrip('.')} {_lowered(before)}?")
    return _mine(f"{before} {word} {after}".rstrip(". ") + "?")


def question_of_heading(heading: str, rng: random.Random) -> str | None:
    """A question that the section below a heading answers; None for headings such as "Next steps"."""
    words = heading.split()
    if len(words) < 2 or re.search(
        r"next step|related|see also|prerequisite|overview|example|before you|note", heading, re.I
    ):
        return None
    if heading.endswith("?"):
        return heading
    first = words[0].lower()
    if first.endswith("ing") and len(first) > 5:
        return rng.choice((f"How does {_lowered(heading)} work?", f"What about {_lowered(heading)}?", heading))
    if first in _IMPERATIVES:
        return rng.choice(_HOW).format(_mine(_lowered(heading)))
    return rng.choice((f"What is {heading}?", f"Tell me about {_lowered(heading)}", f"{heading}?", heading.lower()))


_IMPERATIVES = frozenset(
    (  # noqa: SIM905 (a list would be a hundred lines)
        "add allow apply assign attach build change check choose clean clone collect configure connect control copy "
        "create customize debug define delete deploy detach determine disable download edit enable ensure export "
        "expose filter find generate get grant handle identify import inspect install integrate limit list load "
        "manage map migrate modify monitor move open optimize plan prepare prevent provision pull push query read "
        "rebuild recover reduce register remove rename replace request resize resolve restart restore restrict "
        "retrieve review rotate run save scale schedule secure select send set share specify start stop switch sync "
        "test track transfer troubleshoot turn understand uninstall update upgrade upload use validate verify view "
        "write "
    ).split()
)


def typed_carelessly(question: str, rng: random.Random) -> str:
    """The question as some readers type it: lower case, no question mark, a typing error, fewer words."""
    draw = rng.random()
    if draw < 0.2:
        question = question.lower().rstrip("?. ")
    if draw > 0.93:
        words = question.split()
        long = [place for place, word in enumerate(words) if len(word) > 4 and word.isalpha()]
        if long:
            place = rng.choice(long)
            word = words[place]
            at = rng.randrange(1, len(word) - 1)
            words[place] = rng.choice(
                (word[:at] + word[at + 1 :], word[:at] + word[at + 1] + word[at] + word[at + 2 :])
            )
            question = " ".join(words)
    elif 0.2 <= draw < 0.27:
        kept = [word for word in question.split() if rng.random() > 0.2]
        question = " ".join(kept) if len(kept) >= 2 else question
    return question

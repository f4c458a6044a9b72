"""How long a reader waits for the first words of an answer that an LLM writes, and for the next ones.

    python benchmarks/speed/first_words.py

Nothing is waited for: an answer is fed token by token, and the time is the number of tokens that were needed, over the
rate at which an LLM writes. What comes before the first token (retrieval, the prompt) is not counted.
"""

import re
from statistics import mean
from uuid import UUID

from citewell.answer.writing.pipeline import Pipeline
from citewell.models import Chunk, Passage

RATES = (20, 50, 100)
PASSAGES = (
    "A centrifugal pump moves water uphill by spinning an impeller. Prime it before it starts: fill its casing.",
    "A hydraulic ram moves water uphill without a motor. It wastes about seven parts of water for each one it lifts.",
    "Install the driver with `pip install pumpctl`. The flow is limited to 40 litres a minute.",
)
ANSWERS = {
    "short sentences": "A pump does that [1]. It spins an impeller [1]. A ram needs no motor [2].",
    "one long sentence": "A centrifugal pump moves water uphill by spinning an impeller inside its casing, which has "
    "to be filled with water before the pump is started, since otherwise it would only spin in air and move nothing "
    "at all [1], whereas a hydraulic ram needs no motor but wastes about seven parts of water for each one it lifts "
    "[2].",
    "a list": "There are two ways to move water uphill:\n\n- **A centrifugal pump** spins an impeller; prime it "
    "first [1].\n- **A hydraulic ram** needs no motor, but wastes seven parts of eight [2].\n\nThe first is the usual "
    "one.",
    "a table": "| device | motor |\n| --- | --- |\n| centrifugal pump [1] | yes |\n| hydraulic ram [2] | no |\n",
    "code": "Install the driver first [3]:\n\n```sh\npip install pumpctl\npumpctl --flow 40\n```\n\nThen prime the "
    "pump: fill its casing with water [1].",
    "a heading": "## Moving water uphill\n\nUse a centrifugal pump, which spins an impeller [1]. Where there is no "
    "power, use a hydraulic ram [2].",
}
_TOKEN = re.compile(r" ?\w{1,6}|\n+| ?[^\w\s]{1,2}|\s")  # about four characters, as common tokenizers cut prose


def shown_at(pipeline: Pipeline, answer: str) -> list[int]:
    """The numbers of tokens after which a reader sees more words, if everything that is checked is shown."""
    tokens = _TOKEN.findall(answer)
    units = [pipeline.feed(token) for token in tokens]
    units[-1] += pipeline.end()
    fed = [[piece for unit in checked for piece in unit.pieces] for checked in units]
    return [number for number, pieces in enumerate(fed, 1) if any(_has_words(piece) for piece in pieces)]


def _has_words(piece: object) -> bool:
    return isinstance(piece, str) and any(char.isalnum() for char in piece)


def passage(number: int, text: str) -> Passage:
    chunk = Chunk(str(number), UUID(int=number), "", 0, "a.md", "", "", (), text, 0, len(text), 1, 1)
    return Passage(chunk, 0.9, ())


def main() -> None:
    passages = [passage(number, text) for number, text in enumerate(PASSAGES, 1)]
    waits = {name: shown_at(Pipeline(passages, "Be brief."), text) for name, text in ANSWERS.items()}
    print(f"{'answer':20} {'first words':>12} {'longest wait':>13}   (tokens)")
    for name, places in waits.items():
        longest = max(later - earlier for earlier, later in zip([0, *places], places, strict=False))
        print(f"{name:20} {places[0]:12} {longest:13}")
    for rate in RATES:
        first = [places[0] / rate for places in waits.values()]
        print(f"{rate:3} tokens/s: first words after {mean(first):.2f} s on average, {max(first):.2f} s at worst")


if __name__ == "__main__":
    main()

"""Make the training examples of the reader: questions with windows of text, and what is known about them.

    python benchmarks/fit/reader_examples.py DATA OUT.npz [--seed N]

DATA holds the `train` folder. An example is a question, a heading and consecutive units (sentences, items, rows, code);
its labels say whether the window answers, which units do, and, for claims, whether it supports them. A window from
which the answering unit was taken out is the hardest negative: it is about the topic and does not answer.
"""

import argparse
import json
import lzma
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lib.made_questions import question_of_heading, questions_of, typed_carelessly
from citewell.adapters.minilm_reader import UNIT_TOKENS, encode
from citewell.ports import ReadableWindow
from citewell.text import sentence_spans, split_units, stems, unit_text

UNKNOWN = -1
TEXT_TOKENS = 128
_NEGATIVE_BY_REMOVAL = 0.55
_NEGATIVE_BY_NEIGHBOUR = 0.45


@dataclass(frozen=True, slots=True)
class Example:
    question: str
    heading: str
    units: tuple[str, ...]
    gold: tuple[int, ...] = ()
    """Units that answer."""
    unknown: tuple[int, ...] = ()
    """Units of which nobody knows whether they answer."""
    answers: int = UNKNOWN
    relevant: int = UNKNOWN
    supports: int = UNKNOWN

    def asked_as(self, question: str) -> "Example":
        return replace(self, question=question)


class Maker:
    """Makes examples of the data sets, with one source of randomness."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._rng = random.Random(seed)

    def rows(self, name: str) -> list[dict[str, Any]]:
        with lzma.open(self._folder / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def sample(self, rows: Sequence[Any], most: int) -> list[Any]:
        return self._rng.sample(list(rows), min(most, len(rows)))

    # --- questions with the answer's words ---

    def spans(self) -> Iterator[Example]:
        """SQuAD, QED and COVID-QA: a paragraph, and the words in it that answer."""
        rows = [(r["title"].replace("_", " "), r["q"], r["p"], [r["ans"]]) for r in self.rows("squad11_train44")]
        rows += [
            (r["title"].replace("_", " "), r["q"], r["p"], [] if r["un"] else [r["ans"]])
            for r in self.rows("squad20_train10")
        ]
        for r in self.rows("squad_train_sample"):
            rows += [("", qa["question"], r["context"], [qa["answer"]]) for qa in r["qas"]]
        rows += [
            (r["title"], r["q"], r["p"], [span["string"] for spans in r["ans"] for span in spans])
            for r in self.rows("qed_dev")
        ]
        rows += [("", r["q"], r["p"], [r["ans"]]) for r in self.rows("covid_qa")]
        by_title: dict[str, list[str]] = defaultdict(list)
        for title, _, paragraph, _ in rows:
            if paragraph not in by_title[title]:
                by_title[title].append(paragraph)
        for title, question, paragraph, answers in rows:
            units = sentences(paragraph)
            gold = [at for at, unit in enumerate(units) if any(answer and answer in unit for answer in answers)]
            if answers and not gold:
                continue
            head = title if self._rng.random() < 0.7 else ""
            others = self.sample(by_title[title], 8) if title else []
            yield from self.around(question, head, units, gold, self.nearest(question, others, answers))

    def sentence_lists(self) -> Iterator[Example]:
        """SelQA: a section's sentences, and which of them answer."""
        for row in self.rows("selqa_ass"):
            yield from self.around(row["q"], row["title"], row["cands"], row["gold"], None)

    def single_sentences(self) -> Iterator[Example]:
        """QAMR and ReQA: a sentence that answers, put among sentences that sound like it."""
        pools: list[list[tuple[str, str]]] = []
        rows = self.rows("squad_reqa_sample")
        pools.append([(row["q"], row["p"]) for row in rows])
        by_sentence: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self.rows("qamr"):
            by_sentence[row["p"]].append(row)
        pools.append([(row["q"], s) for s, group in by_sentence.items() for row in self.sample(group, 5)])
        for pool in pools:
            texts = sorted({text for _, text in pool})
            by_stem: dict[str, list[str]] = defaultdict(list)
            for text in texts:
                for stem in set(stems(text)):
                    by_stem[stem].append(text)
            for question, text in pool:
                near: dict[str, int] = defaultdict(int)
                for stem in set(stems(question)):
                    if len(by_stem[stem]) < 400:
                        for other in by_stem[stem]:
                            near[other] += 1
                others = [t for t in sorted(near, key=lambda t: -near[t])[:6] if t != text]
                others = self.sample(others, 4) + self.sample(texts, 1)
                at = self._rng.randrange(len(others) + 1)
                units = [*others[:at], text, *others[at:]]
                yield from self.around(question, "", units, [at], None)

    # --- questions with a whole answer ---

    def faqs(self) -> Iterator[Example]:
        """FAQ pages: the first sentence nearly always answers; other answers of the page do not."""
        by_path: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self.rows("msdocs_faq"):
            if row["q"].strip().endswith("?"):
                by_path[row["path"]].append(row)
        for group in by_path.values():
            for row in group:
                units = units_of(row["p"])[:12]
                if not units:
                    continue
                unknown = range(1, len(units))
                yield self.window(row["q"], row["title"], units, [0], unknown, start=0)
                others = [other for other in group if other is not row]
                for other in self.sample(others, 8)[:1] + self.closest(row["q"], others, 1):
                    yield self.negative(row["q"], row["title"], units_of(other["p"]))

    def medical(self) -> Iterator[Example]:
        """MedQuAD: the same disease, another aspect of it, is near the topic and no answer."""
        by_focus: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self.rows("medquad"):
            by_focus[row["focus"]].append(row)
        for group in self.sample(list(by_focus.values()), 2200):
            for row in self.sample(group, 2):
                units = [unit for unit in sentences(row["p"][:1500]) if not unit.endswith("?")]
                if len(units) < 2:
                    continue
                yield self.window(row["q"], row["focus"], units, [], range(len(units)), start=0)
                others = [other for other in group if other["qtype"] != row["qtype"]]
                for other in self.sample(others, 1):
                    parts = [unit for unit in sentences(other["p"][:1500]) if not unit.endswith("?")]
                    yield self.negative(row["q"], row["focus"], parts)

    def answerable(self) -> Iterator[Example]:
        """Adversarial questions: answered by their paragraph or not."""
        for row in self.rows("ni_task1640_aqa1.0_answerable_unanswerable"):
            paragraph, _, question = row["input"].rpartition("Question:")
            units = sentences(paragraph.removeprefix("Passage:").strip())
            if row["output"] == "True":
                yield self.window(question.strip(), "", units, [], range(len(units)), start=0)
            else:
                yield self.negative(question.strip(), "", units)

    # --- documentation ---

    def documentation(self) -> Iterator[Example]:
        """Sections of documentation, asked for by their heading and by questions made of their sentences."""
        by_page: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self.rows("docs_sections"):
            by_page[row["repo"] + row["path"]].append(row)
        for sections in by_page.values():
            for row in sections:
                units = units_of(row["p"])
                if not units:
                    continue
                others = [other for other in sections if other is not row]
                question = question_of_heading(row["h"], self._rng)
                if question and self._rng.random() < 0.6:
                    head = row["title"] if self._rng.random() < 0.6 else f"{row['title']} > {row['h']}"
                    yield self.window(question, head, units, [], range(len(units)), start=0)
                    for other in self.closest(question, others, 1):
                        yield self.negative(question, other["title"], units_of(other["p"]))
                yield from self._made(row, units, others)

    def _made(self, row: dict[str, Any], units: Sequence[str], others: Sequence[dict[str, Any]]) -> Iterator[Example]:
        made = [(at, q) for at, unit in enumerate(units) for q in questions_of(unit, self._rng)]
        for at, question in self.sample(made, 2):
            head = f"{row['title']} > {row['h']}" if self._rng.random() < 0.7 else row["title"]
            following = [at + 1] if at + 1 < len(units) and units[at].rstrip().endswith(":") else []
            neighbours = [at - 1, at + 1] if not following else [at - 1]
            unknown = [n for n in neighbours if 0 <= n < len(units)]
            near = self.closest(question, others, 1)
            other = units_of(near[0]["p"]) if near else None
            yield from self.around(question, head, units, [at, *following], other, unknown=unknown)

    # --- claims ---

    def claims(self) -> Iterator[Example]:
        for name, most in (("fever_dev_test", 5000), ("foolmetwice", 2549), ("fever_symmetric", 1420)):
            for row in self.sample(self.rows(name), most):
                yield self.claim(row["claim"], row["passage"], supported=row["label"] == "SUPPORTS")
        for row in self.sample(self.rows("ni_task1529_scitail1.1_classification"), 3000):
            premise, _, claim = row["input"].removeprefix("Premise:").partition("Hypothesis:")
            yield self.claim(claim.strip(), premise.strip(), supported=row["output"] == "entails")

    def claim(self, claim: str, passage: str, *, supported: bool) -> Example:
        units = tuple(sentences(passage.replace("-LRB-", "(").replace("-RRB-", ")")))
        return Example(claim, "", units, unknown=tuple(range(len(units))), supports=int(supported))

    # --- windows ---

    def around(
        self,
        question: str,
        heading: str,
        units: Sequence[str],
        gold: Sequence[int],
        neighbour: Sequence[str] | None,
        *,
        unknown: Sequence[int] = (),
    ) -> Iterator[Example]:
        """The window with the answer, and at times one without it and one of a neighbour that does not answer."""
        if gold:
            yield self.window(question, heading, units, gold, unknown)
            if len(units) - len(gold) >= 2 and self._rng.random() < _NEGATIVE_BY_REMOVAL:
                middle = gold[0]
                rest = [unit for at, unit in enumerate(units) if at not in gold]
                yield self.negative(question, heading, rest, around=min(middle, len(rest) - 1))
        else:
            yield self.negative(question, heading, units)
        if neighbour and self._rng.random() < _NEGATIVE_BY_NEIGHBOUR:
            yield self.negative(question, heading, neighbour)

    def window(
        self,
        question: str,
        heading: str,
        units: Sequence[str],
        gold: Sequence[int],
        unknown: Iterable[int] = (),
        *,
        start: int | None = None,
    ) -> Example:
        """An example that answers, cut to the tokens that fit, at a random place around the answer."""
        first, last = self.cut(units, gold[0] if start is None else start)
        keep = range(first, last)
        return Example(
            typed_carelessly(question, self._rng),
            heading,
            tuple(units[first:last]),
            gold=tuple(at - first for at in gold if at in keep),
            unknown=tuple(at - first for at in unknown if at in keep),
            answers=1,
            relevant=1,
        )

    def negative(self, question: str, heading: str, units: Sequence[str], *, around: int | None = None) -> Example:
        at = self._rng.randrange(len(units)) if around is None and units else around or 0
        first, last = self.cut(units, at) if units else (0, 0)
        return Example(typed_carelessly(question, self._rng), heading, tuple(units[first:last]), answers=0)

    def cut(self, units: Sequence[str], at: int) -> tuple[int, int]:
        """A range of units around one of them, of at most about TEXT_TOKENS."""
        lengths = [min(UNIT_TOKENS, 2 + int(len(unit) / 3.8)) for unit in units]
        first, last, total = at, at + 1, lengths[at]
        budget = self._rng.uniform(0.55, 1.0) * TEXT_TOKENS
        while True:
            sides = [side for side in (first - 1, last) if 0 <= side < len(units) and total + lengths[side] <= budget]
            if not sides:
                return first, last
            side = self._rng.choice(sides)
            total += lengths[side]
            first, last = min(first, side), max(last, side + 1)

    def nearest(self, question: str, paragraphs: Sequence[str], answers: Sequence[str]) -> list[str] | None:
        """The sentences of the paragraph that shares most words with the question but not the answer."""
        others = [text for text in paragraphs if not any(answer and answer in text for answer in answers)]
        if not others or not answers:
            return None
        wanted = set(stems(question))
        return sentences(max(others, key=lambda text: len(wanted & set(stems(text)))))

    def closest(self, question: str, rows: Sequence[dict[str, Any]], most: int) -> list[dict[str, Any]]:
        wanted = set(stems(question))
        return sorted(rows, key=lambda row: -len(wanted & set(stems(row["p"][:1200]))))[:most]


def sentences(text: str) -> list[str]:
    return [bare for start, end in sentence_spans(text) if (bare := " ".join(text[start:end].split()))]


def units_of(text: str) -> list[str]:
    """The units of documentation, as the product quotes them."""
    text = text.replace("\r", "")
    return [bare for unit in split_units(text) if len(bare := unit_text(text, unit).strip()) > 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    maker = Maker(options.data / "train", options.seed)
    sources = (
        ("spans", 41000), ("sentence_lists", 4000), ("single_sentences", 14000), ("faqs", 7000), ("faqs", 7000),
        ("medical", 5000), ("answerable", 2646), ("documentation", 36000), ("claims", 11000),
    )  # fmt: skip
    examples: list[Example] = []
    for name, most in sources:
        made = [example for example in getattr(maker, name)() if example.units]
        kept = maker.sample(made, most)
        positive = np.mean([example.answers == 1 for example in kept])
        print(f"{name:18}{len(made):8} made{len(kept):8} kept  answers {positive:.2f}", flush=True)
        examples += kept
    maker._rng.shuffle(examples)
    save(examples, options.out)


def save(examples: Sequence[Example], path: Path, groups: Sequence[str] = ()) -> None:
    tokens: list[int] = []
    bounds, seconds, heads, units = [0], [], [], []
    for row, example in enumerate(examples):
        ids, second, spans = encode(example.question, ReadableWindow(example.heading, example.units))
        tokens += ids
        bounds.append(len(tokens))
        seconds.append(second)
        heads.append((example.answers, example.relevant, example.supports))
        for at, (first, last) in enumerate(spans):
            label = UNKNOWN if at in example.unknown or example.answers == UNKNOWN else int(at in example.gold)
            units.append((row, first, last, label))
    np.savez_compressed(
        path,
        tokens=np.array(tokens, dtype=np.int32),
        bounds=np.array(bounds, dtype=np.int64),
        seconds=np.array(seconds, dtype=np.int32),
        heads=np.array(heads, dtype=np.int8),
        units=np.array(units, dtype=np.int32),
        groups=np.array(groups),
    )
    print(f"{len(examples)} examples, {len(tokens) / len(examples):.0f} tokens on average, {len(units)} units")


if __name__ == "__main__":
    main()

"""Whether follow-up rules leave complete questions unchanged: a data folder's questions, each after another one.

    python benchmarks/quality/follow_ups.py DATA [--show]

A question that is changed either refers to something unsaid ("What did they call it?") or shows a mistake of the
rules; `--show` prints them for review.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from citewell.answer.question.follow_up import resolve_follow_up
from citewell.models import Exchange

EARLIER_EXCHANGES = [
    Exchange("What is the capture point?", "The capture point is where a foot must be set to stop. [1]"),
    Exchange("How do I calibrate the camera?", "Print a checkerboard and take 20 to 40 images. [1]"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--show", action="store_true", help="print every question that came out changed")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    for file in sorted(options.data.rglob("*queries.jsonl")):
        name = str(file.relative_to(options.data))
        for line in file.read_text(encoding="utf-8").splitlines():
            question = " ".join(json.loads(line)["text"].split())
            resolved = [resolve_follow_up(question, [before]) for before in EARLIER_EXCHANGES]
            counts[name] += 1
            if any(result.question != question or result.kind != "question" for result in resolved):
                changed[name] += 1
                if options.show:
                    print(f"  {question}  ->  {resolved[0].kind}: {resolved[0].question}")
    for name, count in counts.items():
        print(f"{name:40} {count:6} asked {changed[name]:4} changed")
    print(f"{'all':40} {counts.total():6} asked {changed.total():4} changed ({changed.total() / counts.total():.2%})")


if __name__ == "__main__":
    main()

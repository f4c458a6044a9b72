"""Whether questions that stand alone are left alone: a data folder's questions, each after one about something else.

    python benchmarks/quality/follow_ups.py DATA [--show]

A question that comes out changed either hangs on something unsaid ("What did they call it?") or is a mistake;
`--show` prints them for a person to tell.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from citewell.answer.question.follow_up import resolve_follow_up
from citewell.models import Exchange

BEFORE = [
    Exchange("What is the capture point?", "The capture point is where a foot must be set to stop. [1]"),
    Exchange("How do I calibrate the camera?", "Print a checkerboard and take 20 to 40 images. [1]"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--show", action="store_true", help="print every question that came out changed")
    options = parser.parse_args()
    asked: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    for file in sorted(options.data.rglob("*queries.jsonl")):
        name = str(file.relative_to(options.data))
        for line in file.read_text(encoding="utf-8").splitlines():
            question = " ".join(json.loads(line)["text"].split())
            understood = [resolve_follow_up(question, [before]) for before in BEFORE]
            asked[name] += 1
            if any(one.question != question or one.kind != "question" for one in understood):
                changed[name] += 1
                if options.show:
                    print(f"  {question}  ->  {understood[0].kind}: {understood[0].question}")
    for name, count in asked.items():
        print(f"{name:40} {count:6} asked {changed[name]:4} changed")
    print(f"{'all':40} {asked.total():6} asked {changed.total():4} changed ({changed.total() / asked.total():.2%})")


if __name__ == "__main__":
    main()

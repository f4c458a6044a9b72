"""How often a wrong citation moves to the right passage, and a right one stays.

    python benchmarks/citations.py DATA

Of each source in DATA/claims, claims that their passage supports, beside the four other passages of the source that
share most words with them. Cited right: does the citation stay? Cited wrong, at the nearest other passage: does it
move to the right one? The support check was fitted on these claims, so this tells rules apart, not how good they are.
"""

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path

from citewell.answer.support.score import support_score
from citewell.answer.writing.citation_check import moves
from citewell.text.stemming import stems

CLAIMS = 60
OTHERS = 4
READ = 4000  # characters of a passage, about a chunk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    rows = [json.loads(line) for line in (data / "claims" / "claims.jsonl").read_text(encoding="utf-8").splitlines()]
    by_source: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        by_source[row["source"]].append(row)
    draw = random.Random(1)
    print(f"{'source':24} {'n':>4} {'right ones stay':>16} {'wrong ones move':>16}")
    for source, claims in by_source.items():
        passages = {row["passage"]: frozenset(stems(row["passage"][:READ])) for row in claims}
        borne_out = [row for row in claims if row["label"] == "supported"]
        drawn = draw.sample(borne_out, min(CLAIMS, len(borne_out)))
        stayed = moved = 0
        for row in drawn:
            said = frozenset(stems(row["claim"]))
            others = sorted(passages.keys() - {row["passage"]}, key=lambda one: (-len(said & passages[one]), one))
            right = support_score(row["claim"], [row["passage"][:READ]])
            wrong, *rest = [support_score(row["claim"], [one[:READ]]) for one in others[:OTHERS]]
            stayed += not moves(right, max(wrong, *rest))
            moved += moves(wrong, right) and right >= max(rest)
        count = len(drawn)
        print(f"{source:24} {count:4} {stayed / count:16.2f} {moved / count:16.2f}")


if __name__ == "__main__":
    main()

"""How often a wrong citation moves to the right passage, and a right one stays.

    python benchmarks/quality/citations.py DATA

For each source in DATA/claims: claims that their passage supports, and the four other passages of the source that share
most words with them. A citation of the right passage should stay; one of the nearest other passage should move to the
right one. The support score was fitted on these claims, so this compares rules, not their quality.
"""

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path

from citewell.answer.support.score import support_score
from citewell.answer.writing.citation_check import should_move
from citewell.text.stemming import stems

MAX_CLAIMS = 60
OTHER_PASSAGES = 4
MAX_CHARACTERS = 4000  # of a passage, about a chunk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    rows = [json.loads(line) for line in (data / "claims" / "claims.jsonl").read_text(encoding="utf-8").splitlines()]
    by_source: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        by_source[row["source"]].append(row)
    rng = random.Random(1)
    print(f"{'source':24} {'n':>4} {'right ones stay':>16} {'wrong ones move':>16}")
    for source, claims in by_source.items():
        passages = {row["passage"]: frozenset(stems(row["passage"][:MAX_CHARACTERS])) for row in claims}
        supported = [row for row in claims if row["label"] == "supported"]
        drawn = rng.sample(supported, min(MAX_CLAIMS, len(supported)))
        stayed = moved = 0
        for row in drawn:
            claim_stems = frozenset(stems(row["claim"]))
            others = sorted(
                passages.keys() - {row["passage"]}, key=lambda passage: (-len(claim_stems & passages[passage]), passage)
            )
            right = support_score(row["claim"], [row["passage"][:MAX_CHARACTERS]])
            wrong, *rest = [
                support_score(row["claim"], [passage[:MAX_CHARACTERS]]) for passage in others[:OTHER_PASSAGES]
            ]
            stayed += not should_move(right, max(wrong, *rest))
            moved += should_move(wrong, right) and right >= max(rest)
        count = len(drawn)
        print(f"{source:24} {count:4} {stayed / count:16.2f} {moved / count:16.2f}")


if __name__ == "__main__":
    main()

"""The papers' claims that only ranks can tell: on the non-blocking sends and the cost over MPI.

Run: uv run python benchmarks/papers.py [--ranks 2] [--budget 20] [--out FOLDER]

Takes the budget's seconds for each claim; on a quiet machine, with no more ranks than cores.  Every
claim is judged by `collwise reproduce`.  Writes FOLDER/papers-DATE.md (benchmarks/results by
default).
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from bench_support import RESULTS, table_head, table_row, today

from collwise.papers.reproduction import PAPERS

TITLES = ("claim", "says", "paper", "here", "verdict", "")


def main() -> None:
    """Judge each claim on ranks of its own, and write a row for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    lines = [
        f"# The papers' claims that were measured, {today()}\n\nMade by `uv run python"
        f" benchmarks/papers.py --ranks {options.ranks} --budget {options.budget}`; shared memory."
        f"\n\n{table_head(TITLES)}"
    ]
    for paper in PAPERS.values():
        for claim in paper.claims:
            if claim.measure is not None:
                row = judged(paper.key, claim.id, options.ranks, options.budget)
                cells = ("claim", "says", "paper", "ours", "verdict", "because")
                lines.append(table_row(tuple(row[cell] for cell in cells)))
    path = options.out / f"papers-{today()}.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(path.read_text(encoding="utf-8"))


def judged(paper: str, claim: str, ranks: int, budget: int) -> dict[str, str]:
    """The row of one claim."""
    command = f"-m collwise reproduce {paper} {claim} -n {ranks} --budget {budget}s --claims --json"
    ran = subprocess.run(
        [sys.executable, *command.split()], capture_output=True, text=True, timeout=60 + 5 * budget
    )
    if ran.returncode:
        raise SystemExit(ran.stderr)
    (row,) = json.loads(ran.stdout)["papers"][0]["claims"]
    return dict(row)


if __name__ == "__main__":
    main()

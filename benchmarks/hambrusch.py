"""The claims of [Hambrusch1998] in simulation, each with our figures.

Run: uv run python benchmarks/hambrusch.py [--claims 3] [--out FOLDER]

Takes half a minute.  Nothing is timed, all is computed.  Writes FOLDER/hambrusch.md
(benchmarks/results by default); --claims checks only the first few claims.
"""

import argparse
from pathlib import Path

from bench_support import RESULTS

from collwise.model.presets import PRESETS
from collwise.papers.findings import markdown
from collwise.papers.hambrusch1998 import CLAIMS

HEAD = """# S-to-p broadcasting: what became of the paper's claims

Made by `uv run python benchmarks/hambrusch.py`.  Every figure is computed: schedules simulated on a
mesh whose links and ports carry one message at a time.  `collwise.papers.hambrusch1998` defines the
claims; the paper's claim about MPI is measured by `benchmarks/overhead.py`.

The machine:

```
{machine}
```

"""


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", type=int)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    findings = {}
    for claim in CLAIMS[: options.claims]:
        findings[claim] = claim.judge()
        print(f"{claim.id}: {findings[claim].verdict}", flush=True)
    page = HEAD.format(machine=PRESETS["paragon"].describe()) + markdown(findings)
    (options.out / "hambrusch.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

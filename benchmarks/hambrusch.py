"""The claims of [Hambrusch1998] in simulation, each with our figures.

Run: uv run python benchmarks/hambrusch.py     (half a minute; nothing is timed, all is computed)

Writes benchmarks/results/hambrusch.md.
"""

from pathlib import Path

from collwise.model.presets import PRESETS
from collwise.papers.findings import markdown
from collwise.papers.hambrusch1998 import CLAIMS

HEAD = """# S-to-p broadcasting: what became of the paper's claims

Made by `uv run python benchmarks/hambrusch.py`.  Every figure is computed: schedules played on a
mesh whose links and ports carry one message at a time.  The ids are those of the project's list of
claims; H-c12 is about MPI, and measured by `benchmarks/overhead.py`.

The machine:

```
{machine}
```

"""


def main() -> None:
    """Write the table."""
    findings = []
    for claim in CLAIMS:
        findings.append(claim())
        print(f"{findings[-1].claim}: {findings[-1].verdict}", flush=True)
    page = HEAD.format(machine=PRESETS["paragon"].describe()) + markdown(findings)
    path = Path(__file__).parent / "results" / "hambrusch.md"
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

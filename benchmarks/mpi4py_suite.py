"""mpi4py's own tests, with collwise communicators in the place of COMM_WORLD and COMM_SELF.

Run: uv run python benchmarks/mpi4py_suite.py [--ranks 1,2,3,4,5] [--out FOLDER]

Takes some minutes.  Downloads the sources of the installed mpi4py, which are not kept.
Every collective is served by plans where that is legal; the summary of `collwise run` tells which
calls were.  The same tests run with plain mpi4py: what fails there as well is not ours.  Writes
FOLDER/mpi4py-suite-DATE.md (benchmarks/results by default).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench_support import RESULTS, listed, number, table_head, table_row, today

from collwise.measure.race import LIBRARY
from collwise.system.launcher import command_line

ALGORITHMS = (
    "broadcast=binomial;reduce=binomial;allreduce=recursive_doubling;s_to_p=bruck;"
    "reduce_scatter_block=pairwise"
)
INCLUDED = (
    "cco", "comm", "request", "threads", "objmodel", "pickle", "subclass", "handle", "group",
    "errhandler", "exceptions", "attributes", "pkl5",
)  # fmt: skip
"""Collectives, communicators, requests, threads and objects."""
LIMIT_S = 400
TITLES = ("ranks", "tests", "skipped", "failed", "failed with plain mpi4py", "planned calls", "of")


def main() -> None:
    """Download, run, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=listed(number(int)), default=[1, 2, 3, 4, 5])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    wanted = f"mpi4py=={version('mpi4py')}"
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        download(wanted, folder)
        (tests,) = folder.glob("mpi4py-*/test/main.py")
        for ranks in options.ranks:
            plain = run_suite(tests, ranks, ["-m", "mpi4py"])
            record = folder / f"calls-{ranks}.json"
            ours = run_suite(tests, ranks, ["-m", "collwise", "run", "--json", str(record)])
            calls = json.loads(record.read_text()) if record.exists() else {"calls": []}
            served: Counter[bool] = Counter()
            for call in calls["calls"]:
                if "collective" in call:
                    served[call["algorithm"] != LIBRARY] += call["times"]
            told = (ranks, ours["ran"], ours["skipped"], len(ours["failed"]), len(plain["failed"]))
            rows.append((*told, served[True], served.total()))
            print(*rows[-1], flush=True)
            for test in sorted(ours["failed"]):
                failures.append(
                    f"- {ranks} ranks: {test}" + " (plain, too)" * (test in plain["failed"])
                )
    path = options.out / f"mpi4py-suite-{today()}.md"
    lines = [
        f"# The tests of {wanted} under `collwise run`, {today()}",
        "",
        "Made by `uv run python benchmarks/mpi4py_suite.py`; planned calls are those of the six"
        " collectives that plans serve, as rank 0 made them.",
        "",
        table_head(TITLES),
        *(table_row(row) for row in rows),
        "",
        "What failed:" if failures else "Nothing failed.",
        "",
        *failures,
    ]
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(path.read_text(encoding="utf-8"))


def download(wanted: str, folder: Path) -> None:
    """Fetch and unpack a source distribution."""
    subprocess.run(
        ["uvx", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", wanted],
        cwd=folder,
        check=True,
    )
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")


def run_suite(tests: Path, ranks: int, runner: list[str]) -> dict[str, Any]:
    """Run the tests on ranks; how many ran and were skipped, and which failed on some rank."""
    included = [word for name in INCLUDED for word in ("-i", name)]
    command = [sys.executable, *runner, str(tests), "--no-builddir", *included]
    ran = subprocess.run(
        command_line(ranks, command),
        env={**os.environ, "COLLWISE_ALGORITHMS": ALGORITHMS},
        cwd=tests.parents[1],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    said = ran.stdout + ran.stderr
    failed = set(re.findall(r"(?:FAIL|ERROR): (\S+ \(\S+\))", said))
    counts = re.findall(r"Ran (\d+) tests", said)
    skipped = re.findall(r"skipped=(\d+)", said)
    if not counts:
        failed.add(f"no end: exit code {ran.returncode}, {said[-500:]!r}")
    return {
        "ran": max(map(int, counts), default=0),
        "skipped": max(map(int, skipped), default=0),
        "failed": failed,
    }


if __name__ == "__main__":
    main()

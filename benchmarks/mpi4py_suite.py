"""mpi4py's own tests, with collwise communicators in the place of COMM_WORLD and COMM_SELF.

Run: uv run python benchmarks/mpi4py_suite.py [--ranks 1,2,3,4,5] [--only cco_buf,comm]
         [--limit SECONDS] [--keep FILE] [--sources FOLDER] [--out FOLDER]

Takes the better part of an hour; with --keep FILE in pieces: what is in FILE is not run again.
Downloads the sources of the installed mpi4py, which are not kept, if FOLDER is not said.
Every collective is served by plans where that is legal: COLLWISE_FALLBACK=never refuses all calls
that a plan could serve and none does, and the record of `collwise run` counts the calls.  Files of
tests in which something fails run with plain mpi4py, too: what fails there as well is not ours.
Writes FOLDER/mpi4py-suite-LIBRARY-DATE.md (benchmarks/results by default).
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
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from bench_support import RESULTS, listed, number, table_head, table_row, today

from collwise.measure.race import LIBRARY
from collwise.system.launcher import command_line, find_mpiexec, is_open_mpi

ALGORITHMS = (
    "broadcast=binomial;reduce=binomial;allreduce=recursive_doubling;allgatherv=bruck;"
    "reduce_scatter_block=pairwise"
)
FILES = (
    "cco_buf", "cco_vec", "cco_obj", "cco_nb_buf", "cco_nb_vec", "cco_pr_buf", "cco_pr_vec",
    "cco_buf_inter", "cco_vec_inter", "cco_obj_inter",
    "cco_ngh_buf", "cco_ngh_obj", "cco_pr_ngh_buf", "comm", "comm_inter", "comm_topo", "request",
    "threads", "objmodel", "pickle", "subclass", "handle", "group", "errhandler", "exceptions",
    "attributes", "util_pkl5",
)  # fmt: skip
"""Of tests: collectives, communicators, requests, threads and objects."""
LIMIT_S = 600.0
"""For one file.  On two cores, five ranks of Open MPI with plain mpi4py take up to 133 s."""
TITLES = (
    "ranks",
    "files",
    "tests",
    "skipped",
    "failed",
    "failed with plain mpi4py",
    "planned calls",
    "of",
)


class Outcome(msgspec.Struct):
    """Of the tests in one file.

    failed: on some rank; plain: with plain mpi4py, None where it was not asked.   planned: calls
    that plans served, of `calls` of the collectives that they can serve.
    """

    file: str
    ranks: int
    tests: int
    skipped: int
    failed: list[str]
    plain: list[str] | None
    planned: int
    calls: int


def main() -> None:
    """Download, run, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=listed(number(int)), default=[1, 2, 3, 4, 5])
    parser.add_argument("--only", type=listed(str, FILES), default=FILES)
    parser.add_argument("--limit", type=number(float), default=LIMIT_S)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--sources", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    wanted = f"mpi4py=={version('mpi4py')}"
    kept = options.keep.read_text().splitlines() if options.keep and options.keep.exists() else []
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in kept]
    known = {(one.ranks, one.file) for one in outcomes}
    with tempfile.TemporaryDirectory() as name:
        tests = (options.sources or download(wanted, Path(name))).absolute() / "test" / "main.py"
        for ranks in options.ranks:
            for file in options.only:
                if (ranks, file) in known:
                    continue
                outcome = run_file(tests, file, ranks, options.limit)
                outcomes.append(outcome)
                line = msgspec.json.encode(outcome).decode()
                print(line, flush=True)
                if options.keep:
                    with options.keep.open("a", encoding="utf-8") as page:
                        page.write(line + "\n")
    library = "openmpi" if is_open_mpi(find_mpiexec()) else "mpich"
    path = options.out / f"mpi4py-suite-{library}-{today()}.md"
    path.write_text("\n".join(page_lines(wanted, library, outcomes)) + "\n", encoding="utf-8")
    print(path.read_text(encoding="utf-8"))


def page_lines(wanted: str, library: str, outcomes: Sequence[Outcome]) -> list[str]:
    """The page: a row for each number of ranks, and what failed."""
    rows = []
    for ranks in sorted({one.ranks for one in outcomes}):
        every = [one for one in outcomes if one.ranks == ranks]
        counts = [(o.tests, o.skipped, len(o.failed), len(o.plain or ())) for o in every]
        calls = [(one.planned, one.calls) for one in every]
        rows.append(
            (
                ranks,
                len(every),
                *map(sum, zip(*counts, strict=True)),
                *map(sum, zip(*calls, strict=True)),
            )
        )
    failures = [
        f"- on {one.ranks}: {test}" + " (plain, too)" * (test in (one.plain or ()))
        for one in outcomes
        for test in one.failed
    ]
    return [
        f"# The tests of {wanted} under `collwise run` with {library}, {today()}",
        "",
        "Made by `uv run python benchmarks/mpi4py_suite.py`: the files "
        f"{', '.join(sorted({f'`test_{one.file}`' for one in outcomes}))}.",
        "Planned calls are those of the collectives that plans serve, as rank 0 made them; the"
        " others were on one rank, moved nothing, were wrong on purpose, or had operators or types"
        " that no plan takes. `COLLWISE_FALLBACK=never` refused all else.",
        "",
        table_head(TITLES),
        *(table_row(row) for row in rows),
        "",
        "What failed:" if failures else "Nothing failed.",
        *([""] if failures else []),
        *failures,
    ]


def download(wanted: str, folder: Path) -> Path:
    """Fetch and unpack the source distribution; where it is then."""
    subprocess.run(
        ["uvx", "pip", "download", "-q", "--no-deps", "--no-binary", "mpi4py", wanted],
        cwd=folder,
        check=True,
        timeout=300,
    )
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / wanted.replace("==", "-")


def run_file(tests: Path, file: str, ranks: int, limit_s: float) -> Outcome:
    """Run the tests of one file on ranks; with plain mpi4py where something fails."""
    record = tests.parent / f"calls-{ranks}-{file}.json"
    runner = ["-m", "collwise", "run", "--json", str(record)]
    served = {"COLLWISE_ALGORITHMS": ALGORITHMS, "COLLWISE_FALLBACK": "never"}
    ran, skipped, failed = run_tests(tests, file, ranks, runner, limit_s, served)
    plain = run_tests(tests, file, ranks, ["-m", "mpi4py"], limit_s, {})[2] if failed else None
    planned: Counter[bool] = Counter()
    for call in json.loads(record.read_text())["calls"] if record.exists() else ():
        if "collective" in call:
            planned[call["algorithm"] != LIBRARY] += call["times"]
    return Outcome(file, ranks, ran, skipped, failed, plain, planned[True], planned.total())


def run_tests(
    tests: Path, file: str, ranks: int, runner: list[str], limit_s: float, variables: dict[str, Any]
) -> tuple[int, int, list[str]]:
    """How many ran and were skipped, and which failed on some rank."""
    command = [sys.executable, *runner, str(tests), "--no-builddir", "-i", rf"test_{file}\.py"]
    process = subprocess.Popen(
        command_line(ranks, command),
        env={**os.environ, **variables},
        cwd=tests.parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    try:
        said, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.terminate()  # the launcher, which ends the ranks
        said, _ = process.communicate(timeout=limit_s)
    failed = set(re.findall(r"(?:FAIL|ERROR): (\S+ \(\S+\))", said))
    counts = re.findall(r"Ran (\d+) tests?", said)
    skipped = re.findall(r"skipped=(\d+)", said)
    if len(counts) < ranks:
        failed.add(f"{file}: no end, exit code {process.returncode}: {said[-300:]!r}")
    return max(map(int, counts), default=0), max(map(int, skipped), default=0), sorted(failed)


if __name__ == "__main__":
    main()

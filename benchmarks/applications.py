"""Programs of others under `collwise run`: the same results, and who served their calls.

Run: uv run --with pySDC --with mpi-list --with mpi-sppy --with highspy --with ase
         python benchmarks/applications.py
         [--only ase_band,osu_bcast] [--keep FILE] [--sources FOLDER] [--out FOLDER]

mpi4py's demo/osu_*.py (downloaded if FOLDER is not said) on 2 ranks, and the programs in
`benchmarks/applications/`, which call packages from the index, on 3.  Each runs with plain mpi4py,
under `collwise run`, and with --summary and --json.  An algorithm is named for every collective,
and COLLWISE_FALLBACK=never.  What they print must be the same, but for times (numbers with two
decimals).  With --keep FILE in pieces: what is in FILE is not run again.
Writes FOLDER/applications-LIBRARY-DATE.md (benchmarks/results by default).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
from bench_support import RESULTS, listed, table_head, table_row, today
from mpi4py_suite import ALGORITHMS, download

from collwise.measure.race import LIBRARY
from collwise.system import formatting
from collwise.system.launcher import command_line, find_mpiexec, is_open_mpi

PROGRAMS = sorted((Path(__file__).parent / "applications").glob("*.py"))
PACKAGES = {"ase": "ASE", "mpi": "mpi-list", "pysdc": "pySDC", "sppy": "mpi-sppy"}
"""By how the names of programs begin."""
LIMIT_S = 90.0
TITLES = ("program", "ranks", "same results", "calls", "what", "served by")


class Outcome(msgspec.Struct):
    """Of one program.

    differs: what was not the same in which run, empty if nothing.   calls: how many of what, and
    who served them, as `--json` tells.   summary: the last words of --summary.
    """

    program: str
    ranks: int
    differs: str
    calls: list[tuple[int, str, str]]
    summary: str


def main() -> None:
    """Run them, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=listed(str), default=[])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--sources", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    kept = options.keep.read_text().splitlines() if options.keep and options.keep.exists() else []
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in kept]
    known = {one.program for one in outcomes}
    with tempfile.TemporaryDirectory() as name:
        sources = options.sources or download(f"mpi4py=={version('mpi4py')}", Path(name))
        demos = sorted((sources / "demo").glob("osu_*.py"))
        for path, ranks in [*((one, 2) for one in demos), *((one, 3) for one in PROGRAMS)]:
            if path.stem in known or path.stem not in (options.only or [path.stem]):
                continue
            outcome = run_ways(path.absolute(), ranks, Path(name))
            outcomes.append(outcome)
            print(outcome, flush=True)
            if options.keep:
                with options.keep.open("ab") as page:
                    page.write(msgspec.json.encode(outcome) + b"\n")
    library = "openmpi" if is_open_mpi(find_mpiexec()) else "mpich"
    path = options.out / f"applications-{library}-{today()}.md"
    path.write_text("\n".join(page_lines(library, outcomes)) + "\n", encoding="utf-8")


def run_ways(path: Path, ranks: int, folder: Path) -> Outcome:
    """Run a program three ways and compare what it prints."""
    record = folder / f"{path.stem}.json"
    ours = ["-m", "collwise", "run"]
    named = {"COLLWISE_ALGORITHMS": ALGORITHMS, "COLLWISE_FALLBACK": "never"}
    code, expected, told = run(["-m", "mpi4py", str(path)], ranks, {})
    differs = "" if code == 0 else f"with plain mpi4py: exit code {code}: {told[-300:]}"
    for recording in ([], ["--summary", "--json", str(record)]):
        code, said, told = run([*ours, *recording, str(path)], ranks, named)
        if (code, said) != (0, expected):
            differs += f"{' '.join(recording[:1])}: exit code {code}: {said[-300:]} {told[-300:]}"
    calls: Counter[tuple[str, str]] = Counter()
    sizes: dict[tuple[str, str], set[int]] = defaultdict(set)
    for call in json.loads(record.read_text())["calls"] if record.exists() else ():
        form = "" if call["form"] == "blocking" else f" ({call['form']})"
        served = "the library" if call["algorithm"] == LIBRARY else call["algorithm"]
        calls[call["method"] + form, served] += call["times"]
        sizes[call["method"] + form, served].add(call.get("nbytes") or 0)
    every = [(times, key[0] + _span(sizes[key]), key[1]) for key, times in calls.items()]
    return Outcome(path.stem, ranks, differs, every, told.strip().rpartition("\n")[2])


def _span(sizes: set[int]) -> str:
    ends = dict.fromkeys((min(sizes), max(sizes)))
    return f", {' to '.join(map(formatting.size, ends))}" if any(ends) else ""


def run(words: Sequence[str], ranks: int, variables: dict[str, str]) -> tuple[int, str, str]:
    """The exit code, what is printed without times, and what goes to standard error."""
    process = subprocess.Popen(
        command_line(ranks, [sys.executable, *words]),
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
    )
    try:
        said, told = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.terminate()  # the launcher, which ends the ranks
        said, told = process.communicate(timeout=LIMIT_S)
    return process.returncode, re.sub(r" *\b\d+\.\d\d\b", "", said), told


def page_lines(library: str, outcomes: Sequence[Outcome]) -> list[str]:
    """The page: rows for each program, and what was not the same."""
    rows = []
    for one in outcomes:
        first: tuple[object, ...] = one.program, one.ranks, "no" if one.differs else "yes"
        for call in one.calls:
            rows.append((*first, *call))
            first = "", "", ""
    packages = [f"{name} {version(name)}" for name in PACKAGES.values()]
    return [
        f"# Programs that know nothing of collwise, under `collwise run`: {library}, {today()}",
        "",
        f"Made by `benchmarks/applications.py`: demonstrations of mpi4py {version('mpi4py')}, and"
        f" {', '.join(packages)} (`benchmarks/applications/`).  Calls as `--json` tells them, of"
        " rank 0; `COLLWISE_FALLBACK=never` left nothing to the library that a plan can serve.",
        "",
        table_head(TITLES),
        *map(table_row, rows),
        *(f"\n{one.program}: {one.differs}" for one in outcomes if one.differs),
    ]


if __name__ == "__main__":
    main()

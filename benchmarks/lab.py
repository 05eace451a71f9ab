"""Collectives on emulated hosts: predicted and measured times, planned and the libraries' own.

Run as root, on a quiet machine: uv run python benchmarks/lab.py
Options: --rows 16x2048@10mbit/5ms,allreduce:16x8@10mbit/5ms,…   --mpi mpich,openmpi
--out FOLDER   --scale 1

Each row starts a lab.  Its ranks measure t0 and λ at this message size (and, of what may send
longer messages than it is asked for, at four times this size), then race in one interleaved run the
library's own and the planned best few; of a broadcast the binomial tree, the λ-tree, the flat tree
and the planned best.  Every byte is checked.  Of an s-to-p broadcast every fourth rank is a source.
A row whose switch delivered packets late is repeated.  Raw samples go to FOLDER/lab-DATE.json, a
table to FOLDER/lab-DATE.md (benchmarks/results by default).  --scale shortens measurements by a
factor; --patience says how many seconds to wait for a quiet machine.
"""

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench_support import (
    MPIS,
    PATIENCE_S,
    RESULTS,
    listed,
    misprediction,
    number,
    table_head,
    table_row,
    today,
    wait_until_quiet,
)

ROOT = RESULTS.parents[1]
ROWS = (
    "8x2048@10mbit/5ms",
    "16x2048@10mbit/5ms",
    "32x2048@10mbit/5ms",
    "16x512@10mbit/5ms",
    "16x2048@100mbit/5ms",
    "16x2048@10mbit/1ms",
)
OTHERS = (
    "reduce:16x2048@10mbit/5ms",
    "allreduce:16x8@10mbit/5ms",
    "allreduce:16x2048@10mbit/5ms",
    "allgatherv:16x512@10mbit/5ms",
)
ROW = re.compile(r"(?:(\w+):)?(\d+)x(\d+)@(\w+)/(\w+)")
TREES = ("binomial", "postal_tree", "flat")
REPETITIONS = 40
MEASURING_S, RACING_S, LIMIT_S = 12.0, 30.0, 240.0
LATE_S = 300e-6
ATTEMPTS = 3
"""A row is repeated while the 95th percentile of packets comes later than LATE_S."""


def main() -> None:
    """Run all rows with both libraries, or one row in this environment."""
    if sys.argv[1:2] == ["ranks"]:
        race_on_ranks(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
        return
    if sys.argv[1:2] == ["row"]:
        print(json.dumps(run_row(*sys.argv[2:5])))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=listed(str, ROWS + OTHERS), default=list(ROWS + OTHERS))
    parser.add_argument("--mpi", type=listed(str, MPIS), default=MPIS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--openmpi-python", type=Path, default=ROOT / ".venv-ompi/bin/python")
    parser.add_argument("--scale", type=number(float, 0.01), default=1.0)
    parser.add_argument("--patience", type=number(float, 0), default=PATIENCE_S)
    options = parser.parse_args()
    pythons = {"mpich": Path(sys.executable), "openmpi": options.openmpi_python}
    rows = []
    for mpi in options.mpi:
        for row in options.rows:
            wait_until_quiet(options.patience)
            command = [str(pythons[mpi]), __file__, "row", mpi, row, str(options.scale)]
            ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            rows.append(json.loads(ran.stdout))
            print("  ".join(cells(rows[-1])), file=sys.stderr, flush=True)
            write(rows, options.out)  # after every row: a run may be cut short


def write(rows: list[dict[str, Any]], folder: Path) -> None:
    """The raw samples and the table of all rows so far."""
    document = {
        "what": "collectives on emulated hosts (collwise lab)",
        "date": today(),
        "command": shlex.join(["uv", "run", "python", "benchmarks/lab.py", *sys.argv[1:]]),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "units": {"*_s": "seconds", "lam": "units of t0", "samples": "seconds, slowest rank"},
        "rows": rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"lab-{today()}.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
    (folder / f"lab-{today()}.md").write_text(markdown(document), encoding="utf-8")


def run_row(mpi: str, row: str, scale: str) -> dict[str, Any]:
    """One row of the table; the best-timed of some attempts."""
    from collwise.lab import Cluster

    match = ROW.fullmatch(row)
    if match is None:
        raise SystemExit(f"{row!r} is no row; one is {ROWS[0]}")
    collective = match[1] or "broadcast"
    hosts, nbytes, rate, latency = int(match[2]), int(match[3]), match[4], match[5]
    best: dict[str, Any] = {}
    for _ in range(ATTEMPTS):
        load_before = os.getloadavg()[0]
        begin = time.monotonic()
        cluster = Cluster(hosts, latency, rate, mpi=mpi)  # type: ignore[arg-type]
        cluster.start()
        up_s = time.monotonic() - begin
        try:
            finished = cluster.run(
                [sys.executable, __file__, "ranks", collective, str(nbytes), scale],
                timeout_s=LIMIT_S,
                capture=True,
            )
        finally:
            begin = time.monotonic()
            cluster.close()
            down_s = time.monotonic() - begin
        if finished.code:
            raise SystemExit(f"{row} with {mpi}: {finished.stdout}\n{finished.stderr}")
        lines = (finished.stdout or "").splitlines()
        measured = json.loads(next(line for line in lines if line.startswith("{")))
        report = finished.report.document()
        del report["windows"]
        attempt = {
            "mpi": mpi,
            "row": row,
            "collective": collective,
            "hosts": hosts,
            "nbytes": nbytes,
            "load_before": load_before,
            "up_s": up_s,
            "down_s": down_s,
            **measured,
            "switch": report,
        }
        if not best or report["lateness_p95_s"] < best["switch"]["lateness_p95_s"]:
            best = attempt
        if report["lateness_p95_s"] <= LATE_S:
            break
    return best


def race_on_ranks(collective: str, nbytes: int, scale: float) -> None:
    """What every rank does: measure, plan, race; rank 0 prints one line of JSON."""
    import numpy as np
    from mpi4py import MPI

    from collwise.mpi.bench.measuring import run_campaign
    from collwise.mpi.bench.race_harness import RaceHarness, race
    from collwise.mpi.runtime.agreement import on_root
    from collwise.mpi.runtime.private_communicator import PrivateCommunicator
    from collwise.mpi.runtime.world import describe, world
    from collwise.planner.choose import problem_for
    from collwise.planner.shortlist import shortlist
    from collwise.tuning.outcomes import Task

    comm = world()
    here = describe(comm)
    private = PrivateCommunicator(comm)
    for _ in range(3):  # connections are made lazily
        private.comm.Alltoall(MPI.IN_PLACE, np.zeros(comm.size))
    sizes = [nbytes] if collective == "broadcast" else [nbytes, 4 * nbytes]
    profile = run_campaign(private.comm, here, budget_s=MEASURING_S * scale, sizes=sizes)
    sources = range(0, comm.size, 4) if collective == "allgatherv" else None
    problem, reason = problem_for(collective, ranks=comm.size, nbytes=nbytes, sources=sources)
    planned = Task(problem, reason=reason).plan(profile)
    racers = list(shortlist(planned))
    if collective == "broadcast":
        racers = [next(c for c in planned.candidates if c.name == f"broadcast/{n}") for n in TREES]
        if planned.choice.label not in {c.label for c in racers}:
            racers.append(planned.choice)
    outcome = race(
        RaceHarness(private, here.oversubscribed),
        problem,
        {c.label: c.schedule(problem) for c in racers},
        {c.label: c.predicted_s for c in racers},
        budget_s=RACING_S * scale,
        repetitions=REPETITIONS,
    )
    private.free()
    point = next(p for p in profile.points if p.mode == "nonblocking")

    def print_result() -> None:
        result = {
            "library": here.library,
            "t0_s": point.t0_s,
            "lam": point.lam,
            "lam_interval": point.lam_interval,
            "lam_experiments": point.lam_experiments,
            "planned": planned.choice.label,
            "labels": {c.name.partition("/")[2]: c.label for c in racers},
            "predicted_s": outcome.predicted_s,
            "dropped": outcome.dropped,
            "starts_apart_s": outcome.apart_s,
            "samples": {label: list(times) for label, times in outcome.samples.items()},
        }
        print(json.dumps(result), flush=True)

    on_root(comm, print_result)


def medians(row: dict[str, Any]) -> dict[str, float]:
    """Median seconds by label."""
    return {label: median(times) for label, times in row["samples"].items()}


def cells(row: dict[str, Any]) -> list[str]:
    """The cells of a row."""
    measured, predicted = medians(row), row["predicted_s"]
    own = min(measured[label] for label in measured if label.startswith("library"))
    texts = [row["mpi"], row["row"], f"{row['t0_s'] * 1e3:.3f}", f"{row['lam']:.2f}"]
    texts.append(f"{own * 1e3:.2f}")
    compared = [
        f"{name} {measured[label] * 1e3:.2f} / {predicted[label] * 1e3:.2f}"
        f" ({measured[label] / predicted[label]:.3f})"
        for name, label in row["labels"].items()
    ]
    texts.append("; ".join(compared))
    planned = row["planned"]
    texts.append(f"{planned.partition('/')[2]} {measured[planned] * 1e3:.2f}")
    texts.append(f"{own / measured[planned]:.2f}")
    repetitions = len(row["samples"][planned])
    texts.append(f"{repetitions}, {row['dropped']}, {row['starts_apart_s'] * 1e3:.2f}")
    switch = row["switch"]
    late = [switch[f"lateness_{q}_s"] * 1e3 for q in ("p50", "p95", "max")]
    texts.append(" / ".join(f"{x:.2f}" for x in late))
    texts.append(f"{switch['drops']}, {switch['load']:.0%}")
    texts.append(f"{row['load_before']:.1f}")
    return texts


TITLES = (
    *("MPI", "hosts × bytes @ rate / latency", "t0", "λ", "library's own"),
    *("measured / predicted (ratio)", "planned", "speed-up", "kept, dropped, starts apart"),
    *("lateness p50 / p95 / max", "drops, load of the switch", "load before"),
)


def markdown(document: dict[str, Any]) -> str:
    """The record as a page."""
    errors = [
        misprediction(row["predicted_s"][label], medians(row)[label]) - 1
        for row in document["rows"]
        for label in row["labels"].values()
    ]
    lines = [
        f"# Collectives on emulated hosts, {document['date']}",
        "",
        f"Made by `{document['command']}` on {document['cores']} cores"
        f" ({document['system']}); raw samples in the JSON file beside this page.",
        "Milliseconds: medians of interleaved repetitions, slowest rank, measured / predicted from"
        " the t0 and λ measured in the same run. Library's own: the faster of its blocking and its"
        " persistent form. Speed-up: library's own over planned. Dropped: repetitions in which"
        " ranks did not start together; starts of the others were so far apart at most. Load"
        " before: the machine's load average when the row began.",
        "",
        f"Predicted against measured, as a ratio of at least 1: off by {median(errors):.1%} in the"
        f" median, by {max(errors):.1%} at most ({len(errors)} schedules).",
        "",
        table_head(TITLES),
        *(table_row(cells(row)) for row in document["rows"]),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

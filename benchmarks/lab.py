"""Broadcasts on emulated hosts: predicted beside measured, planned beside the libraries' own.

Run as root, on a quiet machine: uv run python benchmarks/lab.py
Options: --rows 16x2048@10mbit/5ms,…   --mpi mpich,openmpi   --out FOLDER

For each row a lab is started; its ranks measure t0 and λ at this size, then race binomial, λ-tree,
flat, the planned best and the library's own in one interleaved run, every byte checked.  A row
whose switch was late is repeated.  Raw samples go to FOLDER/lab-DATE.json, a table to
FOLDER/lab-DATE.md (benchmarks/results, unless told otherwise).
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROWS = (
    "8x2048@10mbit/5ms",
    "16x2048@10mbit/5ms",
    "32x2048@10mbit/5ms",
    "16x512@10mbit/5ms",
    "16x2048@100mbit/5ms",
    "16x2048@10mbit/1ms",
)
FORM = re.compile(r"(\d+)x(\d+)@(\w+)/(\w+)")
TREES = ("binomial", "postal_tree", "flat")
REPETITIONS = 40
MEASURING_S, RACING_S, LIMIT_S = 12.0, 30.0, 240.0
LATE_S = 300e-6
ATTEMPTS = 3
QUIET_LOAD = 1.0
PATIENCE_S = 120.0


def main() -> None:
    """Run all rows with both libraries, or one row in this environment."""
    if sys.argv[1:2] == ["ranks"]:
        race_on_ranks(int(sys.argv[2]))
        return
    if sys.argv[1:2] == ["row"]:
        print(json.dumps(run_row(*sys.argv[2:4])))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--mpi", default="mpich,openmpi")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--openmpi-python", type=Path, default=ROOT / ".venv-ompi/bin/python")
    options = parser.parse_args()
    pythons = {"mpich": Path(sys.executable), "openmpi": options.openmpi_python}
    found = []
    for mpi in options.mpi.split(","):
        for row in options.rows.split(","):
            wait_until_quiet()
            command = [str(pythons[mpi]), __file__, "row", mpi, row]
            ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            found.append(json.loads(ran.stdout))
            print(line_of(found[-1]), file=sys.stderr, flush=True)
            write(found, options.out)  # after every row: a run may be cut short


def write(rows: list[dict[str, Any]], folder: Path) -> None:
    """The raw samples and the table of all rows so far."""
    date = datetime.now(UTC).date().isoformat()
    document = {
        "what": "broadcasts on emulated hosts (collwise lab)",
        "date": date,
        "command": "uv run python benchmarks/lab.py",
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "units": {"*_s": "seconds", "lam": "units of t0", "samples": "seconds, slowest rank"},
        "rows": rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"lab-{date}.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
    (folder / f"lab-{date}.md").write_text(markdown(document), encoding="utf-8")


def wait_until_quiet() -> None:
    """Wait, for some minutes at most, until nothing else runs."""
    deadline = time.monotonic() + PATIENCE_S
    while os.getloadavg()[0] > QUIET_LOAD and time.monotonic() < deadline:
        time.sleep(5)


def run_row(mpi: str, row: str) -> dict[str, Any]:
    """One row of the table; the best-timed of some attempts."""
    from collwise.lab import Cluster

    match = FORM.fullmatch(row)
    if match is None:
        raise SystemExit(f"{row!r} is no row; one is {ROWS[0]}")
    hosts, nbytes, rate, latency = int(match[1]), int(match[2]), match[3], match[4]
    best: dict[str, Any] = {}
    for _ in range(ATTEMPTS):
        load_before = os.getloadavg()[0]
        begin = time.monotonic()
        cluster = Cluster(hosts, latency, rate, mpi=mpi)  # type: ignore[arg-type]
        cluster.start()
        up_s = time.monotonic() - begin
        try:
            finished = cluster.run(
                [sys.executable, __file__, "ranks", str(nbytes)], timeout_s=LIMIT_S, capture=True
            )
        finally:
            begin = time.monotonic()
            cluster.close()
            down_s = time.monotonic() - begin
        if finished.code:
            raise SystemExit(f"{row} with {mpi}: {finished.stdout}\n{finished.stderr}")
        lines = (finished.stdout or "").splitlines()
        told = json.loads(next(line for line in lines if line.startswith("{")))
        report = finished.report.document()
        del report["late_windows_s"]
        attempt = {
            "mpi": mpi,
            "row": row,
            "hosts": hosts,
            "nbytes": nbytes,
            "load_before": load_before,
            "up_s": up_s,
            "down_s": down_s,
            **told,
            "switch": report,
        }
        if not best or report["lateness_p95_s"] < best["switch"]["lateness_p95_s"]:
            best = attempt
        if report["lateness_p95_s"] <= LATE_S:
            break
    return best


def race_on_ranks(nbytes: int) -> None:
    """What every rank does: measure, plan, race; rank 0 prints one line of JSON."""
    import numpy as np
    from mpi4py import MPI

    from collwise.algorithms.registry import ALGORITHMS
    from collwise.mpi.bench.measuring import run_campaign
    from collwise.mpi.bench.race_harness import RaceHarness, race
    from collwise.mpi.runtime.agreement import on_root
    from collwise.mpi.runtime.private_communicator import PrivateCommunicator
    from collwise.mpi.runtime.world import describe, world
    from collwise.planner.choose import plan

    comm = world()
    here = describe(comm)
    channel = PrivateCommunicator(comm)
    everybody = np.zeros(comm.size)
    for _ in range(3):  # connections are made lazily
        channel.comm.Alltoall(MPI.IN_PLACE, everybody)
    profile = run_campaign(channel.comm, here, budget_s=MEASURING_S, sizes=[nbytes])
    made = plan("broadcast", ranks=comm.size, nbytes=nbytes, machine=profile.machine)
    wanted = [next(c for c in made.candidates if c.name == f"broadcast/{n}") for n in TREES]
    if made.choice.label not in {c.label for c in wanted}:
        wanted.append(made.choice)
    outcome = race(
        RaceHarness(channel, here.crowded),
        made.problem,
        {c.label: ALGORITHMS[c.name].schedule(comm.size, nbytes, 0, **c.settings) for c in wanted},
        {c.label: c.predicted_s for c in wanted},
        budget_s=RACING_S,
        repetitions=REPETITIONS,
    )
    channel.free()
    point = next(p for p in profile.points if p.mode == "nonblocking")

    def tell() -> None:
        told = {
            "library": here.library,
            "t0_s": point.t0_s,
            "lam": point.lam,
            "lam_interval": point.lam_interval,
            "lam_experiments": point.lam_experiments,
            "planned": made.choice.label,
            "labels": {n: c.label for n, c in zip(TREES, wanted, strict=False)},
            "predicted_s": outcome.predicted_s,
            "dropped": outcome.dropped,
            "samples": {label: list(times) for label, times in outcome.samples.items()},
        }
        print(json.dumps(told), flush=True)

    on_root(comm, tell)


def medians(row: dict[str, Any]) -> dict[str, float]:
    """Median seconds by label."""
    return {label: median(times) for label, times in row["samples"].items()}


def columns(row: dict[str, Any]) -> list[str]:
    """The cells of a row."""
    seen, predicted = medians(row), row["predicted_s"]
    own = min(seen[label] for label in seen if label.startswith("library"))
    cells = [row["mpi"], row["row"], f"{row['t0_s'] * 1e3:.3f}", f"{row['lam']:.2f}"]
    cells.append(f"{own * 1e3:.2f}")
    for name in TREES:
        label = row["labels"][name]
        error = seen[label] / predicted[label] - 1
        cells.append(f"{seen[label] * 1e3:.2f} / {predicted[label] * 1e3:.2f} ({error:+.1%})")
    planned = row["planned"]
    cells.append(f"{planned.removeprefix('broadcast/')} {seen[planned] * 1e3:.2f}")
    cells.append(f"{own / seen[planned]:.2f}")
    switch = row["switch"]
    late = [switch[f"lateness_{q}_s"] * 1e3 for q in ("p50", "p95", "max")]
    cells.append(" / ".join(f"{x:.2f}" for x in late))
    cells.append(f"{switch['drops']}, {switch['load']:.0%}")
    cells.append(f"{row['up_s']:.2f} / {row['down_s']:.2f}")
    return cells


TITLES = (
    *("MPI", "hosts × bytes @ rate / latency", "t0", "λ", "library's own"),
    *TREES,
    *("planned", "speed-up", "lateness p50 / p95 / max", "drops, load", "up / down, s"),
)


def line_of(row: dict[str, Any]) -> str:
    """A row for the terminal."""
    return "  ".join(columns(row))


def markdown(document: dict[str, Any]) -> str:
    """The record as a page."""
    errors = [
        abs(medians(row)[label] / row["predicted_s"][label] - 1)
        for row in document["rows"]
        for label in row["labels"].values()
    ]
    lines = [
        f"# Broadcasts on emulated hosts, {document['date']}",
        "",
        f"Made by `{document['command']}` on {document['cores']} cores"
        f" ({document['system']}); raw samples in the JSON file beside this page.",
        "Milliseconds: medians of interleaved repetitions, slowest rank, measured / predicted from"
        " the t0 and λ measured in the same run. Library's own: the faster of its blocking and its"
        " persistent form. Speed-up: library's own over planned.",
        "",
        f"Predicted against measured: median error {median(errors):.1%},"
        f" largest {max(errors):.1%} ({len(errors)} schedules).",
        "",
        "| " + " | ".join(TITLES) + " |",
        "|" + "---|" * len(TITLES),
        *("| " + " | ".join(columns(row)) + " |" for row in document["rows"]),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

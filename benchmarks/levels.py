"""Machines with levels on emulated hosts: planned against the libraries' own, predicted, measured.

Run as root, on a quiet machine: uv run python benchmarks/levels.py
Options: --rows 4x4,8x2,fast,sites   --mpi mpich,openmpi   --out FOLDER   --scale 1

Each row starts a lab of several ranks on a host, or of two sites.  Its ranks find the levels,
measure them, and race the planned best few against the library's own, in one interleaved run for
each task: the slowest rank's time from a common start.  Every byte is checked.  Raw samples go to
FOLDER/levels-LIBRARY-DATE.json, tables to FOLDER/levels-LIBRARY-DATE.md.  --scale shortens all.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from math import prod
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench_support import MPIS, RESULTS, listed, misprediction, number, table_head, table_row, today

ROOT = RESULTS.parents[1]
LIMIT_S = 300.0
WITHIN = 0.95
"""A speed-up below this is behind the library."""


class Row(NamedTuple):
    """A network, and what is raced there.

    tasks: collective, bytes (of each source), and for s-to-p the sources.
    """

    hosts: int
    ranks_per_host: int
    latency: str
    rate: str
    network: str
    measuring_s: float
    racing_s: float
    tasks: tuple[tuple[Any, ...], ...]


BROADCASTS = tuple(("broadcast", n) for n in (512, 2048, 16384, 65536))
SITES = tuple((c, n) for c in ("broadcast", "reduce", "allreduce") for n in (512, 65536))
GATHERS_4X4 = (
    ("s_to_p", 1024, (0, 5, 10)),
    ("s_to_p", 1024, (0, 1, 2, 3)),
    ("s_to_p", 1024, (0, 4, 8, 12)),
)
ROWS = {
    "4x4": Row(4, 4, "5ms", "10mbit", "", 20, 11, BROADCASTS + GATHERS_4X4),
    "8x2": Row(8, 2, "5ms", "10mbit", "", 20, 11, BROADCASTS),
    "fast": Row(4, 4, "1ms", "100mbit", "", 10, 4, BROADCASTS),
    "sites": Row(16, 1, "", "", "two-sites.toml", 25, 11, SITES),
}


def main() -> None:
    """Run all rows with the libraries, or one row in this environment."""
    if sys.argv[1:2] == ["ranks"]:
        race_on_ranks(sys.argv[2], float(sys.argv[3]))
        return
    if sys.argv[1:2] == ["row"]:
        print(json.dumps(run_row(sys.argv[2], sys.argv[3], sys.argv[4])))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=listed(str, ROWS), default=list(ROWS))
    parser.add_argument("--mpi", type=listed(str, MPIS), default=MPIS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--openmpi-python", type=Path, default=ROOT / ".venv-ompi/bin/python")
    parser.add_argument("--scale", type=number(float, 0.01), default=1.0)
    options = parser.parse_args()
    pythons = {"mpich": Path(sys.executable), "openmpi": options.openmpi_python}
    for mpi in options.mpi:
        rows = []
        for row in options.rows:
            command = [str(pythons[mpi]), __file__, "row", mpi, row, str(options.scale)]
            ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            rows.append(json.loads(ran.stdout))
            for race in rows[-1]["races"]:
                print("  ".join(cells(row, race)), file=sys.stderr, flush=True)
            write(mpi, rows, options.out)  # after every row: a run may be cut short


def run_row(mpi: str, row: str, scale: str) -> dict[str, Any]:
    """One row, in a lab of its own."""
    from collwise.lab import Cluster

    asked = ROWS[row]
    network = Path(__file__).parent / "networks" / asked.network if asked.network else None
    load_before = os.getloadavg()[0]
    uniform = (None, None, None) if network else (asked.hosts, asked.latency, asked.rate)
    with Cluster(*uniform, network=network, mpi=mpi) as cluster:  # type: ignore[arg-type]
        finished = cluster.run(
            [sys.executable, __file__, "ranks", row, scale],
            ranks_per_host=asked.ranks_per_host,
            timeout_s=LIMIT_S,
            capture=True,
        )
    if finished.code:
        raise SystemExit(f"{row} with {mpi}: {finished.stdout}\n{finished.stderr}")
    lines = (finished.stdout or "").splitlines()
    report = finished.report.document()
    del report["late_windows_s"]
    measured = json.loads(next(line for line in lines if line.startswith("{")))
    return {"mpi": mpi, "row": row, "load_before": load_before, **measured, "switch": report}


def race_on_ranks(row: str, scale: float) -> None:
    """What every rank does: find levels, measure, plan, race; rank 0 prints one line of JSON."""
    from collwise.mpi.runtime.agreement import on_root
    from collwise.mpi.runtime.world import describe, world
    from collwise.planner.choose import problem_for
    from collwise.report.tuning_tables import race_document
    from collwise.tuning.outcomes import Task
    from collwise.tuning.session import Session

    asked, comm = ROWS[row], world()
    races = []
    with Session(comm, describe(comm)) as session:
        sizes = sorted({512, 2048, 16384, *(task[1] for task in asked.tasks)})
        profile = session.measure(asked.measuring_s * scale, sizes)
        for collective, nbytes, *sources in asked.tasks:
            given = {"sources": sources[0] if sources else None}
            problem, reason = problem_for(collective, ranks=comm.size, nbytes=nbytes, **given)
            task, begin = Task(problem, reason=reason), time.perf_counter()
            outcome = session.race(task, profile, asked.racing_s * scale, repetitions=60)
            took_s = time.perf_counter() - begin
            races.append({**race_document(outcome), "took_s": took_s})
        found = session.found

    def print_result() -> None:
        document = profile.to_document()
        kept = {"levels": document["levels"], "points": document["points"]}
        placement = found.placement.describe(found.names)
        print(json.dumps({"placement": placement, **kept, "races": races}), flush=True)

    on_root(comm, print_result)


def write(mpi: str, rows: list[dict[str, Any]], folder: Path) -> None:
    """The raw samples and the table of all rows so far."""
    document = {
        "what": "machines with levels on emulated hosts (collwise lab)",
        "date": today(),
        "command": shlex.join(["uv", "run", "python", "benchmarks/levels.py", *sys.argv[1:]]),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "units": {"*_s": "seconds", "lam": "units of t0", "samples": "seconds, slowest rank"},
        "rows": rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    name = f"levels-{mpi}-{today()}"
    (folder / f"{name}.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown(document), encoding="utf-8")


def told(race: dict[str, Any]) -> str:
    """What was raced: the collective, its bytes, its sources."""
    sources = [str(source["rank"]) for source in race.get("sources", ())]
    where = f" from {', '.join(sources)}" if sources else ""
    return f"{race['collective']} {race['nbytes']} B{where}"


def cells(row: str, race: dict[str, Any]) -> list[str]:
    """The cells of a race: the planned best against the faster of the library's two forms."""
    predicted_s = race["predicted_s"] or 0.0
    spent, total = race["spent_s"], sum(race["spent_s"].values()) or 1.0
    competitor = {c["label"]: c for c in race["competitors"]}
    samples = competitor[race["algorithm"]]["samples_s"]
    return [
        row,
        told(race),
        f"{race['library_s'] * 1e3:.2f}",
        f"{race['algorithm'].partition('/')[2]} {race['ours_s'] * 1e3:.2f}",
        f"{race['speedup']:.2f}",
        f"{race['forms']['blocking']['speedup']:.2f}",
        f"{predicted_s * 1e3:.2f} ({race['ours_s'] / (predicted_s or 1):.2f})",
        ", ".join(f"{time_s / total:.0%} {where}" for where, time_s in spent.items()),
        f"{len(samples)}, {min(samples) * 1e3:.2f} … {max(samples) * 1e3:.2f}",
    ]


TITLES = (
    *("row", "task", "library's own", "planned", "speed-up", "as blocking calls"),
    *("predicted (measured over it)", "time spent", "repetitions, fastest … slowest"),
)


def markdown(document: dict[str, Any]) -> str:
    """The record as a page."""
    lines = [
        f"# Machines with levels on emulated hosts, {document['date']}",
        "",
        f"Made by `{document['command']}` on {document['cores']} cores"
        f" ({document['system']}); raw samples in the JSON file beside this page.",
        "Milliseconds: medians of interleaved repetitions, slowest rank from a common start."
        " Library's own: the faster of its blocking and its persistent form, against our persistent"
        " requests; then blocking calls against its blocking call. Predicted from the levels that"
        " were measured in the same run.",
        "",
        table_head(TITLES),
    ]
    errors, gains = [], []
    for row in document["rows"]:
        for race in row["races"]:
            lines.append(table_row(cells(row["row"], race)))
            gains.append(race["speedup"])
            if race["predicted_s"]:
                errors.append(misprediction(race["predicted_s"], race["ours_s"]) - 1)
    behind = sum(gain < WITHIN for gain in gains)
    lines += [
        "",
        f"Speed-up {prod(gains) ** (1 / len(gains)):.2f} in the geometric mean; {behind} of"
        f" {len(gains)} below {WITHIN}. Predicted against measured: off by {median(errors):.1%} in"
        f" the median, {max(errors):.1%} at most.",
        "",
    ]
    for row in document["rows"]:
        late = ", ".join(f"{row['switch'][f'lateness_{q}_s'] * 1e3:.2f}" for q in ("p50", "p95"))
        lines.append(
            f"{row['row']}: found {row['placement']}; load before {row['load_before']:.1f}; packets"
            f" late by {late} ms (p50, p95)."
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

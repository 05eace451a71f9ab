"""Machines with levels on emulated hosts: planned against the libraries' own, predicted, measured.

Run as root, on a quiet machine: uv run python benchmarks/levels.py
Options: --rows 4x4,8x2,sites,fast,fast2,fast1   --mpi mpich,openmpi   --out FOLDER   --scale 1
         --patience 120

Each row starts a lab of several ranks on a host, or of two sites.  Its ranks find the levels,
measure them, and race the planned best few against the library's own, in one interleaved run for
each task: the slowest rank's time from a common start.  Every byte is checked.  Raw samples go to
FOLDER/levels-LIBRARY-DATE.json, tables to FOLDER/levels-LIBRARY-DATE.md, after every row: rows of
earlier runs of the day stay there, and a run may be interrupted.  A row that fails is told, and the
others follow.  --scale shortens all; --patience says how many seconds a row waits for a quiet
machine.  In full a row takes 1 (fast) to 4 minutes.
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
LIMIT_S = 480.0
WITHIN = 0.95
"""A speed-up below this is behind the library."""
OFF, FAST_OFF, SITES = 0.10, 0.25, 1.3
"""Predictions should be off by so much at most: in the median, and each of the row `fast`.  Between
sites, the geometric mean of the speed-ups over the better of both libraries should be so large."""


class Row(NamedTuple):
    """A network, and what is raced there.

    tasks: collective, bytes (of each source), and for s-to-p the sources.
    targets: the speed-ups over MPICH's own that they should reach; `WITHIN` where there is none.
    """

    hosts: int
    ranks_per_host: int
    latency: str
    rate: str
    network: str
    measuring_s: float
    racing_s: float
    tasks: tuple[tuple[Any, ...], ...]
    targets: tuple[float, ...] = ()


BROADCASTS = tuple(("broadcast", n) for n in (512, 2048, 16384, 65536))
BETWEEN_SITES = tuple((c, n) for c in ("broadcast", "reduce", "allreduce") for n in (512, 65536))
GATHERS_4X4 = (
    ("allgatherv", 1024, (0, 5, 10)),
    ("allgatherv", 1024, (0, 1, 2, 3)),
    ("allgatherv", 1024, (0, 4, 8, 12)),
)
TARGETS = (1.5, 1.25, 1.2, 1.9)
ROWS = {
    "4x4": Row(
        4, 4, "5ms", "10mbit", "", 45, 20, BROADCASTS + GATHERS_4X4, (*TARGETS, 1.5, 1.0, 1.0)
    ),
    "8x2": Row(8, 2, "5ms", "10mbit", "", 45, 20, BROADCASTS, TARGETS),
    "sites": Row(16, 1, "", "", "two-sites.toml", 60, 20, BETWEEN_SITES),
    "fast": Row(4, 4, "1ms", "100mbit", "", 20, 8, BROADCASTS),
    "fast2": Row(4, 2, "1ms", "100mbit", "", 20, 8, BROADCASTS),
    "fast1": Row(4, 1, "1ms", "100mbit", "", 20, 8, BROADCASTS),
}
TARGETED = ("4x4", "8x2", "sites", "fast")
"""Rows with targets.  The others show what fewer ranks on the same cores change."""


def main() -> None:
    """Run all rows with the libraries, or one row in this environment."""
    if sys.argv[1:2] == ["ranks"]:
        race_on_ranks(sys.argv[2], float(sys.argv[3]))
        return
    if sys.argv[1:2] == ["row"]:
        print(json.dumps(run_row(sys.argv[2], sys.argv[3], sys.argv[4])))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=listed(str, ROWS), default=TARGETED)
    parser.add_argument("--mpi", type=listed(str, MPIS), default=MPIS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--openmpi-python", type=Path, default=ROOT / ".venv-ompi/bin/python")
    parser.add_argument("--scale", type=number(float, 0.01), default=1.0)
    parser.add_argument("--patience", type=number(float, 0), default=PATIENCE_S)
    options = parser.parse_args()
    pythons = {"mpich": Path(sys.executable), "openmpi": options.openmpi_python}
    failed = []
    for mpi in options.mpi:
        for row in options.rows:
            wait_until_quiet(options.patience)
            begin = time.monotonic()
            command = [str(pythons[mpi]), __file__, "row", mpi, row, str(options.scale)]
            ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            took_s = time.monotonic() - begin
            if ran.returncode:
                failed.append(f"{row} with {mpi}")
                print(f"failed after {took_s:.0f} s: {failed[-1]}", file=sys.stderr, flush=True)
                continue
            result = {**json.loads(ran.stdout), "scale": options.scale, "took_s": took_s}
            for race in result["races"]:
                print("  ".join(cells(row, race)), file=sys.stderr, flush=True)
            print(f"{row} with {mpi} took {took_s:.0f} s", file=sys.stderr, flush=True)
            write(mpi, result, options.out)
    print("\n".join(summary(records(options.out))), file=sys.stderr)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


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
    del report["windows"]
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
        sizes = sorted({512, 1400, 1500, 2048, 16384, *(task[1] for task in asked.tasks)})
        profile = session.measure(asked.measuring_s * scale, sizes)
        for collective, nbytes, *sources in asked.tasks:
            given = {"sources": sources[0] if sources else None}
            problem, reason = problem_for(collective, ranks=comm.size, nbytes=nbytes, **given)
            task, begin = Task(problem, reason=reason), time.perf_counter()
            outcome = session.race(task, profile, asked.racing_s * scale, repetitions=60)
            took_s = time.perf_counter() - begin
            races.append({**race_document(outcome), "took_s": took_s})
        levels = session.levels

    def print_result() -> None:
        document = profile.to_document()
        kept = {"levels": document["levels"], "points": document["points"]}
        placement = levels.placement.describe(levels.names)
        print(json.dumps({"placement": placement, **kept, "races": races}), flush=True)

    on_root(comm, print_result)


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """Today's record of every library that has one."""
    files = {mpi: folder / f"levels-{mpi}-{today()}.json" for mpi in MPIS}
    return {mpi: json.loads(path.read_text()) for mpi, path in files.items() if path.exists()}


def write(mpi: str, result: dict[str, Any], folder: Path) -> None:
    """Add a row to today's raw samples, or replace it, and write their table."""
    earlier = records(folder).get(mpi, {}).get("rows", [])
    rows = {row["row"]: row for row in [*earlier, result]}
    document = {
        "what": "machines with levels on emulated hosts (collwise lab)",
        "date": today(),
        "command": shlex.join(["uv", "run", "python", "benchmarks/levels.py", *sys.argv[1:]]),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "units": {"*_s": "seconds", "lam": "units of t0", "samples": "seconds, slowest rank"},
        "rows": [rows[name] for name in ROWS if name in rows],
    }
    folder.mkdir(parents=True, exist_ok=True)
    name = f"levels-{mpi}-{today()}"
    (folder / f"{name}.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
    page = markdown(document) + "\n" + "\n".join(summary(records(folder))) + "\n"
    (folder / f"{name}.md").write_text(page, encoding="utf-8")


def target(mpi: str, row: str, place: int) -> float:
    """The speed-up that a task of a row should reach."""
    targets = ROWS[row].targets
    broadcast = ROWS[row].tasks[place][0] == "broadcast"
    return WITHIN if not targets or (broadcast and mpi != "mpich") else targets[place]


def off(race: dict[str, Any]) -> float:
    """By how much a prediction was off: 0.1 for 10 %, whichever is larger."""
    return misprediction(race["predicted_s"], race["ours_s"]) - 1


def summary(documents: dict[str, dict[str, Any]]) -> list[str]:
    """What was reached of what should be, over all libraries and rows of the day."""
    lines: list[str] = []
    errors: list[float] = []
    fast: list[float] = []
    between: dict[str, list[dict[str, Any]]] = {}
    for mpi, document in documents.items():
        missed, tasks = [], 0
        for row in document["rows"]:
            for place, race in enumerate(row["races"] if row["row"] in TARGETED else ()):
                tasks += 1
                if race["speedup"] < (least := target(mpi, row["row"], place)):
                    words = f"{row['row']} {told(race)}: {race['speedup']:.2f} of {least}"
                    missed.append(words)
                if race["predicted_s"]:
                    (fast if row["row"] == "fast" else errors).append(off(race))
                if row["row"] == "sites":
                    between.setdefault(told(race), []).append(race)
        behind = "; ".join(missed) or "none missed"
        lines.append(f"Targets with {mpi}: {tasks - len(missed)} of {tasks} reached; {behind}.")
    if between:
        gains = [
            min(r["library_s"] for r in b) / min(r["ours_s"] for r in b) for b in between.values()
        ]
        mean = prod(gains) ** (1 / len(gains))
        lines.append(
            f"Between sites, against the better of {' and '.join(documents)}: {mean:.2f} in the"
            f" geometric mean (target {SITES}), {min(gains):.2f} at least (target {WITHIN})."
        )
    if errors:
        lines.append(f"Predictions off by {median(errors):.1%} in the median (target {OFF:.0%}).")
    if fast:
        lines.append(f"On the fast network by {max(fast):.1%} at most (target {FAST_OFF:.0%}).")
    return lines


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
                errors.append(off(race))
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

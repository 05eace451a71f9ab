"""A bad default, planted by Open MPI's own variables: found, replaced and mended.

    .venv-ompi/bin/python benchmarks/planted.py [--collective reduce] [--bytes 16384]

The interpreter is that of the environment of Open MPI (the dependency group `ompi`).  On emulated
hosts every step runs with OMPI_MCA_coll_tuned_…_algorithm set to the number of "linear", as in a
bad configuration of a site: `scan`, `tune`, a call by `Comm`, whose fingerprint is compared with
the plain one, and `export openmpi`.  Then plain programs, which do not import collwise, run in
launches that take turns: as planted, with the exported variables after the planted ones, and with
neither.
Writes planted-openmpi-DATE.md and .json, which has all samples.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench_support import LIMIT_S, RESULTS, number, table_head, table_row, today
from exported import PLAIN, run, shown

from collwise.lab.cluster import Cluster
from collwise.measure.statistics import median_interval, ratio_interval
from collwise.system.quantities import parse_size

METHODS = {"allreduce": "Allreduce", "broadcast": "Bcast", "reduce": "Reduce"}
LINEAR = 1
"""Open MPI's number of linear, or basic_linear, for each of these collectives."""
SEEN = """
import json, sys
import collwise as cw
from collwise.measure.race import own_algorithm
from collwise.mpi.library.fingerprints import broadcast_tree, combined
from mpi4py import MPI
comm, (collective, method, nbytes, path) = MPI.COMM_WORLD, sys.argv[1:]
def seen(comm):
    if method == "Bcast":
        return str([sorted(late) for late in broadcast_tree(comm, int(nbytes)).late])
    return str(combined(comm, method, int(nbytes)).by_rank[0][0])
told = {"plain": seen(comm)}
if path:
    ours = cw.Comm(comm.Dup(), profile=path)
    told |= {"collwise": seen(ours), "explain": ours.explain(collective, int(nbytes))}
    ours.Free()
if comm.rank == 0:
    print("told:" + json.dumps(told))
"""
LAUNCHES = "planted", "exported", "neither"


def main() -> None:
    """Take all steps, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collective", choices=METHODS, default="reduce")
    parser.add_argument("--bytes", type=parse_size, default=16384)
    parser.add_argument("--hosts", type=number(int, 2), default=8)
    parser.add_argument("--launches", type=number(int), default=3)
    parser.add_argument("--repetitions", type=number(int), default=15)
    parser.add_argument("--budget", type=number(float, 0.1), default=60)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder, Cluster(asked.hosts, "5ms", "10mbit") as cluster:
        record = mended(cluster, asked, Path(folder))
    stem = asked.out / f"planted-openmpi-{today()}"
    stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    stem.with_suffix(".md").write_text(written(record), encoding="utf-8")
    print(stem.with_suffix(".md").read_text(encoding="utf-8"))


def mended(cluster: Cluster, asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Plant, scan, tune, call, export and launch; returns the record."""
    collective, method = asked.collective, METHODS[asked.collective]
    planted = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        f"OMPI_MCA_coll_tuned_{method.lower()}_algorithm": str(LINEAR),
    }
    profile, rules = folder / "profile.json", folder / "rules.conf"
    about = ["--collective", collective, "--bytes", asked.bytes, "--budget", asked.budget, "--json"]
    scanned = told(cluster, planted, "scan", *about)
    report = ["--report", folder / "report.html"]
    tuned = told(cluster, planted, "tune", *about, "--save", profile, *report)
    command: list[str | Path] = [sys.executable, "-m", "collwise", "export", "openmpi"]
    command += ["--profile", profile, "--out", rules, "--commuting", "--json"]
    ran = subprocess.run(
        command, env={**os.environ, **planted}, stdout=subprocess.PIPE, check=True, timeout=LIMIT_S
    )
    exported = json.loads(ran.stdout)
    environments: dict[str, dict[str, str]] = {
        "planted": planted,
        "exported": {**planted, **exported["environment"]},
        "neither": {},
    }
    seen = {
        name: fingerprints(
            cluster, more, collective, asked.bytes, profile if name == "planted" else ""
        )
        for name, more in environments.items()
    }
    samples: dict[str, list[list[float]]] = {name: [] for name in LAUNCHES}
    timing = [sys.executable, "-c", PLAIN, asked.repetitions, asked.bytes, "plain"]
    for _ in range(asked.launches):
        for name, more in environments.items():
            print(f"launch, {name}", file=sys.stderr)
            timed = run(cluster, 1, timing, more)
            samples[name].append(timed[f"{method} of {asked.bytes} bytes"])
    return {
        "call": f"{method} of {asked.bytes} bytes",
        "library": exported["library"],
        "hosts": asked.hosts,
        "network": cluster.network.description,
        "planted": planted,
        "findings": scanned["findings"],
        "races": tuned["races"],
        "rules": exported["rules"],
        "environment": {
            name: value.replace(f"{folder}/", "") for name, value in exported["environment"].items()
        },
        "fingerprints": seen,
        "samples_s": samples,
    }


def told(cluster: Cluster, planted: Mapping[str, str], *words: object) -> dict[str, Any]:
    """The JSON document of a collwise command on the hosts."""
    print(words[0], file=sys.stderr)
    command = [sys.executable, "-m", "collwise", *map(str, words)]
    ran = cluster.run(
        command, environment={**os.environ, **planted}, capture="stdout", timeout_s=LIMIT_S
    )
    document: dict[str, Any] = json.loads(ran.stdout or "")
    return document


def fingerprints(
    cluster: Cluster, more: Mapping[str, str], collective: str, nbytes: int, profile: Path | str
) -> dict[str, str]:
    """How a plain call combines or broadcasts, and a call by `Comm` if there is a profile."""
    print("fingerprints", file=sys.stderr)
    words = collective, METHODS[collective], nbytes, profile
    ran = cluster.run(
        [sys.executable, "-c", SEEN, *map(str, words)],
        environment={**os.environ, **more},
        capture="stdout",
        timeout_s=LIMIT_S,
    )
    (line,) = (one for one in (ran.stdout or "").splitlines() if one.startswith("told:"))
    found: dict[str, str] = json.loads(line.removeprefix("told:"))
    return found


def written(record: dict[str, Any]) -> str:
    """The record in Markdown."""
    seen, samples = record["fingerprints"], record["samples_s"]
    flat = {name: [s for launch in samples[name] for s in launch] for name in LAUNCHES}
    planted = " ".join(f"{name}={value}" for name, value in record["planted"].items())
    titles = {
        "planted": "planted",
        "exported": "planted, then exported",
        "neither": "neither: the library's default",
    }
    rows = [
        table_row(
            (
                titles[name],
                shown(1e3, *median_interval(flat[name])),
                shown(1, *ratio_interval(flat["planted"], flat[name])),
                f"`{seen[name]['plain']}`",
            )
        )
        for name in LAUNCHES
    ]
    lines = [
        f"# A planted bad default: {record['call']}, {record['library']}, {today()}\n",
        f"Made by `benchmarks/planted.py` on {record['hosts']} emulated hosts of one rank,"
        f" {record['network']}, in {len(samples['planted'])} launches of each, in turns; plain"
        " programs, slowest rank, medians with 95 % intervals.  Planted in all steps:\n",
        f"`{planted}`\n",
        table_head(["launched with", "ms", "times as fast as planted", "seen from outside"]),
        *rows,
        "\n`collwise scan` said:\n",
        *(f"- {one['what']}: {one['instead']} takes {one['instead_s'] * 1e3:.2f} ms where it takes"
          f" {one['takes_s'] * 1e3:.2f}: {one['remedy']}" for one in record["findings"]),
        f"\nA call by `Comm`, after `tune`: {seen['planted']['explain']}; seen from outside:"
        f" `{seen['planted']['collwise']}`.\n",
        "`collwise export openmpi` wrote:\n",
        *(f"- {one['method']}, {one['first']} to {one['last']} bytes on {one['ranks']} ranks:"
          f" {one['name']}" for one in record["rules"]),
        "",
        *(f"    export {name}={value}" for name, value in record["environment"].items()),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

"""Everything that users do, on the MPI library of one environment: no wrong byte, no traceback.

It was run on Debian's packages, each library in an environment of its own in a root made by
`debootstrap bookworm` (MPICH 4.0.2, Open MPI 4.1.4) or `debootstrap trixie` (4.2.1, 5.0.7) with
mpich, libmpich-dev, openmpi-bin, libopenmpi-dev, gcc and python3-venv:

    MPICC=mpicc.mpich pip install --no-cache-dir --no-binary mpi4py mpi4py
    pip install <a clone>
    python benchmarks/libraries.py --json mpich.json      # there, the library's mpiexec on the PATH
    python benchmarks/libraries.py --merge a.json,b.json  # anywhere: the table

Each command is run as a user runs it, with small budgets.  `--forms` is what ranks run: all forms
of all collectives, with types, sizes and roots, by the default and by named algorithms, compared
with plain mpi4py's blocking calls.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from bench_support import listed, number, today

LIMIT_S = 300.0
"""For each command."""
SCRIPT = """
import numpy as np
from mpi4py import MPI
import collwise as cw

comm = cw.Comm(MPI.COMM_WORLD)
x = np.full(64, comm.rank, dtype="d")
comm.Bcast(x, root=0)
assert not x.any()
if comm.rank == 0:
    print(comm.explain("broadcast", x.nbytes))
"""
NAMED: list[dict[str, str]] = [
    {},
    {"broadcast": "binomial", "reduce": "binomial", "allreduce": "recursive_doubling"},
    {"allreduce": "circulant", "reduce_scatter_block": "ring", "allgatherv": "circulant"},
    {"allreduce": "mixed_radix", "reduce": "hybrid", "allgatherv": "ring"},
]
"""No algorithm named, which is the library's default, and sets of named ones."""
TYPES, LENGTHS, STARTS = ("d", "f", "i", "b"), (1, 17, 1024), 3


def forms() -> dict[str, Any]:
    """Compare all forms with plain calls on the ranks of this world; returns what was seen."""
    from mpi4py import MPI

    import collwise as cw
    from collwise.measure.race import method_name
    from collwise.profiles.records import FORMS
    from collwise.schedule.collectives import COLLECTIVES

    world, wrong, calls, refused = MPI.COMM_WORLD, set[str](), 0, set[str]()
    for named in NAMED:
        known = {name: label for name, label in named.items() if _is_known(name, label)}
        machine = cw.Machine.postal(t0_s=1e-6, lam=2) if named else None
        comm = cw.Comm(world, profile=False, machine=machine, algorithms=known)
        for collective, form, code, length in product(COLLECTIVES.values(), FORMS, TYPES, LENGTHS):
            roots = {0, world.size - 1} if collective.rooted else {0}
            for method, root in product(collective.methods, sorted(roots)):
                sent = (np.arange(length * world.size) % 5 + world.rank + 1).astype(code)
                buffers = _buffers(method, sent, length, world.size, world.rank)
                more = [MPI.SUM] * collective.combines + [root] * collective.rooted
                getattr(world, method)(*buffers[0], *more)
                name = method_name(method, form)
                try:
                    made = getattr(comm, name)(*buffers[1], *more)
                except NotImplementedError as problem:
                    refused.add(re.sub(r"^\w+: |start \w+ each", "", str(problem)))
                    continue
                for start in range(STARTS if form == "persistent" else 1):
                    if form == "persistent":
                        buffers[1][-1][:] = sent if method == "Bcast" else 0
                        made.Start()
                    if made is not None:
                        made.Wait()
                    receives = method != "Reduce" or world.rank == root
                    same = np.array_equal(buffers[0][-1], buffers[1][-1]) or not receives
                    calls += 1
                    if not world.allreduce(same, MPI.LAND):
                        by = "named algorithms" if collective.name in known else "the default"
                        wrong.add(f"{name} by {by}, start {start}")
                if form == "persistent":
                    made.Free()
        comm.Free()
    found = {"calls": calls, "wrong": sorted(wrong), "refused": sorted(refused)}
    if world.rank == 0:
        print("\nforms:" + json.dumps(found))
    return found


def _is_known(collective: str, label: str) -> bool:
    import collwise as cw

    return f"{collective}/{label}" in cw.ALGORITHMS


def _buffers(
    method: str, sent: Any, length: int, ranks: int, rank: int
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The buffers of a call for plain mpi4py and for collwise; the last of each is the result."""
    pairs: list[tuple[Any, ...]] = []
    for _ in range(2):
        if method == "Bcast":
            pairs.append((sent.copy(),))
        elif method in ("Allgather", "Allgatherv"):
            pairs.append((sent[:length].copy(), np.zeros(length * ranks, sent.dtype)))
        elif method == "Reduce_scatter_block":
            pairs.append((sent.copy(), np.zeros(length, sent.dtype)))
        else:
            pairs.append((sent[:length].copy(), np.zeros(length, sent.dtype)))
    return pairs[0], pairs[1]


def commands(folder: Path, budget_s: float, exported: str) -> Iterator[tuple[str, list[str]]]:
    """Each step's name, and its command."""
    python, budget = sys.executable, ("--budget", f"{budget_s:g}")
    (folder / "script.py").write_text(SCRIPT)
    collwise = [python, "-m", "collwise"]
    yield "doctor", [*collwise, "doctor"]
    yield "script", ["mpiexec", "-n", "2", python, "script.py"]
    yield "tune -n 2", [*collwise, "tune", "-n", "2", *budget]
    yield "tune -n 4", [*collwise, "tune", "-n", "4", *budget, "--bytes", "512"]
    yield "scan -n 2", [*collwise, "scan", "-n", "2", *budget, "--bytes", "8,4096"]
    yield "script, tuned", ["mpiexec", "-n", "2", python, "script.py"]
    yield "run --summary", [*collwise, "run", "-n", "2", "--summary", "script.py"]
    yield "inspect -n 4", [*collwise, "inspect", "-n", "4", *budget]
    yield "export --check", [*collwise, "export", exported, "--out", "better", "--check"]
    oversubscribed = ["--oversubscribe"] * (exported == "openmpi")
    for ranks in (2, 3, 4):
        line = ["mpiexec", *oversubscribed, "-n", str(ranks), python, str(Path(__file__).resolve())]
        yield f"forms on {ranks}", [*line, "--forms"]


def tried(budget_s: float) -> dict[str, Any]:
    """Run all commands in a folder of their own; returns the outcome of each."""
    from mpi4py import MPI

    vendor, version = MPI.get_vendor()
    about = f"{vendor} {'.'.join(map(str, version))}"
    kind = "openmpi" if vendor == "Open MPI" else "mpich"
    outcomes = {}
    with tempfile.TemporaryDirectory() as name:
        environment = {**os.environ, "COLLWISE_PROFILE": f"{name}/profile.json"}
        for step, command in commands(Path(name), budget_s, kind):
            began = {**environment}
            if step == "script":  # nothing is tuned yet
                del began["COLLWISE_PROFILE"]
                began["XDG_DATA_HOME"] = name
            outcomes[step] = told = _outcome(command, name, began)
            print(f"{about}: {step}: {told}", file=sys.stderr, flush=True)
    return {"library": about, "date": today(), "outcomes": outcomes}


def _outcome(command: list[str], folder: str, environment: dict[str, str]) -> str:
    """What became of a command, in a few words."""
    try:
        ran = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True,
            timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no end within {LIMIT_S:g} s"
    said = ran.stdout + ran.stderr
    last = (ran.stderr.strip().splitlines() or [""])[-1].replace(folder, "…")
    if "Traceback" in said:
        return f"a traceback: {last}"
    if told := re.search(r"forms:(.*)", ran.stdout):
        found = json.loads(told[1])
        words = [f"{found['calls']} results, {len(found['wrong'])} kinds wrong"]
        return "; ".join(words + found["wrong"] + found["refused"])
    remarks = re.findall(r"leaves wrong data.*|in force.*|nothing of the library's.*", said)
    if ran.returncode:
        return f"exit code {ran.returncode}: {last}"
    return "; ".join(["ok", *dict.fromkeys(one.strip()[:150] for one in remarks[:2])])


def merged(paths: list[Path]) -> str:
    """The outcomes of several libraries as a table in Markdown."""
    every = [json.loads(path.read_text()) for path in paths]
    lines = ["| | " + " | ".join(one["library"] for one in every) + " |"]
    lines.append("|---" * (1 + len(every)) + "|")
    for step in every[0]["outcomes"]:
        cells = [one["outcomes"].get(step, "-").replace("|", "/") for one in every]
        lines.append(f"| {step} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run as the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=number(float), default=8.0, help="seconds of each command")
    parser.add_argument("--json", type=Path, help="the file for the outcomes")
    parser.add_argument("--merge", type=listed(Path), help="files of outcomes: print the table")
    parser.add_argument("--forms", action="store_true", help="run on ranks: compare all forms")
    chosen = parser.parse_args()
    if chosen.forms:
        forms()
    elif chosen.merge:
        print(merged(chosen.merge))
    else:
        found = json.dumps(tried(chosen.budget), indent=1)
        print(found) if chosen.json is None else chosen.json.write_text(found + "\n")


if __name__ == "__main__":
    main()

"""How far plans are from their lower bounds, over a grid of machines, ranks and sizes.

Run: uv run python benchmarks/ratios.py [--json] [--collective broadcast] [--sample 4]

For each collective, the geometric mean and the worst of plan/bound.  And of plan/reference, where
the reference is the least (k − 1 + T_λ(p))·t0 over numbers k of segments, t0 that of a k-th of the
bytes, with combining in a reduce.  The reference is no bound: it says what a broadcast that loses
nothing to segments would take.  Of an s-to-p broadcast of all it is T_λ(p)·t0 of one contribution,
and its bound if that is larger: T_λ(p) knows nothing of the bytes that a rank receives.
"""

import argparse
import json
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import exp, log
from random import Random
from typing import Any

from bench_support import number

import collwise as cw
from collwise.model.measured_machine import measured

RANKS = (4, 7, 8, 16, 33, 64, 100, 128, 255)
BYTES = (8, 64, 512, 2400, 16384, 131072, 1 << 20)
ALPHA, BETA, GAMMA = Fraction(1, 10**6), Fraction(1, 10**9), Fraction(35, 10**11)
LAMBDAS = (1, 2, Fraction(7, 2), 8, 20)
SEGMENTS = sorted({round(2 ** (k / 4)) for k in range(49)})
COLLECTIVES: dict[str, dict[str, Any]] = {
    "broadcast": {},
    "reduce": {"op": "sum", "dtype": "float64"},
    "allreduce": {"op": "sum", "dtype": "float64"},
    "reduce_scatter_block": {"op": "sum", "dtype": "float64"},
    "allgatherv, one source": {"count": 1},
    "allgatherv, a quarter": {"count": 4},
    "allgatherv, all": {"count": 0},
}


def machines() -> Iterator[tuple[str, cw.Machine]]:
    """Hockney's with combining, and α + nβ with a latency."""
    hockney = cw.Machine.hockney(alpha_s=ALPHA, beta_s=BETA, gamma_s=GAMMA)
    yield "Hockney", hockney
    for lam in LAMBDAS:
        points = [(1, ALPHA, lam), (1 << 21, ALPHA + (1 << 21) * BETA, lam)]
        combining = [(1, GAMMA), (1 << 21, (1 << 21) * GAMMA)]
        yield f"λ = {lam}", measured([points]).with_combining(combining)


def planned(name: str, ranks: int, nbytes: int, machine: cw.Machine) -> cw.Plan:
    """The plan of one cell of the grid."""
    asked = dict(COLLECTIVES[name])
    if name == "reduce_scatter_block":
        nbytes = -(-nbytes // (8 * ranks)) * 8 * ranks
    if (count := asked.pop("count", None)) is not None:
        sources = range(0, ranks, 4) if count == 4 else range(count or ranks)
        asked["sources"] = list(sources)
        nbytes = max(nbytes // len(sources), 1)
    collective = name.partition(",")[0]
    return cw.plan(collective, ranks=ranks, nbytes=nbytes, machine=machine, **asked)


def reference(name: str, plan: cw.Plan) -> Fraction | None:
    """What a collective would take that loses nothing to segments; None where there is none."""
    machine, ranks, nbytes = plan.machine, plan.problem.ranks, plan.problem.nbytes
    if name == "allgatherv, all":
        gap, latency = machine.message(plan.problem.sources[0].nbytes)
        return max(cw.postal.broadcast_time(ranks, latency / gap) * gap, plan.bound.time)
    if name not in ("broadcast", "reduce", "allgatherv, one source"):
        return None
    times = []
    for k in SEGMENTS:
        size = -(-nbytes // k)
        gap, latency = machine.message(size)
        extra = (machine.combine(size) or 0) if name == "reduce" else Fraction(0)
        gap, latency = gap + extra, latency + extra
        steps = k - 1 + cw.postal.broadcast_time(ranks, (latency / gap).limit_denominator(64))
        times.append(steps * gap)
    return min(times)


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, ratios)) / len(ratios))


def row(name: str, sample: int) -> dict[str, Any]:
    """All cells of one collective."""
    begin = time.process_time()
    bounds, references = [], []
    worst, estimates = (0.0, ""), 0
    cells = list(product(machines(), RANKS, BYTES))
    for (label, machine), ranks, nbytes in Random(13).sample(cells, -(-len(cells) // sample)):
        plan = planned(name, ranks, nbytes, machine)
        took = plan.choice.predicted
        estimates += plan.choice.estimate
        bounds.append(float(took / plan.bound.time))
        worst = max(worst, (bounds[-1], f"{ranks} ranks, {nbytes} B, {label}: {plan.choice.label}"))
        if (expected := reference(name, plan)) is not None:
            references.append(float(took / expected))
    return {
        "collective": name,
        "problems": len(bounds),
        "bound_mean": mean(bounds),
        "bound_worst": worst[0],
        "worst": worst[1],
        "reference_mean": mean(references) if references else None,
        "reference_worst": max(references, default=None),
        "estimates": estimates,
        "cpu_s": time.process_time() - begin,
    }


def main() -> None:
    """Print a table in Markdown, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--collective", choices=COLLECTIVES, action="append")
    parser.add_argument(
        "--sample", type=number(int), default=1, help="take one problem in so many, at random"
    )
    options = parser.parse_args()
    rows = []
    if not options.json:
        print("| collective | problems | plan/bound | worst | plan/reference | worst | CPU |")
        print("|---|---|---|---|---|---|---|")
    for name in options.collective or COLLECTIVES:
        rows.append(found := row(name, options.sample))
        if options.json:
            continue
        compared = "– | –"
        if found["reference_mean"] is not None:
            compared = f"{found['reference_mean']:.3f} | {found['reference_worst']:.2f}"
        print(
            f"| {name} | {found['problems']} | {found['bound_mean']:.3f} |"
            f" {found['bound_worst']:.2f} ({found['worst']}) | {compared} |"
            f" {found['cpu_s']:.0f} s |",
            flush=True,
        )
    if options.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

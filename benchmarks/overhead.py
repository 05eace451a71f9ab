"""What collwise costs over bare mpi4py: Br_Lin of [Hambrusch1998], as a schedule and by hand.

Run: uv run python benchmarks/overhead.py [--ranks 2,4] [--repetitions 1500] [--out FOLDER]

Takes a minute; on a quiet machine.  All ranks contribute.  By hand, mpi4py alone sends and receives
what the schedule says, with buffers and types made beforehand.  Both run interleaved, the slowest
rank counts, and the result is the ratio of the medians.  Writes FOLDER/overhead-DATE.md
(benchmarks/results by default).
"""

import argparse
import sys
from pathlib import Path

from bench_support import RESULTS, listed, number, table_head, table_row, today

SIZES = (8, 512, 4096, 16384)
TITLES = ("ranks", "bytes of each", "by hand, µs", "collwise, persistent, µs", "ratio")
LIMIT_S = 300.0


def main() -> None:
    """Start ranks, or be one."""
    if sys.argv[1:2] == ["rank"]:
        run_rank(Path(sys.argv[2]), int(sys.argv[3]))
        return
    from collwise.system.launcher import start

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=listed(number(int)), default=[2, 4])
    parser.add_argument("--repetitions", type=number(int), default=1500)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    path = options.out / f"overhead-{today()}.md"
    path.write_text(
        f"# Br_Lin on MPI: by collwise, and written by hand, {today()}\n\n"
        "Made by `uv run python benchmarks/overhead.py`; all ranks contribute.  Medians over"
        f" {options.repetitions} interleaved repetitions, slowest rank, shared memory.\n\n"
        f"{table_head(TITLES)}\n",
        encoding="utf-8",
    )
    for ranks in options.ranks:
        command = [sys.executable, __file__, "rank", str(path), str(options.repetitions)]
        if code := start(ranks, command, {}, LIMIT_S):
            raise SystemExit(f"{ranks} ranks ended with {code}")
    print(path.read_text(encoding="utf-8"))


def run_rank(path: Path, repetitions: int) -> None:
    """Time both at every size; rank 0 adds a row for each to the table."""
    from mpi4py import MPI

    from collwise.algorithms import ALGORITHMS
    from collwise.measure.race import BY_HAND
    from collwise.mpi.runtime.world import describe
    from collwise.schedule.problem import Problem
    from collwise.tuning.session import Session

    comm = MPI.COMM_WORLD
    with Session(comm, describe(comm)) as session:
        for nbytes in SIZES:
            problem = Problem.of("allgatherv", comm.size, nbytes, sources=range(comm.size))
            schedules = {"ours": ALGORITHMS["allgatherv/br_lin"].solve(problem, {})}
            race = session.compare(
                problem,
                schedules,
                {},
                LIMIT_S / 2 / len(SIZES),
                repetitions=repetitions,
                bare_sends=True,
            )
            hand, ours = (1e6 * race.medians[name].middle for name in ("ours" + BY_HAND, "ours"))
            if comm.rank == 0:
                with path.open("a", encoding="utf-8") as page:
                    figures = (f"{value:.2f}" for value in (hand, ours, ours / hand))
                    page.write(table_row((comm.size, nbytes, *figures)) + "\n")


if __name__ == "__main__":
    main()

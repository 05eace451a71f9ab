"""What collwise costs over bare mpi4py: Br_Lin of [Hambrusch1998], as a schedule and by hand.

Run: uv run python benchmarks/overhead.py [--ranks 2,4] [--repetitions 1500] [--out FOLDER]

Takes a minute; on a quiet machine.  All ranks contribute.  By hand, each round is one Sendrecv of
what a rank holds, with buffers and types made beforehand.  Both run interleaved, the slowest rank
counts, and the result is the ratio of the medians.  Writes FOLDER/overhead-DATE.md
(benchmarks/results by default).
"""

import argparse
import sys
import time
from pathlib import Path
from statistics import median

from bench_support import RESULTS, table_head, table_row, today

SIZES = (8, 512, 4096, 16384)
TITLES = ("ranks", "bytes of each", "by hand, µs", "collwise, persistent, µs", "ratio")
WARM_UP = 20
LIMIT_S = 300


def main() -> None:
    """Start ranks, or be one."""
    if sys.argv[1:2] == ["rank"]:
        run_rank(Path(sys.argv[2]), int(sys.argv[3]))
        return
    from collwise.system.launcher import start

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--repetitions", type=int, default=1500)
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
    for ranks in map(int, options.ranks.split(",")):
        command = [sys.executable, __file__, "rank", str(path), str(options.repetitions)]
        if code := start(ranks, command, {}, LIMIT_S):
            raise SystemExit(f"{ranks} ranks ended with {code}")
    print(path.read_text(encoding="utf-8"))


def run_rank(path: Path, repetitions: int) -> None:
    """Time both at every size; rank 0 adds a row for each to the table."""
    import numpy as np
    from mpi4py import MPI

    from collwise.algorithms import ALGORITHMS
    from collwise.mpi.execution.executor_choice import executor_for
    from collwise.mpi.runtime.private_communicator import PrivateCommunicator
    from collwise.schedule.operations import Recv, Send

    comm = MPI.COMM_WORLD
    rank, ranks = comm.rank, comm.size
    private = PrivateCommunicator(comm)
    for nbytes in SIZES:
        schedule = ALGORITHMS["s_to_p/br_lin"].schedule(ranks, nbytes, sources=range(ranks))
        mine = np.full(nbytes, rank, dtype=np.uint8)
        theirs = np.zeros(ranks * nbytes, dtype=np.uint8)
        expected = np.repeat(np.arange(ranks, dtype=np.uint8), nbytes)
        request = executor_for(schedule, private).persistent(
            mine, [theirs, [nbytes] * ranks, None, MPI.BYTE]
        )
        rounds, operations = [], schedule.rank(rank)
        for one, other in zip(operations[::2], operations[1::2], strict=True):
            sent, received = sorted((one, other), key=lambda op: isinstance(op, Recv))
            assert isinstance(sent, Send)
            assert isinstance(received, Recv)
            assert sent.peer == received.peer
            specs = []
            for op in (sent, received):
                offsets = [block.owner * nbytes for block in op.blocks]
                datatype = MPI.BYTE.Create_hindexed([nbytes] * len(offsets), offsets).Commit()
                specs.append([theirs, 1, datatype])
            rounds.append((sent.peer, *specs))
        own = theirs[rank * nbytes : (rank + 1) * nbytes]

        def by_hand(rounds=rounds, own=own, mine=mine) -> None:  # type: ignore[no-untyped-def]
            own[:] = mine
            for peer, sent, received in rounds:
                comm.Sendrecv(sent, peer, 0, received, peer, 0)

        def compiled(request=request) -> None:  # type: ignore[no-untyped-def]
            request.Start()
            request.Wait()

        times = {by_hand: [], compiled: []}  # type: ignore[var-annotated]
        for repetition in range(repetitions + WARM_UP):
            for run in (by_hand, compiled) if repetition % 2 else (compiled, by_hand):
                theirs[:] = 255
                comm.Barrier()
                begin = time.perf_counter()
                run()
                times[run].append(time.perf_counter() - begin)
                assert (theirs == expected).all(), f"rank {rank}: wrong bytes"
        table = np.array([times[by_hand][WARM_UP:], times[compiled][WARM_UP:]])
        comm.Allreduce(MPI.IN_PLACE, table, MPI.MAX)
        hand, ours = (median(row) * 1e6 for row in table)
        if rank == 0:
            with path.open("a", encoding="utf-8") as page:
                figures = (f"{value:.2f}" for value in (hand, ours, ours / hand))
                page.write(table_row((ranks, nbytes, *figures)) + "\n")
        request.Free()
    private.free()


if __name__ == "__main__":
    main()

"""What collwise costs over bare mpi4py sends: Br_Lin, compiled and by hand (H-c12).

Run: uv run python benchmarks/overhead.py     (a minute; on a quiet machine)

All ranks have data.  By hand: two lines of mpi4py in each round, a Sendrecv of what is held, its
buffers and types made beforehand.  Both in one interleaved run, the slowest rank counts; what is
told is the ratio of medians.  Writes benchmarks/results/overhead-DATE.md.
"""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

RANKS = (2, 4)
SIZES = (8, 512, 4096, 16384)
REPETITIONS = 1500


def main() -> None:
    """Start ranks, or be one."""
    if sys.argv[1:2] == ["rank"]:
        on_a_rank(Path(sys.argv[2]))
        return
    from collwise.system.launcher import start

    date = datetime.now(UTC).date().isoformat()
    path = Path(__file__).parent / "results" / f"overhead-{date}.md"
    path.write_text(
        f"# Br_Lin on MPI: compiled by collwise, and written by hand, {date}\n\n"
        "Made by `uv run python benchmarks/overhead.py`; all ranks have data.  Ratios of medians"
        f" over {REPETITIONS} interleaved repetitions, slowest rank, shared memory.\n\n"
        "| ranks | bytes of each | by hand, µs | collwise, persistent, µs | ratio |\n"
        "|---|---|---|---|---|\n",
        encoding="utf-8",
    )
    for ranks in RANKS:
        code = start(ranks, [sys.executable, __file__, "rank", str(path)], {}, 300)
        if code:
            raise SystemExit(f"{ranks} ranks ended with {code}")
    print(path.read_text(encoding="utf-8"))


def on_a_rank(path: Path) -> None:
    """Time both, at every size."""
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
                places = [block.owner * nbytes for block in op.blocks]
                datatype = MPI.BYTE.Create_hindexed([nbytes] * len(places), places).Commit()
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
        for repetition in range(REPETITIONS + 20):
            for run in (by_hand, compiled) if repetition % 2 else (compiled, by_hand):
                theirs[:] = 255
                comm.Barrier()
                begin = time.perf_counter()
                run()
                times[run].append(time.perf_counter() - begin)
                assert (theirs == expected).all(), f"rank {rank}: wrong bytes"
        table = np.array([times[by_hand][20:], times[compiled][20:]])
        comm.Allreduce(MPI.IN_PLACE, table, MPI.MAX)
        hand, ours = (median(row) * 1e6 for row in table)
        if rank == 0:
            with path.open("a", encoding="utf-8") as page:
                page.write(
                    f"| {ranks} | {nbytes} | {hand:.2f} | {ours:.2f} | {ours / hand:.2f} |\n"
                )
        request.Free()
    private.free()


if __name__ == "__main__":
    main()

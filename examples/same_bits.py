"""8. One sum, several results: where a library puts the brackets depends on algorithm and count.

    mpiexec -n 5 python examples/same_bits.py

Near 10^16 numbers are 2 apart, so 10^16 + 1 is 10^16 and 10^16 + 3 is 10^16 + 4.  The brackets
decide what is lost.  The names are the library's own; those that it does not have are left out.
"""

import numpy as np
from mpi4py import MPI

import collwise as cw

NUMBERS = [1e16, 1.0, -1e16, 1.0, 3.0]
COUNTS = 1, 10, 5000
NAMES = {
    "allreduce": ("recursive_doubling", "ring"),
    "reduce": ("binomial", "binary", "reduce_scatter_gather"),
}
world = MPI.COMM_WORLD
free, fixed = (cw.Comm(world, profile=False, order=order) for order in (None, "fixed"))


def tell(label: str, comm: MPI.Intracomm, collective: str) -> None:
    told = []
    for count in COUNTS:
        numbers, sums = np.full(count, NUMBERS[comm.rank]), np.zeros(count)
        if collective == "reduce":
            comm.Reduce(numbers, sums, root=0)
        else:
            comm.Allreduce(numbers, sums)
        told.append(" and ".join(f"{value:g}" for value in sorted({*sums.tolist()})))
    if comm.rank == 0:
        print(f"{collective:9}  {label:21}", *(f"{text:>7}" for text in told))


if world.rank == 0:
    print(f"{'elements':31} ", *(f"{count:7}" for count in COUNTS))
for collective, names in NAMES.items():
    tell("the library's default", free, collective)
    for name in names:
        chosen = free.using(**{collective: f"library:{name}"})
        if chosen.explain(collective, 8).startswith(f"{collective}/library:{name}"):
            tell(name, chosen, collective)
    tell("order='fixed'", fixed, collective)

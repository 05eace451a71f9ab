"""3. Run the broadcast backwards, and it is a reduction: as fast, and proved right.

Every message of a λ-tree turned around, and combined where it arrives, brings all contributions to
the root in the same time.
"""

import numpy as np

import collwise as cw
from collwise.simulator import values

lam, ranks = 3, 9
machine = cw.Machine.postal(t0_s="1e-3", lam=lam)

down = cw.ALGORITHMS["broadcast/postal_tree"].schedule(ranks, 8, lam=lam)
up = cw.ALGORITHMS["reduce/postal_tree"].schedule(ranks, 8, itemsize=8, lam=lam)
for schedule in (down, up):
    cw.verify(schedule)
    trace = cw.simulate(schedule, machine)
    print(f"{schedule.algorithm}: {1e3 * trace.completion_s:g} t0, proved right")

print("\nwhat the root does:")
for operation in up.rank(0):
    print(f"  {type(operation).__name__.lower()} {getattr(operation, 'peer', '')}".rstrip())

inputs = [np.array([10**rank]) for rank in range(ranks)]
result = values(up, inputs)[0]
assert result is not None
print(f"\nthe sum at the root: {result[0]:,}")

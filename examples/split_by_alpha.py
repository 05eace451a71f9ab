"""2. The same tree without a tree in memory: a rank keeps the share α of its ranks.

A leader of n ranks keeps round(αn), and hands the others to a new leader.  Which α are optimal
depends on n; a small table holds one for every n.
"""

from fractions import Fraction

import collwise as cw

lam, ranks = Fraction(5, 2), 13

low, high = cw.postal.partitions(ranks, lam)
print(f"the source of {ranks} ranks may keep {low} to {high} of them")
low_alpha, high_alpha = cw.postal.alpha_range(ranks, lam)
print(f"which is what round(α·{ranks}) keeps for {low_alpha} <= α < {high_alpha}\n")

table = cw.postal.alpha_table(ranks, lam)
for top, alpha in zip(table.tops, table.alphas, strict=True):
    print(f"up to {top:2} ranks: α = {alpha}")

both = cw.postal.alpha_intersection(ranks, lam)
print("\none α for all of them:", f"from {both[0]} to {both[1]}" if both else "there is none")


def split(first: int, n: int, depth: int = 0) -> None:
    """Print who is handed how many."""
    while n > 1:
        kept = cw.postal.split(n, table.lookup(n))
        print(f"{'  ' * depth}rank {first} of {n} keeps {kept}, sends to {first + kept}")
        split(first + kept, n - kept, depth + 1)
        n = kept


print()
split(0, ranks)

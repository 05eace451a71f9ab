"""What the order "fixed" costs by the model: its time over that of the default order.

Run: uv run python benchmarks/fixed_order.py [--bytes 64,65536,4194304]

Sums of float64 on a Hockney machine.  Geometric means over numbers of ranks, and the worst.
"""

import argparse
from math import prod

import collwise as cw

MACHINE = cw.Machine.hockney(alpha_s="1e-6", beta_s="1e-10", gamma_s="1e-10")
RANKS = {"powers of two": (4, 8, 16, 32, 64), "other p": (3, 5, 6, 7, 12, 20, 31, 48, 61)}


def ratio(collective: str, ranks: int, nbytes: int) -> float:
    """How many times as long the fastest plan takes in the order "fixed"."""
    unit = 8 * ranks
    whole = -(-nbytes // unit) * unit
    fixed = cw.plan(collective, ranks=ranks, nbytes=whole, machine=MACHINE, order="fixed")
    usual = cw.plan(collective, ranks=ranks, nbytes=whole, machine=MACHINE)
    return float(fixed.choice.predicted / usual.choice.predicted)


def sizes(text: str) -> list[int]:
    """Sizes in bytes, separated by commas."""
    values = [int(word) for word in text.split(",")]
    if min(values) < 1:
        raise ValueError("give sizes of at least 1 byte")
    return values


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bytes", type=sizes, default=[64, 1 << 16, 1 << 22])
    asked = parser.parse_args().bytes
    print("|  |", *(f"{nbytes} B |" for nbytes in asked))
    print("|---|" + "---|" * len(asked))
    for collective in ("allreduce", "reduce", "reduce_scatter_block"):
        for name, group in RANKS.items():
            cells = []
            for nbytes in asked:
                ratios = [ratio(collective, ranks, nbytes) for ranks in group]
                cells.append(f"{prod(ratios) ** (1 / len(ratios)):.2f} ({max(ratios):.2f})")
            print(f"| {collective}, {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()

"""Registers the reduce-scatters on circulant graphs, for any number of ranks."""

from collwise.algorithms.circulant_pieces import register_circulant

register_circulant(
    "reduce_scatter_block",
    "in ⌈log2 p⌉ rounds of halving size, for any p",
    "⌈log2 p⌉α + (p − 1)/p·n(β + γ)",
    "rounds of any radix, piece after piece of every block, so that the latency counts once",
    "(k − 1)·(the time for which a piece keeps a port busy) + the time of one piece, for k pieces",
)

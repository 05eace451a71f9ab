"""Allreduces by reduce-scatter and allgather on a circulant graph, for any number of ranks."""

from collwise.algorithms.circulant_pieces import register_circulant

register_circulant(
    "allreduce",
    "reduce-scatter and allgather in ⌈log2 p⌉ rounds each, for any p",
    "2⌈log2 p⌉α + (p − 1)/p·n(2β + γ)",
    "reduce-scatter and allgather in rounds of any radix, piece after piece: one latency in all",
    "(k − 1)·(the time for which a piece keeps a port busy) + the time of one piece, for k pieces",
)

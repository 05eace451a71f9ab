"""Allreduces by reduce-scatter and allgather on a circulant graph, for any number of ranks."""

from collwise.algorithms.circulant_pieces import register_circulant

register_circulant(
    "allreduce",
    "reduce-scatter and allgather in ⌈log2 p⌉ rounds each, for any p",
    "2⌈log2 p⌉α + (p − 1)/p·n(2β + γ)",
    "the same with any radix, piece after piece, so that the latency counts once",
    "(k − 1)·(what a piece keeps a port busy) + the time of the first one, for k pieces",
)

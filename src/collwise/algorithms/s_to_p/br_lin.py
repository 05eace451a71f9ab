"""Br_Lin: swap between the halves of one snake-like line through the mesh, and so on in each."""

from collwise.algorithms.s_to_p.spreading import register_spread, spread_snake

register_spread(
    "br_lin",
    "halves of a snake-like line swap what they hold, then each half goes on by itself",
    ("Hambrusch1998 §2",),
    "⌈log2 p⌉ rounds; at most 2^(k−1) contributions in round k, 2^k − 1 if p is no power of two",
    spread_snake,
)

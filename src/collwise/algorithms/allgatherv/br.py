"""Br_Lin and Br_xy: recursive halving along lines of the mesh.

In Br_Lin the two halves of a snake-like line through the mesh swap their data; then the halves of
each half do so, and so on.  Br_xy does this in every line of one dimension of the mesh, then in
every line of the other dimension.
`br_xy_source` begins with the dimension whose fullest line has fewer sources, so that messages
grow late; `br_xy_dim` begins with the dimension whose lines are longer.
"""

from collwise.algorithms.allgatherv.spreading import (
    register_spread,
    spread_mesh_by_shape,
    spread_mesh_by_sources,
    spread_snake,
)

TIME = "⌈log2 r⌉ + ⌈log2 c⌉ rounds"

register_spread(
    "br_lin",
    "halves of a snake-like line of ranks swap what they hold, then each half does so itself",
    ("Hambrusch1998 §2",),
    "⌈log2 p⌉ rounds; at most 2^(k−1) contributions in round k, 2^k − 1 if p is no power of two",
    spread_snake,
    searched=False,
)
register_spread(
    "br_xy_source",
    "rows, then columns, or the other way: first where the fullest line has fewer sources",
    ("Hambrusch1998 §2",),
    TIME,
    spread_mesh_by_sources,
    searched=False,
)
register_spread(
    "br_xy_dim",
    "rows, then columns, or the other way: the longer lines first",
    ("Hambrusch1998 §2",),
    TIME,
    spread_mesh_by_shape,
    searched=False,
)

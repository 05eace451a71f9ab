"""Algorithms for machines with levels: flat algorithms inside groups and across their leaders.

`composition`  shared code: an algorithm for each level, and the choice of the best
`multilevel`   one level after another, with an algorithm for each
`pipelined`    segments down, or up, one tree that joins the trees of all levels
`rounds_over_levels`  pieces in rounds that span several levels
`lanes`        every rank of a node carries a part across; `lanes_in_pieces`: in several pieces
`ordered`      a broadcast whose order of sends is searched (`send_order`)
`gathering`    s-to-p broadcasts: contributions are `joined` in the groups, then exchanged across
"""

"""Algorithms for machines with levels: other algorithms inside groups and across their leaders.

`composition`  the parts: an algorithm for each level, and the best of them
`multilevel`   an algorithm for each level, one level after another
`pipelined`    segments down, or up, one tree joined of those of all levels
`rounds_over_levels`  pieces in rounds that span several levels
`lanes`        every rank of a node carries a part across; `lanes_in_pieces`
`ordered`      a broadcast whose order of sends is searched for (`send_order`)
`gathering`    s-to-p: contributions are `joined` in the groups, then exchanged across
"""

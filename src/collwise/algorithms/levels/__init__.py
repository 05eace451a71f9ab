"""Algorithms for machines with levels: flat algorithms inside groups and across their leaders.

`composition`  shared code: runs an algorithm at each level, and finds the best for each level
`multilevel`   one level after another, each with an algorithm of its own
`pipelined`    segments go down, or up, one tree that joins the trees of all levels
`rounds_over_levels`  pieces of the message travel in rounds that span several levels
`lanes`        the i-th ranks of all nodes carry the i-th part of the vector between the nodes
`lanes_in_pieces`     the allreduce of `lanes`, with the vector cut into several pieces
`ordered`      a broadcast whose order of sends is searched (`send_order`)
`gathering`    allgathervs: gather in groups, exchange across, broadcast (program: `joined`)
"""

"""Algorithms for machines with levels: flat algorithms inside groups and across their leaders.

`composition`  shared code: runs an algorithm at each level, and finds the best for each level
`multilevel`   one level after another, each with an algorithm of its own
`pipelined`    segments go down, or up, one tree that joins the trees of all levels
`rounds_over_levels`  pieces of the message travel in rounds that span several levels
`lanes`        every rank of a node sends one part of the vector to the other nodes
`lanes_in_pieces`     the allreduce of `lanes`, with the vector cut into several pieces
`ordered`      a broadcast whose order of sends is searched (`send_order`)
`gathering`    allgathervs that gather in groups, then exchange across them (program: `joined`)
"""

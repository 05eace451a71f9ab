"""Schedules as plain data, and the building blocks of their programs.

Read in this order: `collectives` and `operators` (the two tables), `problem` (what is solved),
`operations` (what one rank does), `program` (what all ranks do: a schedule), `rows` (messages and
combines as columns, and what each row waits for).

Programs are made of these:
`trees`, `data_movement`       vectors, or parts of them, down a tree
`reduction`                    vectors combined up a tree
`exchange`                     all ranks exchange and combine
`circulant_exchange`           exchange around a circle, for any number of ranks
`rounds`                       pieces of a vector in rounds: around a circle (`circulant`,
                               `postal_rounds`), down trees (`cyclic_trees`, `two_trees`), or to
                               any rank that lacks them (`free_rounds`)
`grids`, `deliveries`          allgatherv from any sources; `all_rounds` for allgatherv in rounds
`hierarchy`                    teams of ranks: the nodes, the leaders of nodes, and so on
`combinators`                  programs made of programs: one after another, and on teams
`interleaved`                  pieces side by side: while one travels, others are sent

`dependencies` finds what each operation waits for (`_dependencies.c` is its fast part), and
`evaluation` computes the outputs of a schedule.
"""

"""Limits of searching, planning and simulating, each with its unit and its reason.

All ranks must choose the same plan, so limits count messages, ranks and the like, not seconds.  A
limit that is used in several places suits the slowest one.  Limits of a picture, a file or a table
are defined where they are used. *Work* is the number of messages (`timing.messages_played`), each
counted AS_LISTS times if operation lists have to be written out for it.
"""

AS_LISTS = 8
"""Cost of simulating a message from operation lists, relative to one from NumPy arrays."""
BUDGET = 1 << 20
"""The most work of one search if only ranks' own ports delay messages: a second or two."""
BUDGET_ELSEWHERE = 1 << 21
"""The most work of one search if messages are also delayed on links, shared ports or processors."""
RUNNERS_UP = 1 << 16
"""The most work for candidates that cannot be the fastest, which plans show for comparison."""
QUICK = 1 << 16
"""The most work for timing one schedule without contention, to order the candidates of a search."""
COMPARED, COMPARED_WORK = 8, 1 << 18
"""How many settings of one algorithm are compared by exact times, and the most work for that."""
MAX_PLAYED = 1 << 19
"""The most work of a schedule that `Algorithm.predict` simulates: some seconds."""
MAX_SIMULATED = 1 << 24
"""The most work of one simulation that a user asked for: half a minute, and some gigabytes."""
LISTED_RANKS = 1 << 20
"""With more ranks, work is estimated without operation lists, so that plans time only trees."""
SEARCHED_RANKS = 4096
"""The most ranks for which settings are searched, and schedules are compared message by message."""
MAX_INSIDE = 1024
"""The most ranks for which algorithms without levels are also tuned for inner levels.  With
more ranks, these algorithms may be chosen or rejected by rough times.
"""
MAX_LOOKS = 256
"""The most ranks for which algorithms without levels are also tuned as if no port were shared."""
RING_RANKS = 1024
"""The most ranks for which rings are tried: with more, p − 1 latencies exceed what they save."""
GATHERED_RANKS = 64
"""The most ranks of which each may send to all others, or gather vectors of any size from all."""
MAX_GATHERED = 1 << 20
"""With over GATHERED_RANKS ranks, the most bytes that each rank gathers, all vectors together."""
SCATTERED_RANKS = 1 << 18
"""The most ranks of a reduce-scatter whose messages list one block per rank."""
COLLECTED_STEPS = 1 << 20
"""The most steps of the allgather after a scatter; an algorithm with more is refused."""
SEGMENTED_RANKS = 1 << 16
"""The most ranks for which trees are tried with segments."""
ORDERED_RANKS = 1 << 14
"""The most ranks for which the order of sends over levels is searched."""
FREE_RANKS = 36
"""The most ranks for which `FreeRounds`, in which every rank may send to any other, are tried."""
ARRANGED_RANKS = 512
"""The most ranks for which an arrangement of cyclic trees (`CyclicTrees`) is searched."""
MAX_SENT = 1 << 16
"""The most messages per rank of a census (`model.postal.census`) that plans simulate."""
MAX_RECEIVED = 1 << 16
"""The largest product of ranks and sources for which plans try most allgatherv algorithms."""
MOST_PIECES = 4096
"""The most pieces or segments of a vector: more are not worth the memory of a compiled plan."""
ROUNDS_PLAYED = 1 << 20
"""The largest product of pieces and ranks for which plans try `algorithms.in_rounds`."""
ROUNDS_EVER = 1 << 22
"""The largest (pieces + 64) × ranks for which rounds are computed at all, else refused."""
TABLED_ROUNDS = 1 << 14
"""The largest pieces × ranks for which rounds for latencies above 1 are tried when planning."""
CYCLIC_ROUNDS = 1 << 17
"""The largest pieces × ranks for which cyclic trees, which need no full simulation, are tried."""
ROUNDS_UNDER_WAY = 1 << 12
"""The largest latency over levels, in rounds, for which rounds are tried; above, most are empty."""
LANES_TRIED, LANES_PLAYED = 1 << 13, 1 << 17
"""The most messages of `levels/lanes_in_pieces`: for plans to try it, and for it to run at all."""
CIRCULANT_MESSAGES = 512
"""The most messages per rank for which circulant exchanges in pieces are tried."""
LARGEST_RADIX = 32
"""The most ranks in a group of an exchange: larger groups send too many messages in turn."""

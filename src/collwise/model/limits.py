"""Limits of searching, planning and simulating, in one place, each with its unit and reason.

All ranks must choose the same plan, so limits count messages, pieces or ranks, never seconds.  A
limit used in several places suits the slowest one.  Limits of a picture, a file or a table are
defined where they are used.  *Work* is the result of `timing.messages_played`: the number of
messages, each counted AS_LISTS times if operation lists have to be written out for it.
"""

AS_LISTS = 8
"""Cost of simulating a message from operation lists, relative to one from NumPy arrays."""
BUDGET = 1 << 20
"""Work of one search where only ranks' own ports delay messages: a second or two."""
BUDGET_ELSEWHERE = 1 << 21
"""Work of one search where messages also meet on links, at shared ports or at processors."""
RUNNERS_UP = 1 << 16
"""Work that a search spends on candidates that cannot be the fastest, to show them in the plan."""
QUICK = 1 << 16
"""Work up to which a schedule is timed without contention, to order the candidates of a search."""
COMPARED, COMPARED_WORK = 8, 1 << 18
"""Settings of one algorithm that are compared by exact times, and the work of comparing them."""
MAX_PLAYED = 1 << 19
"""Work up to which `Algorithm.predict` simulates a schedule: some seconds."""
MAX_SIMULATED = 1 << 24
"""Work of one simulation that a user asked for: half a minute, and some gigabytes."""
LISTED_RANKS = 1 << 20
"""Ranks beyond which only trees are timed, by their shapes: one rank's list may have p entries."""
SEARCHED_RANKS = 4096
"""Ranks up to which settings are searched, and schedules are compared message by message."""
MAX_INSIDE = 1024
"""Ranks up to which algorithms without levels are also tuned for the inner levels.  Beyond, their
rough times may decide whether they are chosen."""
MAX_LOOKS = 256
"""Ranks up to which algorithms without levels are also tuned as if groups shared no ports."""
RING_RANKS = 1024
"""Ranks beyond which the latencies of a ring's p − 1 steps exceed what it can save."""
GATHERED_RANKS = 64
"""Ranks up to which every rank may send to all others, or gather all vectors of any size."""
MAX_GATHERED = 1 << 20
"""Bytes of all vectors together that every rank may gather, beyond GATHERED_RANKS ranks."""
SCATTERED_RANKS = 1 << 18
"""Ranks up to which a reduce-scatter is tried whose messages list one block per rank."""
COLLECTED_STEPS = 1 << 20
"""Steps of the allgather after a scatter; an algorithm with more is refused."""
SEGMENTED_RANKS = 1 << 16
"""Ranks beyond which trees are not tried with segments."""
ORDERED_RANKS = 1 << 14
"""Ranks beyond which the order of sends over levels is not searched."""
FREE_RANKS = 36
"""Ranks up to which `FreeRounds` are tried, in which every rank may send to any other."""
ARRANGED_RANKS = 512
"""Ranks up to which an arrangement of cyclic trees (`CyclicTrees`) is searched."""
MAX_SENT = 1 << 16
"""Messages per rank beyond which a census is not simulated when planning."""
MAX_RECEIVED = 1 << 16
"""Ranks × sources up to which an s-to-p broadcast is tried."""
MOST_PIECES = 4096
"""Pieces or segments of a vector: more are not worth the memory of a compiled plan."""
ROUNDS_PLAYED = 1 << 20
"""Pieces × ranks up to which rounds are computed when planning."""
ROUNDS_EVER = 1 << 22
"""(Pieces + 64) × ranks up to which rounds are computed at all; larger ones are refused."""
TABLED_ROUNDS = 1 << 14
"""Pieces × ranks up to which rounds for latencies above 1 are tried when planning."""
CYCLIC_ROUNDS = 1 << 17
"""Pieces × ranks up to which cyclic trees, which need no simulation of all ranks, are tried."""
ROUNDS_UNDER_WAY = 1 << 12
"""Latency of a message over levels, in rounds: with more, most rounds are empty."""
LANES_TRIED, LANES_PLAYED = 1 << 13, 1 << 17
"""Messages of an allreduce in lanes and pieces up to which it is tried, and is allowed at all."""
CIRCULANT_MESSAGES = 512
"""Messages per rank up to which circulant exchanges in pieces are tried."""
LARGEST_RADIX = 32
"""Ranks in the largest group of an exchange: more would send too many messages in turn."""

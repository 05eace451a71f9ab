"""Limits of searching, planning and simulating, in one place, each with its unit and reason.

A limit is low enough for all that use it.  All ranks must choose the same plan, so limits count
messages, pieces or ranks, never seconds.  Limits of a picture, a file or a table stay beside it.
*Work* is what `timing.messages_played` counts: messages, those from written-out lists AS_LISTS
times.
"""

AS_LISTS = 8
"""How many times longer a message takes if all ranks' lists are written out, not made as arrays."""
BUDGET = 1 << 20
"""Work of a search where only ranks' own ports count: a second or two."""
BUDGET_ELSEWHERE = 1 << 21
"""Work of a search where messages meet elsewhere: on links, at shared ports, at processors."""
RUNNERS_UP = 1 << 16
"""Work up to which a search times candidates that cannot be the fastest, to compare with."""
QUICK = 1 << 16
"""Work up to which a schedule is timed as if messages met nowhere, for its place in the search."""
MAX_PLAYED = 1 << 19
"""Work for the time of one schedule: some seconds."""
MAX_SIMULATED = 1 << 24
"""Work of one simulation that somebody asked for: half a minute, and some gigabytes."""
LISTED_RANKS = 1 << 20
"""Ranks beyond which only trees are timed, by their shapes: a rank's list may be as long."""
SEARCHED_RANKS = 4096
"""Ranks up to which settings are searched for, and schedules compared message by message."""
MAX_INSIDE = 1024
"""Ranks up to which algorithms that know no levels are set for the inner levels, too; of more
ranks, any rough time may choose."""
MAX_LOOKS = 256
"""Ranks up to which the levels are also looked at as if no ports were shared."""
RING_RANKS = 1024
"""Ranks beyond which the start-ups of a ring take longer than it can save."""
GATHERED_RANKS = 64
"""Ranks up to which everybody may send to everybody, or gather all vectors whatever their size."""
MAX_GATHERED = 1 << 20
"""Bytes of all vectors together, beyond those ranks, that everybody may gather (RING_RANKS)."""
SCATTERED_RANKS = 1 << 18
"""Ranks up to which a reduce-scatter is tried whose messages name the block of every rank."""
COLLECTED_STEPS = 1 << 20
"""Steps of one rank after a scatter: with more it is refused."""
SEGMENTED_RANKS = 1 << 16
"""Ranks beyond which no segment of a tree is searched for."""
ORDERED_RANKS = 1 << 14
"""Ranks beyond which no order of sends over levels is searched for."""
FREE_RANKS = 36
"""Ranks up to which rounds with free choice are tried."""
ARRANGED_RANKS = 512
"""Ranks up to which an arrangement of trees that turn is looked for."""
MAX_SENT = 1 << 16
"""Messages of one rank beyond which a census is not timed when planning."""
MAX_RECEIVED = 1 << 16
"""Contributions received, by all ranks together, up to which an s-to-p broadcast is tried."""
MOST_PIECES = 4096
"""Pieces or segments: more are never worth the room that a compiled plan takes."""
ROUNDS_PLAYED = 1 << 20
"""Pieces × ranks: larger rounds are not played while planning."""
ROUNDS_EVER = 1 << 22
"""Pieces × ranks, the first piece counted 64 times: larger rounds are refused."""
TABLED_ROUNDS = 1 << 14
"""Pieces × ranks: larger rounds for latencies above 1 are not tried in planning."""
CYCLIC_ROUNDS = 1 << 17
"""Pieces × ranks, likewise, where trees turn: one rank's sends are known without playing all."""
ROUNDS_UNDER_WAY = 1 << 12
"""Rounds that a message may travel over levels: with more, most rounds are empty."""
LANES_TRIED, LANES_PLAYED = 1 << 13, 1 << 17
"""Messages of all pieces in lanes: with more they are not tried, or refused."""
CIRCULANT_MESSAGES = 512
"""Messages of one rank up to which pieces around a circle are tried."""
LARGEST_RADIX = 32
"""Larger groups would send too many messages one after another."""

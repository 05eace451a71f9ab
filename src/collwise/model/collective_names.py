"""Aliases of collectives: names that users may write, but that collwise never shows."""

ALIASES = {"s_to_p": "allgatherv"}
"""In [Hambrusch1998], "s-to-p broadcast" means an allgatherv with data on only some ranks."""


def shown_name(name: str) -> str:
    """The name of a collective or algorithm without aliases: allgatherv/ring for s_to_p/ring."""
    collective, slash, algorithm = name.partition("/")
    return ALIASES.get(collective, collective) + slash + algorithm

"""Registers the allreduces by exchanges in groups."""

from collwise.algorithms.exchanges import register_exchanges

register_exchanges("allreduce")

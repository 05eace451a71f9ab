"""Registers the reduce-scatters by exchanges in groups."""

from collwise.algorithms.exchanges import register_exchanges

register_exchanges("reduce_scatter_block")

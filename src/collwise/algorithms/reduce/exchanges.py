"""Registers the reduces by exchanges in groups."""

from collwise.algorithms.exchanges import register_exchanges

register_exchanges("reduce")

"""Registers the reduces in rounds."""

from collwise.algorithms.in_rounds import register_rounds

register_rounds("reduce")

"""Checks of what collwise needs on a machine, each with a remedy: `checks`."""

"""Reduce: every rank has a vector; in the end the root has the combination of all."""

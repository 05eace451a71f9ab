"""Allreduce: every rank has a vector; in the end every rank has the combination of all."""

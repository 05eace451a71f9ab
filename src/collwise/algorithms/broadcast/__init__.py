"""Broadcast: the root has a message; in the end every rank has it."""

"""Broadcast: at first only the root has a message; in the end every rank has it."""

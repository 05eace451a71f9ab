"""Chooses a schedule.  It is given its scoring function and never executes anything."""

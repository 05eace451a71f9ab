"""The engine that simulated schedules event by event before there was one loop: its slow twin."""

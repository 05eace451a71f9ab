"""The papers run again: what they claim, our figures, whether it holds, and if not, why."""

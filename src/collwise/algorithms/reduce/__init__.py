"""Reduce: everybody has a vector, in the end the root has all of them combined."""

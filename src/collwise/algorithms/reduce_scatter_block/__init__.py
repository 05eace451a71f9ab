"""Reduce-scatter with equal blocks: all have a vector; rank r ends with block r of the result."""

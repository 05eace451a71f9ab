"""Reduce-scatter with equal blocks: rank r gets block r of the combination of all vectors."""

"""Reduce-scatter with equal blocks: all ranks have vectors; rank r gets block r of their result."""

"""Allreduce: everybody has a vector, in the end everybody has all of them combined."""

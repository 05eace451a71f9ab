"""Users' buffers as mpi4py takes them, and what is done to the bytes in them.

`memory` says where the bytes of a slot lie, `buffer` reads a user's buffer, `vector_layout` one
that has a part for every rank, `mpi_operators` combines elements.
"""

"""Users' buffers as mpi4py takes them, and the operators that combine their elements.

`memory` says where the bytes of a slot are, `buffer` reads a user's buffer, `vector_layout` reads
one with a part for every rank, and `mpi_operators` combines elements.

NumPy's ufunc combines the types that `mpi_operators` lists in `_EXACT`; to be fast in C, an
operator needs a loop in `engine/core/kernels.c`.
"""

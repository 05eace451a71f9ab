"""Users' buffers as mpi4py takes them, and the operators that combine their elements.

`memory` says where the bytes of a slot are, `buffer` reads a user's buffer, `vector_layout` reads
a receive buffer with a part for every rank, and `mpi_operators` combines elements.

`MPI_Reduce_local` combines all types that an operator fits.  A loop in `engine/core/kernels.c` is
faster, for the types that `mpi_operators.exact_types` lists.
"""

/* Loops that combine two blocks into a third, where their bits are those of MPI_Reduce_local. */
#ifndef COLLWISE_KERNELS_H
#define COLLWISE_KERNELS_H

#include <stdint.h>

typedef void (*kernel)(const void *left, const void *right, void *into, int64_t count);

/* The loop for an operator of MPI, as collwise names it, and a type, as NumPy codes it (b h i q
   signed, of 1, 2, 4, 8 bytes; B H I Q unsigned; f d real, of 4, 8; ? a truth value).  NULL where
   there is none. */
kernel kernel_for(const char *operation, char type);

#endif

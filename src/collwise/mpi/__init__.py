"""Running schedules on MPI.  Read in this order:

`runtime`    MPI itself, the private communicator, progress of started schedules, agreement of ranks
`buffers`    users' buffers, where their bytes are, and the operators that combine them
`execution`  one rank's instruction list, bound to buffers and run: blocking or persistent
`engine`     the same instructions in C
`library`    the library's own algorithms, found, switched and inspected
`bench`      timing: probes for the machine's parameters, races against the library's collectives
"""

"""Running schedules on MPI.  Read in this order:

`runtime`    the private communicator, progress of started schedules, agreement between ranks
`buffers`    users' buffers, where their bytes lie, and the operators that combine them
`execution`  one rank's instruction list, bound to buffers and run: blocking or persistent
`bench`      timing: probes for the machine's parameters, races against the library's collectives
"""

"""What all collectives of a process share: MPI itself, communicators, progress, agreement.

`world` loads MPI and describes it, `private_communicator` keeps our messages apart from the user's,
`progress` advances started schedules, `agreement` makes all ranks decide and fail alike,
`node_memory` is shared by the ranks of a node, `script` runs a user's script, and `roll_call` tells
which ranks do so under `collwise run`.
"""

"""The compiled engine.  Read in this order:

`core/`      in C, without Python and without mpi.h: `library.h` calls MPI, `program.h` has the
             instructions, `runner.h` executes them, `progress.h` advances running programs,
             `kernels.h` combines, `node.h` is memory that the ranks of a node share, and
             `crossing.h` moves a program's messages through it
`binding/`   the Python module `_engine`: programs as objects, and calls served without Python
`own_loops`  which operators a loop in C applies, where it gives the library's bits
`loading`    whether the engine can serve in this process, and if not, why
`node_transport`  which messages inside a node go through memory that its ranks share
`compiled_plan`   a rank's plan as a program in C, with the methods of `BoundPlan`

A function of MPI is a line in `MPI_FUNCTIONS` of `library.h` if every library has it (where one is
missing, the engine is not used), with a `…_ARGS` macro for its types.  The progress hooks are
`OPTIONAL_FUNCTIONS`: all are used or none.  MPI 4's are `LATER_FUNCTIONS`: where one is missing,
mpi4py says so.  Anything else that is optional is looked up in `connect_library` of `module.c`.

An instruction stands in `core/program.h` (the enumeration), `program.c` (its check), `runner.c`
(what it does), `binding/program_object.c` (how it is read), `module.c` and `_engine.pyi` (its
number), and `compiled_plan` writes it.

A collective that C serves stands in `_engine.pyi` and `library.h`, and in lists of one order in
`binding/`: `enum method` in `calls.h`, `library_call` in `call_serving.c`; `every`, `METHOD` and
`NAMED` in `calls.c`.
"""

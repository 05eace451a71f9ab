"""The compiled engine.  Read in this order:

`core/`      in C, without Python and without mpi.h: `library.h` calls MPI, `program.h` has the
             instructions, `runner.h` executes them, `progress.h` advances running programs,
             and `kernels.h` combines
`binding/`   the Python module `_engine`: programs as objects, and calls served without Python
`loading`    whether the engine can serve in this process, and if not, why
`compiled_plan`   a rank's plan on it, with the interface of the interpreter's
"""

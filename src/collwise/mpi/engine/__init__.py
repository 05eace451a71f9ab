"""The compiled engine.  Read in this order:

`core/`      in C, without Python and without mpi.h: `library.h` calls MPI, `program.h` has the
             instructions, `runner.h` walks them, `progress.h` advances what is running, and
             `kernels.h` combines
`binding/`   the Python module `_engine`: programs as objects, and calls that need nothing of Python
`loading`    whether it can serve in this process, and why not
`compiled_plan`   a rank's plan on it, with the interface of the interpreter's
"""

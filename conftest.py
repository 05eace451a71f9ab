"""Doctests are collected from what imports without MPI and without side effects."""

collect_ignore_glob = [
    "src/collwise/__main__.py",
    "src/collwise/comm/*",
    "src/collwise/cli/*",
    "src/collwise/mpi/*",
    "src/collwise/tuning/*",
    "tests/mpi/programs/*",
]

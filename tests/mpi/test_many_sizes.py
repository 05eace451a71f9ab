"""A new size in every call takes memory up to a bound, which `docs/design.md` states."""

import pytest

from tests.mpi.launching import Library

SIZES = 100_000
MOST_KIB = 4096
"""How much four fifths of the calls may add."""


@pytest.mark.mpi
@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["", "python"])
def test_a_new_size_in_every_call(mpi: Library, engine: str) -> None:
    ran = mpi.run(2, "-m", "tests.mpi.many_sizes", str(SIZES), limit_s=900, COLLWISE_ENGINE=engine)
    assert ran.returncode == 0, ran.stderr
    begin, end = map(int, ran.stdout.split())
    assert end - begin < MOST_KIB

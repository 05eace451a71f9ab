from functools import lru_cache

import pytest

from tests.mpi import launching

LIBRARIES = {"mpich": launching.mpich, "openmpi": launching.openmpi}


@lru_cache
def library(name: str) -> launching.Library:
    return LIBRARIES[name]()


@pytest.fixture(params=LIBRARIES)
def mpi(request: pytest.FixtureRequest) -> launching.Library:
    return library(request.param)

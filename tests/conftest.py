from functools import lru_cache

import pytest
from hypothesis import settings

from tests.mpi import launching

settings.register_profile("collwise", deadline=None)  # how long an example takes proves nothing
settings.load_profile("collwise")

LIBRARIES = {"mpich": launching.mpich, "openmpi": launching.openmpi}


@lru_cache
def library(name: str) -> launching.Library:
    return LIBRARIES[name]()


@pytest.fixture(params=LIBRARIES)
def mpi(request: pytest.FixtureRequest) -> launching.Library:
    return library(request.param)

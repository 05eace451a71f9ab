from functools import lru_cache

import pytest
from hypothesis import HealthCheck, settings

from tests.mpi import launching

# How long an example takes, or how long it takes to draw, says how busy the machine is.
settings.register_profile("collwise", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("collwise")

LIBRARIES = {"mpich": launching.mpich, "openmpi": launching.openmpi}


@lru_cache
def library(name: str) -> launching.Library:
    return LIBRARIES[name]()


@pytest.fixture(params=LIBRARIES)
def mpi(request: pytest.FixtureRequest) -> launching.Library:
    return library(request.param)

from functools import lru_cache

import pytest
from hypothesis import HealthCheck, settings

from tests.mpi import launching

# How long an example takes, or how long it takes to draw, says how busy the machine is.
settings.register_profile("collwise", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("collwise")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Let workers measure coverage once.

    pytest-cov starts when a worker reads its options, and again with its session: two tracers, of
    which `no_cover` stops one.
    """
    controller = getattr(session.config.pluginmanager.get_plugin("_cov"), "cov_controller", None)
    if controller is not None and hasattr(session.config, "workerinput"):
        controller.cov.stop()


LIBRARIES = {"mpich": launching.mpich, "openmpi": launching.openmpi}


@lru_cache
def library(name: str) -> launching.Library:
    return LIBRARIES[name]()


@pytest.fixture(params=LIBRARIES)
def mpi(request: pytest.FixtureRequest) -> launching.Library:
    return library(request.param)

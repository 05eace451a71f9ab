from functools import lru_cache

import pytest
from hypothesis import HealthCheck, settings

from tests.mpi import launching

# How long an example takes, or how long it takes to draw, says how busy the machine is.
settings.register_profile(
    "usual", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40
)
settings.register_profile("exhaustive", settings.get_profile("usual"), max_examples=1000)


def _exhaustive(config: pytest.Config) -> bool:
    return "exhaustive" in config.option.markexpr.replace("not exhaustive", "")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("exhaustive" if _exhaustive(config) else "usual")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with drawn examples are exhaustive ones, too: there they have many more."""
    for item in items if _exhaustive(config) else []:
        if hasattr(getattr(item, "obj", None), "hypothesis"):
            item.add_marker("exhaustive")


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
ON_REQUEST = {"intel": launching.intel}
"""Libraries that only tests use that name them."""


@lru_cache
def library(name: str) -> launching.Library:
    return {**LIBRARIES, **ON_REQUEST}[name]()


@pytest.fixture(params=LIBRARIES)
def mpi(request: pytest.FixtureRequest) -> launching.Library:
    return library(request.param)

"""In which order tests run, and how the processes they start behave."""

import os
import signal
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["tests.cpu_time"]

# The tests start hundreds of Python processes.  Where an environment forbids to keep bytecode, each
# would compile all that it imports: that took longer than what most of them do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Where a shell starts the tests in the background, they ignore Ctrl-C, and so would all they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Ranks that outnumber the cores wait asleep, where the library can, instead of in a loop.
os.environ |= {
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "10",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@cache
def _starts_ranks(path: Path) -> bool:
    return "pytest.mark.mpi" in path.read_text(encoding="utf-8")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that start ranks come last; before them, those with many tests first."""
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (_starts_ranks(item.path), -tests[item.path]))


class TwoPhases(LoadScopeScheduling):
    """Spreads files over the workers; then one worker runs all those that start ranks."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "MPI" if _starts_ranks(self.config.rootpath / file) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> TwoPhases:
    """The order of the tests above, on several workers."""
    return TwoPhases(config, log)

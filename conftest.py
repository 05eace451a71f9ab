"""In which order tests run, and how the processes they start behave."""

import gc
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

NOT_MEASURED = {"explore", "figures", "guidelines", "papers", "recorded"}
"""Tests of these, like those that start ranks, take no branches that others leave out."""


def pytest_collection_finish() -> None:
    """Tests make millions of small tuples without a cycle, beside what is loaded and stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@cache
def _starts_ranks(path: Path) -> bool:
    return "pytest.mark.mpi" in path.read_text(encoding="utf-8")


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Cases of exhaustive tests are not even made where none is asked for: they are very many."""
    marks = getattr(obj, "pytestmark", ())
    exhaustive = any(getattr(mark, "name", "") == "exhaustive" for mark in marks)
    return [] if exhaustive and "not exhaustive" in collector.config.option.markexpr else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Coverage is not measured everywhere.

    Files that start ranks come last; with several workers they come first, since one worker runs
    them all.  Among them, emulated hosts come last: a busy machine disturbs them.  Files with many
    tests come before those with few.
    """
    for item in items:
        if item.path.parent.name in NOT_MEASURED or item.get_closest_marker("mpi"):
            item.add_marker("no_cover")
    tests = Counter(item.path for item in items)
    several = hasattr(config, "workerinput")

    def place(item: pytest.Item) -> tuple[bool, bool, int]:
        ranks = _starts_ranks(item.path)
        return ranks != several, ranks and item.path.parent.name == "lab", -tests[item.path]

    items.sort(key=place)


class RanksOnOneWorker(LoadScopeScheduling):
    """One worker runs all tests that start ranks, one after another; the others share the rest."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "MPI" if _starts_ranks(self.config.rootpath / file) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> RanksOnOneWorker:
    """Ranks wait more than they work: beside them the other workers lose little."""
    return RanksOnOneWorker(config, log)

"""A pytest plugin that says what tests cost: processor seconds, processes that they start included.

Wall time on a busy machine says little; processor time hardly depends on what else runs.  Nothing
fails here: the table at the end of a long run shows where to look when it has grown.
"""

import os
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

SHOWN = 60
TABLE_FROM_S = 60
"""A run that takes less has no table."""
_STARTED = pytest.StashKey[float]()


def cpu_s() -> float:
    """Of this process, and of those that it started and waited for."""
    return sum(os.times()[:4])


class CpuTime:
    """What each test of this process took, and what its workers told."""

    def __init__(self) -> None:
        self.tests: dict[str, float] = {}
        self.workers_s = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = cpu_s()
        outcome = yield
        self.tests[item.nodeid] = cpu_s() - before
        return outcome

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):  # a worker of xdist
            session.config.workeroutput["cpu"] = {"total": cpu_s(), "tests": self.tests}

    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get("cpu")
        if told is not None:  # a worker that crashed tells nothing
            self.tests |= told["tests"]
            self.workers_s += told["total"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        # Workers that ended count among the children of this process, too.
        total = sum(os.times()[:2]) + self.workers_s if self.workers_s else cpu_s()
        if total < TABLE_FROM_S:
            return
        files: dict[str, float] = defaultdict(float)
        for name, spent in self.tests.items():
            files[name.partition("::")[0]] += spent
        terminalreporter.section(
            f"processor time: {total:.0f} s, {sum(files.values()):.0f} in tests"
        )
        for what, costs in (("files", files), ("tests", self.tests)):
            terminalreporter.line(f"{what} that took most")
            for name, spent in sorted(costs.items(), key=lambda cost: -cost[1])[:SHOWN]:
                terminalreporter.line(f"{spent:8.2f} s  {name}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuTime())

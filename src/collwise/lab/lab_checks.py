"""What `collwise doctor` checks about emulated hosts."""

import time
from collections.abc import Iterator
from typing import Literal, NamedTuple

from collwise.errors import CollwiseError
from collwise.lab import requirements
from collwise.lab.cluster import Cluster

_LIMIT_S = 10.0
_SUBJECT = "emulated hosts (lab)"


class LabFinding(NamedTuple):
    """One thing checked.  That a machine cannot emulate hosts is a note, and not wrong."""

    status: Literal["ok", "note", "wrong"]
    what: str
    seen: str
    remedy: str = ""


def checkup() -> Iterator[LabFinding]:
    """Check what a lab needs, and start one with two hosts."""
    unmet = requirements.unmet()
    if missing := [requirement for requirement in unmet if requirement.needed]:
        for one in missing:
            yield LabFinding("note", _SUBJECT, f"needs {one.what}: {one.problem}", one.remedy)
        return
    begin = time.monotonic()
    try:
        with Cluster(2, "1ms", "100mbit", mpi="none") as cluster:
            cluster.run(["true"], capture=True, timeout_s=_LIMIT_S)
    except CollwiseError as problem:
        yield LabFinding("wrong", _SUBJECT, problem.seen, problem.remedy)
        return
    took_s = time.monotonic() - begin
    yield LabFinding("ok", _SUBJECT, f"two hosts started and ended in {took_s:.1f} s")
    for one in unmet:
        yield LabFinding("note", _SUBJECT, f"no {one.what.removeprefix('a ')}", one.remedy)

"""What `collwise doctor` says about emulated hosts."""

import time
from collections.abc import Iterator
from typing import Literal, NamedTuple

from collwise.errors import CollwiseError
from collwise.lab import leftovers
from collwise.lab.cluster import Cluster
from collwise.lab.requirements import requirements

_LIMIT_S = 10.0
_WHAT = "emulated hosts (lab)"


class Seen(NamedTuple):
    """One thing looked at; a machine without emulated hosts is not wrong."""

    status: Literal["ok", "note", "wrong"]
    what: str
    seen: str
    remedy: str = ""


def checkup() -> Iterator[Seen]:
    """End leftovers, look at what a lab needs, and start one with two hosts."""
    if left := leftovers.find():
        leftovers.remove(left)
        numbers = ", ".join(str(one.process) for one in left)
        yield Seen("note", "leftovers of a lab", f"its maker is gone; ended: processes {numbers}")
    found = requirements()
    if missing := [one for one in found if one.needed and not one.met]:
        for one in missing:
            yield Seen("note", _WHAT, f"needs {one.what}: {one.seen}", one.remedy)
        return
    try:
        begin = time.monotonic()
        with Cluster(2, "1ms", "100mbit", mpi="none") as cluster:
            cluster.run(["true"], capture=True, timeout_s=_LIMIT_S)
        took = time.monotonic() - begin
    except CollwiseError as problem:
        yield Seen("wrong", _WHAT, problem.seen, problem.remedy)
        return
    yield Seen("ok", _WHAT, f"two hosts started and ended in {took:.1f} s")
    for one in found:
        if not one.met:
            yield Seen("note", _WHAT, f"no {one.what.removeprefix('a ')}", one.remedy)

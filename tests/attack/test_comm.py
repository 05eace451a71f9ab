"""Methods of `Comm` with odd arguments, on ranks."""

import json

import pytest

from tests.mpi.launching import mpich

CALLS = {2: 150}
EXHAUSTIVE_CALLS = {1: 600, 2: 3_000, 3: 1_000}
"""Calls of buffers' methods, by number of ranks; and half as many with odd settings."""
CHECKS = ["odd_buffers_end_as_mpi4pys", "odd_settings_are_refused"]
EXHAUSTIVE = [
    pytest.param(*case, marks=pytest.mark.exhaustive) for case in EXHAUSTIVE_CALLS.items()
]


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "calls"), [*CALLS.items(), *EXHAUSTIVE])
def test_odd_calls(ranks: int, calls: int) -> None:
    module = ("-m", "tests.attack.comm_calls")
    ended = mpich().run(ranks, *module, limit_s=600, ATTACK_CALLS=str(calls))
    lines = [line for line in ended.stdout.splitlines() if line.startswith("check:")]
    told = [json.loads(line.removeprefix("check:")) for line in lines]
    assert [check["name"] for check in told] == CHECKS, ended.stderr[-2000:]
    assert [check["complaints"] for check in told] == [[], []]

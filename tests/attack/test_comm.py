"""Methods of `Comm` with odd arguments, on ranks."""

import json

import pytest

from tests.mpi.launching import mpich

CALLS, EXHAUSTIVE_CALLS = 150, {1: 600, 2: 3_000, 3: 1_000}
"""Calls of buffers' methods, by number of ranks; and half as many with odd settings."""
CHECKS = ["odd_buffers_end_as_mpi4pys", "odd_settings_are_refused"]


def attack(ranks: int, calls: int) -> None:
    module = ("-m", "tests.attack.comm_calls")
    ended = mpich().run(ranks, *module, limit_s=600, ATTACK_CALLS=str(calls))
    lines = [line for line in ended.stdout.splitlines() if line.startswith("check:")]
    told = [json.loads(line.removeprefix("check:")) for line in lines]
    assert [one["name"] for one in told] == CHECKS, ended.stderr[-2000:]
    assert [one["complaints"] for one in told] == [[], []]


@pytest.mark.mpi
def test_odd_calls() -> None:
    attack(2, CALLS)


@pytest.mark.exhaustive
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", EXHAUSTIVE_CALLS)
def test_many_odd_calls(ranks: int) -> None:
    attack(ranks, EXHAUSTIVE_CALLS[ranks])

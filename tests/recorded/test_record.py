"""Schedules, times and decisions are those that were recorded."""

import json
from functools import cache

import pytest

import collwise as cw
from tests.recorded.record import MACHINES, RECORD, record

Record = dict[str, dict[str, str]]


@cache
def sample() -> Record:
    return record(sampled=True)


def changes(seen: Record) -> set[tuple[str, str]]:
    """Plan and part of what is not as it was recorded."""
    expected = json.loads(RECORD.read_text())
    return {
        (plan, part)
        for plan in seen
        for part in expected[plan].keys() | seen[plan].keys()
        if expected[plan].get(part) != seen[plan].get(part)
    }


@pytest.mark.no_cover
def test_an_eighth_is_as_it_was_recorded() -> None:
    assert not changes(sample())


@pytest.mark.exhaustive
def test_all_is_as_it_was_recorded() -> None:
    seen = record()
    assert seen.keys() == json.loads(RECORD.read_text()).keys()
    assert not changes(seen)


def test_every_algorithm_and_machine_is_in_the_sample() -> None:
    labels = {label.partition("(")[0] for parts in sample().values() for label in parts}
    assert set(cw.ALGORITHMS) <= labels
    assert {plan.rpartition(" ")[2] for plan in sample()} == {*MACHINES, "levels", "paragon"}

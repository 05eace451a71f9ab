"""Schedules, times and decisions are those that were recorded."""

import json
import re
from functools import cache

import pytest

import collwise as cw
from tests.recorded.record import BY_NAME, MACHINES, RECORD, record

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
def test_a_quarter_is_as_it_was_recorded() -> None:
    assert not changes(sample())


@pytest.mark.exhaustive
def test_all_is_as_it_was_recorded() -> None:
    seen = record()
    assert seen.keys() == json.loads(RECORD.read_text()).keys()
    assert not changes(seen)


def test_every_algorithm_and_machine_is_in_the_sample() -> None:
    """Of algorithms, by name; and all that plans try, as candidates of plans."""
    plans = {name: parts for name, parts in sample().items() if name != BY_NAME}
    labels = {re.split("[( ]", label)[0] for parts in plans.values() for label in parts}
    assert {re.split("[( ]", label)[0] for label in sample()[BY_NAME]} == set(cw.ALGORITHMS)
    assert {one.name for one in cw.ALGORITHMS.values() if one.searched or one.usual} <= labels
    assert {plan.rpartition(" ")[2] for plan in plans} == {*MACHINES, "levels", "sites", "paragon"}

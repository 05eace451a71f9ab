"""Schedules, times and decisions are those that were recorded."""

import json

import collwise as cw
from tests.recorded.record import RECORD, record


def test_all_is_as_it_was_recorded() -> None:
    expected, seen = json.loads(RECORD.read_text()), record()
    assert seen.keys() == expected.keys()
    changed = {
        (plan, part)
        for plan in expected
        for part in expected[plan].keys() | seen[plan].keys()
        if expected[plan].get(part) != seen[plan].get(part)
    }
    assert not changed


def test_every_algorithm_is_recorded() -> None:
    expected = json.loads(RECORD.read_text())
    labels = {label.partition("(")[0] for parts in expected.values() for label in parts}
    assert set(cw.ALGORITHMS) <= labels

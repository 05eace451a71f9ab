"""What the switch counted, and what spoils a result."""

import json
from typing import Any

import msgspec
import pytest

from collwise.lab import Report
from collwise.lab.carrier import NBYTES, PACKETS, WORST_NS
from collwise.lab.lab_report import Window
from collwise.lab.switch import Statistics

GOOD = Report(
    network="2 hosts, 5 ms one way, 10 Mbit/s",
    elapsed_s=2.0,
    packets=1000,
    nbytes=1_250_000,
    lateness_p50_s=40e-6,
    lateness_p95_s=90e-6,
    lateness_max_s=1.2e-3,
    switch_drops=0,
    host_drops=0,
    resent=0,
    load=0.1,
    busiest_load=0.3,
    punctual=True,
    least_latency_s=5e-3,
    quiet=True,
)


def test_a_good_run_has_no_warnings() -> None:
    assert GOOD.warnings == ()
    assert GOOD.lines() == [
        "lab      2 hosts, 5 ms one way, 10 Mbit/s",
        "switch   1,000 packets, 5 Mbit/s in 2.00 s; lateness p50 40.0 µs, p95 90.0 µs,"
        " max 1.20 ms; 0 drops; load 10% (busiest 30%)",
    ]


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"lateness_p95_s": 300e-6}, "packets came late (300 µs"),
        ({"switch_drops": 1, "host_drops": 2}, "3 packets lost"),
        ({"resent": 1}, "TCP sent 1 segment again"),
        ({"busiest_load": 0.9}, "the switch was busy (90% of a core)"),
        ({"punctual": False}, "the switch has no real-time priority"),
        ({"quiet": False}, "waiting ranks spin"),
    ],
)
def test_what_spoils_a_result_is_said(changes: dict[str, Any], warning: str) -> None:
    report = msgspec.structs.replace(GOOD, **changes)
    (said,) = report.warnings
    assert said.startswith(warning)
    assert report.lines()[-1] == f"warning  {said}"


def test_the_document_is_json() -> None:
    document = json.loads(json.dumps(GOOD.document()))
    assert document["drops"] == 0
    assert document["warnings"] == []
    assert document["lateness_p95_s"] == 90e-6


def test_lateness_is_counted() -> None:
    statistics = Statistics()
    for late_us in range(100):
        statistics.lateness[late_us] += 1
    statistics.lateness[-1] += 1
    statistics.counts[PACKETS], statistics.counts[NBYTES] = 101, 1010
    statistics.counts[WORST_NS] = 2_000_000_000
    assert statistics.quantile_us(0.5) == 50
    assert statistics.quantile_us(0.95) == 95
    document = statistics.document()
    assert document["packets"] == 101
    assert document["nbytes"] == 1010
    assert document["lateness_max_s"] == 2.0
    statistics.close_window()  # the next one begins
    assert statistics.counts[WORST_NS] == 0
    document = statistics.document()
    (window,) = (Window(*fields) for fields in document["windows"])
    assert (document["lateness_max_s"], window.lateness_s) == (2.0, 2.0)
    assert window.ended_s > window.began_s
    assert Statistics().quantile_us(0.95) == 0

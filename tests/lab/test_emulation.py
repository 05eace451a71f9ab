"""A proof that it is a network: 4 hosts, one network, one message size, real MPI over real TCP.

Lower limits are exact: no bit can come before its time.  Upper limits leave room for a busy
machine.
"""

import json
import subprocess
from functools import lru_cache
from typing import Any

import pytest

from collwise.system.host import usable_cores
from tests.lab.programs import NBYTES, PIECE, STREAMED
from tests.mpi import launching

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("allowed")]

HOSTS, LATENCY_S, RATE = 4, 5e-3, 10e6
LIMIT_S = 100
SEGMENT, HEADERS = 1448, 52
"""Bytes of a message in a full packet, and of TCP and IP before them."""


def transmission_s(nbytes: int) -> float:
    """Seconds that a message takes at a port, without what the library adds to it."""
    return (nbytes + -(-nbytes // SEGMENT) * HEADERS) * 8 / RATE


@lru_cache
def _measure(library: launching.Library) -> dict[str, Any]:
    python = str(library.python)
    ran = subprocess.run(
        [
            *(python, "-m", "collwise", "lab", "--json", "--hosts", str(HOSTS)),
            *("--latency", "5ms", "--rate", "10mbit", "--mpi", library.name),
            *("--timeout", str(LIMIT_S), "--", python, "-m", "tests.lab.programs.measure_network"),
        ],
        capture_output=True,
        text=True,
        timeout=LIMIT_S + 30,
        env=library.environment(),
        cwd=launching.ROOT,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert document["exit_code"] == 0
    return {**json.loads(document["stdout"].splitlines()[-1]), "report": document["report"]}


@pytest.fixture
def measured(mpi: launching.Library) -> dict[str, Any]:
    """What ranks measured, with each library; one lab serves all tests."""
    return _measure(mpi)


def test_every_rank_has_a_host_of_its_own(measured: dict[str, Any]) -> None:
    assert measured["hosts"] == [f"h{number}" for number in range(HOSTS)]
    assert measured["devices"] == [["eth0", "lo"]] * HOSTS
    assert measured["emulated"] == "5 ms one way, 10 Mbit/s"
    assert measured["oversubscribed"] == (usable_cores() < HOSTS)


def test_nothing_goes_through_shared_memory(measured: dict[str, Any]) -> None:
    assert measured["memory"] == [1] * HOSTS
    assert measured["large_s"] > 2 * (LATENCY_S + transmission_s(PIECE))


def test_a_ping_pong_sees_the_latency(measured: dict[str, Any]) -> None:
    assert 2 * LATENCY_S < measured["small_s"] < 2 * LATENCY_S * 1.2


def test_a_stream_sees_the_rate(measured: dict[str, Any]) -> None:
    # Open MPI waits for an answer before it sends a long message, and again within it.
    ideal_s = STREAMED * transmission_s(PIECE)
    assert ideal_s < measured["stream_s"] < ideal_s * 1.4


def test_messages_leave_a_host_in_the_order_in_which_they_are_sent(
    measured: dict[str, Any],
) -> None:
    assert measured["arrivals"] == [*range(6)]


def test_t0_is_the_transmission(measured: dict[str, Any]) -> None:
    assert transmission_s(NBYTES) * 0.97 < measured["t0_s"] < transmission_s(NBYTES) * 1.1


def test_lam_is_transmission_and_latency_over_transmission(measured: dict[str, Any]) -> None:
    expected = (transmission_s(NBYTES) + LATENCY_S) / transmission_s(NBYTES)
    assert expected * 0.9 < measured["lam"] < expected * 1.2
    for lam in measured["lam_experiments"]:
        assert expected * 0.85 < lam < expected * 1.25


def test_the_profile_names_the_emulated_network(measured: dict[str, Any]) -> None:
    assert measured["fingerprint"] == "5 ms one way, 10 Mbit/s"
    assert "emulated network: 5 ms one way, 10 Mbit/s" in measured["notes"]


def test_the_switch_reports(measured: dict[str, Any]) -> None:
    report = measured["report"]
    assert report["network"] == "4 hosts, 5 ms one way, 10 Mbit/s"
    assert report["drops"] == 0
    assert report["packets"] > 1000
    assert report["lateness_p50_s"] <= report["lateness_p95_s"] <= report["lateness_max_s"]
    assert 0 < report["load"] <= report["busiest_load"]

"""A proof that it is a network: 4 hosts, one network, one message size, real MPI over real TCP.

Lower limits are exact: no bit can come before its time.  Upper limits leave room for a busy
machine; where it is busier than that, the measurement is made again.
"""

import json
from functools import lru_cache
from typing import Any

import pytest

from collwise.system.host import usable_cores
from tests.cli.running import alone, check_schema, on_one, run
from tests.lab.programs import NBYTES, PIECE, STREAMED
from tests.mpi import launching

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("allowed"), on_one("openmpi")]

HOSTS, LATENCY_S, RATE = 4, 5e-3, 10e6
ATTEMPTS = 3
SEGMENT, HEADERS = 1448, 52
"""Bytes of a message in a full packet, and of TCP and IP before them."""


def transmission_s(nbytes: int) -> float:
    """Seconds that a message takes at a port, without what the library adds to it."""
    return (nbytes + -(-nbytes // SEGMENT) * HEADERS) * 8 / RATE


LAM = (transmission_s(NBYTES) + LATENCY_S) / transmission_s(NBYTES)
IDEAL_STREAM_S = STREAMED * transmission_s(PIECE)
BETWEEN = {
    "small_s": (2 * LATENCY_S, 2 * LATENCY_S * 1.2),
    # Open MPI waits for an answer before it sends a long message, and again within it.
    "stream_s": (IDEAL_STREAM_S, IDEAL_STREAM_S * 1.4),
    "t0_s": (transmission_s(NBYTES) * 0.97, transmission_s(NBYTES) * 1.1),
    "lam": (LAM * 0.9, LAM * 1.2),
}
"""Between which limits what was measured lies."""


def _within(measured: dict[str, Any]) -> dict[str, bool]:
    within = {what: low < measured[what] < high for what, (low, high) in BETWEEN.items()}
    every = all(LAM * 0.85 < lam < LAM * 1.25 for lam in measured["lam_experiments"])
    in_order = measured["arrivals"] == [*range(6)]  # by when ranks woke up
    return {**within, "lam_experiments": every, "arrivals": in_order}


@lru_cache
def _measure(library: launching.Library) -> dict[str, Any]:
    for _ in range(ATTEMPTS):
        measured = _measure_once(library)
        early = [what for what in ("small_s", "stream_s") if measured[what] <= BETWEEN[what][0]]
        assert not early, f"bits came before their time: {measured}"
        if all(_within(measured).values()):
            break
    return measured


def _measure_once(library: launching.Library) -> dict[str, Any]:
    network = ("--hosts", str(HOSTS), "--latency", "5ms", "--rate", "10mbit")
    options = ("--json", *network, "--mpi", library.name, "--timeout", "100")
    program = (str(library.python), "-m", "tests.lab.programs.measure_network")
    command = alone(library, "lab", *options, "--", *program)
    ended = run(command, launching.ROOT, library.environment())
    assert ended.code == 0, ended
    document = json.loads(ended.out)
    check_schema("lab", document)
    assert document["exit_code"] == 0
    return {**json.loads(document["stdout"].splitlines()[-1]), "report": document["report"]}


@pytest.fixture
def measured(mpi: launching.Library) -> dict[str, Any]:
    """What ranks measured; one lab serves all tests."""
    return _measure(mpi)


def test_every_rank_has_a_host_of_its_own(measured: dict[str, Any]) -> None:
    assert measured["hosts"] == [f"h{number}" for number in range(HOSTS)]
    assert measured["devices"] == [["eth0", "lo"]] * HOSTS
    assert measured["emulated"] == "5 ms one way, 10 Mbit/s"
    assert measured["oversubscribed"] == (usable_cores() < HOSTS)


def test_nothing_goes_through_shared_memory(measured: dict[str, Any]) -> None:
    assert measured["memory"] == [1] * HOSTS
    assert measured["large_s"] > 2 * (LATENCY_S + transmission_s(PIECE))


@pytest.mark.parametrize("what", [*BETWEEN, "lam_experiments"])
def test_the_network_is_seen(measured: dict[str, Any], what: str) -> None:
    """The latency by a ping-pong, the rate by a stream; t0 is the transmission alone, and λ what a
    transmission and the latency are in terms of it."""
    assert _within(measured)[what], (measured[what], BETWEEN)


def test_messages_leave_a_host_in_the_order_in_which_they_are_sent(
    measured: dict[str, Any],
) -> None:
    assert _within(measured)["arrivals"], measured["arrivals"]


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

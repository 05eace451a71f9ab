"""A proof that it is a network: 8 hosts, one network, one message size, real MPI over real TCP.

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

HOSTS, LATENCY_S, RATE = 8, 5e-3, 10e6
LIMIT_S = 100
SEGMENT, HEADERS = 1448, 52
"""Bytes of a message in a full packet, and of TCP and IP before them."""


def wire_s(nbytes: int) -> float:
    """Seconds that so many bytes take on the wire, without what the library adds to them."""
    return (nbytes + -(-nbytes // SEGMENT) * HEADERS) * 8 / RATE


@lru_cache
def _seen(name: str) -> dict[str, Any]:
    library = {"mpich": launching.mpich, "openmpi": launching.openmpi}[name]()
    ran = subprocess.run(
        [
            *(str(library.python), "-m", "collwise", "lab", "--json", "--hosts", str(HOSTS)),
            *("--latency", "5ms", "--rate", "10mbit", "--mpi", name, "--timeout", str(LIMIT_S)),
            *("--", str(library.python), "-m", "tests.lab.programs.wire"),
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
    found: dict[str, Any] = json.loads(document["stdout"].splitlines()[-1])
    return {**found, "report": document["report"]}


@pytest.fixture(params=["mpich", "openmpi"])
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    return _seen(request.param)


def test_every_rank_has_a_host_of_its_own(seen: dict[str, Any]) -> None:
    assert seen["hosts"] == [f"h{number}" for number in range(HOSTS)]
    assert seen["devices"] == [["eth0", "lo"]] * HOSTS
    assert seen["emulated"] == "5 ms one way, 10 Mbit/s"
    assert seen["crowded"] == (usable_cores() < HOSTS)


def test_nothing_goes_through_shared_memory(seen: dict[str, Any]) -> None:
    assert seen["memory"] == [1] * HOSTS
    assert seen["large_s"] > 2 * (LATENCY_S + wire_s(PIECE))


def test_a_ping_pong_sees_the_latency(seen: dict[str, Any]) -> None:
    assert 2 * LATENCY_S < seen["small_s"] < 2 * LATENCY_S * 1.2


def test_a_stream_sees_the_rate(seen: dict[str, Any]) -> None:
    # Open MPI waits for an answer before it sends a long message, and again within it.
    assert wire_s(PIECE) * STREAMED < seen["stream_s"] < wire_s(PIECE) * STREAMED * 1.4


def test_t0_is_the_transmission(seen: dict[str, Any]) -> None:
    assert wire_s(NBYTES) * 0.97 < seen["t0_s"] < wire_s(NBYTES) * 1.1


def test_lam_is_transmission_and_latency_over_transmission(seen: dict[str, Any]) -> None:
    expected = (wire_s(NBYTES) + LATENCY_S) / wire_s(NBYTES)
    assert expected * 0.9 < seen["lam"] < expected * 1.2
    for lam in seen["lam_experiments"]:
        assert expected * 0.85 < lam < expected * 1.25


def test_the_profile_names_the_emulated_network(seen: dict[str, Any]) -> None:
    assert seen["fingerprint"] == "5 ms one way, 10 Mbit/s"
    assert "emulated network: 5 ms one way, 10 Mbit/s" in seen["notes"]


def test_the_switch_reports(seen: dict[str, Any]) -> None:
    report = seen["report"]
    assert report["network"] == "8 hosts, 5 ms one way, 10 Mbit/s"
    assert report["drops"] == 0
    assert report["packets"] > 1000
    assert report["lateness_p50_s"] <= report["lateness_p95_s"] <= report["lateness_max_s"]
    assert 0 < report["load"] <= report["busiest_load"]

"""Options that describe a machine and its network: which go together, and what they make."""

from fractions import Fraction
from pathlib import Path

import pytest

import collwise as cw
from collwise.model.presets import PRESETS
from tests.cli.conftest import Run
from tests.cli.running import POSTAL, document
from tests.profiles.example import example

ASSUMED = {
    "postal": ["--t0=1e-3", "--lam=4"],
    "hockney": ["--alpha=1us", "--beta=1ns"],
    "loggp": ["--latency=1us", "--overhead=1us", "--gap=2us", "--per-byte=1ns"],
    "wormhole": ["--send=1us", "--receive=1us", "--hop=1ns", "--beta=1ns"],
}


@pytest.mark.parametrize("kind", ASSUMED)
def test_an_option_is_missing(collwise: Run, kind: str) -> None:
    for left_out in ASSUMED[kind]:
        given = [option for option in ASSUMED[kind] if option != left_out]
        if kind == "wormhole":  # without --hop it could be of another kind
            given.append("--copy=1ns")
        name = left_out.partition("=")[0]
        asked = ("plan", "-n", 8, "--bytes", 512, *given)
        collwise(*asked).refused(f"a {kind} machine", f"{name} is missing", "give ")


ONE = "describe one machine only"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([*ASSUMED["postal"], *ASSUMED["loggp"]], [ONE, "(--t0, --lam, --latency, --overhead, "]),
        (
            ["--t0=1us", "--hop=1ns"],
            [ONE, "one machine to plan for: options of several (--t0, --hop)"],
        ),
        ([*POSTAL, "--profile", "it"], [ONE, "--t0, --lam, --profile"]),
        (["--preset", "paragon", "--t0", "1us"], [ONE]),
        (["--preset", "paragon", "--profile", "it"], [ONE]),
        (["--preset", "paragn"], ["preset machine 'paragn'", "did you mean paragon?"]),
        (["--hop", "1ns"], ["a wormhole machine: --send, --receive and --beta are missing"]),
        (["--t0", "-1us", "--lam", "4"], ["a postal machine with --t0: ", "is not above 0"]),
        (["--t0", "1 day", "--lam", "4"], ["'--t0'", "is no number", "or 1.8ms"]),
        (["--t0", "ms", "--lam", "4"], ["'--t0'", "is no number"]),
        (["--lam", "4ms"], ["'--lam'", "is no number"]),
        (["--t0=1e-3", "--lam=0.99"], ["give λ >= 1: a message cannot arrive"]),
        (["--alpha=-1", "--beta=0"], ["give a time of 0 or more, in seconds"]),
        (["--topology", "hypercube:2", *POSTAL], ["the law of the machine knows no links"]),
    ],
)
def test_refused(collwise: Run, given: list[str], words: list[str]) -> None:
    ended = collwise("simulate", "-n", 4, "--bytes", 64, *given)
    assert (ended.code, ended.out) == (2, "")
    for word in words:
        assert word in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("preset", PRESETS)
def test_the_papers_machines_have_their_networks(collwise: Run, preset: str) -> None:
    found = document(
        collwise, "simulate", "-n", 32, "--bytes", 512, "--preset", preset, "--algorithm", "chain"
    )
    kind = PRESETS[preset].topology().kind
    assert found["topology"].startswith(kind)
    assert found["machine"] == PRESETS[preset].machine.describe()
    assert found["machine_from"] == f"preset {preset}"
    usual = PRESETS[preset].topology()
    if usual.size < 4096:
        asked = ("simulate", "-n", usual.size, "--bytes", 8, "--preset", preset)
        found = document(collwise, *asked, "--algorithm", "binomial")
        assert found["topology"] == usual.describe()


def test_a_preset_on_another_network(collwise: Run) -> None:
    asked = ("simulate", "-n", 12, "--bytes", 512, "--algorithm", "binomial")
    on_nothing = document(collwise, *asked, "--preset", "paragon", "--topology", "complete:12")
    assert on_nothing["topology"] == "complete graph of 12"
    assert on_nothing["simulations"][0]["waits"]["messages"] == 0
    collwise(*asked, "--preset", "ipsc860").refused(
        "12 ranks of the preset ipsc860", "no power of two"
    )


@pytest.mark.parametrize("machine", ["postal", "hockney", "loggp", "wormhole", "all ports"])
def test_any_machine(collwise: Run, machine: str) -> None:
    wormhole = ("--send", "1us", "--receive", "2e-6", "--hop", "3ns", "--beta", "1e-9")
    given = {
        "postal": ("--t0", "1.5us", "--lam", "9/5"),
        "hockney": ("--alpha", "1us", "--beta", "1ns", "--gamma", "0.5ns"),
        "loggp": ("--latency", "1us", "--overhead", "1us", "--gap", "1us", "--per-byte", "1ns"),
        "wormhole": (*wormhole, "--copy", "2ns", "--gamma", "1ns"),
        "all ports": (*wormhole, "--all-port"),
    }[machine]
    network = ("--topology", "torus:2x3") if machine in ("wormhole", "all ports") else ()
    found = document(collwise, "simulate", "allreduce", "-n", 6, "--bytes", 96, *given, *network)
    assert machine.removeprefix("all ").lower() in found["machine"].lower()
    assert all(one["completion_s"] >= found["lower_bound_s"] for one in found["simulations"])


def test_a_measured_machine(collwise: Run, folder: Path) -> None:
    saved = example().save(folder / "it.json")
    found = document(collwise, "simulate", "-n", 8, "--bytes", 64, "--profile", saved)
    assert found["machine_from"] == "profile of elsewhere, Test MPI 1.0, one node, 2025-01-02"
    best = cw.postal.broadcast_time(8, 3)
    assert found["simulations"][0]["completion_s"] == pytest.approx(float(best) * 1e-6)


def test_times_with_units(collwise: Run) -> None:
    asked = ("simulate", "-n", 4, "--bytes", 1, "--t0", "1500 ns", "--lam", "9/5")
    found = document(collwise, *asked)
    assert (
        found["lower_bound_s"] == float(cw.postal.broadcast_time(4, Fraction(9, 5)) * 3 / 2) / 1e6
    )

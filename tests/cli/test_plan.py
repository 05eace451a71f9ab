"""`collwise plan`: machines, algorithms, pictures, JSON."""

from pathlib import Path

import pytest

from collwise.algorithms.registry import ALGORITHMS
from tests.cli.conftest import Run
from tests.cli.running import HOCKNEY, POSTAL, document
from tests.profiles.example import example, won_race

PLAN = ("plan", "-n", "8", "--bytes", "512")


def test_a_plan_for_people_and_for_programs(collwise: Run) -> None:
    people = collwise(*PLAN, *HOCKNEY).printed()
    made = document(collwise, *PLAN, *HOCKNEY)
    assert made["algorithm"] in people
    assert f"machine      {made['machine']} (given)\n" in people
    assert made["lower_bound_s"] <= made["predicted_s"]
    assert made["machine_from"] == "given"


SITES = "2x4: 100us+1us/B,2; 100us+1us/B,20"
"""Rounds over levels are for ranks that all have ports of their own."""


COMBINING = ["--alpha", "1us", "--beta", "1ns", "--gamma", "1ns"]


def test_algorithms_by_short_and_long_name(collwise: Run) -> None:
    for turn, (name, algorithm) in enumerate(ALGORITHMS.items()):
        typed = (name, algorithm.short_name)[turn % 2]
        halves = name == "reduce/circulant_gather"  # off powers of two, where combining takes time
        asked = ["plan", algorithm.collective, "-n", 7 + (not halves), "--bytes", "8k"]
        asked += ["--dtype", "int64"] * (algorithm.kind.combines)
        sources = "5," if "as_broadcast" in name else "0,5"
        asked += ["--sources", sources] * (algorithm.kind.has_sources)
        late = name.endswith(("two_trees", "radix_pieces"))  # they need λ > 1
        machine = COMBINING if halves else [*(POSTAL if late else HOCKNEY)]
        levels = SITES if name.endswith("multilevel_rounds") else "emulated:2x4"
        machine = ["--levels", levels] if algorithm.levels else machine
        if name.endswith("all_ports"):
            machine = ["--send=1us", "--receive=1us", "--hop=1ns", "--beta=1ns", "--all-port"]
        made = document(collwise, *asked, *machine, "--algorithm", typed)
        assert made["algorithm"] == name


def test_all_that_is_missing_is_named(collwise: Run) -> None:
    collwise("plan").refused("Missing options '-n' / '--ranks' and '--bytes'.")
    collwise("plan", "--bytes", 8).refused("Missing option '-n' / '--ranks'.")
    collwise("plan", "-n", 8).refused("Missing option '--bytes'.")


ON_128_RANKS = ("-n", 128, "--bytes", 8)


@pytest.mark.parametrize("command", ["plan", "simulate"])
@pytest.mark.parametrize(
    ("asked", "work"),
    [
        (
            ("allgatherv", *ON_128_RANKS, "--sources", "0,5,9", *POSTAL),
            "simulated message by message",
        ),
        (("broadcast", *ON_128_RANKS, "--preset", "paragon"), "simulated message by message"),
        (("broadcast", *ON_128_RANKS, "--levels", "16x8: 1us,2; 5us,4"), "compared"),
        (("broadcast", *ON_128_RANKS, *POSTAL), ""),  # formulas
        (("allgatherv", "-n", 8, "--bytes", 8, "--sources", "all", *POSTAL), ""),
    ],
)
def test_long_work_says_so_at_the_start(
    collwise: Run, command: str, asked: tuple[object, ...], work: str
) -> None:
    """Where a pipe would see nothing for a while; with --json only the document is seen."""
    one = ("--algorithm", "br_lin" if asked[0] == "allgatherv" else "binomial")
    ended = collwise(command, *asked, *one)
    assert ended.code == 0
    doing = "planning" if command == "plan" else "simulating"
    told = f"{doing} {ended.out.splitlines()[0]}: "
    assert (ended.err.count("\n"), ended.err.startswith(told)) == (bool(work), bool(work))
    assert f" {work}, which may take a while" in ended.err or not work
    assert collwise(command, *asked, *one, "--json").err == ""


# What races decided


RACE = {"ranks": 8, "nbytes": 512, "algorithm": "broadcast/flat", "library_s": 1.5e-6}


def test_a_plan_says_what_races_decided(collwise: Run, folder: Path) -> None:
    """The same as collwise.Comm: it said "chosen: the least predicted time" whoever had won."""
    lost = won_race(**RACE | {"form": "persistent", "decision": "library", "library_s": 0.9e-6})
    example().with_race_results([won_race(**RACE), lost]).save(folder / "it.json")
    won = "it won the race of 512 bytes on 8 ranks, 1.50 times as fast as the library's own"
    stays = "nothing was clearly faster in the race of 512 bytes on 8 ranks"
    asked = (*PLAN, "--profile", "it.json")
    out = collwise(*asked).out
    assert "choice       broadcast/flat\n" in out
    assert f"chosen: {won}\n" in out
    assert "chosen: the least" not in out
    verdict = "stable; measured on 4 ranks at 2025-01-02T03:04:05+00:00"
    later = "no race of nonblocking calls decides, and broadcast/flat, which won one of blocking"
    assert out.splitlines()[-4:] == [
        f"profile      {verdict}",
        f"blocking     broadcast/flat: {won}",
        f"nonblocking  the library's own: {later} calls, saves less than 100 µs",
        f"persistent   the library's own: {stays}",
    ]
    persistent = collwise(*asked, "--form", "persistent")
    assert "choice       library\n" in persistent.out
    assert "  library " in persistent.out
    assert f"chosen: {stays}\n" in persistent.out
    made = document(collwise, *asked, "--form", "persistent")
    assert (made["algorithm"], made["predicted_s"]) == ("library", None)
    assert made["served"]["blocking"] == {"algorithm": "broadcast/flat", "because": won}
    assert made["profile_verdict"] == "stable"
    assert "blocking " not in collwise(*asked, "--algorithm", "chain").out

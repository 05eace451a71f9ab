"""`collwise simulate`: what it prints, draws and gives to programs, against the library itself."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import collwise as cw
from collwise.algorithms.registry import ALGORITHMS, algorithms_for, collectives
from collwise.model.presets import PRESETS
from collwise.model.sources import DISTRIBUTIONS, distribute
from collwise.schedule.collectives import COLLECTIVES, kind_of
from tests.cli.conftest import Run
from tests.cli.running import POSTAL
from tests.profiles.example import example

HOCKNEY = ("--alpha", "50us", "--beta", "10ns")
S_TO_P = ("simulate", "s_to_p", "-n", 20, "--bytes", "4k")
ON_A_MESH = (*S_TO_P, "--sources", "0,7,13", "--topology", "mesh:4x5", *HOCKNEY)


def document(collwise: Run, *arguments: object) -> dict[str, Any]:
    ended = collwise(*arguments, "--json")
    assert (ended.code, ended.err) == (0, "")
    found: dict[str, Any] = json.loads(ended.out)
    return found


def test_one_schedule_on_a_mesh(collwise: Run) -> None:
    found = document(collwise, *ON_A_MESH, "--algorithm", "br_lin")
    machine = cw.Machine.hockney(alpha_s="50e-6", beta_s="10e-9")
    mesh = cw.topology.Mesh(4, 5)
    schedule = ALGORITHMS["s_to_p/br_lin"].schedule(20, 4096, sources=[0, 7, 13], shape=(4, 5))
    trace = cw.simulate(schedule, machine, mesh)
    (one,) = found["simulations"]
    assert one["completion_s"] == trace.completion_s >= found["lower_bound_s"]
    assert one["finish_s"] == list(trace.finish_s)
    assert one["first_s"] == min(trace.finish_s)
    assert one["messages"] == len(one["transfers"]) == len(trace.transfers)
    assert one["bytes_sent"] == sum(t.nbytes for t in trace.transfers)
    assert found["sources"] == [{"rank": rank, "nbytes": 4096} for rank in (0, 7, 13)]
    assert (found["nbytes"], found["shape"]) == (3 * 4096, [4, 5])
    for told, transfer, passage in zip(
        one["transfers"], trace.transfers, trace.passages, strict=True
    ):
        assert (told["source"], told["target"]) == (transfer.source, transfer.target)
        assert told["received_s"] == float(transfer.received)
        assert told["links"] == list(passage.route) == list(mesh.route(*transfer[:2]))
        assert told["ready_s"] <= told["start_s"] <= told["header_s"] <= told["sent_s"]
        assert (told["waited_for"] is None) == (told["ready_s"] == told["start_s"])
    busy = {link["link"]: link["busy_s"] for link in one["links"]}
    assert busy == {link: float(held) for link, held in trace.link_busy().items()}
    shares = [link["share"] for link in one["links"]]
    assert shares == sorted(shares, reverse=True)
    assert all((link["from"], link["to"]) == mesh.ends(link["link"]) for link in one["links"])


def test_who_waited_for_whom(collwise: Run) -> None:
    """By hand: xor sends over each other's links on a line of eight."""
    found = document(
        collwise, "simulate", "s_to_p", "-n", 8, "--bytes", 1, "--sources", "all",
        "--topology", "mesh:1x8", *HOCKNEY, "--algorithm", "xor",
    )  # fmt: skip
    (one,) = found["simulations"]
    waits = [t for t in one["transfers"] if t["waited_for"]]
    assert one["waits"]["messages"] == len(waits) > 0
    times = [t["start_s"] - t["ready_s"] for t in waits]
    assert one["waits"]["longest_s"] == pytest.approx(max(times))
    assert one["waits"]["total_s"] == pytest.approx(sum(times))
    for transfer in waits:
        holder = one["transfers"][transfer["waited_for"]["held_by"]]
        assert transfer["waited_for"]["link"] in set(transfer["links"]) & set(holder["links"])
        assert holder["sent_s"] == transfer["entry_s"]


@pytest.mark.parametrize("collective", collectives())
def test_every_algorithm_that_applies(collwise: Run, collective: str) -> None:
    """In the table the fastest first, each with the planner's own time; the rest has a reason."""
    asked: list[object] = ["simulate", collective, "-n", 12, "--bytes", 960, *POSTAL]
    asked += ["--sources", "1,4-6"] * (kind_of(collective).has_sources)
    found = document(collwise, *asked)
    played = {one["algorithm"]: one["completion_s"] for one in found["simulations"]}
    assert list(played.values()) == sorted(played.values())
    known = {algorithm.name for algorithm in algorithms_for(collective, levels=False)}
    assert {*played, *found["excluded"]} == known
    plan = document(collwise, "plan", *asked[1:])
    assert played[plan["algorithm"]] == plan["predicted_s"] == min(played.values())
    ended = collwise(*asked)
    assert (ended.code, ended.err) == (0, "")
    shown = re.findall(r"│ (\w+)", ended.out)
    places = [shown.index(name.partition("/")[2]) for name in played]
    assert sorted(places) == places
    assert all(f"left out     {name}: " in ended.out for name in found["excluded"])


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


def test_a_million_ranks(collwise: Run) -> None:
    asked = ("simulate", "-n", 1 << 20, "--bytes", 512, "--t0", "1us", "--lam", 4)
    found = document(collwise, *asked, "--algorithm", "postal_tree")
    (one,) = found["simulations"]
    assert one["completion_s"] == found["lower_bound_s"]
    assert one["messages"] == (1 << 20) - 1
    assert one["bytes_sent"] == 512 * one["messages"]
    assert one["finish_s"] is one["transfers"] is None
    best = collwise(*asked)
    assert (best.code, best.err) == (0, "")
    assert "algorithm    broadcast/" in best.out
    assert ": nothing can be faster" in best.out


# --- parameters ---


@pytest.mark.parametrize(
    ("algorithm", "given", "settings"),
    [
        ("chain_segmented", ["segment=4k"], {"segment": "4096"}),
        ("postal_tree", ["lam=9/5"], {"lam": "9/5"}),
        ("postal_tree_segmented", ["lam=2", "segment=1K"], {"lam": "2", "segment": "1024"}),
        ("alpha", ["alpha=0.6"], {"alpha": "3/5"}),
        ("knomial", ["k=3"], {"k": "3"}),
    ],
)
def test_parameters(
    collwise: Run, algorithm: str, given: list[str], settings: dict[str, str]
) -> None:
    words = [word for pair in given for word in ("--set", pair)]
    asked = ("simulate", "-n", 9, "--bytes", "64k", *HOCKNEY, "--algorithm", algorithm)
    (one,) = document(collwise, *asked, *words)["simulations"]
    assert one["settings"] == settings
    (planned,) = document(collwise, *asked)["simulations"]
    assert set(planned["settings"]) == set(settings)
    if len(given) > 1:
        (some,) = document(collwise, *asked, *words[:2])["simulations"]
        assert some["settings"]["lam"] == settings["lam"]


def test_a_strategy(collwise: Run) -> None:
    asked = ("simulate", "allreduce", "-n", 8, "--bytes", 640, *HOCKNEY, "--algorithm", "hybrid")
    (one,) = document(collwise, *asked, "--set", "strategy=010")["simulations"]
    assert one["settings"] == {"strategy": "(0, 1, 0)"}


@pytest.mark.parametrize(
    ("algorithm", "given", "words"),
    [
        ("postal_tree", "lam=0", ["the parameter lam: it is 0", "give the latency λ"]),
        ("postal_tree", "lam=x", ["give a finite number"]),
        ("chain_segmented", "segment=0", ["the parameter segment: it is 0; give the bytes"]),
        ("chain_segmented", "segment=x", ["it is 'x'; give the bytes"]),
        ("chain_segmented", "lam=4", ["it has no such parameter; it takes segment"]),
        ("chain", "segment=4", ["it has no such parameter; it takes none"]),
        ("chain_segmented", "segment", ["'--set'", "write it as in lam=4"]),
        ("chain_segmented", "=4", ["'--set'", "write it as in lam=4"]),
    ],
)
def test_odd_parameters(collwise: Run, algorithm: str, given: str, words: list[str]) -> None:
    asked = ("simulate", "-n", 9, "--bytes", "64k", *HOCKNEY, "--algorithm", algorithm)
    collwise(*asked, "--set", given).refused(*words)


def test_parameters_of_nobody(collwise: Run) -> None:
    asked = ("simulate", "-n", 9, "--bytes", "64k", *HOCKNEY)
    collwise(*asked, "--set", "lam=4").refused("name it with --algorithm")
    named = (*asked, "--algorithm", "postal_tree")
    collwise(*named, "--set", "lam=4", "--set", "lam=5").refused("lam is given twice")


# --- sources ---


@pytest.mark.parametrize(
    ("given", "ranks"),
    [
        (["--sources", "0,7,13"], [0, 7, 13]),
        (["--sources", "13, 0 ,7"], [0, 7, 13]),
        (["--sources", "5,"], [5]),
        (["--sources", "0-3,9,11-12"], [0, 1, 2, 3, 9, 11, 12]),
        (["--sources", "all"], list(range(20))),
        (["--pattern", "equal", "--sources", "3"], list(distribute("equal", (4, 5), 3))),
        (["--pattern", "left-diagonal", "--sources", "4"], [4, 8, 12, 16]),
        (["--pattern", "row", "--sources", "5", "--shape", "2x10"], [0, 1, 2, 3, 4]),
        (["--pattern", "column", "--sources", "2", "--shape", "2×10"], [0, 10]),
        (["--pattern", "column", "--sources", "5", "--topology", "mesh:5x4"], [0, 4, 8, 12, 16]),
    ],
)
def test_sources(collwise: Run, given: list[str], ranks: list[int]) -> None:
    found = document(collwise, *S_TO_P, *HOCKNEY, "--algorithm", "br_lin", *given)
    assert [source["rank"] for source in found["sources"]] == ranks
    plan = document(collwise, "plan", *S_TO_P[1:], *HOCKNEY, "--algorithm", "br_lin", *given)
    assert plan["sources"] == found["sources"]
    assert plan["shape"] == found["shape"]


@pytest.mark.parametrize("pattern", DISTRIBUTIONS)
def test_patterns(collwise: Run, pattern: str) -> None:
    given = ("--pattern", pattern, "--sources", 6)
    ended = collwise(*S_TO_P, *HOCKNEY, "--algorithm", "ring", *given)
    first, *drawn = ended.out.split("sources      ")[1].splitlines()[:4]
    ranks = distribute(pattern, (4, 5), 6)
    text = cw.sources.picture((4, 5), ranks).splitlines()
    assert [first, *(line.strip() for line in drawn)] == text


@pytest.mark.parametrize("command", ["plan", "simulate"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], ["nothing says which ranks have data", "--pattern equal --sources 3"]),
        (["--sources", "3"], ["--sources 3, without a pattern", "write --sources 3, for a rank"]),
        (["--sources", "0"], ["--sources 0, without a pattern"]),
        (["--pattern", "row"], ["--pattern row without a number", "add --sources NUMBER"]),
        (["--sources", "1,2", "--pattern", "row"], ["a list of ranks, and --pattern row"]),
        (["--sources", "all", "--pattern", "row"], ["a list of ranks, and --pattern row"]),
        (["--sources", "3", "--pattern", "rwo"], ["source distribution 'rwo'", "mean row"]),
        (["--sources", "0", "--pattern", "row"], ["count = 0; give an integer from 1 to 20"]),
        (["--sources", "21", "--pattern", "row"], ["count = 21; give an integer from 1 to 20"]),
        (["--sources", "20,"], ["a source = 20; give an integer from 0 to 19"]),
        (["--sources", "3,4,3"], ["rank 3 is given twice"]),
        (["--sources", "3,2-5"], ["rank 3 is given twice"]),
        (["--sources", "5-2"], ["'--sources'", "5-2"]),
        (["--sources", "-1,"], ["'--sources'", "'-1' is neither"]),
        (["--sources", ""], ["'--sources'"]),
        (["--sources", ",,"], ["'--sources'"]),
        (["--sources", "1.5,"], ["'--sources'", "such as 0,5,9"]),
        (["--sources", "²,"], ["'--sources'"]),
        (["--sources", "0-9999999999"], ["are too many for a list"]),
        (["--sources", "9" * 30 + ","], ["'--sources'"]),
        (["--sources", "1,", "--shape", "3x7"], ["a mesh of 3 × 7 has 21"]),
        (["--sources", "1,", "--shape", "0x20"], ["'--shape'", "as in 4x8"]),
        (["--sources", "1,", "--shape", "4"], ["'--shape'", "as in 4x8"]),
        (["--sources", "1,", "--shape", "4x5x1"], ["'--shape'", "as in 4x8"]),
        (["--sources", "1,", "--topology", "mesh:4x6"], ["has 24 nodes", "20 ranks"]),
        (["--sources", "1,", "--topology", "mush:4x5"], ["topology 'mush'", "mean mesh"]),
        (["--sources", "1,", "--topology", "mesh"], ["no sizes", "as in mesh:16x16"]),
        (["--sources", "1,", "--topology", "mesh:4x-5"], ["columns = -5"]),
        (["--sources", "1,", "--root", "3"], ["s_to_p with --root", "leave out --root"]),
        (["--sources", "1,", "--op", "max"], ["s_to_p with --op", "it is for reduce, allreduce"]),
        (["--sources", "1,", "--dtype", "int32"], ["s_to_p with --dtype"]),
        (["--sources", "1,", "--order", "rank"], ["s_to_p with --order"]),
    ],
)
def test_odd_sources(collwise: Run, command: str, given: list[str], words: list[str]) -> None:
    collwise(command, *S_TO_P[1:], *HOCKNEY, *given).refused(*words)


@pytest.mark.parametrize("command", ["plan", "simulate"])
@pytest.mark.parametrize("collective", [c.name for c in COLLECTIVES.values() if not c.has_sources])
def test_options_of_another_collective(collwise: Run, command: str, collective: str) -> None:
    asked = (command, collective, "-n", 4, "--bytes", 64, *POSTAL)
    for option, value in (("--sources", "1,"), ("--pattern", "row"), ("--shape", "2x2")):
        collwise(*asked, option, value).refused(f"{collective} with {option}", "s_to_p only")
    if not kind_of(collective).combines:
        for option, value in (("--op", "sum"), ("--dtype", "float64"), ("--order", "any")):
            collwise(*asked, option, value).refused(f"{collective} with {option}")


# --- machines ---


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--preset", "paragn"], ["preset machine 'paragn'", "did you mean paragon?"]),
        (["--preset", "paragon", "--t0", "1us"], ["describe one machine only"]),
        (["--preset", "paragon", "--profile", "it"], ["describe one machine only"]),
        (["--t0", "1us"], ["a postal machine: --lam is missing"]),
        (["--hop", "1ns"], ["a wormhole machine: --send, --receive and --beta are missing"]),
        (["--t0", "1us", "--hop", "1ns"], ["options of several (--t0, --hop)"]),
        (["--t0", "-1us", "--lam", "4"], ["a postal machine with --t0: ", "is not above 0"]),
        (["--t0", "1 day", "--lam", "4"], ["'--t0'", "is no number", "or 1.8ms"]),
        (["--t0", "ms", "--lam", "4"], ["'--t0'", "is no number"]),
        (["--lam", "4ms"], ["'--lam'", "is no number"]),
        (["--topology", "hypercube:2", *POSTAL], ["the law of the machine knows no links"]),
        (["--topology", "hypercube:99", *POSTAL], ["dimension = 99"]),
        (["--topology", "torus:1x1x99999999999999", *POSTAL], ["99999999999999"]),
    ],
)
def test_odd_machines(collwise: Run, given: list[str], words: list[str]) -> None:
    ended = collwise("simulate", "-n", 4, "--bytes", 64, *given)
    assert (ended.code, ended.out) == (2, "")
    for word in words:
        assert word in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("given", "same"), [("1.5us", "1.5e-6"), ("1500 ns", "3/2000000"), ("0.0015ms", "1.5µs")]
)
def test_times_with_units(collwise: Run, given: str, same: str) -> None:
    one, other = (
        document(collwise, "simulate", "-n", 4, "--bytes", 1, "--t0", t0, "--lam", 2)
        for t0 in (given, same)
    )
    assert one == other
    assert one["lower_bound_s"] == float(cw.postal.broadcast_time(4, 2)) * 1.5e-6


# --- size ---


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["-n", 2**31 - 1, "--algorithm", "binomial"], ["messages, and at most 16,777,216"]),
        (["-n", 2**31], ["1<=x<=2147483647"]),
        (["-n", 0], ["'-n' / '--ranks'"]),
        (["-n", 10**6, "--preset", "paragon"], ["name one with --algorithm"]),
        (["-n", 10**6, "--preset", "paragon", "--algorithm", "chain_segmented",
          "--set", "segment=1"], ["messages, and at most 16,777,216"]),
    ],
)  # fmt: skip
def test_too_much(collwise: Run, asked: list[object], words: list[str]) -> None:
    machine = () if "--preset" in asked else POSTAL
    collwise("simulate", "--bytes", 512, *machine, *asked).refused(*words)


@pytest.mark.parametrize(("algorithm", "segments"), [("chain", False), ("chain_segmented", True)])
def test_what_to_do_about_too_much(collwise: Run, algorithm: str, segments: bool) -> None:
    """Larger segments are advice where there are segments."""
    given = ["--set", "segment=1"] * segments
    asked = ("simulate", "-n", 2**26, "--bytes", 8, *POSTAL, "--algorithm", algorithm, *given)
    collwise(*asked).refused("messages", "another algorithm")
    assert ("larger segments" in collwise(*asked).err) == segments


def test_too_many_sources(collwise: Run) -> None:
    most = "ranks times sources of at most"
    for given in (("--sources", "all"), ("--sources", "0,"), ("--pattern=row", "--sources=7")):
        for command in ("simulate", "plan"):
            asked = (command, "s_to_p", "-n", 2**31 - 1, "--bytes", 8, *POSTAL, *given)
            collwise(*asked).refused("name every source on every rank", most)
    fewer = ("s_to_p", "-n", 1025, "--bytes", 8, *POSTAL, "--sources", "all")
    collwise("simulate", *fewer).refused("simulated, message by message", most)
    assert "census" in collwise("plan", *fewer).out


@pytest.mark.parametrize("collective", collectives())
@pytest.mark.parametrize(("ranks", "nbytes"), [(1, 64), (2, 0), (5, 40)])
def test_hardly_anything(collwise: Run, collective: str, ranks: int, nbytes: int) -> None:
    asked: list[object] = ["simulate", collective, "-n", ranks, "--bytes", nbytes]
    asked += ["--sources", "0,"] * (kind_of(collective).has_sources)
    found = document(collwise, *asked, *POSTAL)
    assert found["simulations"]
    idle = ranks == 1 or nbytes == 0
    assert all((one["messages"] == 0) == idle for one in found["simulations"])
    ended = collwise(*asked, "--preset", "paragon")
    assert (ended.code, ended.err) == (0, "")


# --- pictures ---


@pytest.mark.no_cover
def test_a_mesh_and_a_timeline(collwise: Run, folder: Path) -> None:
    def names(suffix: str) -> dict[str, str]:
        return {"picture": f"new/mesh{suffix}", "timeline": f"new/mesh-timeline{suffix}"}

    asked = *ON_A_MESH, "--algorithm", "br_lin", "--picture"
    ended = collwise(*asked, names(".png")["picture"])
    assert (ended.code, ended.err) == (0, "")
    found = document(collwise, *asked, names(".svg")["picture"])
    assert found["pictures"] == list(names(".svg").values())
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        for kind, name in names(suffix).items():
            assert suffix == ".svg" or f"{kind:<13}{name}\n" in ended.out
            assert (folder / name).read_bytes().startswith(magic)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("command", "asked", "in_space"),
    [
        ("plan", ["broadcast", "-n", 8, *POSTAL], True),  # a tree
        ("plan", ["reduce", "-n", 8, *POSTAL], False),
        ("simulate", ["reduce", "-n", 8, *POSTAL], False),
        ("simulate", ["reduce", "-n", 8, "--topology", "mesh:2x4", *HOCKNEY], True),
        ("plan", ["broadcast", "-n", 8, "--topology", "hypercube:3", *HOCKNEY], True),  # a tree
        ("simulate", ["allreduce", "-n", 8, "--topology", "torus:2x2x2", *HOCKNEY], False),
        ("plan", ["s_to_p", "-n", 8, "--topology=complete:8", "--sources=1,", *HOCKNEY], True),
        ("simulate", ["broadcast", "-n", 1, *POSTAL], True),
    ],
)
def test_what_is_drawn(
    collwise: Run, folder: Path, command: str, asked: list[object], in_space: bool
) -> None:
    """The timeline always has the name of one; networks that do not lie flat are no reason to draw
    nothing.  What is written is told, and what is not: here by `plan` in words, by `simulate` as
    JSON."""
    written = ["it.svg"] * in_space + ["it-timeline.svg"]
    asked = [command, *asked, "--bytes", 64, "--picture", "it.svg"]
    if command == "plan":
        ended = collwise(*asked)
        assert (ended.code, ended.err) == (0, "")
        told = [line.split()[1] for line in ended.out.splitlines()[-2:]]
        assert told == ["it.svg" if in_space else "none", "it-timeline.svg"]
    else:
        assert document(collwise, *asked)["pictures"] == written
    assert sorted(path.name for path in folder.iterdir()) == sorted(written)


@pytest.mark.parametrize("name", ["it.pdf", "it"])
def test_other_pictures(collwise: Run, folder: Path, name: str) -> None:
    collwise(*ON_A_MESH, "--picture", name).refused("'--picture'", "ends in .png or .svg")
    assert list(folder.iterdir()) == []


def test_too_many_ranks_to_draw(collwise: Run, folder: Path) -> None:
    asked = ("simulate", "-n", 5000, "--bytes", 8, *POSTAL, "--picture", "it.svg")
    collwise(*asked).refused("5000 ranks", "at most 4096 ranks")
    assert list(folder.iterdir()) == []

"""`collwise simulate`: what it prints, draws and gives to programs, against the library itself."""

import re

import pytest

import collwise as cw
from collwise.algorithms.registry import ALGORITHMS, algorithms_for, collectives
from collwise.model.sources import distribute
from collwise.schedule.collectives import kind_of
from tests.cli.conftest import Run
from tests.cli.running import HOCKNEY, POSTAL, document

S_TO_P = ("simulate", "allgatherv", "-n", 20, "--bytes", "4k")
ON_A_MESH = (*S_TO_P, "--sources", "0,7,13", "--topology", "mesh:4x5", *HOCKNEY)


def test_one_schedule_on_a_mesh(collwise: Run) -> None:
    found = document(collwise, *ON_A_MESH, "--algorithm", "br_lin")
    machine = cw.Machine.hockney(alpha_s="50e-6", beta_s="10e-9")
    mesh = cw.topology.Mesh(4, 5)
    schedule = ALGORITHMS["allgatherv/br_lin"].schedule(20, 4096, sources=[0, 7, 13], shape=(4, 5))
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
    out = collwise(*asked).printed()
    shown = re.findall(r"│ (\w+)", out)
    places = [shown.index(name.partition("/")[2]) for name in played]
    assert sorted(places) == places
    assert all(f"left out     {name}: " in out for name in found["excluded"])


def test_a_million_ranks(collwise: Run) -> None:
    asked = ("simulate", "-n", 1 << 20, "--bytes", 512, "--t0", "1us", "--lam", 4)
    found = document(collwise, *asked, "--algorithm", "postal_tree")
    (one,) = found["simulations"]
    assert one["completion_s"] == found["lower_bound_s"]
    assert one["messages"] == (1 << 20) - 1
    assert one["bytes_sent"] == 512 * one["messages"]
    assert one["finish_s"] is one["transfers"] is None


# --- parameters ---

SEGMENTED = ("--algorithm", "chain_segmented")


@pytest.mark.parametrize("given", [{"lam": "9/5", "segment": "1024"}, {"lam": "2"}])
def test_parameters(collwise: Run, given: dict[str, str]) -> None:
    """What is not given is chosen."""
    asked = ("simulate", "-n", 8, "--bytes", "64k", *HOCKNEY, "--algorithm=postal_tree_segmented")
    words = [f"--set={name}={value}" for name, value in given.items()]
    (one,) = document(collwise, *asked, *words)["simulations"]
    assert one["settings"].items() >= given.items()
    assert one["settings"].keys() == {"lam", "segment"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([*SEGMENTED, "--set", "segment=0"], ["the parameter segment: it is 0; give the bytes"]),
        ([*SEGMENTED, "--set", "lam=4"], ["it has no such parameter; it takes segment"]),
        ([*SEGMENTED, "--set", "segment"], ["'--set'", "write it as in lam=4"]),
        ([*SEGMENTED, "--set", "=4"], ["'--set'", "write it as in lam=4"]),
        ([*SEGMENTED, "--set=segment=1", "--set=segment=2"], ["segment is given twice"]),
        (["--algorithm=postal_tree", "--set=lam=x"], ["give a finite number"]),
        (["--set", "lam=4"], ["name it with --algorithm"]),
    ],
)
def test_odd_parameters(collwise: Run, given: list[str], words: list[str]) -> None:
    collwise("simulate", "-n", 9, "--bytes", "64k", *HOCKNEY, *given).refused(*words)


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


def test_a_pattern_is_shown(collwise: Run) -> None:
    given = ("--pattern", "cross", "--sources", 6)
    ended = collwise(*S_TO_P, *HOCKNEY, "--algorithm", "ring", *given)
    first, *drawn = ended.out.split("sources      ")[1].splitlines()[:4]
    ranks = distribute("cross", (4, 5), 6)
    text = cw.sources.picture((4, 5), ranks).splitlines()
    assert [first, *(line.strip() for line in drawn)] == text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], ["nothing says which ranks have data", "--pattern equal --sources 3"]),
        (["--sources", "3"], ["--sources 3, without a pattern", "write --sources 3, for a rank"]),
        (["--pattern", "row"], ["--pattern row without a number", "add --sources NUMBER"]),
        (["--sources", "1,2", "--pattern", "row"], ["a list of ranks, and --pattern row"]),
        (["--sources", "5-2"], ["'--sources'", "5-2"]),
        (["--sources", "-1,"], ["'--sources'", "'-1' is neither"]),
        (["--sources", ""], ["'--sources'"]),
        (["--sources", "1.5,"], ["'--sources'", "such as 0,5,9"]),
        (["--sources", "²,"], ["'--sources'"]),
        (["--sources", "0-9999999999"], ["are too many for a list"]),
        (["--sources", "9" * 30 + ","], ["'--sources'"]),
        (["--sources", "1,", "--shape", "0x20"], ["'--shape'", "as in 4x8"]),
        (["--sources", "1,", "--shape", "4"], ["'--shape'", "as in 4x8"]),
        (["--sources", "1,", "--shape", "4x5x1"], ["'--shape'", "as in 4x8"]),
        (["--sources", "1,", "--topology", "mush:4x5"], ["topology 'mush'", "mean mesh"]),
        (["--sources", "1,", "--root", "3"], ["allgatherv with --root", "leave out --root"]),
        (
            ["--sources", "1,", "--op", "max"],
            ["allgatherv with --op", "it is for reduce, allreduce"],
        ),
    ],
)
def test_odd_sources(collwise: Run, given: list[str], words: list[str]) -> None:
    collwise(*S_TO_P, *HOCKNEY, *given).refused(*words)


# --- size ---


def test_too_much(collwise: Run) -> None:
    """Larger segments are advice where there are segments."""
    asked = ("simulate", "-n", 2**26, "--bytes", 8, *POSTAL, "--algorithm")
    collwise(*asked, "chain").refused("messages, and at most 16,777,216", "another algorithm")
    assert "larger segments" not in collwise(*asked, "chain").err
    segmented = (*asked, "chain_segmented", "--set", "segment=1")
    collwise(*segmented).refused("messages, and at most 16,777,216", "larger segments")
    collwise(*segmented, "--bytes", "1G").refused("these are about 72,057,592,")
    many = ("simulate", "-n", 10**6, "--bytes", 8, "--preset", "paragon")
    collwise(*many).refused("name one with --algorithm")


def test_too_many_sources(collwise: Run) -> None:
    most = "ranks times sources of at most"
    for given in (("--sources", "all"), ("--sources", "0,"), ("--pattern=row", "--sources=7")):
        for command in ("simulate", "plan"):
            asked = (command, "allgatherv", "-n", 2**31 - 1, "--bytes", 8, *POSTAL, *given)
            collwise(*asked).refused("name every source on every rank", most)
    fewer = ("allgatherv", "-n", 1025, "--bytes", 8, *POSTAL, "--sources", "all")
    collwise("simulate", *fewer).refused("simulated, message by message", most)
    assert collwise("plan", *fewer, "--algorithm", "bruck").code == 0


@pytest.mark.parametrize("collective", collectives())
@pytest.mark.parametrize(("ranks", "nbytes"), [(1, 64), (2, 0)])
def test_hardly_anything(collwise: Run, collective: str, ranks: int, nbytes: int) -> None:
    asked: list[object] = ["simulate", collective, "-n", ranks, "--bytes", nbytes]
    asked += ["--sources", "0,"] * (kind_of(collective).has_sources)
    found = document(collwise, *asked, *POSTAL)
    assert found["simulations"]
    assert all(one["messages"] == 0 for one in found["simulations"])
    collwise(*asked, "--preset", "paragon").printed()

"""Schedules in other tools' formats say what the rows say."""

import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import collwise as cw
from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import InvalidArgument
from collwise.formats import export_rows
from collwise.formats.chrome_trace import TRACKS, chrome_trace
from collwise.formats.goal_reader import Goal, read_goal
from collwise.formats.goal_writer import goal
from collwise.formats.time_independent_trace import time_independent_trace
from collwise.model.machine import Machine
from collwise.planner.choose import plan_for, problem_for
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.program import Schedule
from collwise.schedule.rows import NONE, Rows
from collwise.timing import ideal
from tests.case import in_case
from tests.formats.replaying import SMPIRUN, replayed_s

POSTAL = Machine.postal(t0_s="1.7e-3", lam=Fraction(5, 2))
HOCKNEY = Machine.hockney(alpha_s="50e-6", beta_s="1e-9", gamma_s="3e-9")
LOGGP = Machine.loggp(L_s="5e-6", o_s="1e-6", g_s="2e-6", G_s="1e-9")


def schedule(collective: str, algorithm: str, machine: Machine, ranks: int = 7) -> Schedule:
    sources = [0, 2, 5] if COLLECTIVES[collective].has_sources else None
    problem, _ = problem_for(collective, ranks=ranks, nbytes=8 * ranks * 4, sources=sources)
    return plan_for(problem, machine, algorithm).schedule


def every(machine: Machine, step: int) -> Iterator[Schedule]:
    """A schedule of every `step`-th algorithm that applies to 7 ranks, or to 8."""
    for algorithm in [a for a in ALGORITHMS.values() if not a.levels][::step]:
        for ranks in (7, 8):
            try:
                yield schedule(algorithm.collective, algorithm.name, machine, ranks)
                break
            except InvalidArgument:
                continue


def plain(rows: Rows) -> list[tuple[object, ...]]:
    """The rows by their ranks, sizes, and places among those that are there; and what they need."""
    used = {rank: set[int]() for rank in range(1 + int(max(rows.source.max(), rows.target.max())))}
    ends = [*zip(rows.source.tolist(), rows.place_at_source.tolist(), strict=True)]
    ends_at = [*zip(rows.target.tolist(), rows.place_at_target.tolist(), strict=True)]
    for rank, place in [*ends, *(end for end in ends_at if end[0] != NONE)]:
        used[rank].add(place)
    number = {rank: {p: n for n, p in enumerate(sorted(some))} for rank, some in used.items()}
    names = [
        (rank, number[rank][place], to, NONE if to == NONE else number[to][there])
        for (rank, place), (to, there) in zip(ends, ends_at, strict=True)
    ]
    bounds = pairwise(rows.begins.tolist())
    needs = [sorted(names[n] for n in rows.needs[a:b].tolist()) for a, b in bounds]
    sizes = np.where(rows.combines, 0, rows.nbytes).tolist()
    return sorted(zip(names, sizes, needs, strict=True))


def every_row(made: Schedule, machine: Machine) -> Rows:
    return made.rows(combines=machine.combine(1) is not None, in_order=False)


def through_goal(made: Schedule, machine: Machine, folder: Path) -> Goal:
    path = folder / "it.goal"
    path.write_text("\n".join(goal(made, machine)))
    return read_goal(path)


@pytest.mark.parametrize(
    ("machine", "step"), [(HOCKNEY, 1), (POSTAL, 3), (LOGGP, 3)], ids=["hockney", "postal", "loggp"]
)
def test_goal_read_back_has_the_same_rows_and_times(
    machine: Machine, step: int, tmp_path: Path
) -> None:
    """All algorithms where combining takes time; some where it takes none, or is not known."""
    for made in every(machine, step):
        with in_case(made.algorithm):
            found = through_goal(made, machine, tmp_path)
            assert plain(found.messages) == plain(every_row(made, machine))
            ours, theirs = ideal(made, machine), found.time(machine)
            assert theirs.finish == ours.finish
            assert len(theirs.combines) == len(ours.combines)


def test_goal_on_a_network_and_on_levels(tmp_path: Path) -> None:
    made = schedule("broadcast", "binomial", HOCKNEY, 8)
    ring = cw.topology.Torus(2, 4)
    found = through_goal(made, HOCKNEY, tmp_path)
    assert found.time(HOCKNEY, ring).finish == ideal(made, HOCKNEY, ring).finish
    with pytest.raises(
        InvalidArgument, match="there are 8 ranks, and a torus of 2 × 2 has 4 nodes"
    ):
        found.time(HOCKNEY, cw.topology.Torus(2, 2))
    levels = Machine.levels([POSTAL, POSTAL], cw.Placement.regular(2, 4))
    assert found.time(levels).completion == ideal(made, levels).completion


def test_calcs_take_their_nanoseconds(tmp_path: Path) -> None:
    """On any machine, as a combine does; beyond int64 too."""
    path = tmp_path / "it.goal"
    for calc_ns in (1500, 10**15):
        path.write_text(
            f"num_ranks 2\nrank 0 {{\na: calc {calc_ns}\nb: send 8b to 1\nb requires a\n}}\n"
            "rank 1 {\nrecv 8b from 0\n}\n"
        )
        found = read_goal(path)
        for machine in (POSTAL, Machine.postal(t0_s=Fraction(1, 3 * 10**12), lam=2)):
            gap, lam = machine.message(8).gap, machine.message(8).lam
            assert found.time(machine).completion == Fraction(calc_ns, 10**9) + lam * gap
        assert found.calc_s == calc_ns / 1e9
    with pytest.raises(InvalidArgument, match="it has calcs, and LogGP's law combines for free"):
        found.time(LOGGP)


def test_calcs_are_rounded_to_nanoseconds() -> None:
    machine = Machine.hockney(alpha_s=1, beta_s=0, gamma_s="1.4e-11")
    assert ": calc 3\n" in "\n".join(goal(schedule("reduce", "binomial", machine), machine))


def test_too_many_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_rows, "MOST_EXPORTED", 1)
    with pytest.raises(InvalidArgument, match="an export of the schedule: about "):
        list(goal(schedule("broadcast", "binomial", POSTAL), POSTAL))


def test_a_time_independent_trace() -> None:
    """Receives first; a send waits for what it needs, once; a combine is a compute."""
    lines = list(time_independent_trace(schedule("reduce", "binomial", HOCKNEY, 4), HOCKNEY))
    of_two = [line.split()[1:] for line in lines if line.startswith("2 ")]
    assert of_two == [
        ["init"],
        ["irecv", "3", "0", "128"],
        ["wait", "3", "2", "0"],
        ["compute", str(128 * 3)],
        ["isend", "0", "0", "128"],
        ["waitall"],
        ["finalize"],
    ]


def test_messages_between_two_ranks_have_tags_of_their_own() -> None:
    made = schedule("broadcast", "chain_segmented", Machine.postal(t0_s=1e-6, lam=1), 3)
    actions = [line.split() for line in time_independent_trace(made, POSTAL)]
    sent = [(a[0], a[2], a[3], a[4]) for a in actions if a[1] == "isend"]
    heard = [(a[2], a[0], a[3], a[4]) for a in actions if a[1] == "irecv"]
    assert len(sent) > 2
    assert len({end[:3] for end in sent}) == len(sent)
    assert sorted(sent) == sorted(heard)


@pytest.mark.parametrize(
    ("name", "machine"),
    [("reduce/binomial", POSTAL), ("allreduce/recursive_doubling", HOCKNEY),
     ("broadcast/postal_tree", LOGGP)],
)  # fmt: skip
def test_chrome_traces(name: str, machine: Machine) -> None:
    """Every event has what the format asks for, slices of a track do not overlap, arrows meet."""
    timing = ideal(schedule(name.partition("/")[0], name, machine, 8), machine)
    found = json.loads(json.dumps(chrome_trace(timing, "it")))
    check_trace(found["traceEvents"])
    slices = [event for event in found["traceEvents"] if event["ph"] == "X"]
    sends = [event for event in slices if event["cat"] == "sends"]
    assert len(sends) == len(timing.transfers)
    last = max(event["ts"] + event["dur"] for event in slices)
    assert last == pytest.approx(timing.completion_s * 1e6)


def check_trace(events: list[dict[str, object]]) -> None:
    """What Perfetto's importer asks of JSON events, and that nothing overlaps."""
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    flows: dict[object, dict[str, float]] = {}
    for event in events:
        assert isinstance(event["pid"], int)
        assert event["tid"] in range(len(TRACKS))
        assert event["ph"] in ("M", "X", "s", "f")
        assert isinstance(event["name"], str)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "process_sort_index", "thread_name")
            assert isinstance(event["args"], dict)
            continue
        begin = event["ts"]
        assert isinstance(begin, float)
        assert begin >= 0
        if event["ph"] == "X":
            assert isinstance(event["dur"], float)
            assert event["dur"] >= 0
            track = event["pid"], int(str(event["tid"]))
            tracks.setdefault(track, []).append((begin, begin + event["dur"]))
        else:
            assert event["cat"] == "message"
            assert event["ph"] == "s" or event["bp"] == "e"
            flows.setdefault(event["id"], {})[str(event["ph"])] = begin
    for some in tracks.values():
        for (_, before), (after, _) in pairwise(sorted(some)):
            assert before <= after * (1 + 1e-9)
    assert all(flow["s"] <= flow["f"] for flow in flows.values())


@pytest.mark.exhaustive
@pytest.mark.skipif(SMPIRUN is None, reason="there is no smpirun")
@pytest.mark.parametrize("ranks", [8, 64, 1024])
@pytest.mark.parametrize("name", ["broadcast/postal_tree", "reduce/binomial"])
def test_simgrid_replays_to_the_same_time(name: str, ranks: int, tmp_path: Path) -> None:
    """As a postal machine; where no receipts collide, since SimGrid's ranks receive for free."""
    made = schedule(name.partition("/")[0], ALGORITHMS[name].name, POSTAL, ranks)
    actions = time_independent_trace(made, POSTAL)
    assert replayed_s(actions, ranks, 1.7e-3, 2.5, tmp_path) == pytest.approx(
        float(ideal(made, POSTAL).completion), rel=1e-6
    )

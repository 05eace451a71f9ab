"""Checks of measuring, racing and learning on real MPI."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import collwise as cw
from collwise.errors import InvalidArgument, WrongResult
from collwise.measure.race import (
    ALWAYS_RACED,
    BLOCKING,
    CALLS,
    FEWER,
    LIBRARY,
    LIBRARY_PERSISTENT,
    NEXT,
    OWN,
    Race,
)  # fmt: skip
from collwise.model.levels import Levels
from collwise.model.placement import Placement
from collwise.mpi.bench import race_harness
from collwise.mpi.bench.clock import _SPIN_S, CommonClock, StartingLine
from collwise.mpi.bench.measuring import run_campaign
from collwise.mpi.bench.placing import NamedPlacement, find_placement, pair_times, worth_measuring
from collwise.mpi.bench.race_harness import RaceHarness, race, time_competitors
from collwise.mpi.bench.workloads import COMPOSITIONS, Competitor, Workload
from collwise.mpi.engine.loading import SERVING
from collwise.mpi.library.own_algorithms import catalogue
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.mpi.runtime.world import describe
from collwise.papers import measured
from collwise.planner.choose import problem_for
from collwise.profiles.profile import Profile, with_measurements
from collwise.profiles.records import FORMS, Form
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.system.host import affinity, core_limit
from collwise.tuning import session as sessions
from collwise.tuning.outcomes import Outcome, Task
from collwise.tuning.scan_races import scan
from collwise.tuning.scanning import MESSAGES, neighbours
from collwise.tuning.session import Session
from tests.mpi.programs.alike import assumed, check_call, works
from tests.mpi.programs.checks import check, logged, raises, replaced
from tests.profiles.example import point, won_race
from tests.tuning import examples


@check
def a_campaign_and_a_race_teach_a_profile(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        with raises(InvalidArgument) as refusal:
            run_campaign(comm, describe(comm), budget_s=1)
        assert "2 ranks" in str(refusal.value)
        return
    world = describe(comm)
    private = PrivateCommunicator(comm)
    profile = run_campaign(private.comm, world, budget_s=0.4, sizes=(65536, 262144), seed=3)
    assert len(set(comm.allgather(profile.to_json()))) == 1
    assert all(point.t0_s > 0 for point in profile.points)
    task = Task(Problem("broadcast", comm.size, 2048, comm.size - 1))
    with Session(comm, world) as session:
        outcome = session.race(task, profile, 0.3, repetitions=8, form="nonblocking")
        short, long = (session.race(task, profile, budget_s, 2) for budget_s in (1e-6, 60.0))
    assert [*short.races] == [*ALWAYS_RACED], "there is no time for others"
    assert [*long.races] == [*FORMS]
    for form, raced in long.races.items():
        assert raced.samples.keys() > {*CALLS[form].defaults}
    assert len(set(comm.allgather(outcome.race.winner))) == 1
    assert all(1 <= len(times) <= 8 for times in outcome.race.samples.values())
    learned = profile.with_race_results(outcome.results)
    made = {profile.provenance.engine, *(race.engine for race in learned.race_results)}
    assert made == {comm.bcast(SERVING.name)}
    assert {win.form for win in learned.race_results} == {*FORMS}
    works(cw.Comm(comm, profile=learned))
    private.free()


class Watched(Session):
    """Notes the seeds of its races, and the placements of their schedules."""

    seeds: tuple[int, ...] = ()
    placements: frozenset[Placement | None] = frozenset()

    def compare(self, *arguments: Any, **named: Any) -> Any:
        self.seeds += (named["seed"],)
        self.placements |= {schedule.problem.placement for schedule in arguments[1].values()}
        return super().compare(*arguments, **named)


@check
def what_is_impossible_is_raced_again(comm: MPI.Intracomm) -> None:
    """With a t0 of a second, every time is below the bound."""
    world = describe(comm)
    if comm.size == 1:
        return
    with (session := Watched(comm, world)):
        task = Task(Problem("broadcast", comm.size, 2048))
        profile = with_measurements(assumed(world), points=(point(8, t0_s=1.0),))
        outcome = session.race(task, profile, 0.1, repetitions=3)
    assert session.seeds == (0, 1)
    assert {d.used for d in outcome.decisions} == {"library"}


@check
def only_what_is_named_is_raced(comm: MPI.Intracomm) -> None:
    """With settings that its label has; all of the library's, however short the time is."""
    world = describe(comm)
    if comm.size == 1:
        return
    profile, task = assumed(world), Task(Problem("broadcast", comm.size, 2048))
    with Session(comm, world) as session:
        planned = session.race(task, profile, 1e-6, 2, ["postal_tree(lam=7/2)", "binomial"])
        of_library = session.race(task, profile, 1e-6, 2, ["broadcast/flat", OWN])
        with raises(InvalidArgument):
            session.race(task, profile, 1e-6, 2, ["library:no_such"])
        other = {*catalogue("Bcast", "blocking").algorithms}
        for name in sorted(other - {*catalogue("Bcast", "nonblocking").algorithms})[:1]:
            with raises(InvalidArgument) as refusal:
                session.race(task, profile, 1e-6, 2, [OWN + name], form="nonblocking")
            assert f"broadcast/{OWN}{name} as nonblocking calls" in str(refusal.value)
    trees = {"broadcast/postal_tree(lam=7/2)", "broadcast/binomial"}
    raced = {label.removesuffix(BLOCKING) for label in planned.everything.samples}
    assert raced == {*trees, LIBRARY, LIBRARY_PERSISTENT}
    others = {label for label in of_library.everything.samples if "flat" not in label}
    named = {label for label in others if f"/{OWN}" in label}
    assert named | {LIBRARY, LIBRARY_PERSISTENT} == others
    possible = catalogue("Bcast", "blocking").algorithms
    assert bool(named) == bool(possible)


class Late(Session):
    """Measuring takes all of a budget of ten seconds, and each race takes one, on its own clock."""

    now_s = 0.0

    def measure(self, *_: Any, **__: Any) -> Profile:
        self.now_s = 10.0
        return assumed(self.world)

    def race(self, *_: Any, **__: Any) -> Outcome:
        self.now_s += 1
        return examples.outcome(8)


@check
def races_have_their_share_of_the_budget(comm: MPI.Intracomm) -> None:
    """Measuring on busy cores took all of it."""
    with (late := Late(comm, describe(comm))):
        tasks = {Task(Problem("broadcast", comm.size, 8 + n)): 0.0 for n in range(12)}
        with replaced(sessions, time=SimpleNamespace(monotonic=lambda: late.now_s)):
            tuning = late.tune(tasks, 10.0)
    share = round(10 * (1 - sessions.MEASURING_SHARE))
    assert (len(tuning.outcomes), len(tuning.unraced)) == (share, len(tasks) - share)


@check
def levels_are_measured_and_used(comm: MPI.Intracomm) -> None:
    """Two ranks on a node each, as somebody says; all of them are on one host."""
    world = describe(comm)
    assert find_placement(comm, world) == NamedPlacement(Placement.of(ranks=comm.size))
    times_s = pair_times(comm, range(comm.size))
    if comm.rank == 0:
        others = ~np.eye(comm.size, dtype=bool)
        assert (times_s == times_s.T).all()
        assert (times_s[others] > 0).all()
    if comm.size < 4:
        return
    placement = Placement.of([rank // 2 for rank in range(comm.size)])
    levels = worth_measuring(world, placement)
    assert (levels.placement, levels.names, levels.groups) == (placement, ("rack",), {})
    profile = run_campaign(comm, world, budget_s=0.4, sizes=(8, 2048), seed=1, levels=levels)
    assert len(set(comm.allgather(profile.to_json()))) == 1
    assert [(level.name, level.ranks) for level in profile.levels] == [("rack", 2)]
    assert {time.nbytes for time in profile.levels[0].port} <= {8, 2048}
    assert profile.provenance.ranks == comm.size
    task = Task(Problem("broadcast", comm.size, 2048))
    with (session := Watched(comm, world, placement=placement)):
        session.race(task, profile, 0.01, 3, ["multilevel"])
    assert session.placements == {placement}
    with Session(comm, world, placement=Placement.regular(comm.size, 1)) as apart:
        alone = apart.measure(0.1, (8,))
    assert alone.levels == ()
    said = (
        f"1 level of the placement {comm.size} × 1 rank left out: no two ranks meet there, or all"
    )
    assert alone.advice[-1] == f"{said} are in one group", alone.advice
    # The search for an order takes seconds on 8 ranks, and each of them would have to do it.
    algorithms = {} if comm.size == 4 else {"broadcast": "multilevel"}
    ours = cw.Comm(
        comm, profile=profile, effort="estimate", placement=placement, algorithms=algorithms
    )
    made = ours.plan("broadcast", 2048)
    assert made is not None
    assert isinstance(made.machine, Levels)
    assert made.machine.placement == placement
    check_call(ours, "Bcast", 500, comm.size - 1)
    part = ours.Split(comm.rank // 4, comm.rank)  # nobody is asked again
    assert isinstance(part, cw.Comm)
    placed = part.plan("broadcast", 2048) if part.size > 1 else None
    assert placed is None or placed.problem.placement == placement.part(range(part.size))
    found_anew = cw.Comm(comm, profile=profile, effort="estimate").plan("broadcast", 2048)
    assert found_anew is not None
    assert found_anew.machine == profile.machine  # one node, and no levels in it, as times tell
    deep = Placement.of(range(comm.size), placement.groups[0])
    with raises(InvalidArgument, match="3 levels; the profile has 2; give as many"):
        cw.Comm(comm, profile=profile, placement=deep)


@check
def ranks_agree_about_levels(comm: MPI.Intracomm) -> None:
    """All or rank 0 alone say where the ranks are; parts of a communicator have their part."""
    if comm.size < 4:
        return
    placement = Placement.of([rank // 2 for rank in range(comm.size)])
    other = Placement.of([rank % 2 for rank in range(comm.size)])
    laws = [cw.Machine.postal(t0_s="1e-6", lam=2), cw.Machine.postal(t0_s="9e-6", lam=3)]
    machine = cw.Machine.levels(laws, placement)
    named = {"broadcast": "binomial", "allreduce": "recursive_doubling"}  # no search for the best
    given: Any = {"machine": machine, "algorithms": named}
    with raises(InvalidArgument, match=r"elsewhere .*0, 0, 1, 1.*pass machine.placed\(placement\)"):
        cw.Comm(comm, **given, placement=other if comm.rank == 0 else None)
    with raises(InvalidArgument, match="rank 2 gives .*0, 1, 0, 1.*; rank 0, .*0, 0, 1, 1"):
        cw.Comm(comm, **given, placement=other if comm.rank == 2 else placement)
    odd: Any = "2x2" if comm.rank == 2 else placement
    with raises(InvalidArgument, match="rank 2 gives '2x2'; rank 0, .*0, 0, 1, 1"):
        cw.Comm(comm, machine=laws[0], placement=odd)
    with raises(InvalidArgument, match="give the same on all ranks, or on rank 0 only"):
        cw.Comm(comm, machine=machine.placed(other) if comm.rank == 3 else machine)
    with raises(InvalidArgument, match=f"{comm.size} ranks: the placement has 3"):
        cw.Comm(comm, machine=machine.placed(Placement.of([0, 1, 1])))
    # A machine without levels plans as if there were no placement, in parts of the ranks as well.
    works(cw.Comm(comm, machine=laws[0], algorithms=named, placement=placement))
    given["machine"] = machine.placed(other)
    ours = cw.Comm(comm, **given, placement=other if comm.rank == 0 else None)
    ranks = [rank for rank in reversed(range(comm.size)) if rank % 2 == comm.rank % 2]
    part = ours.Split(comm.rank % 2, -comm.rank)
    assert isinstance(part, cw.Comm)
    for made, placed in ((ours, other), (part, other.part(ranks))):
        plan = made.plan("broadcast", 64)
        assert plan is not None
        assert plan.problem.placement == (placed if placed.depth > 1 else None)
        check_call(made, "Bcast", 16, 1)


@check
def who_is_behind_leaves_and_narrow_intervals_end_a_race(comm: MPI.Intracomm) -> None:
    harness = RaceHarness(private := PrivateCommunicator(comm), oversubscribed=True)
    naps_s = {"library": 4e-3, "near": 4e-3, "far": 0.4}
    naps = [
        Competitor(label, partial(time.sleep, nap_s), lambda: None)
        for label, nap_s in naps_s.items()
    ]
    budget_s = 0.1 if comm.rank == 0 else 1000.0  # rank 0 decides for all who leaves, and when
    samples, *_ = time_competitors(harness, naps, budget_s, 30, 0, behind=1.5)
    assert len(samples["near"]) == len(samples["library"]) >= 3
    assert len(samples.get("far", ())) <= 1
    ends = [
        len(time_competitors(harness, naps[:2], 60.0, 25, 0, within=within)[0]["near"])
        for within in (1e6, 0.0)
    ]
    assert ends[0] < ends[1] == 25
    private.free()


@check
def allgathers_are_raced_and_learnt(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    private, world = PrivateCommunicator(comm), describe(comm)
    problem = Problem.of("allgatherv", comm.size, [40, 9], sources=[0, comm.size - 1])
    names = ("ring", "br_lin")
    ran = race(
        RaceHarness(private, world.oversubscribed),
        problem,
        {name: cw.ALGORITHMS[f"allgatherv/{name}"].solve(problem, {}) for name in names},
        dict.fromkeys(names, 1e-6),
        budget_s=0.2,
        repetitions=3,
    )
    assert {"library", "ring", "br_lin (blocking)"} <= set(ran.samples)
    won = won_race(
        collective="allgatherv", algorithm="allgatherv/bruck", ranks=comm.size, nbytes=49, sources=2
    )
    ours = cw.Comm(comm, profile=assumed(world, won))
    made = ours.plan("allgatherv", 20, sources=[0, 1])
    assert made is not None
    assert made.algorithm == "allgatherv/bruck"
    assert ours.plan("allgatherv", 20, sources=[0, 1], form="persistent") is None
    assert ours.plan("allgatherv", 1000, sources=[0, 1]) is None
    why = ours.explain("allgatherv", 20, sources=[0, 1])
    assert why == made.choice.verdict.replace("chosen", "allgatherv/bruck")
    for engine, clause in (
        (SERVING.name, ""),
        ("abacus", f"; measured with the abacus engine, while {SERVING.name} serves: tune again"),
    ):
        other = msgspec.structs.replace(won, engine=engine)
        again = cw.Comm(comm, profile=assumed(world, other))
        assert again.explain("allgatherv", 20, sources=[0, 1]) == why + clause
    of_all = ours.explain("allgatherv", 1000)
    assert of_all == ours.explain("allgatherv", 1000, sources=range(comm.size))
    mine, result = np.full(int(comm.rank < 2), comm.rank), np.full(2, -1)
    counts = [1, 1] + [0] * (comm.size - 2)
    ours.Allgatherv(mine, [result, counts])
    assert np.array_equal(result, [0, 1])
    private.free()


@check
def bound_ranks_have_their_cores_together(comm: MPI.Intracomm) -> None:
    """Each on a core of its own, as launchers bind them: they do not share one."""
    usable = sorted(affinity())
    os.sched_setaffinity(0, {usable[comm.rank % len(usable)]})
    try:
        world = describe(comm)
    finally:
        os.sched_setaffinity(0, usable)
    assert world.cores == min(comm.size, len(usable), core_limit())
    assert world.oversubscribed == (comm.size > world.cores)
    assert world.ranks_per_node == f"1x{comm.size}"


@check
def who_loses_his_core_while_he_waits_is_late(comm: MPI.Intracomm) -> None:
    """The start that a rank really made counts, not that it had come to the line in time."""
    line = StartingLine(comm, CommonClock(comm), oversubscribed=True)
    line.notice_s = lost_s = 0.05
    lost: list[float] = []

    def lose() -> None:
        lost.append(lost_s)
        time.sleep(lost_s)

    if comm.rank == comm.size - 1:
        line._pause = lose
    for _ in range(20):  # on a busy machine it may come too late to wait
        began, _ = line.line_up()
        if comm.bcast(bool(lost), root=comm.size - 1):
            break
    assert began >= line._named[0]
    assert not lost or began >= line._named[0] + lost_s - _SPIN_S


@check
def nobody_starts_before_the_last_has_come(comm: MPI.Intracomm) -> None:
    """Rank 0 is done with what was timed before long before the last rank is."""
    line = StartingLine(comm, CommonClock(comm), oversubscribed=True)
    line.notice_s = 0.01
    if comm.rank == comm.size - 1:
        time.sleep(5 * line.notice_s)
    came = time.perf_counter()
    began, _ = line.line_up()
    assert began >= comm.allreduce(came, MPI.MAX)


def spoilt(comm: MPI.Intracomm, library: Callable[[], object], memory: NDArray[Any] | None) -> None:
    """What the library's own leaves, but for a byte of the last rank."""
    library()
    assert memory is not None
    if comm.rank == comm.size - 1:
        memory[42] += 1


@check
def a_wrong_byte_is_found_and_told_to_all(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    for problem in (
        Problem("broadcast", comm.size, 100),
        Problem.of("allgatherv", comm.size, 100, sources=[comm.size // 2]),
    ):
        on = Workload(private, problem, "sum", "float64")
        careless = partial(spoilt, comm, on.libraries()[0].run, on.result)
        with raises(WrongResult) as seen:
            on.check(Competitor("careless", careless, lambda: None))
        assert f"rank {comm.size - 1}" in str(seen.value)
        assert "byte 42" in str(seen.value)
        for competitor in on.libraries():
            on.check(competitor)
            competitor.free()
    private.free()


@check
def what_papers_measured_is_measured_here(comm: MPI.Intracomm) -> None:
    if comm.size != 3:
        return
    with Session(comm, describe(comm)) as session:
        drawn = [
            measured.alpha_sweep(64)(session, 0.1),
            measured.combining({"Version 2": "recursive_doubling"}, (4, 16))(session, 0.1),
        ]
        names = ("br_lin", "two_step", "xor")  # whose bytes are checked, by hand, too
        lost = measured.overheads(names, 100)(session, 0.1).value
        ratios = measured.latencies(session, 0.1).value
        middle, low, high = measured.random_order(4096)(session, 0.1).value
    assert low <= middle <= high < 100
    assert tuple(lost) == names
    assert {"α = 0.5", "α = 0.58"} < drawn[0].value.keys()  # 0.58 is the paper's best
    assert all(low <= middle <= high for middle, low, high in lost.values())
    assert min(lam for lam, _ in ratios.values()) > 0
    if comm.rank == 0:
        for (draw, _), points in zip(drawn, (13, 2), strict=True):
            assert draw
            lines = draw().axes[0].lines
            medians, predicted = (np.asarray(line.get_ydata(), dtype=float) for line in lines)
            assert len(medians) == len(predicted) == points
            assert medians.min() > 0


@check
def other_calls_leave_the_same_bytes(comm: MPI.Intracomm) -> None:
    """Each composition, for lengths that the ranks do not divide, with every rank as root."""
    private = PrivateCommunicator(comm)
    sources = [*range(comm.size)]
    for name, kind in COLLECTIVES.items():
        if kind.has_sources:
            problems = [Problem.of(name, comm.size, [40] * comm.size, sources=sources)]
        else:
            unit = kind.unit(comm.size, 8)
            roots = sources if kind.rooted else [0]
            problems = [Problem(name, comm.size, 3 * unit, root, itemsize=8) for root in roots]
        for problem in problems:
            workload = Workload(private, problem, "sum", "float64")
            made = workload.compositions()
            assert len({one.label for one in made}) == len(COMPOSITIONS[problem.method])
            for one in made:
                workload.check(one)
    private.free()


@check
def a_scan_races_the_default_with_all_there_is(comm: MPI.Intracomm) -> None:
    """All ranks find the same; no bound where ranks share cores; one task whatever the time."""
    if comm.size == 1:
        return
    tasks = [Task(Problem("allreduce", comm.size, 8 << n, itemsize=8)) for n in range(3)]
    around = neighbours(tasks[0])
    with Session(comm, describe(comm)._replace(cores=1)) as session:
        seen = scan(session, tasks, 1e-6, examples.PROFILE)
        others = {label: task.problem for label, task in around.items()}
        raced, chosen = (
            session.compare(
                tasks[0].problem, {}, {}, 0.2, neighbours=others, only=only, repetitions=3
            ).samples.keys()
            for only in (None, {LIBRARY, NEXT})
        )
    assert len(set(comm.allgather(str((seen.left_out, seen.findings))))) == 1
    assert (list(seen.medians_s), seen.left_out) == ([str(tasks[0])], list(map(str, tasks[1:])))
    together = {f"{calls}{BLOCKING}" for calls in ("Reduce + Bcast", "Reduce_scatter + Allgatherv")}
    assert raced >= {LIBRARY, *around, *together}
    assert (FEWER in raced) == (comm.size > 2)
    assert chosen == {LIBRARY, NEXT}
    assert all(finding.instead != MESSAGES for finding in seen.findings)


@check
def each_default_runs_on_one_rank_fewer(comm: MPI.Intracomm) -> None:
    """On the last rank, too, a wrong result of the others is seen."""
    if comm.size < 3:
        return
    with Session(comm, describe(comm)) as session:
        for kind in COLLECTIVES.values():
            sources = range(comm.size) if kind.has_sources else None
            problem, _ = problem_for(
                kind.name, ranks=comm.size, nbytes=8 * comm.size, sources=sources
            )
            fewer = {FEWER: Task(problem).on_fewer.problem}
            timed = partial(session.compare, problem, {}, {}, 0.2, neighbours=fewer, repetitions=2)
            assert timed(only={LIBRARY, FEWER}).samples.keys() == {LIBRARY, FEWER}
        harness = session._harness
        assert (harness.fewer is None) == (comm.rank == comm.size - 1)


@check
def a_wrong_result_of_the_library_ends_no_race(comm: MPI.Intracomm) -> None:
    """Also on fewer ranks it is seen by all.  What others are compared with stays."""
    if comm.size < 3:
        return

    class Careless(Workload):
        def default(self, label: str = LIBRARY, form: Form = "blocking") -> Competitor:
            made = super().default(label, form)
            wrong = label == FEWER or form == "nonblocking"
            return made._replace(run=lambda: None) if wrong else made

    problem = Problem("allreduce", comm.size, 64, itemsize=8)
    private = PrivateCommunicator(comm)
    harness, fewer = RaceHarness(private, oversubscribed=True), Task(problem).on_fewer.problem
    for_all = partial(race, harness, problem, {}, {}, budget_s=0.1, forms=FORMS)
    with replaced(race_harness, Workload=Careless), logged() as lines:
        raced = [for_all(neighbours={FEWER: fewer}).samples.keys() for _ in range(2)]
    for labels in raced:
        assert {LIBRARY, FEWER} <= labels
        assert f"{LIBRARY} (nonblocking)" not in labels
    wrong = [line for line in lines if "leaves wrong data" in line]
    assert len(wrong) == 2 * (comm.rank == 0), "each once"
    assert any("Iallreduce leaves" in line for line in wrong) == (comm.rank == 0)
    harness.free()
    private.free()


@check
def a_wrong_schedule_loses_no_other_race(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    seen = list[Problem]()

    class Careless(Workload):
        def candidates(self, label: str, schedule: Schedule) -> list[Competitor]:
            seen.append(self.problem)
            wrong = self.problem.nbytes != seen[0].nbytes
            made = super().candidates(label, schedule)
            return [one._replace(run=lambda: None) for one in made] if wrong else made

    tasks = {Task(Problem("allreduce", comm.size, 8 << n, itemsize=8)): 0.0 for n in (3, 5, 7)}
    kept = list[Profile]()
    careless = replaced(race_harness, Workload=Careless)
    with careless, Session(comm, describe(comm)) as session, raises(WrongResult):
        session.tune(tasks, 2.0, known=examples.PROFILE, keep=kept.append)
    numbers = [len(profile.race_results) for profile in kept]
    known = len(examples.PROFILE.race_results)
    assert [number > known for number in numbers] == ([False, True] if comm.rank == 0 else [])


@check
def a_planted_cliff_is_found(comm: MPI.Intracomm) -> None:
    """Broadcasts of more than 100 bytes wait for a while."""
    if comm.size == 1:
        return

    class Planted(Session):
        def compare(self, problem: Problem, *_: Any, **named: Any) -> Race:
            made = super().compare(problem, {}, {}, 0.01, **named)
            sizes = {LIBRARY: problem, **named["neighbours"]}
            samples = {
                label: (1e-6 if sizes.get(label, problem).nbytes <= 100 else 2e-6,) * 24
                for label in made.samples
            }
            return replace(made, samples=samples)

    tasks = [Task(Problem("broadcast", comm.size, nbytes)) for nbytes in (96, 104)]
    with Planted(comm, describe(comm)) as session:
        seen = scan(session, tasks, 20.0, examples.PROFILE)
    (found,) = (one for one in seen.findings if one.what == "broadcast of 101 bytes")
    assert (found.instead, found.ratio) == ("broadcast of 100 bytes", 2.0)

"""A tuning session: measure this machine, plan, race the best few against the library, learn."""

import logging
from collections.abc import Callable, Sequence

from collwise.errors import InvalidArgument, NothingApplies
from collwise.mpi.agreement import everywhere, on_root
from collwise.mpi.campaigns import run_campaign
from collwise.mpi.channel import Channel
from collwise.mpi.combiner import OPERATORS
from collwise.mpi.racetrack import Track, race
from collwise.mpi.world import Communicator, World
from collwise.planner.choose import shortlist
from collwise.profiles.profile import Profile
from collwise.tuning.outcomes import Outcome, Task, Tuning
from collwise.verifier import verify

log = logging.getLogger("collwise")

MEASURING_SHARE = 0.4
"""Of the time budget; the races share the rest."""
LARGEST_PROVED = 256
"""Schedules of up to so many ranks are proved right before they run."""

Progress = Callable[[str, float], None]
"""Told what is being done and how far the session is, from 0 to 1 (on rank 0)."""


def check_raceable(task: Task) -> None:
    """Refuse an operator whose result races cannot check: InvalidArgument."""
    if task.problem.kind.combines and task.op not in OPERATORS:
        raise InvalidArgument(
            f"a race with the operator {task.op}",
            "races know the result of " + ", ".join(OPERATORS),
            "race one of these; `collwise plan` takes every operator",
        )


def tune(
    comm: Communicator,
    world: World,
    tasks: Sequence[Task],
    *,
    budget_s: float,
    seed: int = 0,
    progress: Progress = lambda what, done: None,
) -> Tuning:
    """Measure, plan, race and learn.  Collective over `comm`.

    tasks: what to race, in this order.   budget_s: seconds for everything.
    Raises InvalidArgument for values out of range, WrongResult for a wrong byte, on all ranks.
    """
    if not budget_s > 0:
        raise InvalidArgument("a time budget", f"{budget_s} s", "give seconds, above 0")
    channel = Channel(comm)
    try:
        profile = run_campaign(
            channel.comm,
            world,
            budget_s=budget_s * MEASURING_SHARE,
            seed=seed,
            report=lambda done: progress("measuring t0 and λ", done * MEASURING_SHARE),
        )
        track = Track(channel, world.crowded)
        share = budget_s * (1 - MEASURING_SHARE) / max(len(tasks), 1)
        outcomes = []
        for number, task in enumerate(tasks):
            done = MEASURING_SHARE + (1 - MEASURING_SHARE) * number / len(tasks)
            progress(f"racing: {task}", done)
            try:
                outcomes.append(compare(track, profile, task, budget_s=share, seed=seed))
            except NothingApplies as nothing:  # on all ranks alike: the library's own stays
                log.warning("not raced: %s", nothing)
        progress("done", 1.0)
    finally:
        channel.free()
    results = (result for outcome in outcomes for result in outcome.results)
    return Tuning(profile.with_race_results(results), tuple(outcomes))


def compare(
    track: Track,
    profile: Profile,
    task: Task,
    *,
    budget_s: float,
    repetitions: int = 300,
    seed: int = 0,
    algorithm: str | None = None,
) -> Outcome:
    """Plan one task, prove the candidates right, race them, decide.  Collective.

    budget_s: seconds for the race.   repetitions: the most of them.   algorithm: only this one.
    Raises what `race` and `Task.plan` raise, on all ranks.
    """
    estimated = everywhere(track.comm, lambda: task.plan(profile, algorithm))
    candidates = shortlist(estimated)
    schedules = {candidate.label: candidate.schedule(task.problem) for candidate in candidates}

    def prove() -> None:
        for schedule in schedules.values():
            verify(schedule)

    if task.problem.ranks <= LARGEST_PROVED:
        on_root(track.comm, prove)
    everything = race(
        track,
        task.problem,
        schedules,
        {candidate.label: candidate.predicted_s for candidate in candidates},
        op=task.op,
        dtype=task.dtype,
        budget_s=budget_s,
        repetitions=repetitions,
        seed=seed,
    )
    return Outcome.of(task, estimated, everything)

"""Sessions as they come from MPI: real plans, made-up samples."""

import msgspec
import numpy as np

from collwise.measure.race import BLOCKING, CALLS, LIBRARY, LIBRARY_PERSISTENT, Race
from collwise.planner.choose import problem_for
from collwise.planner.shortlist import shortlist
from collwise.profiles.level_machine import filled
from collwise.profiles.profile import Profile
from collwise.profiles.records import MeasuredLevel, PortTime
from collwise.tuning.outcomes import Outcome, Task, Tuning
from tests.profiles.example import PROVENANCE, SIZES, point, profile

RANKS = 5
PROFILE = profile()


ON_NODES = msgspec.structs.replace(PROVENANCE, hosts={"a": 2, "b": 2, "c": 1})
NODE = MeasuredLevel(
    name="node",
    ranks=2,
    points=tuple(point(nbytes, "nonblocking", 2.0) for nbytes in SIZES),
    port=(
        PortTime(nbytes=8, senders=2, port_s=0.0, port_interval_s=None, repetitions=3),
        PortTime(
            nbytes=4096, senders=2, port_s=4.2e-5, port_interval_s=(4e-5, 5e-5), rank_s=2e-6,
            rank_interval_s=(0.0, 2.1e-6), repetitions=3,
        ),
    ),
)  # fmt: skip
FAR = tuple(point(n, "nonblocking", 8.0, t0_s=(100 + n) / 1e8) for n in SIZES)
WITH_NODES = profile(FAR, provenance=ON_NODES, levels=(NODE,))
"""Nodes of up to two ranks; messages between them take longer."""


def outcome(
    nbytes: int = 4096,
    gain: float = 1.5,
    blocking_gain: float = 0.8,
    nonblocking_gain: float | None = None,
    repetitions: int = 30,
    noise: float = 0.02,
    dropped: int = 0,
    algorithm: str | None = None,
    sources: tuple[int, ...] | None = None,
    measured: Profile = PROFILE,
    bound_s: float = 0.0,
) -> Outcome:
    """A race that the planned schedule wins by `gain`; as blocking calls, by `blocking_gain`.

    The library's persistent form is a tenth slower than its blocking one.   nonblocking_gain: None
    if there was no time for nonblocking calls, which take twice as long.   sources: of an s-to-p
    broadcast; of a broadcast from rank 1 if there are none.   measured: the machine.
    """
    if sources is None:
        problem, reason = problem_for("broadcast", ranks=RANKS, nbytes=nbytes, root=1)
    else:
        problem, reason = problem_for("allgatherv", ranks=RANKS, nbytes=nbytes, sources=sources)
    task = Task(problem, reason=reason)
    estimate = task.plan(measured, algorithm, filled(measured.measurements, RANKS))
    picked = shortlist(estimate)
    middles = {LIBRARY: 1e-5, LIBRARY_PERSISTENT: 1.1e-5}
    for place, candidate in enumerate(picked):
        middles[candidate.label] = 1e-5 / gain * (1 + place)
        middles[candidate.label + BLOCKING] = 1e-5 / blocking_gain * (1 + place)
    if nonblocking_gain is not None:
        later = CALLS["nonblocking"]
        middles[later.defaults[0]] = 2e-5
        for place, candidate in enumerate(picked):
            middles[candidate.label + later.ending] = 2e-5 / nonblocking_gain * (1 + place)
    random = np.random.default_rng(nbytes)
    everything = Race(
        problem.collective,
        RANKS,
        problem.nbytes,
        problem.root,
        {
            label: tuple(map(float, middle * random.lognormal(0, noise, repetitions)))
            for label, middle in middles.items()
        },
        {candidate.label: candidate.predicted_s for candidate in picked},
        dropped,
        bound_s=bound_s,
    )
    return Outcome.of(task, estimate, everything)


def alone(nbytes: int = 8) -> Outcome:
    """A size at which nothing but the library's own ran."""
    made = outcome(nbytes)
    return Outcome(made.task, made.plan, made.race.among([LIBRARY, LIBRARY_PERSISTENT]))


def session(*outcomes: Outcome, measured: Profile = PROFILE) -> Tuning:
    """What `tune` gives for these."""
    return Tuning.of(measured, outcomes)

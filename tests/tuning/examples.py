"""Sessions as they come from MPI: real plans, made-up samples."""

import numpy as np

from collwise.measure.race import BLOCKING, LIBRARY, LIBRARY_PERSISTENT, Race
from collwise.planner.choose import problem_for, shortlist
from collwise.tuning.outcomes import Outcome, Task, Tuning
from tests.figures.examples import profile

RANKS = 5
PROFILE = profile()


def outcome(
    nbytes: int = 4096,
    gain: float = 1.5,
    blocking_gain: float = 0.8,
    repetitions: int = 30,
    noise: float = 0.02,
    dropped: int = 0,
    algorithm: str | None = None,
    sources: tuple[int, ...] | None = None,
) -> Outcome:
    """A race that the planned schedule wins by `gain`; as blocking calls, by `blocking_gain`.

    The library's persistent form is a tenth slower than its blocking one.   sources: of an s-to-p
    broadcast; of a broadcast from rank 1 if there are none.
    """
    if sources is None:
        problem, reason = problem_for("broadcast", ranks=RANKS, nbytes=nbytes, root=1)
    else:
        problem, reason = problem_for("s_to_p", ranks=RANKS, nbytes=nbytes, sources=sources)
    task = Task(problem, reason=reason)
    estimate = task.plan(PROFILE, algorithm)
    picked = shortlist(estimate)
    middles = {LIBRARY: 1e-5, LIBRARY_PERSISTENT: 1.1e-5}
    for place, candidate in enumerate(picked):
        middles[candidate.label] = 1e-5 / gain * (1 + place)
        middles[candidate.label + BLOCKING] = 1e-5 / blocking_gain * (1 + place)
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
    )
    return Outcome.of(task, estimate, everything)


def alone(nbytes: int = 8) -> Outcome:
    """A size at which nothing but the library's own ran."""
    made = outcome(nbytes)
    own = made.race.among([LIBRARY, LIBRARY_PERSISTENT])
    return Outcome(made.task, made.plan, own, made.race.among([LIBRARY]))


def session(*outcomes: Outcome) -> Tuning:
    """What `tune` gives for these."""
    return Tuning(PROFILE.with_race_results(r for o in outcomes for r in o.results), outcomes)

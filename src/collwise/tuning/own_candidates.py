"""Picks which of the MPI library's own algorithms to race."""

import re
from collections.abc import Sequence
from fractions import Fraction

from collwise.measure.race import CALLS, OWN
from collwise.mpi.library.own_algorithms import worth_racing
from collwise.planner.plans import Candidate, Plan
from collwise.planner.shortlist import MOST_SLOWER
from collwise.profiles.records import Form

_LATER = re.compile("^(sched|tsp)_")
"""The prefixes of MPICH's names of algorithms for non-blocking and persistent calls."""


def own_candidates(
    estimated: Plan, forms: Sequence[Form], *, composed: bool
) -> dict[str, Candidate]:
    """The library's own algorithms to race in some forms of calls, by label.

    The library's algorithm gets the prediction of the planner's algorithm of the same name, if any.
    Algorithms predicted to take over MOST_SLOWER times as long as the plan's choice are left out.
    Those without a prediction come first, since a race tells most about them; then the fastest.
    composed: whether there are several nodes, some of several ranks: the library then composes.
    """
    problem = estimated.problem
    method, about = problem.method, f"{problem.collective}/"
    known_s = {c.name: c.predicted for c in reversed(estimated.candidates)}
    limit_s = MOST_SLOWER * estimated.choice.predicted
    found = []
    for form in forms:
        for name, settings in worth_racing(method, problem.ranks, composed=composed, form=form):
            time_s = known_s.get(about + _LATER.sub("", name))
            candidate = Candidate(f"{about}{OWN}{name}", settings, Fraction(0))
            if time_s is None or time_s <= limit_s:
                found.append((time_s or 0, candidate.label + CALLS[form].ending, candidate))
    return {label: candidate for _, label, candidate in sorted(found, key=lambda one: one[0])}

"""Picks which of the MPI library's own algorithms to try, and in which order."""

import logging
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from collwise.measure.race import BEHIND, CALLS, OWN
from collwise.mpi.library.own_algorithms import catalogue, to_set_before, worth_racing
from collwise.planner.own_times import predicted_own
from collwise.planner.plans import Candidate, Plan
from collwise.planner.shortlist import MOST_SLOWER
from collwise.profiles.records import Form

_warn_once = cache(logging.getLogger("collwise").warning)


def own_candidates(
    estimated: Plan, method: str, forms: Sequence[Form], *, composed: bool
) -> dict[str, Candidate]:
    """The library's own algorithms to try in some forms of calls of a method, by label.

    The fastest by prediction come first, then those without a prediction, then those that are
    predicted to be so far behind the plan's choice that they would leave a race (BEHIND).  Those
    predicted to take over MOST_SLOWER times as long are left out.
    composed: whether there are several nodes, some of several ranks: the library then composes.
    """
    if reason := to_set_before():
        _warn_once("the library's own algorithms of blocking calls are not tried: %s", reason)
    problem, best_s = estimated.problem, estimated.choice.predicted
    timed, others = list[tuple[Fraction, str, Candidate]](), dict[str, Candidate]()
    for form in forms:
        known = catalogue(method, form).algorithms
        for name, settings in worth_racing(method, problem.ranks, composed=composed, form=form):
            candidate = Candidate(f"{problem.collective}/{OWN}{name}", settings, Fraction(0))
            label, own = candidate.label + CALLS[form].ending, known[name]
            time_s = None
            flat = own.flat is not None and settings.get("composition") == own.flat
            if not own.compositions or not composed or flat:
                time_s = predicted_own(estimated, own.library, method, name, own.in_force(settings))
            if time_s is None:
                others[label] = candidate
            elif time_s <= MOST_SLOWER * best_s:
                timed.append((time_s, label, candidate))
    timed.sort(key=lambda one: one[0])
    near = {label: one for time_s, label, one in timed if time_s <= Fraction(BEHIND) * best_s}
    return near | others | {label: one for _, label, one in timed if label not in near}

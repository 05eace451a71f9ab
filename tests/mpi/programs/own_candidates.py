"""Checks of which of the library's own algorithms are tried: those like ours are predicted."""

from collections.abc import Callable
from fractions import Fraction

from mpi4py import MPI

import collwise as cw
from collwise.algorithms.registry import ALGORITHMS
from collwise.comm.own_candidates import own_candidates
from collwise.measure.race import BEHIND, OWN, form_of, own_algorithm
from collwise.model.machine import Machine
from collwise.mpi.library.fingerprints import broadcast_tree, combined, folded
from collwise.mpi.library.own_algorithms import catalogue
from collwise.planner.choose import plan_for
from collwise.planner.own_times import ours_of, predicted_own
from collwise.profiles.records import FORMS, Form
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.operations import Recv
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.tuning.known_shapes import tree_text
from collwise.verifier.contributions import expressions_of
from tests.mpi.programs.alike import perform, wrapped
from tests.mpi.programs.checks import check

OPEN_MPI = MPI.get_vendor()[0] == "Open MPI"
COMPARED = 10
"""The fewest algorithms that either library has like ours, in two forms of calls."""


class InForm(MPI.Intracomm):
    """A communicator whose collectives are those of another one, in one form."""

    def by(self, ours: cw.Comm, form: Form) -> "InForm":
        self.ours, self.form = ours, form
        return self


def _in_form(method: str) -> Callable[..., None]:
    return lambda self, *arguments: perform(self.form, self.ours, method, *arguments)


for _method in ("Bcast", "Reduce", "Allreduce", "Reduce_scatter_block"):
    setattr(InForm, _method, _in_form(_method))


def shape(expression: str) -> str:
    """An expression without the numbers of the ranks."""
    return folded(expression, lambda _: ".", lambda *two: f"({' '.join(sorted(two))})")


def shapes_of(schedule: Schedule) -> set[str]:
    """Of its tree if it broadcasts, empty if it has none; of its expressions if it combines."""
    if schedule.problem.kind.combines:
        return {shape(one) for here in expressions_of(schedule) for one in here}
    peers = [{op.peer for op in here if isinstance(op, Recv)} for here in schedule.lists]
    if any(len(here) > 1 for here in peers):
        return set()
    return {tree_text([next(iter(here), None) for here in peers], numbered=False)}


def shapes_seen(comm: MPI.Intracomm, method: str) -> set[str]:
    if method != "Bcast":
        seen = combined(comm, method, 64 * comm.size)
        return {shape(one) for one in seen.values}
    tree = broadcast_tree(comm, 64)
    return {tree_text(tree.parents, numbered=False)} if tree.parents else set()


@check
def what_is_ours_too_looks_like_ours(comm: MPI.Intracomm) -> None:
    """But for the ranks' numbers; broadcasts in pieces show no tree."""
    if not 3 < comm.size <= 5:
        return
    compared = 0
    with wrapped(comm) as ours:
        for collective in (kind for kind in COLLECTIVES.values() if not kind.has_sources):
            (method,) = collective.methods
            problem = Problem(collective.name, comm.size, 64 * comm.size, itemsize=8)
            for form in FORMS[::2]:
                for name, own in catalogue(method, form).algorithms.items():
                    found = ours_of(own.library, method, name, problem, own.in_force({}))
                    if found is None:
                        continue
                    expected = shapes_of(ALGORITHMS[found[0]].solve(problem, found[1]))
                    view = ours.using(**{collective.name: f"{OWN}{name}"})
                    seen = shapes_seen(InForm(comm).by(view, form), method)
                    assert seen == expected, (form, name, found)
                    compared += 1
    assert compared >= COMPARED


@check
def the_fastest_by_prediction_are_tried_first(comm: MPI.Intracomm) -> None:
    """Then those without a prediction, then those behind; a chain of 32 is not tried at all."""
    problem, machine = Problem("broadcast", 32, 64), Machine.postal(t0_s="1e-6", lam=2)
    estimated = plan_for(problem, machine)
    tried = own_candidates(estimated, "Bcast", FORMS, composed=False)
    times = list[Fraction | None]()
    for label, candidate in tried.items():
        name = own_algorithm(candidate.name) or ""
        own = catalogue("Bcast", form_of(label)).algorithms[name]
        about = own.library, "Bcast", name, own.in_force(candidate.settings)
        times.append(predicted_own(estimated, *about))
    timed = sorted(time for time in times if time is not None)
    near = [time for time in timed if time <= Fraction(BEHIND) * estimated.choice.predicted]
    unknown = [time for time in times if time is None]
    assert times == [*near, *unknown, *timed[len(near) :]]
    assert len(timed) >= 2
    assert near
    assert unknown
    chains = {"library:pipeline", "library:tsp_ring"}
    every = {f"{OWN}{name}" for form in FORMS for name in catalogue("Bcast", form).algorithms}
    assert chains & every
    assert not chains & {candidate.name.partition("/")[2] for candidate in tried.values()}


@check
def what_the_library_composes_has_no_prediction(comm: MPI.Intracomm) -> None:
    """Where nodes have several ranks, each candidate says how it is composed, if it is."""
    estimated = plan_for(Problem("broadcast", 32, 64), Machine.postal(t0_s="1e-6", lam=8))
    tried = own_candidates(estimated, "Bcast", ["blocking"], composed=True)
    known = catalogue("Bcast", "blocking").algorithms
    said = list[str]()
    for candidate in tried.values():
        own = known[own_algorithm(candidate.name) or ""]
        if own.compositions:
            said.append(own.compositions[candidate.settings["composition"]])
    assert bool(said) != OPEN_MPI
    assert not said or {"NM only", "Auto selection"} <= {*said}, said

"""A plan as JSON, and what documents of plans, races and simulations have in common."""

from collections.abc import Mapping
from typing import Any

from collwise.measure.race import by_library
from collwise.model.exact import seconds
from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.planner.plans import Plan
from collwise.planner.race_lookup import Verdict
from collwise.profiles.profile import Profile
from collwise.profiles.records import Form
from collwise.report.tables import attributes
from collwise.schedule.problem import Problem
from collwise.system import formatting


def plan_document(plan: Plan, origin: str) -> dict[str, Any]:
    """A plan as JSON.  Times in seconds.   origin: where the machine comes from."""
    return {
        **problem_document(plan.problem, plan.machine, plan.topology, origin, plan.reason),
        "algorithm": plan.algorithm,
        "settings": {name: str(value) for name, value in plan.settings.items()},
        "predicted_s": None if by_library(plan.algorithm) else plan.predicted_s,
        "estimate": plan.choice.estimate,
        "simulated": plan.simulated,
        "spent_s": {where: seconds(time) for where, time in plan.level_times.items()},
        "lower_bound_s": plan.lower_bound_s,
        "lower_bound": plan.bound.argument,
        "unsegmented_bound_s": plan.unsegmented_bound.time_s,
        "candidates": [
            attributes(one, "label", "predicted_s", "estimate", "verdict")
            for one in plan.candidates
        ],
        "excluded": dict(plan.excluded),
        "remarks": list(plan.remarks),
    }


def served_lines(profile: Profile | None, served: Mapping[Form, Verdict]) -> list[str]:
    """Lines: a profile's verdict, and what serves each form of call; [] without a profile."""
    if profile is None:
        return []
    made = profile.provenance
    measured = f"measured on {formatting.count(made.ranks, 'rank')} at {made.created}"
    measured += f" with the {made.engine} engine" * bool(made.engine)
    lines = [f"{form:<13}{verdict}" for form, verdict in served.items()]
    return [f"profile      {profile.verdict}; {measured}", *lines]


def served_document(profile: Profile | None, served: Mapping[Form, Verdict]) -> dict[str, Any]:
    """As JSON, a profile's verdict, and what serves each form of call; {} without a profile."""
    if profile is None:
        return {}
    calls = {form: attributes(by, "algorithm", "because") for form, by in served.items()}
    return {"profile_verdict": profile.verdict, "served": calls}


def notes(problem: Problem, machine: Machine) -> list[str]:
    """Remarks on a machine with levels whose times at this size look like a mistake."""
    return list(machine.oddities(problem.nbytes)) if isinstance(machine, Levels) else []


def problem_document(
    problem: Problem, machine: Machine, topology: Topology | None, origin: str, reason: str
) -> dict[str, Any]:
    """A problem and the machine to solve it on, as JSON.

    origin: where the machine comes from.   reason: why contributions are combined in this order.
    """
    return {
        **attributes(problem, "collective", "ranks", "nbytes", "root", "order"),
        "item": problem.itemsize,
        "order_because": reason,
        **sources_document(problem),
        "machine": machine.describe(),
        "machine_notes": notes(problem, machine),
        "machine_from": origin,
        "topology": topology.describe() if topology is not None else None,
    }


def sources_document(problem: Problem) -> dict[str, Any]:
    """The sources and the mesh as JSON; empty for a collective that has none."""
    if not problem.kind.has_sources:
        return {}
    return {
        "sources": [source._asdict() for source in problem.sources],
        "shape": list(problem.shape),
    }
